//! The client: makes the calls that come in, all at a time, and says what came
//! of each.

use std::collections::HashMap;
use std::error::Error;
use std::sync::Arc;

use buffa::Message;
use quill::tls::ClientTls;
use quill::{Encoding, Format, Protocol, QuillClient};
use tokio::sync::Mutex;
use tokio::task::JoinSet;

use crate::proto::client_compat_response::Result as Outcome;
use crate::proto::{
    self, ClientCompatRequest, ClientCompatResponse, ClientErrorResult, Codec, Compression,
    HTTPVersion,
};
use crate::{call, pipe};

pub(crate) async fn run() -> Result<(), Box<dyn Error>> {
    let mut input = tokio::io::stdin();
    let output = Arc::new(Mutex::new(tokio::io::stdout()));
    let mut clients = Clients::default();
    let mut calls = JoinSet::new();
    while let Some(request) = pipe::read::<ClientCompatRequest>(&mut input).await? {
        let client = clients.find(&request);
        let output = Arc::clone(&output);
        calls.spawn(async move {
            let response = answer(client, request).await;
            pipe::write(&response, &mut *output.lock().await).await
        });
    }
    while let Some(written) = calls.join_next().await {
        written??;
    }
    Ok(())
}

async fn answer(
    client: Result<QuillClient, String>,
    request: ClientCompatRequest,
) -> ClientCompatResponse {
    let test_name = request.test_name.clone();
    let made = match client {
        Ok(client) => call::make(&client, &request).await,
        Err(message) => Err(message),
    };
    let result = match made {
        Ok(result) => Outcome::Response(Box::new(result)),
        Err(message) => Outcome::Error(Box::new(ClientErrorResult {
            message,
            ..Default::default()
        })),
    };
    ClientCompatResponse {
        test_name,
        result: Some(result),
        ..Default::default()
    }
}

/// The clients so far, by what sets them up: calls share connections.
#[derive(Default)]
struct Clients(HashMap<Vec<u8>, QuillClient>);

impl Clients {
    fn find(&mut self, request: &ClientCompatRequest) -> Result<QuillClient, String> {
        let key = ClientCompatRequest {
            http_version: request.http_version,
            protocol: request.protocol,
            codec: request.codec,
            compression: request.compression,
            host: request.host.clone(),
            port: request.port,
            server_tls_cert: request.server_tls_cert.clone(),
            client_tls_creds: request.client_tls_creds.clone(),
            message_receive_limit: request.message_receive_limit,
            use_get_http_method: request.use_get_http_method,
            ..Default::default()
        }
        .encode_to_vec();
        if let Some(client) = self.0.get(&key) {
            return Ok(client.clone());
        }
        let client = build(request).map_err(|error| error.to_string())?;
        self.0.insert(key, client.clone());
        Ok(client)
    }
}

fn build(request: &ClientCompatRequest) -> Result<QuillClient, Box<dyn Error>> {
    let is_secure = !request.server_tls_cert.is_empty();
    let scheme = if is_secure { "https" } else { "http" };
    let mut builder = QuillClient::builder()
        .base_url(format!("{scheme}://{}:{}", request.host, request.port))
        .use_get(request.use_get_http_method)
        // Also the short messages of the suite are to be compressed.
        .compress_bytes_min(0);
    builder = builder.protocol(match request.protocol.as_known() {
        Some(proto::Protocol::PROTOCOL_CONNECT) => Protocol::Connect,
        Some(proto::Protocol::PROTOCOL_GRPC) => Protocol::Grpc,
        Some(proto::Protocol::PROTOCOL_GRPC_WEB) => Protocol::GrpcWeb,
        _ => return Err(format!("protocol {} is unknown", request.protocol).into()),
    });
    builder = builder.format(match request.codec.as_known() {
        Some(Codec::CODEC_PROTO) => Format::Proto,
        Some(Codec::CODEC_JSON) => Format::Json,
        _ => return Err(format!("codec {} is unknown", request.codec).into()),
    });
    let encoding = match request.compression.as_known() {
        Some(Compression::COMPRESSION_UNSPECIFIED | Compression::COMPRESSION_IDENTITY) => None,
        Some(Compression::COMPRESSION_GZIP) => Some(Encoding::Gzip),
        Some(Compression::COMPRESSION_ZSTD) => Some(Encoding::Zstd),
        Some(Compression::COMPRESSION_BR) => Some(Encoding::Br),
        Some(Compression::COMPRESSION_DEFLATE) => Some(Encoding::Deflate),
        Some(Compression::COMPRESSION_SNAPPY) => Some(Encoding::Snappy),
        _ => return Err(format!("compression {} is unknown", request.compression).into()),
    };
    builder = builder
        .encodings(encoding)
        .enable_compression(encoding.is_some());
    builder = match request.http_version.as_known() {
        Some(HTTPVersion::HTTP_VERSION_1) => builder.http1(),
        Some(HTTPVersion::HTTP_VERSION_2) => builder,
        _ => return Err(format!("{} is unknown", request.http_version).into()),
    };
    if request.message_receive_limit > 0 {
        builder = builder.receive_bytes_max(request.message_receive_limit as usize);
    }
    if is_secure {
        builder = builder.tls(tls(request)?);
    }
    Ok(builder.build()?)
}

fn tls(request: &ClientCompatRequest) -> Result<ClientTls, Box<dyn Error>> {
    let mut tls = ClientTls::builder()
        .without_public_authorities()
        .ca_pem(&request.server_tls_cert);
    if let Some(identity) = request.client_tls_creds.as_option() {
        tls = tls.identity_pem(&identity.cert, &identity.key);
    }
    Ok(tls.build()?)
}
