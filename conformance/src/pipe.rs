//! Messages between the suite and this program: a big-endian length in four
//! bytes, then the message.

use std::io;

use buffa::Message;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// The next message; `None` at the end of the input.
pub(crate) async fn read<T: Message>(
    input: &mut (impl AsyncRead + Unpin),
) -> io::Result<Option<T>> {
    let len = match input.read_u32().await {
        Ok(len) => len,
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut bytes = vec![0; len as usize];
    input.read_exact(&mut bytes).await?;
    T::decode_from_slice(&bytes)
        .map(Some)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))
}

/// Writes one message, at once.
pub(crate) async fn write(
    message: &impl Message,
    output: &mut (impl AsyncWrite + Unpin),
) -> io::Result<()> {
    let bytes = message.encode_to_vec();
    let len = u32::try_from(bytes.len()).map_err(io::Error::other)?;
    output.write_all(&len.to_be_bytes()).await?;
    output.write_all(&bytes).await?;
    output.flush().await
}
