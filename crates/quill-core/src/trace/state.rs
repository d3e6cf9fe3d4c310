//! What tracing systems pass on to themselves: `tracestate`.
//!
//! <https://www.w3.org/TR/trace-context/#tracestate-header>

/// Most members of a list; one with more is no list.
const MEMBERS_MAX: usize = 32;
/// The length that the specification asks everybody to pass on. What is over it
/// is left out, from the end, by whole members.
const BYTES_MAX: usize = 512;
const KEY_BYTES_MAX: usize = 256;
const VALUE_BYTES_MAX: usize = 256;

/// Reads the members of all `tracestate` fields of a call into one list, without
/// the empty members and the white space between them. `None` where there are
/// no members, or where something is no member: then none of it is passed on.
pub(super) fn read<'a>(fields: impl Iterator<Item = &'a [u8]>) -> Option<String> {
    let mut members: Vec<(&str, &str)> = Vec::new();
    for field in fields {
        let field = std::str::from_utf8(field).ok()?;
        for member in field.split(',') {
            let member = member.trim_matches([' ', '\t']);
            if member.is_empty() {
                continue;
            }
            let (key, value) = member.split_once('=')?;
            let is_known = members.iter().any(|(known, _)| *known == key);
            if is_known || members.len() == MEMBERS_MAX || !is_key(key) || !is_value(value) {
                return None;
            }
            members.push((key, value));
        }
    }
    let mut list = String::new();
    for (key, value) in members {
        let comma = usize::from(!list.is_empty());
        if list.len() + comma + key.len() + 1 + value.len() > BYTES_MAX {
            break;
        }
        if comma == 1 {
            list.push(',');
        }
        list.push_str(key);
        list.push('=');
        list.push_str(value);
    }
    (!list.is_empty()).then_some(list)
}

/// `vendor`, or `tenant@vendor`.
fn is_key(key: &str) -> bool {
    let is_plain = |part: &str, bytes_max: usize, may_begin_with_digit: bool| {
        let begins_well = part.bytes().next().is_some_and(|first| {
            first.is_ascii_lowercase() || (may_begin_with_digit && first.is_ascii_digit())
        });
        let holds = |byte: u8| {
            byte.is_ascii_lowercase()
                || byte.is_ascii_digit()
                || matches!(byte, b'_' | b'-' | b'*' | b'/')
        };
        begins_well && part.len() <= bytes_max && part.bytes().all(holds)
    };
    match key.split_once('@') {
        None => is_plain(key, KEY_BYTES_MAX, true),
        Some((tenant, system)) => is_plain(tenant, 241, true) && is_plain(system, 14, false),
    }
}

fn is_value(value: &str) -> bool {
    let holds = |byte: u8| matches!(byte, b' '..=b'~') && byte != b',' && byte != b'=';
    (1..=VALUE_BYTES_MAX).contains(&value.len())
        && !value.ends_with(' ')
        && value.bytes().all(holds)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(fields: &[&str]) -> Option<String> {
        read(fields.iter().map(|field| field.as_bytes()))
    }

    #[test]
    fn fields_are_one_list() {
        for (fields, list) in [
            (&["a=1,b=2"][..], Some("a=1,b=2")),
            (&["a=1", "b=2"], Some("a=1,b=2")),
            (&[" a=1 ,, \tb=x y"], Some("a=1,b=x y")),
            (&["t@v=1,0k*_-/=~!"], Some("t@v=1,0k*_-/=~!")),
            (&[""], None),
            (&[" , "], None),
            (&[], None),
        ] {
            assert_eq!(of(fields).as_deref(), list, "{fields:?}");
        }
    }

    #[test]
    fn what_is_no_member_discards_the_list() {
        let long_key = format!("{}=1", "k".repeat(257));
        let long_value = format!("k={}", "v".repeat(257));
        let many: Vec<String> = (0..33).map(|n| format!("k{n}=1")).collect();
        for field in [
            "a",
            "=1",
            "a=",
            "A=1",
            "a b=1",
            "a=1=2",
            "a=1,a=2",
            "a@=1",
            "@a=1",
            "a@0=1",
            "-a=1",
            "a=\u{7f}",
            "a=é",
            "ok=1,b",
            &long_key,
            &long_value,
            &many.join(","),
        ] {
            assert_eq!(of(&[field]), None, "{field}");
        }
        assert!(of(&[&many[..32].join(",")]).is_some());
        assert!(of(&[&long_key[1..]]).is_some());
        assert!(of(&[&long_value[..258]]).is_some());
    }

    #[test]
    fn a_list_is_cut_between_members() {
        let members: Vec<String> = (0..30)
            .map(|n| format!("k{n:02}={}", "v".repeat(20)))
            .collect();
        let list = of(&[&members.join(",")]).unwrap();
        assert_eq!(list, members[..20].join(","));
        assert!(list.len() <= BYTES_MAX && list.len() + 25 > BYTES_MAX);
    }
}
