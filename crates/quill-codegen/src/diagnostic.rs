//! A mistake in a .proto file, and where it is.

use std::fmt;
use std::path::PathBuf;

use miette::{Diagnostic as _, LabeledSpan, SourceCode};

/// What is wrong, where, and what may help.
#[derive(Debug)]
pub(crate) struct Diagnostic {
    /// The file as the user can open it; its import name when that is unknown.
    pub(crate) path: Option<PathBuf>,
    pub(crate) message: String,
    pub(crate) help: Option<String>,
    excerpt: Option<Excerpt>,
}

/// The first line of the text at fault.
#[derive(Debug)]
struct Excerpt {
    /// Both counted from 1, the column in characters.
    line: usize,
    column: usize,
    /// What there is in the line, unless that is unknown.
    text: Option<String>,
    marked_chars: usize,
}

impl Diagnostic {
    pub(crate) fn new(path: Option<PathBuf>, message: impl Into<String>) -> Self {
        Self {
            path,
            message: message.into(),
            help: None,
            excerpt: None,
        }
    }

    /// What the compiler found; `locate` turns an import name into a path.
    pub(crate) fn from_compiler(
        error: &protox::Error,
        locate: impl Fn(&str) -> Option<PathBuf>,
    ) -> Self {
        let path = error
            .file()
            .map(|name| locate(name).unwrap_or_else(|| PathBuf::from(name)));
        let label = error.labels().and_then(|mut labels| labels.next());
        let excerpt = match (error.source_code(), label) {
            (Some(source), Some(label)) => Excerpt::read(source, &label),
            _ => None,
        };
        Self {
            path,
            message: error.to_string(),
            help: error.help().map(|help| help.to_string()),
            excerpt,
        }
    }

    /// Points at what `SourceCodeInfo` gives as the span of an element: its line
    /// and column, counted from 0, and, where that is in the same line, its end.
    /// The `text` is the file's, if it is at hand.
    pub(crate) fn at_span(mut self, span: &[i32], text: Option<&str>) -> Self {
        let number = |i: usize| span.get(i).and_then(|n| usize::try_from(*n).ok());
        let (Some(line), Some(column)) = (number(0), number(1)) else {
            return self;
        };
        let end = number(2).filter(|_| span.len() == 3);
        let text = text.and_then(|text| text.lines().nth(line));
        let rest = text.map_or(0, |text| text.chars().count().saturating_sub(column));
        self.excerpt = Some(Excerpt {
            line: line + 1,
            column: column + 1,
            text: text.map(|text| text.replace('\t', " ")),
            marked_chars: end.map_or(rest, |end| end.saturating_sub(column)).max(1),
        });
        self
    }

    /// Points behind the last line of `text`, the file's: where something is
    /// missing that the compiler waited for to the end.
    pub(crate) fn at_end_of(mut self, text: &str) -> Self {
        let text = text.trim_end();
        let last = text.lines().next_back().unwrap_or_default();
        self.excerpt.get_or_insert_with(|| Excerpt {
            line: text.lines().count().max(1),
            column: last.chars().count() + 1,
            text: Some(last.replace('\t', " ")),
            marked_chars: 1,
        });
        self
    }

    pub(crate) fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    pub(crate) fn line(&self) -> Option<usize> {
        self.excerpt.as_ref().map(|excerpt| excerpt.line)
    }
}

impl Excerpt {
    fn read(source: &dyn SourceCode, label: &LabeledSpan) -> Option<Self> {
        // Without context the contents start at the span itself, which tells
        // where it is; the whole line comes with a line of context around it.
        let at = source.read_span(label.inner(), 0, 0).ok()?;
        let (line, column_bytes) = (at.line(), at.column());
        let around = source.read_span(label.inner(), 1, 1).ok()?;
        let lines = std::str::from_utf8(around.data()).ok()?;
        let text = lines.lines().nth(line.checked_sub(around.line())?)?;
        let (before, from) = text.split_at_checked(column_bytes)?;
        let marked = from.get(..label.len()).unwrap_or(from);
        Some(Self {
            line: line + 1,
            column: before.chars().count() + 1,
            text: Some(text.replace('\t', " ")),
            marked_chars: marked.chars().count().max(1),
        })
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(path) = &self.path {
            write!(f, "{}:", path.display())?;
            if let Some(at) = &self.excerpt {
                write!(f, "{}:{}:", at.line, at.column)?;
            }
            f.write_str(" ")?;
        }
        f.write_str(&self.message)?;
        if let Some(at) = &self.excerpt
            && let Some(text) = &at.text
        {
            let line = at.line.to_string();
            let gutter = " ".repeat(line.len());
            let indent = " ".repeat(at.column - 1);
            let marks = "^".repeat(at.marked_chars);
            write!(f, "\n {gutter} |\n {line} | {text}")?;
            write!(f, "\n {gutter} | {indent}{marks}")?;
        }
        match &self.help {
            Some(help) => write!(f, "\nhelp: {help}"),
            None => Ok(()),
        }
    }
}
