//! TLS, and callers that show a certificate too (mTLS). The certificates are
//! made here; a deployment has its own, and gives their files:
//! `identity_files("server.pem", "server.key")`, `ca_file("ca.pem")`.

use quill::tls::{ClientTls, ServerTls};
use quill::{QuillClient, Server};
use quill_examples::Greeter;
use quill_examples::greet::{GreetClient, GreetRequest, GreetServer};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

type Failure = Box<dyn std::error::Error>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let authority = Authority::new()?;
    let (server_chain, server_key) = authority.issue("localhost")?;
    let (client_chain, client_key) = authority.issue("ada")?;

    let tls = ServerTls::builder()
        .identity_pem(server_chain, server_key)
        .client_ca_pem(&authority.certificate) // mTLS: without this line, callers need none
        .build()?;
    let server = Server::builder()
        .service(GreetServer::new(Greeter))
        .tls(tls)
        .bind("127.0.0.1:0")
        .await?
        .start();
    let port = server.local_addr().ok_or("no TCP socket")?.port();
    let url = format!("https://localhost:{port}");

    let tls = ClientTls::builder()
        .ca_pem(&authority.certificate)
        .without_public_authorities()
        .identity_pem(client_chain, client_key)
        .build()?;
    let client = QuillClient::builder().base_url(&url).tls(tls).build()?;
    let request = GreetRequest {
        name: "Ada".into(),
        ..Default::default()
    };
    let reply = GreetClient::new(client).greet(request).await?;
    println!("with a certificate: {}", reply.message().greeting);
    assert_eq!(reply.message().greeting, "Hello, Ada!");

    let tls = ClientTls::builder()
        .ca_pem(&authority.certificate)
        .without_public_authorities()
        .build()?;
    let client = QuillClient::builder().base_url(&url).tls(tls).build()?;
    let refused = GreetClient::new(client)
        .greet(GreetRequest::default())
        .await;
    let refused = refused.err().ok_or("no certificate was needed")?;
    println!("without one: {refused}");

    server.shutdown().await;
    Ok(())
}

/// Issues certificates for this run.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: String,
}

impl Authority {
    fn new() -> Result<Self, Failure> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new(Vec::new())?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key)?.pem();
        let issuer = Issuer::new(params, key);
        Ok(Self {
            issuer,
            certificate,
        })
    }

    /// A certificate for this name, and its key, as PEM.
    fn issue(&self, name: &str) -> Result<(String, String), Failure> {
        let key = KeyPair::generate()?;
        let params = CertificateParams::new(vec![name.to_owned()])?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        Ok((certificate.pem(), key.serialize_pem()))
    }
}
