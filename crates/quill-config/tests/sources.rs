//! Settings as people write them, and what they are told.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::time::Duration;

use quill_config::{ConfigError, OrOff, Size, Sources, Time, keys};
use serde::Deserialize;

#[derive(Debug, Default, Deserialize, PartialEq)]
#[serde(default, deny_unknown_fields)]
struct Settings {
    listen: Option<String>,
    limits: Limits,
    rates: Vec<Rate>,
    methods: BTreeMap<String, Rate>,
    origins: Vec<String>,
    mode: Option<Mode>,
}

#[derive(Debug, Default, Deserialize, PartialEq)]
#[serde(default, deny_unknown_fields)]
struct Limits {
    body: Option<Size>,
    idle: Option<OrOff<Time>>,
    level: Option<u8>,
    is_strict: bool,
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct Rate {
    rate: f64,
    burst: Option<u32>,
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
enum Mode {
    Open,
    HalfOpen,
}

const FILE: &str = "\
# All of it.
listen: 127.0.0.1:80
limits:
  body: 4MiB
  idle: off
  level: 3
  is_strict: true
rates:
  - rate: 1
  - rate: 0.5
    burst: 7
methods:
  /a.B/C: {rate: 2}
origins: [https://a.example, '*']
mode: half_open
";

fn read(text: &str, variables: &[(&str, &str)]) -> Result<Settings, ConfigError> {
    let sources = Sources::text("a.yaml", text).with_variables("A_", variables.iter().copied());
    sources.read().map(|read| read.value)
}

fn told(text: &str, variables: &[(&str, &str)]) -> String {
    read(text, variables).unwrap_err().to_string()
}

#[test]
fn a_file_is_read() {
    let settings = read(FILE, &[]).unwrap();
    assert_eq!(settings.listen.as_deref(), Some("127.0.0.1:80"));
    assert_eq!(settings.limits.body.map(Size::bytes), Some(4 << 20));
    assert_eq!(settings.limits.idle, Some(OrOff::Off));
    assert_eq!(settings.limits.level, Some(3));
    assert!(settings.limits.is_strict);
    assert_eq!(settings.rates.len(), 2);
    assert_eq!(settings.rates[1].burst, Some(7));
    assert_eq!(settings.methods["/a.B/C"].rate, 2.0);
    assert_eq!(settings.origins, ["https://a.example", "*"]);
    assert_eq!(settings.mode, Some(Mode::HalfOpen));
}

#[test]
fn nothing_said_is_the_default() {
    for text in ["", "# a comment\n", "\n\n", "limits:\nrates:\nmode:\n"] {
        assert_eq!(read(text, &[]).unwrap(), Settings::default(), "{text:?}");
    }
}

#[test]
fn variables_win_over_the_file() {
    let settings = read(
        FILE,
        &[
            ("A_LISTEN", "0.0.0.0:81"),
            ("A_LIMITS__BODY", "1KiB"),
            ("A_LIMITS__IDLE", "1m"),
            ("A_LIMITS__LEVEL", "9"),
            ("A_LIMITS__IS_STRICT", "false"),
            ("A_RATES", "[{rate: 5}]"),
            ("A_ORIGINS", "[https://b.example]"),
            ("A_MODE", ""),
            ("B_LISTEN", "not ours"),
            ("A_PORT", "tcp://10.0.0.1:80"),
            ("A_PORT_80_TCP_ADDR", "10.0.0.1"),
            ("A_SERVICE_HOST", "10.0.0.1"),
        ],
    )
    .unwrap();
    assert_eq!(settings.listen.as_deref(), Some("0.0.0.0:81"));
    assert_eq!(settings.limits.body.map(Size::bytes), Some(1024));
    let idle = settings.limits.idle.and_then(OrOff::value);
    assert_eq!(idle.map(Time::duration), Some(Duration::from_secs(60)));
    assert_eq!(settings.limits.level, Some(9));
    assert!(!settings.limits.is_strict);
    assert_eq!(settings.rates.len(), 1);
    assert_eq!(settings.origins, ["https://b.example"]);
    assert_eq!(settings.mode, None);
    let alone = read("", &[("A_LIMITS__LEVEL", "9")]).unwrap();
    assert_eq!(alone.limits.level, Some(9));
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Socket {
    port: Option<u16>,
    peer_port: Option<u16>,
}

#[test]
fn what_kubernetes_makes_of_services_is_passed_over() {
    let made = [
        ("A_SERVICE_HOST", "10.0.0.1"),
        ("A_SERVICE_PORT_HTTP", "80"),
        ("A_PORT", "tcp://10.0.0.1:80"),
        ("A_PORT_80_TCP_ADDR", "10.0.0.1"),
        ("A_CANARY_SERVICE_HOST", "10.0.0.1"),
        ("A_CANARY_SERVICE_PORT", "80"),
        ("A_CANARY_SERVICE_PORT_HTTP", "80"),
        ("A_CANARY_PORT", "tcp://10.0.0.1:80"),
        ("A_CANARY_PORT_80_TCP", "tcp://10.0.0.1:80"),
    ];
    assert_eq!(read("", &made).unwrap(), Settings::default());
    for name in ["A_SERVICE_HOTS", "A_PORTS", "A_PORT_A_B", "A_LIMITS__PORT"] {
        let error = told("", &[(name, "1")]);
        assert!(error.contains("there is no such key"), "{name}: {error}");
    }
    let own = Sources::new().with_variables("A_", [("A_PORT", "1"), ("A_PEER_PORT", "2")]);
    let own = own.read::<Socket>().unwrap().value;
    assert_eq!((own.port, own.peer_port), (Some(1), Some(2)));
}

#[test]
fn an_empty_variable_takes_its_key_out_of_the_file() {
    let empty = [
        ("A_LISTEN", ""),
        ("A_LIMITS__IS_STRICT", ""),
        ("A_LIMITS__LEVEL", ""),
        ("A_RATES", ""),
        ("A_METHODS", ""),
        ("A_ORIGINS__NOWHERE", ""),
        ("A_MODE", ""),
    ];
    let settings = read(FILE, &empty).unwrap();
    let expected = "limits: {body: 4MiB, idle: off}\norigins: [https://a.example, '*']";
    assert_eq!(settings, read(expected, &[]).unwrap());
    assert_eq!(read("", &empty).unwrap(), Settings::default());
    let without = read(FILE, &[("A_LIMITS", "")]).unwrap();
    assert_eq!(without.limits, Limits::default());
}

#[test]
fn what_is_wrong_is_said_with_its_place_and_key() {
    for (text, expected) in [
        (
            "listne: a",
            "a.yaml:1: listne: there is no such key; did you mean listen?",
        ),
        (
            "\nlimits:\n  bdy: 4MiB",
            "a.yaml:3: limits.bdy: there is no such key; did you mean limits.body?",
        ),
        (
            "level: 3",
            "a.yaml:1: level: there is no such key; did you mean limits.level?",
        ),
        (
            "limits:\n  x: 3",
            "a.yaml:2: limits.x: there is no such key; allowed are body, idle, level, is_strict",
        ),
        (
            "limits:\n  body: 4",
            "a.yaml:2: limits.body: 4 can't be used: allowed is a size with its unit: 512B, 64KiB, 4MiB, 1GiB (or kB, MB, GB)",
        ),
        (
            "limits:\n  idle: never",
            "a.yaml:2: limits.idle: \"never\" can't be used: allowed is off, or a time above 0 and up to 365d, with its unit: 500ms, 1.5s, 30s, 5m, 2h, 1d",
        ),
        (
            "limits:\n  level: 300",
            "a.yaml:2: limits.level: 300 can't be used: allowed is a whole number from 0 to 255",
        ),
        (
            "limits:\n  is_strict: maybe",
            "a.yaml:2: limits.is_strict: \"maybe\" can't be used: allowed is true or false",
        ),
        (
            "rates:\n  - rate: 1\n  - burst: 1",
            "a.yaml:3: rates[1].rate: it is missing, and has to be said",
        ),
        (
            "rates:\n  - rate: fast",
            "a.yaml:2: rates[0].rate: \"fast\" can't be used: allowed is a number",
        ),
        (
            "mode: half",
            "a.yaml:1: mode: \"half\" can't be used: allowed is one of open, half_open",
        ),
        (
            "mode: 3",
            "a.yaml:1: mode: 3 can't be used: allowed is one of open, half_open",
        ),
        (
            "listen: 8080",
            "a.yaml:1: listen: 8080 can't be used: allowed is a text (in quotes, where it looks like a number)",
        ),
        (
            "limits: 3",
            "a.yaml:1: limits: 3 can't be used: allowed is a block of keys",
        ),
        (
            "origins: a",
            "a.yaml:1: origins: \"a\" can't be used: allowed is a list",
        ),
    ] {
        assert_eq!(told(text, &[]), expected, "{text}");
    }
    for (variable, value, expected) in [
        (
            "A_LISTNE",
            "a",
            "A_LISTNE: listne: there is no such key; did you mean listen?",
        ),
        (
            "A_LIMITS__LEVEL",
            "fast",
            "A_LIMITS__LEVEL: limits.level: \"fast\" can't be used: allowed is a whole number from 0 to 255",
        ),
        (
            "A_RATES",
            "[{rate: x}]",
            "A_RATES: rates[0].rate: \"x\" can't be used: allowed is a number",
        ),
    ] {
        assert_eq!(told(FILE, &[(variable, value)]), expected, "{variable}");
    }
    let broken = told(FILE, &[("A_RATES", "[{rate")]);
    assert!(
        broken.starts_with("A_RATES: rates: what begins with [ or {"),
        "{broken}"
    );
    let broken = told("listen: a\nlimits: [\n", &[]);
    assert!(broken.starts_with("a.yaml:"), "{broken}");
    let twice = told("listen: a\nlisten: b\n", &[]);
    assert!(
        twice.starts_with("a.yaml:2: ") && twice.contains("listen"),
        "{twice}"
    );
}

#[test]
fn an_error_found_later_has_its_place_too() {
    let sources = Sources::text("a.yaml", FILE).with_variables("A_", [("A_LIMITS__BODY", "1B")]);
    let read = sources.read::<Settings>().unwrap();
    for (key, expected) in [
        ("limits.level", "a.yaml:6: limits.level: no"),
        ("limits.body", "A_LIMITS__BODY: limits.body: no"),
        ("rates[1].burst", "a.yaml:11: rates[1].burst: no"),
        ("limits.other", "a.yaml:3: limits.other: no"),
        ("other", "a.yaml: other: no"),
    ] {
        assert_eq!(read.error(key, "no").to_string(), expected);
    }
    assert_eq!(read.path("a.pem").to_str(), Some("a.pem"));
}

#[test]
fn what_is_out_of_its_bounds_is_told_with_its_place() {
    let read = Sources::text("a.yaml", FILE).read::<Settings>().unwrap();
    let level = |said, allowed| read.bounded("limits.level", said, allowed);
    assert_eq!(level(Some(3), 1..=3).unwrap(), Some(3));
    assert_eq!(level(None, 1..=3).unwrap(), None);
    assert_eq!(
        level(Some(4), 1..=3).unwrap_err().to_string(),
        "a.yaml:6: limits.level: 4 can't be used: allowed is 1 to 3"
    );
    let told = |bounds: (Bound<f64>, Bound<f64>)| {
        let error = read.bounded("rates", Some(f64::NAN), bounds).unwrap_err();
        error.message().to_owned()
    };
    for (bounds, allowed) in [
        ((Bound::Included(1.0), Bound::Unbounded), "1.0 or more"),
        (
            (Bound::Excluded(0.0), Bound::Included(1.0)),
            "more than 0.0 and up to 1.0",
        ),
        ((Bound::Unbounded, Bound::Excluded(2.0)), "less than 2.0"),
    ] {
        let expected = format!("NaN can't be used: allowed is {allowed}");
        assert_eq!(told(bounds), expected);
    }
}

#[test]
fn an_address_with_a_login_is_refused_and_not_shown() {
    let read = Sources::text("a.yaml", FILE).read::<Settings>().unwrap();
    for well in ["http://a:1,b:2", "redis://a", "unix:/run/a@1.sock"] {
        read.without_login("listen", well).unwrap();
    }
    for wrong in [
        "redis://:hunter2@a",
        "a,http://u:hunter2@b/c",
        "u:hunter2@a",
    ] {
        let error = read.without_login("listen", wrong).unwrap_err().to_string();
        assert!(
            error.starts_with("a.yaml:2: listen: an address with"),
            "{error}"
        );
        assert!(!error.contains("hunter2"), "{error}");
    }
}

#[test]
fn the_keys_of_a_type_are_known() {
    let keys = keys::<Settings>();
    let named: Vec<_> = keys
        .iter()
        .map(|key| (key.name(), key.variable("A_")))
        .collect();
    let variable = |name: &str| Some(name.to_owned());
    assert_eq!(
        named,
        [
            ("listen", variable("A_LISTEN")),
            ("limits.body", variable("A_LIMITS__BODY")),
            ("limits.idle", variable("A_LIMITS__IDLE")),
            ("limits.level", variable("A_LIMITS__LEVEL")),
            ("limits.is_strict", variable("A_LIMITS__IS_STRICT")),
            ("rates[].rate", None),
            ("rates[].burst", None),
            ("methods.NAME.rate", None),
            ("methods.NAME.burst", None),
            ("origins", variable("A_ORIGINS")),
            ("mode", variable("A_MODE")),
        ]
    );
}

#[test]
fn files_are_found_from_the_folder_of_the_settings() {
    let folder = std::env::temp_dir().join(format!("quill-config-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("a.yaml");
    std::fs::write(&path, FILE).unwrap();
    let read = Sources::file(&path).unwrap().read::<Settings>().unwrap();
    assert_eq!(read.path("key.pem"), folder.join("key.pem"));
    assert_eq!(read.path("/key.pem").to_str(), Some("/key.pem"));
    std::fs::write(&path, " ".repeat(1024 * 1024 + 1)).unwrap();
    let error = Sources::file(&path).unwrap_err().to_string();
    assert!(error.ends_with("a.yaml: it has more than 1 MiB"), "{error}");
    let error = Sources::file(folder.join("b.yaml"))
        .unwrap_err()
        .to_string();
    assert!(error.contains("b.yaml: "), "{error}");
    std::fs::remove_dir_all(folder).unwrap();
}
