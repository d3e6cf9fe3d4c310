//! TLS: identities, trust, mutual authentication, protocols, reloading.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use quill_core::HttpVersion;
use quill_transport::tls::{ClientAuth, ClientTls, ClientTlsBuilder, ServerTls, ServerTlsBuilder};
use quill_transport::{
    Channel, ClientOptions, Empty, Endpoint, HttpServer, HttpVersions, Listener, Running,
    ServerOptions, TransportError, TransportErrorKind,
};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::*;

struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        Self(CertifiedIssuer::self_signed(params, key).unwrap())
    }

    fn pem(&self) -> String {
        self.0.pem()
    }

    /// A certificate and its key for this name.
    fn issue(&self, name: &str) -> (String, String) {
        let params = CertificateParams::new([name.to_owned()]).unwrap();
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        (certificate.pem(), key.serialize_pem())
    }

    fn server(&self) -> ServerTlsBuilder {
        let (chain, key) = self.issue("localhost");
        ServerTls::builder().identity_pem(chain, key)
    }

    fn client(&self) -> ClientTlsBuilder {
        ClientTls::builder()
            .without_public_authorities()
            .ca_pem(self.pem())
    }
}

/// TLS under some name that nobody trusts.
pub(crate) fn untrusted() -> ServerTls {
    Authority::new().server().build().unwrap()
}

async fn serve(tls: ServerTls, versions: HttpVersions) -> Running {
    let mut options = ServerOptions::default();
    options.versions = versions;
    let listener = Listener::bind("127.0.0.1:0").await.unwrap();
    HttpServer::new(listener)
        .with_options(options)
        .unwrap()
        .with_tls(tls)
        .start(Shared::default())
}

fn connect(running: &Running, options: ClientOptions, tls: ClientTls) -> Channel {
    let port = running.local_addr().unwrap().port();
    let endpoint = Endpoint::parse(&format!("https://localhost:{port}")).unwrap();
    Channel::new(endpoint, options, Some(tls)).unwrap()
}

/// What the server says of the request's connection.
async fn described(channel: &Channel) -> Result<String, TransportError> {
    let (_, body) = soon(channel.send(post("/head"), Empty)).await?;
    Ok(text(body).await)
}

#[tokio::test]
async fn the_handshake_chooses_the_version() {
    let authority = Authority::new();
    for (versions, http1, spoken) in [
        (HttpVersions::All, false, "Http2"),
        (HttpVersions::All, true, "Http1"),
        (HttpVersions::Http1, false, "Http1"),
        (HttpVersions::Http2, false, "Http2"),
    ] {
        let running = serve(authority.server().build().unwrap(), versions).await;
        let mut options = ClientOptions::default();
        options.http1 = http1;
        let channel = connect(&running, options, authority.client().build().unwrap());
        for _ in 0..2 {
            let said = described(&channel).await.unwrap();
            assert!(said.contains(&format!("{spoken} address=true secure=true certificates=0")));
        }
    }
    let running = serve(authority.server().build().unwrap(), HttpVersions::Http2).await;
    let channel = connect(
        &running,
        options(HttpVersion::Http1),
        authority.client().build().unwrap(),
    );
    let error = described(&channel).await.unwrap_err();
    assert_eq!(error.kind(), TransportErrorKind::Tls);
}

#[tokio::test]
async fn one_address_of_a_name_is_called_by_the_name() {
    let authority = Authority::new();
    let running = serve(authority.server().build().unwrap(), HttpVersions::All).await;
    let address = running.local_addr().unwrap();
    let url = format!("https://localhost:{}", address.port());
    let endpoint = Endpoint::parse(&url).unwrap();
    let mut called = 0;
    for resolved in endpoint.resolve().await.unwrap() {
        assert_eq!(resolved.authority(), endpoint.authority());
        // The name may have an address of IPv6 too, where nobody listens.
        if resolved.address() == Some(address) {
            let tls = authority.client().build().unwrap();
            let channel = Channel::new(resolved, ClientOptions::default(), Some(tls)).unwrap();
            assert!(!channel.is_connected());
            let said = described(&channel).await.unwrap();
            assert!(said.contains("secure=true"), "{said}");
            assert!(channel.is_connected());
            called += 1;
        }
    }
    assert_eq!(called, 1);
}

#[tokio::test]
async fn a_server_that_is_not_trusted_is_refused() {
    let (ours, other) = (Authority::new(), Authority::new());
    let running = serve(ours.server().build().unwrap(), HttpVersions::All).await;
    let mistrusting = [
        other.client().build().unwrap(),
        ClientTls::builder().build().unwrap(),
        ours.client().server_name("example.com").build().unwrap(),
    ];
    for tls in mistrusting {
        let channel = connect(&running, ClientOptions::default(), tls);
        let error = described(&channel).await.unwrap_err();
        assert_eq!(error.kind(), TransportErrorKind::Tls, "{error}");
        assert!(!error.maybe_processed());
        assert!(
            error
                .to_string()
                .contains("TLS handshake with https://localhost")
        );
    }
}

#[tokio::test]
async fn a_server_without_tls_is_told() {
    let listener = Listener::bind("127.0.0.1:0").await.unwrap();
    let running = HttpServer::new(listener).start(Shared::default());
    let tls = ClientTls::builder().build().unwrap();
    let channel = connect(&running, ClientOptions::default(), tls);
    let error = described(&channel).await.unwrap_err();
    assert_eq!(error.kind(), TransportErrorKind::Tls, "{error}");
    assert!(error.to_string().contains("does not speak TLS"), "{error}");
}

#[tokio::test]
async fn the_name_of_the_server_can_be_given() {
    let authority = Authority::new();
    let (chain, key) = authority.issue("inner.example");
    let tls = ServerTls::builder().identity_pem(chain, key);
    let running = serve(tls.build().unwrap(), HttpVersions::All).await;
    let tls = authority.client().server_name("inner.example");
    let channel = connect(&running, ClientOptions::default(), tls.build().unwrap());
    described(&channel).await.unwrap();
}

#[tokio::test]
async fn callers_may_be_asked_for_certificates() {
    let (servers, callers) = (Authority::new(), Authority::new());
    let (chain, key) = callers.issue("caller");
    let with = || servers.client().identity_pem(&chain, &key).build().unwrap();
    let without = || servers.client().build().unwrap();
    for auth in [ClientAuth::Required, ClientAuth::Optional] {
        let tls = servers.server().client_ca_pem(callers.pem());
        let tls = tls.client_auth(auth).build().unwrap();
        let running = serve(tls, HttpVersions::All).await;
        for http1 in [true, false] {
            let mut options = ClientOptions::default();
            options.http1 = http1;
            let channel = connect(&running, options.clone(), with());
            let said = described(&channel).await.unwrap();
            assert!(said.ends_with("secure=true certificates=1"), "{said}");
            let channel = connect(&running, options, without());
            let answered = described(&channel).await;
            match auth {
                ClientAuth::Optional => {
                    assert!(answered.unwrap().ends_with("certificates=0"));
                }
                // In TLS 1.3 the refusal comes after the client's part of the handshake.
                ClientAuth::Required => drop(answered.unwrap_err()),
            }
        }
        let (chain, key) = servers.issue("of the wrong authority");
        let wrong = servers.client().identity_pem(chain, key).build().unwrap();
        let channel = connect(&running, ClientOptions::default(), wrong);
        described(&channel).await.unwrap_err();
    }
}

/// A folder that is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let count = COUNT.fetch_add(1, Ordering::SeqCst);
        let name = format!("quill-tls-{}-{count}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[tokio::test]
async fn certificates_are_replaced_while_the_server_runs() {
    let (old, new) = (Authority::new(), Authority::new());
    let folder = Folder::new();
    let write = |authority: &Authority| {
        let (chain, key) = authority.issue("localhost");
        (
            folder.write("chain.pem", &chain),
            folder.write("key.pem", &key),
        )
    };
    let (chain, key) = write(&old);
    let tls = ServerTls::builder().identity_files(&chain, &key);
    let tls = tls.build().unwrap();
    let running = serve(tls.clone(), HttpVersions::All).await;
    let before = connect(
        &running,
        ClientOptions::default(),
        old.client().build().unwrap(),
    );
    described(&before).await.unwrap();

    folder.write("chain.pem", "no certificate");
    let error = tls.reload().unwrap_err().to_string();
    assert!(error.contains("chain.pem holds no certificate"), "{error}");
    let still = connect(
        &running,
        ClientOptions::default(),
        old.client().build().unwrap(),
    );
    described(&still).await.unwrap();

    write(&new);
    tls.reload().unwrap();
    let after = connect(
        &running,
        ClientOptions::default(),
        new.client().build().unwrap(),
    );
    described(&after).await.unwrap();
    let late = connect(
        &running,
        ClientOptions::default(),
        old.client().build().unwrap(),
    );
    described(&late).await.unwrap_err();
    // A connection that was open goes on.
    described(&before).await.unwrap();
}

#[tokio::test]
async fn changed_files_are_noticed() {
    let (old, new) = (Authority::new(), Authority::new());
    let folder = Folder::new();
    let (chain, key) = old.issue("localhost");
    let (chain, key) = (
        folder.write("chain.pem", &chain),
        folder.write("key.pem", &key),
    );
    let tls = ServerTls::builder().identity_files(&chain, &key);
    let tls = tls.build().unwrap();
    let running = serve(tls.clone(), HttpVersions::All).await;
    let watching = tokio::spawn(async move {
        tls.watch(std::time::Duration::from_millis(10)).await;
    });
    // One file after the other, as certificate tools do.
    let (chain, key) = new.issue("localhost");
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    folder.write("chain.pem", &chain);
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    folder.write("key.pem", &key);
    soon(async {
        let tls = new.client().build().unwrap();
        while described(&connect(&running, ClientOptions::default(), tls.clone()))
            .await
            .is_err()
        {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    })
    .await;
    watching.abort();
}

#[test]
fn what_can_not_be_used_is_told_with_its_file() {
    let authority = Authority::new();
    let folder = Folder::new();
    let (chain, key) = authority.issue("localhost");
    let (_, other_key) = authority.issue("localhost");
    let (chain, key) = (
        folder.write("chain.pem", &chain),
        folder.write("key.pem", &key),
    );
    let other_key = folder.write("other.pem", &other_key);
    let garbage = folder.write("garbage.pem", "-----BEGIN CERTIFICATE-----\n!\n");
    let missing = folder.0.join("missing.pem");
    let server = |chain: &PathBuf, key: &PathBuf| {
        let tls = ServerTls::builder().identity_files(chain, key).build();
        tls.map(drop).unwrap_err().to_string()
    };
    for (error, said) in [
        (server(&missing, &key), "can't read"),
        (server(&missing, &key), "missing.pem"),
        (server(&chain, &chain), "chain.pem holds no private key"),
        (server(&key, &key), "key.pem holds no certificate"),
        (server(&garbage, &key), "garbage.pem is no valid PEM"),
        (
            server(&chain, &other_key),
            "other.pem can't be used together",
        ),
    ] {
        assert!(error.contains(said), "{error}");
    }
    let none = ServerTls::builder().build().map(drop).unwrap_err();
    assert!(none.to_string().contains("needs a certificate and its key"));
    let client = ClientTls::builder().ca_file(&missing).build();
    assert!(
        client
            .map(drop)
            .unwrap_err()
            .to_string()
            .contains("missing.pem")
    );
    let none = ClientTls::builder().without_public_authorities().build();
    assert!(
        none.map(drop)
            .unwrap_err()
            .to_string()
            .contains("must be given one")
    );
    let name = ClientTls::builder().server_name("no name").build();
    assert!(
        name.map(drop)
            .unwrap_err()
            .to_string()
            .contains("\"no name\"")
    );
}

#[tokio::test]
async fn a_bad_hello_and_a_slow_one_do_not_keep_others_out() {
    let authority = Authority::new();
    let mut options = ServerOptions::default();
    options.handshake_timeout = std::time::Duration::from_millis(100);
    let listener = Listener::bind("127.0.0.1:0").await.unwrap();
    let running = HttpServer::new(listener)
        .with_options(options)
        .unwrap()
        .with_tls(authority.server().build().unwrap())
        .start(Shared::default());
    let address = running.local_addr().unwrap();
    for hello in [
        &b"GET / HTTP/1.1\r\n\r\n"[..],
        &[0x16, 3, 1, 0xff, 0xff],
        &[],
    ] {
        let mut socket = tokio::net::TcpStream::connect(address).await.unwrap();
        socket.write_all(hello).await.unwrap();
        let mut answer = Vec::new();
        // An alert, or nothing; then the end.
        let _ = soon(socket.read_to_end(&mut answer)).await;
        assert!(answer.len() < 16, "{answer:?}");
    }
    let channel = connect(
        &running,
        ClientOptions::default(),
        authority.client().build().unwrap(),
    );
    described(&channel).await.unwrap();
}
