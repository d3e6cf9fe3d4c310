//! The sixteen ways a call can fail.

use std::fmt;

/// Why a call failed: the canonical status codes of gRPC and Connect.
///
/// There is no `Ok`: a call that succeeded has no [`Error`](crate::Error) and so
/// no code. The numbers are those of gRPC's `statuscodes.md`, the names those of
/// the Connect protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
#[non_exhaustive]
pub enum Code {
    /// The caller gave the call up.
    Canceled = 1,
    /// An error that fits no other code, or came without one.
    Unknown = 2,
    /// The request is wrong whatever the state of the system.
    InvalidArgument = 3,
    /// The deadline passed before the call ended.
    DeadlineExceeded = 4,
    /// What was asked for does not exist.
    NotFound = 5,
    /// What was to be made exists already.
    AlreadyExists = 6,
    /// The caller is known, and may not do this.
    PermissionDenied = 7,
    /// A quota, a size limit or a resource is used up.
    ResourceExhausted = 8,
    /// The system is not in the state this call needs; retrying won't help.
    FailedPrecondition = 9,
    /// The call lost to a concurrent one; retry at a higher level.
    Aborted = 10,
    /// A value lies outside the range that exists.
    OutOfRange = 11,
    /// There is no such method here, or it does not do this.
    Unimplemented = 12,
    /// Something broke that should not; a bug.
    Internal = 13,
    /// The service can't be reached right now; retry with backoff.
    Unavailable = 14,
    /// Data is lost or corrupt, for good.
    DataLoss = 15,
    /// The caller did not prove who it is.
    Unauthenticated = 16,
}

impl Code {
    /// Every code, in the order of their numbers.
    pub const ALL: [Code; 16] = [
        Code::Canceled,
        Code::Unknown,
        Code::InvalidArgument,
        Code::DeadlineExceeded,
        Code::NotFound,
        Code::AlreadyExists,
        Code::PermissionDenied,
        Code::ResourceExhausted,
        Code::FailedPrecondition,
        Code::Aborted,
        Code::OutOfRange,
        Code::Unimplemented,
        Code::Internal,
        Code::Unavailable,
        Code::DataLoss,
        Code::Unauthenticated,
    ];

    /// gRPC's number of this code, 1 to 16.
    #[must_use]
    pub const fn number(self) -> u32 {
        self as u32
    }

    /// The code with this gRPC number; `None` for 0 (OK) and for numbers over 16.
    #[must_use]
    pub fn from_number(number: u32) -> Option<Code> {
        let index = usize::try_from(number).ok()?.checked_sub(1)?;
        Self::ALL.get(index).copied()
    }

    /// Connect's name of this code, in `snake_case`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Code::Canceled => "canceled",
            Code::Unknown => "unknown",
            Code::InvalidArgument => "invalid_argument",
            Code::DeadlineExceeded => "deadline_exceeded",
            Code::NotFound => "not_found",
            Code::AlreadyExists => "already_exists",
            Code::PermissionDenied => "permission_denied",
            Code::ResourceExhausted => "resource_exhausted",
            Code::FailedPrecondition => "failed_precondition",
            Code::Aborted => "aborted",
            Code::OutOfRange => "out_of_range",
            Code::Unimplemented => "unimplemented",
            Code::Internal => "internal",
            Code::Unavailable => "unavailable",
            Code::DataLoss => "data_loss",
            Code::Unauthenticated => "unauthenticated",
        }
    }

    /// The code with this name; `None` for any other text.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Code> {
        Self::ALL.into_iter().find(|code| code.name() == name)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_go_both_ways() {
        for code in Code::ALL {
            assert_eq!(Code::from_number(code.number()), Some(code));
            assert_eq!(Code::from_name(code.name()), Some(code));
        }
        assert_eq!(Code::Canceled.number(), 1);
        assert_eq!(Code::Unauthenticated.number(), 16);
    }

    #[test]
    fn ok_and_unknown_numbers_are_no_code() {
        for number in [0, 17, u32::MAX] {
            assert_eq!(Code::from_number(number), None);
        }
        for name in ["ok", "", "CANCELED", "cancelled"] {
            assert_eq!(Code::from_name(name), None);
        }
    }
}
