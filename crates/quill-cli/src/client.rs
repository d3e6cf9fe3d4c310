//! A client as the arguments describe it.

use quill::tls::ClientTls;
use quill::{ClientBuilder, Metadata, Protocol, QuillClient};
use quill_wire::WireOptions;

use crate::args::{ClientArgs, TlsArgs, metadata};
use crate::failure::Failure;
use crate::schema::Reflection;

/// A client of the server at this URL, to be built.
pub(crate) fn builder(args: &ClientArgs, base_url: &str) -> Result<ClientBuilder, Failure> {
    let builder = QuillClient::builder()
        .base_url(base_url)
        .protocol(args.protocol)
        .enable_compression(args.compress)
        .receive_bytes_max(args.message_bytes_max)
        .send_bytes_max(args.message_bytes_max)
        .tls(tls(&args.tls)?);
    Ok(if args.http1 { builder.http1() } else { builder })
}

/// What a call of the same client keeps to, for who makes it without a client.
pub(crate) fn wire_options(args: &ClientArgs) -> WireOptions {
    let mut options = WireOptions::default();
    options.compress = args.compress;
    options.receive_bytes_max = args.message_bytes_max;
    options.send_bytes_max = args.message_bytes_max;
    options
}

/// The client that a builder makes; what is wrong is the user's input.
pub(crate) fn build(builder: ClientBuilder) -> Result<QuillClient, Failure> {
    builder
        .build()
        .map_err(|error| Failure::input(error.to_string()))
}

/// The metadata of these headers. One that says who calls holds over the token,
/// which may come from the environment.
pub(crate) fn sent_metadata(
    headers: &[Metadata],
    token: Option<&str>,
) -> Result<Metadata, Failure> {
    let mut sent = Metadata::new();
    headers.iter().for_each(|header| sent.extend(header));
    if let Some(token) = token
        && sent.get("authorization").is_none()
    {
        let value = format!("Bearer {}", token.trim());
        let token = metadata("authorization", &value)
            .map_err(|error| Failure::input(format!("the token can't be sent: {error}")))?;
        sent.extend(&token);
    }
    Ok(sent)
}

/// The reflection of a server that is asked for its whole schema.
pub(crate) fn reflection(
    url: &str,
    protocol: Protocol,
    headers: &[Metadata],
    tls_args: &TlsArgs,
) -> Result<Reflection, Failure> {
    let builder = QuillClient::builder()
        .base_url(url)
        .protocol(protocol)
        .tls(tls(tls_args)?);
    let client = build(builder)?;
    Ok(Reflection::new(client, sent_metadata(headers, None)?))
}

/// Whom to trust, and who to be, as the arguments say.
pub(crate) fn tls(args: &TlsArgs) -> Result<ClientTls, Failure> {
    let mut builder = ClientTls::builder();
    if let Some(authorities) = &args.cacert {
        builder = builder.without_public_authorities().ca_file(authorities);
    }
    if let (Some(chain), Some(key)) = (&args.cert, &args.key) {
        builder = builder.identity_files(chain, key);
    }
    if let Some(name) = &args.server_name {
        builder = builder.server_name(name);
    }
    builder
        .build()
        .map_err(|error| Failure::input(error.to_string()))
}
