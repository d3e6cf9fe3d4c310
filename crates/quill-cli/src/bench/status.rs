//! How one request ended.

use quill::Code;

/// How one request ended: well, with a code, or not at all while it was waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Status(u8);

impl Status {
    /// It was answered.
    pub(crate) const OK: Self = Self(0);
    /// The run gave it up: it had not ended, or not even begun, long after it was due.
    pub(crate) const UNFINISHED: Self = Self(17);
    /// How many there are.
    pub(crate) const COUNT: usize = 18;

    /// Every one.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        (Self::OK.0..=Self::UNFINISHED.0).map(Self)
    }

    /// Its place among all.
    pub(crate) fn index(self) -> usize {
        usize::from(self.0)
    }

    /// `ok`, the code's name, or `unfinished`.
    pub(crate) fn name(self) -> &'static str {
        match Code::from_number(self.0.into()) {
            Some(code) => code.name(),
            None if self == Self::OK => "ok",
            None => "unfinished",
        }
    }
}

impl From<Code> for Status {
    fn from(code: Code) -> Self {
        // Codes are numbered from 1 to 16.
        Self(u8::try_from(code.number()).unwrap_or(Self::UNFINISHED.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_has_a_name_of_its_own() {
        let names: std::collections::HashSet<_> = Status::all().map(Status::name).collect();
        assert_eq!(names.len(), Status::COUNT);
        assert_eq!(Status::from(Code::Unavailable).name(), "unavailable");
        assert_eq!(Status::from(Code::Unauthenticated).index(), 16);
        assert!(
            Status::all()
                .enumerate()
                .all(|(n, status)| status.index() == n)
        );
    }
}
