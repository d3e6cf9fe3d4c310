//! `quill compat`: what breaks between two schemas.

use buffa_descriptor::generated::descriptor::FileDescriptorProto;
use quill_codegen::BUILTIN_PROTOS;
use quill_compat::{Rule, RuleSet, compare};

use crate::args::{BreakFormat, CompatArgs};
use crate::client;
use crate::failure::Failure;
use crate::output::{Breaks, print};
use crate::schema::{Loaded, Source};

pub(crate) async fn run(args: CompatArgs) -> Result<(), Failure> {
    if args.list_rules {
        return print(&rules());
    }
    let (old, new) = match (&args.against, &args.schemas[..]) {
        (Some(old), [new]) => (old, new),
        (None, [old, new]) => (old, new),
        _ => {
            return Err(Failure::input("two schemas are compared").with_hint(
                "quill compat OLD NEW, or quill compat --against OLD NEW: such as \
                 quill compat git:main proto",
            ));
        }
    };
    let mut old_schema = load(old, new, &args).await?;
    let new_schema = load(new, old, &args).await?;
    drop_unused(&mut old_schema.files, &new_schema.files);
    let found = compare(&old_schema.files, &new_schema.files, args.rules);
    let breaks = Breaks {
        rules: args.rules,
        names: (old, new),
        old: &old_schema,
        new: &new_schema,
        found: &found,
    };
    print(&match args.format {
        BreakFormat::Text => breaks.text(),
        BreakFormat::Json => breaks.json(),
        BreakFormat::Github => breaks.annotations(),
    })?;
    match found.len() {
        0 => Ok(()),
        count => {
            let things = if count == 1 {
                "thing breaks"
            } else {
                "things break"
            };
            let set = args.rules.name();
            Err(Failure::beyond_limits(format!(
                "{count} {things} between {old} and {new} by the rules of {set}"
            )))
        }
    }
}

async fn load(source: &str, other: &str, args: &CompatArgs) -> Result<Loaded, Failure> {
    let reflection = |url: &str| client::reflection(url, args.protocol, &args.header, &args.tls);
    let source = Source::parse(source, Some(other));
    source.load(&args.import_path, reflection).await
}

/// Leaves out what everyone knows and the new schema imports no longer: that is
/// no deleted file.
fn drop_unused(old: &mut Vec<FileDescriptorProto>, new: &[FileDescriptorProto]) {
    let is_known = |name: &str| {
        name.starts_with("google/protobuf/")
            || BUILTIN_PROTOS.iter().any(|(builtin, _)| *builtin == name)
    };
    old.retain(|file| {
        let name = file.name.as_deref().unwrap_or_default();
        !is_known(name) || new.iter().any(|new| new.name.as_deref() == Some(name))
    });
}

/// A line for each rule: its name, what it asks for, its sets.
fn rules() -> String {
    let line = |rule: &Rule| {
        let sets = rule.sets().iter().map(|set: &RuleSet| set.name());
        let sets = sets.collect::<Vec<_>>().join(", ");
        format!("{:46}  {} ({sets})\n", rule.id(), rule.purpose())
    };
    Rule::all().iter().map(line).collect()
}
