//! `quill gen`: code from schemas.

use std::io::Write as _;

use quill_codegen::Schema;
use quill_explain::harmless;

use crate::args::GenerateArgs;
use crate::failure::Failure;
use crate::generate::{Config, Generated, Target, generate, stale, write};
use crate::output::print;
use crate::schema;

pub(crate) fn run(args: GenerateArgs) -> Result<(), Failure> {
    let check = args.check;
    let config = config(args)?;
    let schema = read(&config)?;
    let mut files = Generated::new();
    for target in &config.generate {
        let (generated, warnings) = generate(&schema, target)?;
        files.extend(generated);
        for warning in warnings {
            // Nobody is left to tell when stderr is closed.
            let _ = writeln!(std::io::stderr(), "warning: {}", harmless(&warning));
        }
    }
    if !check {
        let written = write(&files)?;
        let mut text = String::new();
        for path in &written {
            let path = path.display().to_string();
            text.push_str(&format!("wrote {}\n", harmless(&path)));
        }
        let same = files.len() - written.len();
        return print(&format!(
            "{text}{} written, {same} were there\n",
            written.len()
        ));
    }
    let folders: Vec<_> = config
        .generate
        .into_iter()
        .map(|target| target.out)
        .collect();
    let stale = stale(&files, &folders);
    if stale.is_empty() {
        return print(&format!("{} files are what is generated\n", files.len()));
    }
    print(
        &stale
            .iter()
            .map(|line| harmless(line) + "\n")
            .collect::<String>(),
    )?;
    let count = stale.len();
    let files = if count == 1 { "file is" } else { "files are" };
    Err(Failure::beyond_limits(format!("{count} {files} stale"))
        .with_hint("quill gen with the same arguments, without --check, writes them"))
}

/// What the arguments say, or else the file.
fn config(args: GenerateArgs) -> Result<Config, Failure> {
    let Some(out) = args.out else {
        return Config::read(&args.config);
    };
    if args.protos.is_empty() && args.descriptor_set.is_none() {
        return Err(Failure::input("there is nothing to generate from")
            .with_hint("quill gen FILE|FOLDER --out FOLDER, or --descriptor-set FILE"));
    }
    Ok(Config {
        protos: args.protos,
        descriptor_set: args.descriptor_set,
        import_paths: args.import_path,
        generate: vec![Target {
            lang: args.lang,
            out,
            options: args.option,
        }],
    })
}

fn read(config: &Config) -> Result<Schema, Failure> {
    let Some(path) = &config.descriptor_set else {
        return schema::compile(&config.protos, &config.import_paths);
    };
    let wrong = |error: String| Failure::input(format!("{}: {error}", path.display()));
    let bytes = std::fs::read(path).map_err(|error| wrong(error.to_string()))?;
    Schema::from_descriptor_set(&bytes).map_err(|error| wrong(error.to_string()))
}
