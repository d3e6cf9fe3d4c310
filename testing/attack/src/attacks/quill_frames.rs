//! Frames of Quill that move nothing.

use std::time::Duration;

use crate::arena::Arena;
use crate::wire::http2::{self, DATA, Http2, frame};
use crate::wire::messages::{CHAT, COLLECT, quill};

const PATIENCE: Duration = Duration::from_secs(10);
const CREDIT: u8 = 0x08;
const METADATA: u8 = 0x20;
const MESSAGE: u8 = 0x01;
/// Over what the protocol allows in a row, and under a stream's first window.
const FRAMES: usize = 4000;
const TYPE: &str = "application/quill-stream+proto";

/// Floods, and whether they must end the call.
fn kinds() -> [(&'static str, Vec<u8>, bool); 6] {
    [
        ("CREDIT of 1", quill(CREDIT, &[1]), true),
        (
            "CREDIT of most",
            quill(CREDIT, &[0xff, 0xff, 0xff, 0xff, 0x0f]),
            true,
        ),
        (
            "METADATA",
            quill(METADATA, &[3, b'x', b'-', b'a', 1, b'1']),
            true,
        ),
        ("empty METADATA", quill(METADATA, &[]), true),
        // The application takes each of them.
        ("empty messages", quill(MESSAGE, &[]), false),
        ("CREDIT of 0", quill(CREDIT, &[0]), true),
    ]
}

pub(super) async fn floods(arena: Arena) -> Result<String, String> {
    let mut sent = 0;
    while sent == 0 || !arena.is_over() {
        for (name, one, must_end) in kinds() {
            for (path, credits) in [(COLLECT, false), (COLLECT, true), (CHAT, true)] {
                let (ended, frames) = flood(&arena, path, credits, &one)
                    .await
                    .map_err(|e| e.to_string())?;
                if must_end && !ended {
                    return Err(format!(
                        "{FRAMES} frames of {name} to {path}, credits {credits}, end nothing"
                    ));
                }
                sent += frames;
            }
        }
    }
    Ok(format!("{sent} frames"))
}

/// Sends the frame again and again; whether the call ended.
async fn flood(
    arena: &Arena,
    path: &str,
    credits: bool,
    one: &[u8],
) -> std::io::Result<(bool, u64)> {
    let mut connection = Http2::open_wide(arena).await?;
    let fields: &[(&str, &str)] = if credits {
        &[("quill-credits", "4294967295")]
    } else {
        &[]
    };
    connection
        .head(1, 0, &http2::post(path, TYPE, fields))
        .await?;
    for batch in one.repeat(FRAMES).chunks(16_000) {
        if connection.send(&frame(DATA, 0, 1, batch)).await.is_err() {
            break;
        }
    }
    // A flood that is allowed ends nothing: its stream is left to vanish.
    let patience = if one[1..].starts_with(&[MESSAGE]) {
        Duration::from_millis(50)
    } else {
        PATIENCE
    };
    let (ended, _) = connection.answer(1, patience).await;
    Ok((ended, FRAMES as u64))
}
