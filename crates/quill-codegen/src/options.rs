//! `(quill.rpc)` and `(quill.service)`: the options of `quill/annotations.proto`.

use buffa::{ExtensionSet, UnknownFieldData, UnknownFields};
use buffa_descriptor::generated::descriptor::{MethodOptions, ServiceOptions};

/// The number of both extensions, as published with the annotations.
const RPC: u32 = 50001;
const SERVICE: u32 = 50002;

/// What a method's `(quill.rpc)` asks of the code generated for it. What else
/// it holds is checked here and read from descriptors.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RpcOptions {
    pub(crate) idempotent: bool,
    pub(crate) cache_ttl_ms: Option<i64>,
}

/// A service's `(quill.service)`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ServiceAnnotations {
    pub(crate) path_prefix: Option<String>,
}

impl RpcOptions {
    /// Reads the option; the error completes "(quill.rpc) ...".
    pub(crate) fn read(options: &MethodOptions) -> Result<Self, String> {
        let mut read = Self::default();
        for (number, value) in fields_of(options.unknown_fields(), RPC)? {
            match number {
                1 => read.idempotent = varint(&value, "idempotent")? != 0,
                2 => read.cache_ttl_ms = Some(varint(&value, "cache_ttl_ms")?.cast_signed()),
                6 => check_profile(&value)?,
                _ => {}
            }
        }
        match read.cache_ttl_ms {
            Some(ttl) if ttl <= 0 => Err(format!("cache_ttl_ms is {ttl}: it must be over 0")),
            _ => Ok(read),
        }
    }
}

impl ServiceAnnotations {
    /// Reads the option; the error completes "(quill.service) ...".
    pub(crate) fn read(options: &ServiceOptions) -> Result<Self, String> {
        let mut read = Self::default();
        for (number, value) in fields_of(options.unknown_fields(), SERVICE)? {
            match number {
                1 => read.path_prefix = Some(text(&value, "path_prefix")?),
                2 => check_profile(&value)?,
                _ => {}
            }
        }
        Ok(read)
    }
}

/// The fields of the message in extension `number`, in order: an option set
/// field by field comes in several pieces.
fn fields_of(options: &UnknownFields, number: u32) -> Result<Vec<(u32, UnknownFieldData)>, String> {
    let mut fields = Vec::new();
    for option in options.iter().filter(|field| field.number == number) {
        let UnknownFieldData::LengthDelimited(bytes) = &option.data else {
            return Err("is no message".to_owned());
        };
        let message = UnknownFields::decode_from_slice(bytes)
            .map_err(|error| format!("is no valid message: {error}"))?;
        fields.extend(
            message
                .iter()
                .map(|field| (field.number, field.data.clone())),
        );
    }
    Ok(fields)
}

fn varint(value: &UnknownFieldData, field: &str) -> Result<u64, String> {
    match value {
        UnknownFieldData::Varint(value) => Ok(*value),
        _ => Err(format!("has a {field} of another type")),
    }
}

fn text(value: &UnknownFieldData, field: &str) -> Result<String, String> {
    match value {
        UnknownFieldData::LengthDelimited(bytes) => {
            String::from_utf8(bytes.clone()).map_err(|_| format!("has a {field} that is no UTF-8"))
        }
        _ => Err(format!("has a {field} of another type")),
    }
}

fn check_profile(value: &UnknownFieldData) -> Result<(), String> {
    let profile = text(value, "min_profile")?;
    match profile.as_str() {
        "classic" | "turbo" | "hyper" => Ok(()),
        other => Err(format!(
            "has min_profile {other:?}: \"classic\", \"turbo\" and \"hyper\" are known"
        )),
    }
}
