//! `quill call --list`, `--describe` and `--template`: what there is to call.

use quill_explain::{harmless, harmless_json};

use crate::args::CallArgs;
use crate::client;
use crate::failure::Failure;
use crate::output::print;
use crate::schema::{Reflection, Schema};
use crate::subject::Subject;
use crate::target::Target;

/// Prints services, or the methods of one.
pub(crate) async fn list(args: &CallArgs) -> Result<(), Failure> {
    let subject = Subject::parse(args.target.as_deref(), args.client.url.as_deref())?;
    let mut lines = match &subject.symbol {
        None => services(args, &subject).await?,
        Some(service) => {
            let schema = schema(args, &subject, service).await?;
            let methods = schema.methods(service)?;
            let path = |method: &str| format!("{service}/{method}");
            methods.iter().map(|method| path(method)).collect()
        }
    };
    for line in &mut lines {
        *line = harmless(line) + "\n";
    }
    print(&lines.concat())
}

/// Prints what a symbol is, or every service.
pub(crate) async fn describe(args: &CallArgs) -> Result<(), Failure> {
    let subject = Subject::parse(args.target.as_deref(), args.client.url.as_deref())?;
    let symbols = match &subject.symbol {
        None => services(args, &subject).await?,
        Some(symbol) => vec![symbol.clone()],
    };
    for (index, symbol) in symbols.iter().enumerate() {
        let text = schema(args, &subject, symbol).await?.declaration(symbol)?;
        let gap = if index > 0 { "\n" } else { "" };
        print(&format!("{gap}{text}"))?;
    }
    Ok(())
}

/// Prints a message that a method takes, to be filled in.
pub(crate) async fn show_template(args: &CallArgs, target: &str) -> Result<(), Failure> {
    let target = Target::parse(target, args.client.url.as_deref())?;
    let reflection = reflection(args, &target.base_url)?;
    let schema = Schema::load(&args.schema, &target.service, reflection).await?;
    let json = schema.method(&target)?.requests.template();
    print(&(harmless_json(format!("{json:#}")) + "\n"))
}

async fn services(args: &CallArgs, subject: &Subject) -> Result<Vec<String>, Failure> {
    if args.schema.names_files() {
        return Ok(Schema::from_files(&args.schema)?.services());
    }
    reflection(args, server(subject)?)?.services().await
}

async fn schema(args: &CallArgs, subject: &Subject, symbol: &str) -> Result<Schema, Failure> {
    if args.schema.names_files() {
        return Schema::from_files(&args.schema);
    }
    let reflection = reflection(args, server(subject)?)?;
    Schema::load(&args.schema, symbol, reflection).await
}

fn reflection(args: &CallArgs, base_url: &str) -> Result<Reflection, Failure> {
    let client = client::build(client::builder(&args.client, base_url)?)?;
    let metadata = client::sent_metadata(&args.client.header, args.client.token.as_deref())?;
    Ok(Reflection::new(client, metadata))
}

fn server(subject: &Subject) -> Result<&str, Failure> {
    subject.base_url.as_deref().ok_or_else(|| {
        Failure::input(
            "nobody is there to ask: write the server's URL, or give --proto or --descriptor-set",
        )
    })
}
