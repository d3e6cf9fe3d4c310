//! A relative link in Markdown leads to a file, and its fragment to a heading.

use crate::tree::{Fault, Tree};

pub(crate) fn check(tree: &Tree) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (path, text) in tree.with_extension("md") {
        for (line, target) in links(text) {
            if let Some(sentence) = broken(tree, path, text, target) {
                faults.push(Fault::new(path, line, sentence));
            }
        }
    }
    faults
}

fn broken(tree: &Tree, path: &str, text: &str, target: &str) -> Option<String> {
    // Another site, or an item that rustdoc resolves.
    if target.contains("://") || target.starts_with("mailto:") || target.contains("::") {
        return None;
    }
    let (file, fragment) = target.split_once('#').unwrap_or((target, ""));
    let resolved = resolve(path, file);
    if !file.is_empty() && !tree.exists(&resolved) {
        return Some(format!(
            "the link to `{target}` leads nowhere: there is no `{resolved}`."
        ));
    }
    let linked = if file.is_empty() {
        Some(text)
    } else {
        tree.text(&resolved)
    };
    let headed = !file.is_empty() && !file.ends_with(".md");
    match linked {
        Some(linked) if !fragment.is_empty() && !headed => (!anchors(linked)
            .any(|a| a == fragment))
        .then(|| format!("the link to `{target}` leads to no heading of that name.")),
        _ => None,
    }
}

/// `file` as seen from the folder of `path`, from the root of the tree.
fn resolve(path: &str, file: &str) -> String {
    let mut parts: Vec<&str> = path.split('/').collect();
    parts.pop();
    for part in file.trim_end_matches('/').split('/') {
        match part {
            "." | "" => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// Lines outside of fenced code, counted from one.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        (!fenced && !fence).then_some((index + 1, line))
    })
}

fn links(text: &str) -> impl Iterator<Item = (usize, &str)> {
    prose(text).flat_map(|(number, line)| {
        // Every second piece lies between backticks, so it is code.
        let pieces = line.split('`').step_by(2);
        let inline = pieces
            .flat_map(|piece| piece.split("](").skip(1))
            .filter_map(|rest| {
                let target = rest.split([')', ' ']).next()?;
                Some(target.trim_start_matches('<').trim_end_matches('>'))
            });
        let definition = line
            .strip_prefix('[')
            .and_then(|rest| rest.split_once("]: "));
        let definition = definition.and_then(|(_, target)| target.split_whitespace().next());
        inline
            .chain(definition)
            .map(move |target| (number, target))
            .collect::<Vec<_>>()
    })
}

/// The names that headings get as fragments.
fn anchors(text: &str) -> impl Iterator<Item = String> {
    prose(text)
        .filter(|(_, line)| line.starts_with('#'))
        .map(|(_, line)| {
            let title = line.trim_start_matches('#').trim().to_lowercase();
            let kept = title
                .chars()
                .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
            kept.map(|c| if c == ' ' { '-' } else { c }).collect()
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILES: &[(&str, &str)] = &[
        ("docs/b.md", "# A `heading`, of 2\n"),
        ("src/c.rs", "fn c() {}\n"),
    ];

    fn faults(text: &str) -> Vec<String> {
        let files = [FILES, &[("docs/a.md", text)]].concat();
        check(&Tree::of(&files))
            .iter()
            .map(Fault::to_string)
            .collect()
    }

    #[test]
    fn good_links_pass() {
        let text = "# Here\n[b](b.md) [b](b.md#a-heading-of-2) [c](../src/c.rs#L1) [here](#here)\n\
                    [x](https://x.example/y) [t](crate::T) `[code](no.md)`\n```\n[code](no.md)\n```\n\
                    [d]: b.md\n";
        assert_eq!(faults(text), [""; 0]);
    }

    #[test]
    fn links_that_lead_nowhere_are_faults() {
        assert_eq!(
            faults("\n[b](no.md)\n"),
            ["docs/a.md:2: the link to `no.md` leads nowhere: there is no `docs/no.md`."]
        );
        for text in ["[b](b.md#no)", "[here](#no)", "[d]: no.md", "[b](../b.md)"] {
            assert_eq!(faults(text).len(), 1, "{text}");
        }
    }
}
