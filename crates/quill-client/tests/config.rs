//! What a client does with its settings.

#![cfg(feature = "config")]

use quill_client::{ClientConfig, QuillClient};

/// What is wrong with settings, when they are read or put into a builder.
fn refused(yaml: &str) -> String {
    let config = match ClientConfig::parse("a.yaml", yaml) {
        Ok(config) => config,
        Err(error) => return error.to_string(),
    };
    match QuillClient::builder().configure(&config) {
        Ok(_) => panic!("it was taken: {yaml}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_value_out_of_its_bounds_is_told_with_its_line() {
    for (section, key, value, allowed) in [
        ("compression", "level", "0", "1 to 22"),
        ("balance", "resolve_every", "999ms", "1s or more"),
        ("balance.eject", "in_a_row", "0", "1 or more"),
        ("balance.eject", "percent", "0", "1 to 100"),
        ("balance.eject", "percent", "101", "1 to 100"),
        ("balance.eject", "calls_min", "0", "1 or more"),
        ("balance.eject", "interval", "9ms", "10ms or more"),
        ("balance.eject", "ejected_percent_max", "101", "up to 100"),
        ("retry", "attempts_max", "0", "1 or more"),
        (
            "circuit_breaker",
            "failure_ratio",
            "50.0",
            "more than 0.0 and up to 1.0",
        ),
        (
            "circuit_breaker",
            "failure_ratio",
            "-1.0",
            "more than 0.0 and up to 1.0",
        ),
        (
            "circuit_breaker",
            "failure_ratio",
            "0.0",
            "more than 0.0 and up to 1.0",
        ),
        ("circuit_breaker", "calls_min", "0", "1 or more"),
    ] {
        let yaml = section.split('.').rev();
        let inner = format!("{{{key}: {value}}}");
        let yaml = yaml.fold(inner, |inner, step| format!("{{{step}: {inner}}}"));
        let expected =
            format!("a.yaml:1: {section}.{key}: {value} can't be used: allowed is {allowed}");
        assert_eq!(refused(&yaml), expected);
    }
    for (yaml, expected) in [
        (
            "credits: 0",
            "1: credits: 0 can't be used: allowed is 1 or more",
        ),
        (
            "hedge:\n  after: 1s\n  attempts_max: 50",
            "3: hedge.attempts_max: 50 can't be used: allowed is 1 to 5",
        ),
        (
            "retry:\n  budget: {tokens_max: 0, ratio: 0.1}",
            "2: retry.budget.tokens_max: 0 can't be used: allowed is 1 to 1000000",
        ),
        (
            "retry:\n  budget: {tokens_max: 1, ratio: 2}",
            "2: retry.budget.ratio: 2.0 can't be used: allowed is 0.001 to 1.0",
        ),
        (
            "retry:\n  backoff: {initial: 1s, max: 1m, multiplier: 0.5}",
            "2: retry.backoff.multiplier: 0.5 can't be used: allowed is 1.0 or more",
        ),
        (
            "balance:\n  reconnect: {initial: 2s, max: 1s}",
            "2: balance.reconnect.initial: 2s can't be used: allowed is up to 1s",
        ),
    ] {
        assert_eq!(refused(yaml), format!("a.yaml:{expected}"));
    }
}

#[test]
fn each_part_of_a_section_may_be_said_alone() {
    for yaml in [
        "retry: {backoff: {initial: 2s}}",
        "retry: {backoff: {max: 50ms}}",
        "retry: {backoff: {multiplier: 3}}",
        "retry: {budget: {tokens_max: 7}}",
        "retry: {budget: {ratio: 0.5}}",
        "balance: {reconnect: {initial: 30s}}",
        "balance: {reconnect: {}}",
    ] {
        let config = ClientConfig::parse("a.yaml", yaml).unwrap();
        assert!(QuillClient::builder().configure(&config).is_ok(), "{yaml}");
    }
    assert_eq!(
        refused("retry: {backoff: {initial: 3s}}"),
        "a.yaml:1: retry.backoff.initial: 3s can't be used: allowed is up to 2s"
    );
}

#[test]
fn what_is_within_its_bounds_is_taken() {
    let yaml = "
credits: 1
compression: {level: 1}
balance:
  resolve_every: 1s
  reconnect: {initial: 1s, max: 1s, multiplier: 1}
  eject: {in_a_row: 1, percent: 100, calls_min: 1, interval: 10ms, ejected_percent_max: 100}
  check_health: {service: a, every: 10ms}
retry: {attempts_max: 1, budget: {tokens_max: 1000000, ratio: 1}}
hedge: {after: 1s, attempts_max: 5}
circuit_breaker: {failure_ratio: 1, calls_min: 1}
";
    let config = ClientConfig::parse("a.yaml", yaml).unwrap();
    assert!(QuillClient::builder().configure(&config).is_ok());
}

#[test]
fn no_secret_is_shown() {
    let config = ClientConfig::parse("a.yaml", "metadata: {x-team: hunter2}").unwrap();
    let shown = format!("{config:?}");
    assert!(
        shown.contains("x-team") && !shown.contains("hunter2"),
        "{shown}"
    );
    let error = ClientConfig::parse("a.yaml", "base_url: https://u:hunter2@a").unwrap_err();
    assert_eq!(error.key(), "base_url");
    assert!(!error.to_string().contains("hunter2"), "{error}");
}
