//! Where in a file something is declared.

use std::collections::HashMap;
use std::rc::Rc;

use buffa_descriptor::features::{self, ResolvedFeatures};
use buffa_descriptor::generated::descriptor::FileDescriptorProto;

/// A place in a `.proto` file. Lines and columns count from 1; they are missing
/// where the descriptors do not say them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The file's name, as imports have it.
    pub file: String,
    /// Where it begins: line and column (in characters).
    pub start: Option<(u32, u32)>,
    /// Where it ends; the column is the last one of it.
    pub end: Option<(u32, u32)>,
}

/// A file and where its parts are.
pub(crate) struct FileInfo<'a> {
    pub(crate) proto: &'a FileDescriptorProto,
    pub(crate) features: ResolvedFeatures,
    spans: HashMap<&'a [i32], &'a [i32]>,
}

impl<'a> FileInfo<'a> {
    pub(crate) fn new(proto: &'a FileDescriptorProto) -> Self {
        let info = proto.source_code_info.as_option();
        let locations = info.map_or(&[][..], |info| &info.location);
        let mut spans = HashMap::with_capacity(locations.len());
        for location in locations {
            // What is declared in pieces (`extend` twice) is where it is first.
            spans
                .entry(&location.path[..])
                .or_insert(&location.span[..]);
        }
        Self {
            proto,
            features: features::for_file(proto),
            spans,
        }
    }

    pub(crate) fn name(&self) -> &'a str {
        self.proto.name.as_deref().unwrap_or_default()
    }

    pub(crate) fn package(&self) -> &'a str {
        self.proto.package.as_deref().unwrap_or_default()
    }
}

/// A part of a file: the path of `SourceCodeInfo.Location`.
#[derive(Clone)]
pub(crate) struct At<'a> {
    pub(crate) file: Rc<FileInfo<'a>>,
    path: Vec<i32>,
}

impl<'a> At<'a> {
    pub(crate) fn file(file: &Rc<FileInfo<'a>>) -> Self {
        Self {
            file: Rc::clone(file),
            path: Vec::new(),
        }
    }

    /// The part of this one in `field`, at `index`.
    pub(crate) fn item(&self, field: i32, index: usize) -> Self {
        let mut path = self.path.clone();
        path.push(field);
        path.push(i32::try_from(index).unwrap_or(i32::MAX));
        Self {
            file: Rc::clone(&self.file),
            path,
        }
    }

    pub(crate) fn place(&self) -> Place {
        self.place_of(&[])
    }

    /// The place of a part, or else of the whole.
    pub(crate) fn place_of(&self, part: &[i32]) -> Place {
        let path = [&self.path, part].concat();
        let span = self.file.spans.get(&path[..]);
        let span = span.or_else(|| self.file.spans.get(&self.path[..]));
        let (start, end) = match span {
            // A file as a whole is nowhere in it.
            Some(_) if path.is_empty() => (None, None),
            Some([line, from, to]) => (position(*line, *from), last_position(*line, *to)),
            Some([first, from, last, to]) => (position(*first, *from), last_position(*last, *to)),
            _ => (None, None),
        };
        Place {
            file: self.file.name().to_owned(),
            start,
            end,
        }
    }
}

/// From counting from 0 to counting from 1.
fn position(line: i32, column: i32) -> Option<(u32, u32)> {
    let from_one = |n| u32::try_from(n).ok()?.checked_add(1);
    Some((from_one(line)?, from_one(column)?))
}

/// The same of an end, which a span excludes.
fn last_position(line: i32, column: i32) -> Option<(u32, u32)> {
    position(line, column.saturating_sub(1).max(0))
}
