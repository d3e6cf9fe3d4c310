//! Services and their methods.

use buffa_descriptor::generated::descriptor::MethodDescriptorProto;
use buffa_descriptor::generated::descriptor::method_options::IdempotencyLevel;

use super::{Finding, Findings};
use crate::index::{Service, undotted};
use crate::rule;

/// Numbers of fields in `ServiceDescriptorProto` and `MethodDescriptorProto`.
const METHOD: i32 = 2;
const INPUT: [i32; 1] = [2];
const OUTPUT: [i32; 1] = [3];
const IDEMPOTENCY: [i32; 2] = [4, 34];

pub(super) fn check(name: &str, old: &Service<'_>, new: &Service<'_>, findings: &mut Findings) {
    for (index, method) in old.proto.method.iter().enumerate() {
        let mut methods = new.proto.method.iter().enumerate();
        let kept = methods.find(|(_, new)| new.name == method.name);
        let at = old.at.item(METHOD, index);
        let own_name = method.name.as_deref().unwrap_or_default();
        let Some((new_index, now)) = kept else {
            let message = format!("method {own_name} of {name} was deleted");
            let finding = Finding::gone(&at, &new.at, message)
                .help("keep the method and mark it deprecated: option deprecated = true;");
            findings.add(rule::RPC_NO_DELETE, finding);
            continue;
        };
        let new_at = new.at.item(METHOD, new_index);
        for aspect in ASPECTS {
            let (was, is) = ((aspect.read)(method), (aspect.read)(now));
            if was != is {
                let message = format!("method {own_name} of {name} changed {}", aspect.name);
                let (from, to) = (at.place_of(aspect.part), new_at.place_of(aspect.part));
                let finding = Finding::changed(from, to, message)
                    .was(was)
                    .now(is)
                    .help("leave the method as it was, and add a new one beside it");
                findings.add(aspect.rule, finding);
            }
        }
    }
}

/// What callers of a method depend on.
struct Aspect {
    rule: rule::Rule,
    name: &'static str,
    part: &'static [i32],
    read: fn(&MethodDescriptorProto) -> String,
}

const ASPECTS: &[Aspect] = &[
    Aspect {
        rule: rule::RPC_SAME_REQUEST_TYPE,
        name: "the type of its requests",
        part: &INPUT,
        read: |method| undotted(method.input_type.as_deref()).to_owned(),
    },
    Aspect {
        rule: rule::RPC_SAME_RESPONSE_TYPE,
        name: "the type of its answers",
        part: &OUTPUT,
        read: |method| undotted(method.output_type.as_deref()).to_owned(),
    },
    Aspect {
        rule: rule::RPC_SAME_CLIENT_STREAMING,
        name: "how many requests it takes",
        part: &[],
        read: |method| count(method.client_streaming),
    },
    Aspect {
        rule: rule::RPC_SAME_SERVER_STREAMING,
        name: "how many answers it gives",
        part: &[],
        read: |method| count(method.server_streaming),
    },
    Aspect {
        rule: rule::RPC_SAME_IDEMPOTENCY_LEVEL,
        name: "its idempotency_level",
        part: &IDEMPOTENCY,
        read: |method| {
            let options = method.options.as_option();
            match options.and_then(|options| options.idempotency_level) {
                None | Some(IdempotencyLevel::IDEMPOTENCY_UNKNOWN) => "IDEMPOTENCY_UNKNOWN",
                Some(IdempotencyLevel::NO_SIDE_EFFECTS) => "NO_SIDE_EFFECTS",
                Some(IdempotencyLevel::IDEMPOTENT) => "IDEMPOTENT",
            }
            .to_owned()
        },
    },
];

fn count(streaming: Option<bool>) -> String {
    let count = if streaming == Some(true) {
        "a stream"
    } else {
        "one"
    };
    count.to_owned()
}
