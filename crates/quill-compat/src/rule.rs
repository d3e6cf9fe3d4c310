//! The rules and the sets they are in.

/// What must keep working, from the most to the least demanding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RuleSet {
    /// Generated code, also where it depends on which file declares what (C++,
    /// Python, and others that generate by file).
    File,
    /// Generated code that depends on packages only (Go, Java, Rust).
    Package,
    /// Messages in the binary format and in JSON.
    WireJson,
    /// Messages in the binary format.
    Wire,
}

impl RuleSet {
    /// Every set, in the order of their demands.
    pub const ALL: [Self; 4] = [Self::File, Self::Package, Self::WireJson, Self::Wire];

    /// The set's name: `FILE`, `PACKAGE`, `WIRE_JSON` or `WIRE`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::File => "FILE",
            Self::Package => "PACKAGE",
            Self::WireJson => "WIRE_JSON",
            Self::Wire => "WIRE",
        }
    }

    /// The set of this name, in any case.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let mut sets = Self::ALL.into_iter();
        sets.find(|set| set.name().eq_ignore_ascii_case(name))
    }
}

/// One thing that must not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    id: &'static str,
    purpose: &'static str,
    sets: &'static [RuleSet],
}

impl Rule {
    /// The rule's name, such as `FIELD_SAME_TYPE`.
    #[must_use]
    pub fn id(&self) -> &'static str {
        self.id
    }

    /// What it asks for, in a sentence.
    #[must_use]
    pub fn purpose(&self) -> &'static str {
        self.purpose
    }

    /// The sets that it is in.
    #[must_use]
    pub fn sets(&self) -> &'static [RuleSet] {
        self.sets
    }

    /// Every rule there is.
    #[must_use]
    pub fn all() -> &'static [Self] {
        ALL
    }
}

macro_rules! rules {
    ($($id:ident: $($set:ident)+: $purpose:literal;)+) => {
        $(pub(crate) const $id: Rule = Rule {
            id: stringify!($id),
            purpose: $purpose,
            sets: &[$(RuleSet::$set),+],
        };)+
        const ALL: &[Rule] = &[$($id),+];
    };
}

rules! {
    FILE_NO_DELETE: File: "a file stays";
    ENUM_NO_DELETE: File: "an enum stays in its file";
    EXTENSION_NO_DELETE: File: "an extension stays in its file";
    MESSAGE_NO_DELETE: File: "a message stays in its file";
    SERVICE_NO_DELETE: File: "a service stays in its file";
    PACKAGE_NO_DELETE: Package: "a package stays";
    PACKAGE_ENUM_NO_DELETE: Package: "an enum stays in its package";
    PACKAGE_EXTENSION_NO_DELETE: Package: "an extension stays in its package";
    PACKAGE_MESSAGE_NO_DELETE: Package: "a message stays in its package";
    PACKAGE_SERVICE_NO_DELETE: Package: "a service stays in its package";
    ENUM_SAME_TYPE: File Package: "an enum stays open, or closed";
    ENUM_VALUE_NO_DELETE: File Package: "a value of an enum stays";
    EXTENSION_MESSAGE_NO_DELETE: File Package: "a message's extension ranges stay";
    FIELD_NO_DELETE: File Package: "a field stays";
    FIELD_SAME_CARDINALITY: File Package: "a field keeps its cardinality and presence";
    FIELD_SAME_CPP_STRING_TYPE: File Package: "a field keeps its string type in C++";
    FIELD_SAME_JAVA_UTF8_VALIDATION: File Package: "a field keeps its check of UTF-8 in Java";
    FIELD_SAME_JSTYPE: File Package: "a field keeps its jstype";
    FIELD_SAME_TYPE: File Package: "a field keeps its type";
    FIELD_SAME_UTF8_VALIDATION: File Package: "a field keeps its check of UTF-8";
    FILE_SAME_CC_ENABLE_ARENAS: File Package: "a file keeps its cc_enable_arenas";
    FILE_SAME_CC_GENERIC_SERVICES: File Package: "a file keeps its cc_generic_services";
    FILE_SAME_CSHARP_NAMESPACE: File Package: "a file keeps its csharp_namespace";
    FILE_SAME_GO_PACKAGE: File Package: "a file keeps its go_package";
    FILE_SAME_JAVA_GENERIC_SERVICES: File Package: "a file keeps its java_generic_services";
    FILE_SAME_JAVA_MULTIPLE_FILES: File Package: "a file keeps its java_multiple_files";
    FILE_SAME_JAVA_OUTER_CLASSNAME: File Package: "a file keeps its java_outer_classname";
    FILE_SAME_JAVA_PACKAGE: File Package: "a file keeps its java_package";
    FILE_SAME_OBJC_CLASS_PREFIX: File Package: "a file keeps its objc_class_prefix";
    FILE_SAME_OPTIMIZE_FOR: File Package: "a file keeps its optimize_for";
    FILE_SAME_PHP_CLASS_PREFIX: File Package: "a file keeps its php_class_prefix";
    FILE_SAME_PHP_METADATA_NAMESPACE: File Package: "a file keeps its php_metadata_namespace";
    FILE_SAME_PHP_NAMESPACE: File Package: "a file keeps its php_namespace";
    FILE_SAME_PY_GENERIC_SERVICES: File Package: "a file keeps its py_generic_services";
    FILE_SAME_RUBY_PACKAGE: File Package: "a file keeps its ruby_package";
    FILE_SAME_SWIFT_PREFIX: File Package: "a file keeps its swift_prefix";
    FILE_SAME_SYNTAX: File Package: "a file keeps its syntax";
    MESSAGE_NO_REMOVE_STANDARD_DESCRIPTOR_ACCESSOR: File Package:
        "a message keeps its descriptor() method";
    ONEOF_NO_DELETE: File Package: "a oneof stays";
    RPC_NO_DELETE: File Package: "a method stays";
    ENUM_SAME_JSON_FORMAT: File Package WireJson: "an enum keeps its support of JSON";
    ENUM_VALUE_SAME_NAME: File Package WireJson: "a value of an enum keeps its name";
    FIELD_SAME_JSON_NAME: File Package WireJson: "a field keeps its name in JSON";
    FIELD_SAME_NAME: File Package WireJson: "a field keeps its name";
    MESSAGE_SAME_JSON_FORMAT: File Package WireJson: "a message keeps its support of JSON";
    ENUM_VALUE_NO_DELETE_UNLESS_NAME_RESERVED: WireJson:
        "a value of an enum stays, or its name is reserved";
    FIELD_NO_DELETE_UNLESS_NAME_RESERVED: WireJson: "a field stays, or its name is reserved";
    FIELD_WIRE_JSON_COMPATIBLE_CARDINALITY: WireJson:
        "a field keeps a cardinality that reads as before, in JSON too";
    FIELD_WIRE_JSON_COMPATIBLE_TYPE: WireJson:
        "a field keeps a type that reads as before, in JSON too";
    ENUM_VALUE_NO_DELETE_UNLESS_NUMBER_RESERVED: WireJson Wire:
        "a value of an enum stays, or its number is reserved";
    FIELD_NO_DELETE_UNLESS_NUMBER_RESERVED: WireJson Wire:
        "a field stays, or its number is reserved";
    FIELD_WIRE_COMPATIBLE_CARDINALITY: Wire: "a field keeps a cardinality that reads as before";
    FIELD_WIRE_COMPATIBLE_TYPE: Wire: "a field keeps a type that reads as before";
    FIELD_SAME_DEFAULT: File Package WireJson Wire: "a field keeps its default value";
    FIELD_SAME_ONEOF: File Package WireJson Wire: "a field stays in its oneof, or outside of one";
    FILE_SAME_PACKAGE: File Package WireJson Wire: "a file keeps its package";
    MESSAGE_SAME_REQUIRED_FIELDS: File Package WireJson Wire:
        "a message has the same required fields";
    RESERVED_ENUM_NO_DELETE: File Package WireJson Wire:
        "what an enum reserves stays reserved";
    RESERVED_MESSAGE_NO_DELETE: File Package WireJson Wire:
        "what a message reserves stays reserved";
    RPC_SAME_CLIENT_STREAMING: File Package WireJson Wire:
        "a method's requests stay one, or a stream";
    RPC_SAME_IDEMPOTENCY_LEVEL: File Package WireJson Wire: "a method keeps its idempotency_level";
    RPC_SAME_REQUEST_TYPE: File Package WireJson Wire: "a method keeps the type of its requests";
    RPC_SAME_RESPONSE_TYPE: File Package WireJson Wire: "a method keeps the type of its answers";
    RPC_SAME_SERVER_STREAMING: File Package WireJson Wire:
        "a method's answers stay one, or a stream";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back_to_sets() {
        for set in RuleSet::ALL {
            assert_eq!(RuleSet::from_name(set.name()), Some(set));
            assert_eq!(RuleSet::from_name(&set.name().to_lowercase()), Some(set));
        }
        assert_eq!(RuleSet::from_name("CSR"), None);
    }
}
