//! What the page on resilience shows. Compiled, not run: the code is about
//! servers of a user's.

#![allow(
    clippy::print_stdout,
    dead_code,
    unused_variables,
    reason = "each function is a block of the page and its surroundings"
)]

use std::time::Duration;

use quill::client::{
    Backoff, Balance, CircuitBreaker, HealthCheck, Hedge, Outliers, Quota, RateLimit, RetryBudget,
    RetryLayer, RetryPolicy, Token, Tokens,
};
use quill::{Code, ConnectError, Error, QuillClient, TransportError, TransportErrorKind};
use quill_examples::greet::{GreetClient, GreetRequest};

fn all_of_it() -> Result<GreetClient, ConnectError> {
    let client = QuillClient::builder()
        .base_url("http://10.0.0.1:8080,10.0.0.2:8080")
        .timeout(Duration::from_secs(2))
        .balance(Balance::least_loaded().eject(Outliers::new()))
        .retry(RetryPolicy::new())
        .circuit_breaker(CircuitBreaker::new())
        .build()?;
    let greeter = GreetClient::new(client);
    Ok(greeter)
}

async fn errors(client: GreetClient, request: GreetRequest) {
    if let Err(error) = client.greet(request).await {
        let kind = TransportError::of(&error).map(TransportError::kind);
        match (kind, error.maybe_processed()) {
            (Some(TransportErrorKind::Resolve), _) => println!("no such host"),
            (Some(_), false) => println!("it never ran: {error}"),
            (Some(_), true) => println!("it may have run: {error}"),
            (None, _) => println!("the server, or the client itself, says: {error}"),
        }
    }
}

fn retries(builder: quill::ClientBuilder) -> Result<QuillClient, ConnectError> {
    let policy = RetryPolicy::new()
        .attempts_max(3)
        .backoff(Backoff::new(
            Duration::from_millis(50),
            Duration::from_secs(1),
        ))
        .codes([Code::Unavailable, Code::Aborted]);
    let retry = RetryLayer::new(policy.clone())
        .method("/greet.v1.GreetService/Greet", policy)
        .budget(RetryBudget::new(100, 0.1));
    let client = builder.retry(retry).build()?;
    Ok(client)
}

fn hedging(builder: quill::ClientBuilder) -> Result<QuillClient, ConnectError> {
    let client = builder
        .hedge(Hedge::after(Duration::from_millis(50)))
        .build()?;
    Ok(client)
}

fn breaker(builder: quill::ClientBuilder) -> Result<QuillClient, ConnectError> {
    let breaker = CircuitBreaker::new()
        .failure_ratio(0.5)
        .open_for(Duration::from_secs(5));
    let client = builder.circuit_breaker(breaker.clone()).build()?;
    println!("{:?}", breaker.state());
    Ok(client)
}

fn servers(builder: quill::ClientBuilder) -> Result<QuillClient, ConnectError> {
    let balance = Balance::round_robin()
        .resolve_every(Duration::from_secs(10))
        .eject(Outliers::new().in_a_row(3))
        .check_health(HealthCheck::of("greet.v1.GreetService"))
        .wait_for_ready();
    let client = builder
        .base_url("http://greeter.internal:8080")
        .balance(balance)
        .build()?;
    Ok(client)
}

fn source(builder: quill::ClientBuilder) -> Result<QuillClient, ConnectError> {
    let client = builder
        .endpoints_from(|| async { Ok(servers_of_the_registry().await?) })
        .build()?;
    Ok(client)
}

async fn servers_of_the_registry() -> Result<Vec<String>, std::io::Error> {
    Ok(vec!["http://10.0.0.1:8080".to_owned()])
}

fn rate(builder: quill::ClientBuilder) -> Result<QuillClient, ConnectError> {
    let client = builder
        .rate_limit(RateLimit::new(Quota::per_second(100)))
        .build()?;
    Ok(client)
}

fn identity(builder: quill::ClientBuilder) -> Result<QuillClient, ConnectError> {
    let tokens = Tokens::new(|| async {
        let (token, seconds) = ask_the_issuer().await?;
        Ok(Token::bearer(token).expires_in(Duration::from_secs(seconds)))
    });
    let client = builder.tokens(tokens).metadata("x-tenant", "7").build()?;
    Ok(client)
}

async fn ask_the_issuer() -> Result<(String, u64), Error> {
    Ok(("secret".to_owned(), 3600))
}

fn own_layers(builder: quill::ClientBuilder) -> Result<QuillClient, ConnectError> {
    let client = builder
        .layer(tower::limit::ConcurrencyLimitLayer::new(100))
        .build()?;
    Ok(client)
}
