//! The verdicts of `buf breaking`, over pairs of schemas that differ in one
//! thing or a few.
//!
//! `verdicts.txt` holds what buf said, so that the rules are tested where it is
//! not installed; where it is, the table is checked too (`UPDATE_VERDICTS=1`
//! writes it).

mod edits;
mod oracle;
mod pairs;

use std::collections::{BTreeMap, BTreeSet};

use quill_compat::{Rule, RuleSet, compare};

use oracle::Buf;
use pairs::Pair;

const VERDICTS: &str = include_str!("verdicts.txt");

/// The rules that a change is against, in one line.
type Rules = BTreeSet<String>;

fn table() -> BTreeMap<String, Rules> {
    let lines = VERDICTS.lines().filter(|line| !line.starts_with('#'));
    let entries = lines.map(|line| {
        let (name, rules) = line
            .split_once(": ")
            .unwrap_or((line.trim_end_matches(':'), ""));
        (
            name.to_owned(),
            rules.split_whitespace().map(str::to_owned).collect(),
        )
    });
    entries.collect()
}

/// What this crate says, by the sets one after another.
fn ours(pair: &Pair) -> Rules {
    let (old, new) = (oracle::compile(&pair.old), oracle::compile(&pair.new));
    let found = RuleSet::ALL.into_iter().flat_map(|set| {
        let found = compare(&old, &new, set);
        found.into_iter().map(|found| found.rule.id().to_owned())
    });
    found.collect()
}

#[test]
fn breaks_are_those_that_buf_finds() {
    let pairs = pairs::all();
    assert!(pairs.len() >= 150, "{} pairs", pairs.len());
    let names: BTreeSet<_> = pairs.iter().map(|pair| &pair.name).collect();
    assert_eq!(names.len(), pairs.len(), "a name is used twice");
    let table = table();
    let mut wrong = Vec::new();
    for pair in &pairs {
        let (ours, bufs) = (ours(pair), table.get(&pair.name));
        if bufs != Some(&ours) {
            wrong.push(format!("{}:\n  ours {ours:?}\n  buf's {bufs:?}", pair.name));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn the_table_is_what_buf_says() {
    let Some(buf) = Buf::find() else {
        return;
    };
    let pairs = pairs::all();
    let said = buf.verdicts(&pairs);
    if std::env::var_os("UPDATE_VERDICTS").is_some() {
        oracle::write_table(&said);
        return;
    }
    let table = table();
    for (name, rules) in &said {
        assert_eq!(table.get(name), Some(rules), "{name}");
    }
    assert_eq!(table.len(), said.len(), "the table has pairs of the past");
}

/// Each set by itself, as a user of buf asks for it, of pairs of every kind.
#[test]
fn a_set_breaks_when_bufs_does() {
    let Some(buf) = Buf::find() else {
        return;
    };
    let pairs = pairs::all();
    for pair in pairs.iter().step_by(17) {
        let (old, new) = (oracle::compile(&pair.old), oracle::compile(&pair.new));
        for set in RuleSet::ALL {
            let breaks = !compare(&old, &new, set).is_empty();
            let bufs = !buf.verdict(pair, &[set.name()]).is_empty();
            assert_eq!(breaks, bufs, "{} by {}", pair.name, set.name());
        }
    }
}

#[test]
fn rules_are_in_the_sets_that_buf_has_them_in() {
    let Some(buf) = Buf::find() else {
        return;
    };
    let names = RuleSet::ALL.map(RuleSet::name);
    let ours: BTreeMap<String, BTreeSet<String>> = Rule::all()
        .iter()
        .map(|rule| {
            let sets = rule.sets().iter().map(|set| set.name().to_owned());
            (rule.id().to_owned(), sets.collect())
        })
        .collect();
    let mut bufs = buf.rules();
    for sets in bufs.values_mut() {
        sets.retain(|set| names.contains(&set.as_str()));
    }
    assert_eq!(ours, bufs);
}

/// Editions are read from descriptors, which buf makes of them.
#[test]
fn editions_break_as_buf_says() {
    let Some(buf) = Buf::find() else {
        return;
    };
    for pair in pairs::editions() {
        let (old, new) = (buf.build(&pair.old), buf.build(&pair.new));
        let found = RuleSet::ALL
            .into_iter()
            .flat_map(|set| compare(&old, &new, set));
        let ours: Rules = found.map(|found| found.rule.id().to_owned()).collect();
        assert_eq!(
            ours,
            buf.verdict(&pair, &RuleSet::ALL.map(RuleSet::name)),
            "{}",
            pair.name
        );
    }
}
