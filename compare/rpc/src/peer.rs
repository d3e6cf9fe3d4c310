//! A client of bare frames on a blocking socket: what h2load cannot do, at the
//! least cost for the core that the load runs on.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use crate::load::{framed, message};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const WINDOW_MAX: u32 = 0x7fff_ffff;
const WINDOW_START: i64 = 65_535;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;

const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;

const INITIAL_WINDOW_SIZE: u16 = 4;

/// What came on a stream.
struct Arrival {
    stream: u32,
    bytes: usize,
    is_end: bool,
}

/// One connection.
pub struct Peer {
    socket: TcpStream,
    input: Vec<u8>,
    output: Vec<u8>,
    next_stream: u32,
    /// What may be sent on the connection.
    window: i64,
    /// What may be sent on each stream at first.
    stream_window: i64,
    /// What streams were granted since the last look, with 0 for the connection.
    grants: Vec<(u32, i64)>,
    message: Vec<u8>,
}

impl Peer {
    pub fn connect(address: SocketAddr) -> io::Result<Self> {
        let socket = TcpStream::connect(address)?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(Duration::from_secs(20)))?;
        let mut peer = Self {
            socket,
            input: Vec::new(),
            output: PREFACE.to_vec(),
            next_stream: 1,
            window: WINDOW_START,
            stream_window: WINDOW_START,
            grants: Vec::new(),
            message: framed(&message(100)),
        };
        let mut setting = INITIAL_WINDOW_SIZE.to_be_bytes().to_vec();
        setting.extend(WINDOW_MAX.to_be_bytes());
        peer.frame(SETTINGS, 0, 0, &setting);
        let grant = WINDOW_MAX - WINDOW_START as u32;
        peer.frame(WINDOW_UPDATE, 0, 0, &grant.to_be_bytes());
        Ok(peer)
    }

    /// A unary call of 100 bytes, over when its answer is.
    pub fn call(&mut self) -> io::Result<()> {
        let stream = self.open("/echo.v1.Echo/Unary");
        self.send_message(stream, END_STREAM);
        self.flush()?;
        let mut is_over = false;
        while !is_over {
            self.read(&mut |arrival| is_over |= arrival.is_end)?;
        }
        self.grants.clear();
        Ok(())
    }

    /// So many calls, one after the other.
    pub fn call_many(&mut self, calls: usize) -> io::Result<()> {
        (0..calls).try_for_each(|_| self.call())
    }

    /// Opens a stream both ways, has one message echoed, and leaves it open.
    pub fn open_stream(&mut self) -> io::Result<()> {
        let stream = self.open("/echo.v1.Echo/Chat");
        self.send_message(stream, 0);
        self.flush()?;
        let (mut received, expected) = (0, self.message.len());
        while received < expected {
            self.read(&mut |arrival| received += arrival.bytes)?;
        }
        Ok(())
    }

    /// Has `messages` echoed on each of `streams` streams at once, the next one
    /// sent when the last one is back.
    pub fn chat(&mut self, streams: usize, messages: usize) -> io::Result<()> {
        // The server's windows are known from its first frames on.
        self.call()?;
        let bytes = self.message.len();
        let mut talks = Vec::with_capacity(streams);
        let first = self.next_stream;
        for _ in 0..streams {
            let stream = self.open("/echo.v1.Echo/Chat");
            talks.push(Talk {
                stream,
                received: 0,
                sent: 0,
                window: self.stream_window,
            });
        }
        loop {
            self.say(&mut talks, messages);
            self.flush()?;
            let mut is_over = true;
            for talk in &talks {
                is_over &= talk.received >= messages * bytes;
            }
            if is_over {
                break;
            }
            self.read(&mut |arrival| {
                if let Some(talk) = talks.get_mut(((arrival.stream - first) / 2) as usize) {
                    talk.received += arrival.bytes;
                }
            })?;
            for (stream, grant) in std::mem::take(&mut self.grants) {
                if let Some(talk) = talks.iter_mut().find(|talk| talk.stream == stream) {
                    talk.window += grant;
                }
            }
        }
        for talk in &talks {
            self.frame(DATA, END_STREAM, talk.stream, &[]);
        }
        self.flush()?;
        let mut ended = 0;
        while ended < streams {
            self.read(&mut |arrival| ended += usize::from(arrival.is_end))?;
        }
        Ok(())
    }

    /// The next message wherever the last one is back and the windows allow it.
    fn say(&mut self, talks: &mut [Talk], messages: usize) {
        let bytes = self.message.len();
        for talk in talks {
            let is_answered = talk.received == talk.sent * bytes;
            let has_room = talk.window.min(self.window) >= bytes as i64;
            if is_answered && has_room && talk.sent < messages {
                talk.sent += 1;
                talk.window -= bytes as i64;
                self.send_message(talk.stream, 0);
            }
        }
    }

    /// How long a call takes while there is no other: the median of many.
    pub fn median_call(&mut self, calls: usize) -> io::Result<Duration> {
        let mut times = Vec::with_capacity(calls);
        for _ in 0..calls {
            let start = Instant::now();
            self.call()?;
            times.push(start.elapsed());
        }
        times.sort_unstable();
        Ok(times[times.len() / 2])
    }

    fn open(&mut self, path: &str) -> u32 {
        let stream = self.next_stream;
        self.next_stream += 2;
        // `:method: POST`, `:scheme: http`, and the rest as literals that no
        // table keeps (RFC 7541, section 6.2.2 and appendix A).
        let mut block = vec![0x83, 0x86, 0x04];
        put_text(&mut block, path);
        block.push(0x01);
        put_text(&mut block, "localhost");
        block.extend([0x0f, 0x10]);
        put_text(&mut block, "application/grpc");
        block.push(0x00);
        put_text(&mut block, "te");
        put_text(&mut block, "trailers");
        self.frame(HEADERS, END_HEADERS, stream, &block);
        stream
    }

    fn send_message(&mut self, stream: u32, flags: u8) {
        let message = std::mem::take(&mut self.message);
        self.window -= message.len() as i64;
        self.frame(DATA, flags, stream, &message);
        self.message = message;
    }

    fn frame(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let length = u32::try_from(payload.len()).expect("frames are small");
        self.output.extend(&length.to_be_bytes()[1..]);
        self.output.extend([kind, flags]);
        self.output.extend(stream.to_be_bytes());
        self.output.extend(payload);
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.write_all(&self.output)?;
        self.output.clear();
        Ok(())
    }

    /// Waits for bytes, and takes all frames that are whole.
    fn read(&mut self, arrived: &mut dyn FnMut(Arrival)) -> io::Result<()> {
        let mut chunk = [0; 65_536];
        let count = self.socket.read(&mut chunk)?;
        if count == 0 {
            return Err(io::Error::other("the server closed the connection"));
        }
        let mut input = std::mem::take(&mut self.input);
        input.extend_from_slice(&chunk[..count]);
        let mut start = 0;
        while let Some(head) = input[start..].first_chunk::<9>() {
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
            let (kind, flags) = (head[3], head[4]);
            let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
            let Some(payload) = input.get(start + 9..start + 9 + length) else {
                break;
            };
            self.take_frame((kind, flags, stream), payload, arrived)?;
            start += 9 + length;
        }
        input.drain(..start);
        self.input = input;
        self.flush()
    }

    fn take_frame(
        &mut self,
        (kind, flags, stream): (u8, u8, u32),
        payload: &[u8],
        arrived: &mut dyn FnMut(Arrival),
    ) -> io::Result<()> {
        match kind {
            DATA | HEADERS => arrived(Arrival {
                stream,
                bytes: if kind == DATA { payload.len() } else { 0 },
                is_end: flags & END_STREAM != 0,
            }),
            SETTINGS if flags & ACK == 0 => {
                for setting in payload.as_chunks::<6>().0 {
                    if setting[..2] == INITIAL_WINDOW_SIZE.to_be_bytes() {
                        self.stream_window = number(&setting[2..]);
                    }
                }
                self.frame(SETTINGS, ACK, 0, &[]);
            }
            PING if flags & ACK == 0 => self.frame(PING, ACK, 0, payload),
            WINDOW_UPDATE if stream == 0 => self.window += number(payload),
            WINDOW_UPDATE => self.grants.push((stream, number(payload))),
            RST_STREAM | GOAWAY => {
                return Err(io::Error::other("the server gave up a stream"));
            }
            _ => {}
        }
        Ok(())
    }
}

/// A stream of `chat`.
struct Talk {
    stream: u32,
    received: usize,
    sent: usize,
    window: i64,
}

fn number(bytes: &[u8]) -> i64 {
    let bytes = bytes.first_chunk().copied().unwrap_or_default();
    i64::from(u32::from_be_bytes(bytes))
}

fn put_text(block: &mut Vec<u8>, text: &str) {
    block.push(u8::try_from(text.len()).expect("texts are short"));
    block.extend(text.as_bytes());
}
