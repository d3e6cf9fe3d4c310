//! How a call ended, as fields of its trailers.

use quill_core::{Code, Error, Headers};

use super::{message_text, retry, status_details};

pub(super) const STATUS: &str = "grpc-status";
const MESSAGE: &str = "grpc-message";
const DETAILS: &str = "grpc-status-details-bin";

/// Numbers by code; the first is OK.
const NUMBERS: [&str; 17] = [
    "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15", "16",
];

/// Appends the status to trailers.
pub(super) fn put(result: Result<(), &Error>, fields: &mut Headers) {
    let Err(error) = result else {
        fields.append(STATUS, "0");
        return;
    };
    let index = error.code().number() as usize;
    fields.append(STATUS, NUMBERS.get(index).copied().unwrap_or("2"));
    if !error.message().is_empty() {
        fields.append(MESSAGE, message_text::encode(error.message()).as_bytes());
    }
    if !error.details().is_empty() {
        let details = status_details::encode(error.code(), error.message(), error.details());
        fields.append(DETAILS, details);
    }
    if let Some(delay) = error.retry_after() {
        retry::put_pushback(delay, fields);
    }
}

/// Reads the status of trailers.
///
/// # Errors
/// The error that the server answered, without metadata. `unknown` for trailers
/// without a status, or with one that is no number from 0 to 16. `internal` when
/// the details are of another code than the status: then neither can be trusted.
pub(super) fn read(fields: &Headers) -> Result<(), Error> {
    let Some(status) = fields.first(STATUS) else {
        return Err(Error::unknown("the server's trailers hold no grpc-status"));
    };
    let number = NUMBERS.iter().position(|n| n.as_bytes() == status);
    let details = fields.first(DETAILS).map(status_details::decode);
    if number == Some(0) && details.is_none() {
        return Ok(());
    }
    let message = fields
        .first(MESSAGE)
        .map(message_text::decode)
        .unwrap_or_default();
    let Some(number) = number else {
        return Err(Error::unknown(format!(
            "the server answered grpc-status {:?}, which is no number from 0 to 16: {message}",
            status.escape_ascii().to_string()
        )));
    };
    let details = match details {
        Some(Some(details)) => details,
        Some(None) => return malformed_details(number, message),
        None => status_details::StatusDetails::default(),
    };
    if details.code != 0 && usize::try_from(details.code) != Ok(number) {
        return Err(Error::internal(format!(
            "the server contradicts itself: its grpc-status is {number}, its grpc-status-details-bin has code {}: {message}",
            details.code
        )));
    }
    let Some(code) = code_of(number) else {
        return Ok(());
    };
    let error = Error::new(code, message);
    Err(details.details.iter().fold(error, Error::with_detail))
}

/// Details that can't be read don't hide the status; the log shows that there
/// were some.
fn malformed_details(number: usize, message: String) -> Result<(), Error> {
    match code_of(number) {
        None => Ok(()),
        Some(code) => Err(Error::new(code, message)
            .with_source("the grpc-status-details-bin of this error is no google.rpc.Status")),
    }
}

fn code_of(number: usize) -> Option<Code> {
    Code::from_number(u32::try_from(number).ok()?)
}

/// The code for an answer without a grpc-status, by its HTTP status
/// (`http-grpc-status-mapping.md`).
pub(super) fn code_of_http(status: u16) -> Code {
    match status {
        400 => Code::Internal,
        401 => Code::Unauthenticated,
        403 => Code::PermissionDenied,
        404 => Code::Unimplemented,
        429 | 502..=504 => Code::Unavailable,
        _ => Code::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quill_core::Detail;

    fn fields(status: &str, message: Option<&str>, details: Option<String>) -> Headers {
        let mut fields = Headers::new();
        fields.append(STATUS, status);
        if let Some(message) = message {
            fields.append(MESSAGE, message);
        }
        if let Some(details) = details {
            fields.append(DETAILS, details);
        }
        fields
    }

    fn detail() -> Detail {
        Detail {
            type_name: "a.B".to_owned(),
            value: b"\x08\x01".to_vec().into(),
        }
    }

    #[test]
    fn every_code_goes_both_ways() {
        let mut ok = Headers::new();
        put(Ok(()), &mut ok);
        assert_eq!(ok.iter().collect::<Vec<_>>(), [(STATUS, &b"0"[..])]);
        read(&ok).unwrap();
        for code in Code::ALL {
            let error = Error::new(code, "100% ü\n").with_detail(&detail());
            let mut fields = Headers::new();
            put(Err(&error), &mut fields);
            assert_eq!(
                fields.text(STATUS),
                Some(code.number().to_string().as_str())
            );
            assert_eq!(fields.text(MESSAGE), Some("100%25 %C3%BC%0A"));
            let read = read(&fields).unwrap_err();
            assert_eq!(read.code(), code);
            assert_eq!(read.message(), error.message());
            assert_eq!(read.details(), error.details());
        }
    }

    #[test]
    fn an_error_without_text_and_details_is_its_number() {
        let mut fields = Headers::new();
        put(Err(&Error::aborted("")), &mut fields);
        assert_eq!(fields.iter().collect::<Vec<_>>(), [(STATUS, &b"10"[..])]);
    }

    #[test]
    fn what_is_no_status_is_unknown_and_keeps_the_message() {
        for status in ["17", "-1", "", "00", "+0", "x", "4294967296"] {
            let error = read(&fields(status, Some("the%20text"), None)).unwrap_err();
            assert_eq!(error.code(), Code::Unknown, "{status}");
            assert!(error.message().contains("the text"));
        }
        let mut none = Headers::new();
        none.append(MESSAGE, "error");
        assert_eq!(read(&none).unwrap_err().code(), Code::Unknown);
    }

    #[test]
    fn details_that_contradict_the_status_are_noticed() {
        let invalid = status_details::encode(Code::InvalidArgument, "no", &[detail()]);
        for status in ["5", "0"] {
            let error = read(&fields(status, Some("no"), Some(invalid.clone()))).unwrap_err();
            assert_eq!(error.code(), Code::Internal);
            assert!(
                error
                    .message()
                    .contains(&format!("grpc-status is {status}"))
            );
            assert!(error.message().contains("code 3"));
            assert!(error.details().is_empty());
        }
        // A status message without a code contradicts nothing.
        let without_code = crate::base64::encode(b"\x12\x02no\x1a\x05\x0a\x03a.B");
        let error = read(&fields("5", Some("no"), Some(without_code.clone()))).unwrap_err();
        assert_eq!(error.code(), Code::NotFound);
        assert_eq!(error.details()[0].type_name, "a.B");
        read(&fields("0", None, Some(without_code))).unwrap();
    }

    #[test]
    fn malformed_details_don_t_hide_the_status() {
        let error = read(&fields("5", Some("no"), Some("!".to_owned()))).unwrap_err();
        assert_eq!((error.code(), error.message()), (Code::NotFound, "no"));
        assert!(std::error::Error::source(&error).is_some());
        read(&fields("0", None, Some("!".to_owned()))).unwrap();
    }

    #[test]
    fn http_statuses_map_as_the_document_says() {
        for (status, code) in [
            (200, Code::Unknown),
            (400, Code::Internal),
            (401, Code::Unauthenticated),
            (403, Code::PermissionDenied),
            (404, Code::Unimplemented),
            (409, Code::Unknown),
            (415, Code::Unknown),
            (418, Code::Unknown),
            (429, Code::Unavailable),
            (431, Code::Unknown),
            (500, Code::Unknown),
            (502, Code::Unavailable),
            (503, Code::Unavailable),
            (504, Code::Unavailable),
            (800, Code::Unknown),
        ] {
            assert_eq!(code_of_http(status), code, "{status}");
        }
    }
}
