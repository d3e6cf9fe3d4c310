//! The `h2` crate.

use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

use crate::verdict::{Verdict, heads, is_answered};

/// More than any sequence and its answer have.
const PIPE_BYTES: usize = 1 << 20;

/// A server that takes requests and answers nothing.
pub(crate) fn server(input: &[u8]) -> Verdict {
    block_on(async {
        let (mut end, io) = duplex(PIPE_BYTES);
        end.write_all(input).await.expect("the pipe has room");
        // What was taken is kept: dropped, it would be reset.
        let serving = async move {
            let mut requests = Vec::new();
            if let Ok(mut connection) = h2::server::handshake(io).await {
                while let Some(Ok(request)) = connection.accept().await {
                    requests.push(request);
                }
            }
        };
        answer(&mut end, serving).await
    })
}

/// A client with two requests under way.
pub(crate) fn client(input: &[u8]) -> Verdict {
    block_on(async {
        let (mut end, io) = duplex(PIPE_BYTES);
        let mut builder = h2::client::Builder::new();
        builder.enable_push(false);
        let (mut sender, mut connection) = builder
            .handshake::<_, Bytes>(io)
            .await
            .expect("a pipe is there");
        let mut responses = Vec::new();
        for _ in 0..2 {
            let request = http::Request::get("http://a/").body(()).expect("a request");
            let sent = sender.send_request(request, true);
            responses.push(sent.expect("streams can be opened").0);
        }
        let mut output = Vec::new();
        // The requests come first, whatever is answered.
        while heads(&output) < 2 {
            tokio::select! {
                biased;
                read = end.read_buf(&mut output) => assert!(read.is_ok()),
                _ = &mut connection => panic!("it ended by itself"),
            }
        }
        end.write_all(input).await.expect("the pipe has room");
        let serving = async move {
            let _ = connection.await;
            drop((sender, responses));
        };
        answer(&mut end, serving).await
    })
}

/// What is written until the last PING is answered or the connection is closed.
async fn answer(end: &mut DuplexStream, serving: impl Future<Output = ()>) -> Verdict {
    let mut output = Vec::new();
    let mut serving = std::pin::pin!(serving);
    let mut is_served = false;
    while !is_answered(&output) {
        tokio::select! {
            () = &mut serving, if !is_served => is_served = true,
            read = end.read_buf(&mut output) => match read {
                Ok(bytes) if bytes > 0 => {}
                _ => break,
            },
        }
    }
    Verdict::of(&output)
}

fn block_on(work: impl Future<Output = Verdict>) -> Verdict {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.expect("a runtime").block_on(work)
}
