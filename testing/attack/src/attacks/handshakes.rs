//! Handshakes of TLS that lead nowhere.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::arena::Arena;
use crate::dice::Dice;
use crate::wire::http1;
use crate::wire::messages::ECHO;

const AT_ONCE: u64 = 16;
const PATIENCE: Duration = Duration::from_secs(8);
const HANDSHAKE: u8 = 22;
const ALERT: u8 = 21;

/// A record of TLS (RFC 8446, section 5.1).
fn record(kind: u8, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u16).to_be_bytes();
    [&[kind, 3, 1][..], &length, payload].concat()
}

fn extension(number: u16, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u16).to_be_bytes();
    [&number.to_be_bytes()[..], &length, payload].concat()
}

/// A ClientHello that a server of TLS 1.3 goes on with (RFC 8446, section 4.1.2).
fn hello(dice: &mut Dice) -> Vec<u8> {
    let key = dice.bytes(32);
    let extensions = [
        // Names, groups, signatures, versions, a key.
        extension(0, &[&[0, 12, 0, 0, 9][..], b"localhost"].concat()),
        extension(10, &[0, 2, 0, 29]),
        extension(13, &[0, 8, 4, 3, 8, 4, 8, 7, 4, 1]),
        extension(43, &[2, 3, 4]),
        extension(51, &[&[0, 36, 0, 29, 0, 32][..], &key].concat()),
        extension(16, &[0, 3, 2, b'h', b'2']),
    ]
    .concat();
    let ciphers = [0, 8, 0x13, 1, 0x13, 2, 0xc0, 0x2b, 0xc0, 0x2f];
    let length = (extensions.len() as u16).to_be_bytes();
    let body = [
        &[3, 3][..],
        &dice.bytes(32),
        &[0],
        &ciphers,
        &[1, 0],
        &length,
        &extensions,
    ]
    .concat();
    let length = (body.len() as u32).to_be_bytes();
    [&[1, length[1], length[2], length[3]][..], &body].concat()
}

pub(super) async fn bad(arena: Arena) -> Result<String, String> {
    arena
        .on_connections(AT_ONCE, |arena, number| async move {
            let mut dice = arena.dice(number);
            let good = hello(&mut dice);
            let whole = record(HANDSHAKE, &good);
            let bytes = match number % 8 {
                0 => dice.bytes(500),
                // Cut at every place in turn.
                1 => whole[..(number as usize / 8) % whole.len()].to_vec(),
                2 => http1::post_of(ECHO, "application/json", b"{}"),
                // A byte a record.
                3 => good
                    .iter()
                    .flat_map(|byte| record(HANDSHAKE, &[*byte]))
                    .collect(),
                // One bit is wrong.
                4 => {
                    let mut wrong = whole;
                    let at = dice.below(wrong.len());
                    wrong[at] ^= 1 << dice.below(8);
                    wrong
                }
                // A message of 16 MiB that does not end, and empty records.
                5 => [
                    record(HANDSHAKE, &[1, 0xff, 0xff, 0xff]),
                    record(HANDSHAKE, &[0; 16_000]).repeat(30),
                ]
                .concat(),
                6 => record(ALERT, &[1, 90]).repeat(1000),
                _ => {
                    // A good beginning, and nobody is there any more.
                    if let Ok(mut socket) = arena.connect().await {
                        let _ = socket.write_all(&whole).await;
                        let _ = socket.read_exact(&mut [0; 100]).await;
                    }
                    arena.add(1);
                    return;
                }
            };
            arena.exchange(&bytes, PATIENCE).await;
            arena.add(1);
        })
        .await;
    Ok(format!("{} handshakes", arena.counted()))
}
