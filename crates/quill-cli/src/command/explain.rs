//! `quill explain`: bytes as text.

use std::fs::File;
use std::io::{BufWriter, Cursor, ErrorKind, IsTerminal as _, Read, Write as _, stdin, stdout};
use std::sync::Arc;

use quill::Encoding;
use quill_explain::{
    Failed, Form, Options, Schema as MessageSchema, Summary, View, explain, harmless,
};

use crate::args::{ExplainArgs, Payload};
use crate::client;
use crate::failure::Failure;
use crate::output::print;
use crate::schema::Schema;

/// Bytes from which it is recognised how they are written.
const RECOGNISED_BYTES: usize = 4096;

pub(crate) async fn run(args: ExplainArgs) -> Result<(), Failure> {
    let schema = match &args.server {
        Some(url) => {
            let reflection = client::reflection(url, args.protocol, &args.header, &args.tls)?;
            Schema::of_server(reflection).await?
        }
        None => Schema::from_files(&args.schema)?,
    };
    if args.list_types {
        let names = schema.type_names().into_iter();
        return print(&names.map(|name| harmless(&name) + "\n").collect::<String>());
    }
    let mut options = Options::default();
    options.container = args.container;
    options.message_bytes_max = args.message_bytes_max;
    options.view = if args.json { View::Json } else { View::Dump };
    options.encoding = args.encoding.as_deref().map(encoding).transpose()?;
    options.schema = match &args.message_type {
        Some(name) => Some(message_schema(&schema, name)?),
        None => None,
    };
    let mut input = open(&args.payload(), args.form)?;
    let mut out = BufWriter::new(stdout().lock());
    let explained = explain(&mut *input, &mut out, &options);
    // What was said goes out before what is wrong with it.
    let flushed = out.flush().map_err(Failed::Write);
    match explained.and_then(|summary| flushed.map(|()| summary)) {
        Ok(summary) => judge(&summary),
        // Nobody reads any more: a reason to end, not to complain.
        Err(Failed::Write(error)) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        Err(Failed::Write(error)) => Err(Failure::input(format!("standard output: {error}"))),
        Err(error) => Err(Failure::input(error.to_string())
            .with_hint("--form says how the bytes are written: binary, hex or base64")),
    }
}

fn judge(summary: &Summary) -> Result<(), Failure> {
    let Some(first) = &summary.first_fault else {
        return Ok(());
    };
    let more = match summary.faults {
        0 | 1 => String::new(),
        faults => format!(" (and {} more)", faults - 1),
    };
    Err(Failure::input(format!("the bytes are wrong {first}{more}"))
        .with_hint("--as says what they are, where that was recognised wrongly"))
}

fn encoding(name: &str) -> Result<Encoding, Failure> {
    Encoding::from_name(name).ok_or_else(|| {
        let names: Vec<_> = Encoding::ALL
            .iter()
            .map(|encoding| encoding.name())
            .collect();
        let names = names.join(", ");
        Failure::input(format!("--encoding {name}: there are {names}"))
    })
}

fn message_schema(schema: &Schema, name: &str) -> Result<MessageSchema, Failure> {
    let pool = schema.pool();
    let message = pool.message_index(name.trim_start_matches('.'));
    match message {
        Some(message) => Ok(MessageSchema {
            pool: Arc::clone(pool),
            message,
        }),
        None => Err(
            Failure::input(format!("the schema has no type {name}")).with_hint(
                "--list-types shows those it has; --proto, --descriptor-set or --server give one",
            ),
        ),
    }
}

/// Opens the bytes, and reads text as the bytes that it stands for.
fn open(payload: &Payload, form: Option<Form>) -> Result<Box<dyn Read>, Failure> {
    let mut source: Box<dyn Read> = match payload {
        Payload::Text(text) => {
            // An argument is text of either kind, however short.
            let form = form.unwrap_or_else(|| match Form::recognise(text.as_bytes()) {
                Form::Binary => Form::Base64,
                form => form,
            });
            return Ok(form.read(Cursor::new(text.clone().into_bytes())));
        }
        Payload::File(path) => Box::new(
            File::open(path)
                .map_err(|error| Failure::input(format!("@{}: {error}", path.display())))?,
        ),
        Payload::Stdin if stdin().is_terminal() => {
            return Err(Failure::input("there are no bytes").with_hint(
                "give them as hexadecimal digits or base64, as @FILE, or on standard input",
            ));
        }
        Payload::Stdin => Box::new(stdin()),
    };
    if let Some(form) = form {
        return Ok(form.read(source));
    }
    let mut start = Vec::new();
    source
        .by_ref()
        .take(RECOGNISED_BYTES as u64)
        .read_to_end(&mut start)
        .map_err(|error| Failure::input(format!("the input can't be read: {error}")))?;
    let form = Form::recognise(&start);
    Ok(form.read(Cursor::new(start).chain(source)))
}
