//! Codes as HTTP statuses and back (docs/protocol.md, "Errors").

use quill_core::Code;

/// The HTTP status that a failure with this code is answered with.
pub(super) const fn http_of_code(code: Code) -> u16 {
    match code {
        Code::InvalidArgument | Code::OutOfRange => 400,
        Code::Unauthenticated => 401,
        Code::PermissionDenied => 403,
        Code::NotFound => 404,
        Code::AlreadyExists | Code::Aborted => 409,
        Code::FailedPrecondition => 412,
        Code::ResourceExhausted => 429,
        Code::Canceled => 499,
        Code::Unimplemented => 501,
        Code::Unavailable => 503,
        Code::DeadlineExceeded => 504,
        // Unknown, internal, data_loss, and codes that are still to come.
        _ => 500,
    }
}

/// The code of a problem document that names none: the first of the table with
/// this status.
pub(super) fn code_of_problem(status: u16) -> Code {
    let mut codes = Code::ALL.into_iter();
    codes
        .find(|code| http_of_code(*code) == status)
        .unwrap_or_else(|| code_of_answer(status))
}

/// The code of an answer that is no problem document, such as a proxy's page.
pub(super) const fn code_of_answer(status: u16) -> Code {
    match status {
        400 => Code::InvalidArgument,
        401 => Code::Unauthenticated,
        403 => Code::PermissionDenied,
        404 => Code::Unimplemented,
        409 => Code::Aborted,
        412 => Code::FailedPrecondition,
        425 | 429 | 502 | 503 => Code::Unavailable,
        499 => Code::Canceled,
        504 => Code::DeadlineExceeded,
        _ => Code::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_alone_gives_the_first_code_that_has_it() {
        for code in Code::ALL {
            let back = code_of_problem(http_of_code(code));
            assert!(back.number() <= code.number());
            assert_eq!(http_of_code(back), http_of_code(code));
        }
        for (status, code) in [
            (400, Code::InvalidArgument),
            (404, Code::NotFound),
            (409, Code::AlreadyExists),
            (429, Code::ResourceExhausted),
            (500, Code::Unknown),
            (418, Code::Unknown),
            (502, Code::Unavailable),
        ] {
            assert_eq!(code_of_problem(status), code, "{status}");
        }
    }

    #[test]
    fn the_statuses_are_those_of_the_table() {
        let table = Code::ALL.map(http_of_code);
        assert_eq!(
            table,
            [
                499, 500, 400, 504, 404, 409, 403, 429, 412, 409, 400, 501, 500, 503, 500, 401
            ]
        );
    }
}
