//! TLS, with certificates on both sides.

use std::path::PathBuf;

use quill::Server;
use quill::tls::{ClientAuth, ServerTls};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

use crate::shop::{Serving, Shop, descriptor_set};
use crate::support::{Call, Ran, quill, run, scratch};

struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        Self(CertifiedIssuer::self_signed(params, key).unwrap())
    }

    fn file(&self) -> PathBuf {
        let path = scratch("authority.pem");
        std::fs::write(&path, self.0.pem()).unwrap();
        path
    }

    /// The files of a certificate for this name, and of its key.
    fn identity(&self, name: &str) -> [PathBuf; 2] {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new([name.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        let paths = [scratch("certificate.pem"), scratch("key.pem")];
        std::fs::write(&paths[0], certificate.pem()).unwrap();
        std::fs::write(&paths[1], key.serialize_pem()).unwrap();
        paths
    }
}

fn place(shop: &Serving, protocol: &str, args: &[(&str, &PathBuf)], name: Option<&str>) -> Ran {
    let url = shop.url.replace("http://", "https://");
    let mut call = Call::new(&format!("{url}/shop.v1.Shop/Place"))
        .args(["--protocol", protocol])
        .input(r#"{"id":7}"#);
    for (flag, path) in args {
        call = call.args([(*flag).as_ref(), path.as_os_str()]);
    }
    if let Some(name) = name {
        call = call.args(["--server-name", name]);
    }
    call.run()
}

#[test]
fn both_sides_prove_who_they_are() {
    let authority = Authority::new();
    let [chain, key] = authority.identity("shop.example");
    let tls = ServerTls::builder()
        .identity_files(&chain, &key)
        .client_ca_file(authority.file())
        .client_auth(ClientAuth::Required)
        .build()
        .unwrap();
    let reflection = quill_reflection::server(&descriptor_set(&["shop.proto"]));
    let shop = Serving::start(Server::builder().service(Shop).service(reflection).tls(tls));
    let cacert = authority.file();
    let [cert, key] = authority.identity("client.example");
    let all = [("--cacert", &cacert), ("--cert", &cert), ("--key", &key)];
    for protocol in ["quill", "grpc", "grpc-web", "connect"] {
        let ran = place(&shop, protocol, &all, Some("shop.example"));
        assert_eq!(ran.lines(), [r#"{"id":"7"}"#], "{protocol}");
    }
    for args in [&[][..], &["--http1"]] {
        let url = shop.url.replace("http://", "https://");
        let mut bench = quill();
        bench.args([
            "bench",
            &format!("{url}/shop.v1.Shop/Place"),
            "-c2",
            "-d0.3",
        ]);
        bench.args(["--input", r#"{"id":7}"#, "--server-name", "shop.example"]);
        for (flag, path) in all {
            bench.arg(flag).arg(path);
        }
        bench.args(args);
        let ran = run(bench, b"");
        assert_eq!(ran.code, Some(0), "{args:?}: {ran:?}");
        assert!(ran.stdout.contains("ok"), "{args:?}: {ran:?}");
    }
    // Without a certificate of one's own, for another name, and without trust.
    place(&shop, "quill", &all[..1], Some("shop.example")).error(3);
    let ran = place(&shop, "quill", &all, None);
    assert!(ran.error(3).contains("--server-name"), "{ran:?}");
    place(&shop, "quill", &all[1..], Some("shop.example")).error(3);
}
