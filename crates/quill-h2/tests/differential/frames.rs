//! Random sequences of frames, most of them right.

use crate::verdict::LAST_PING;

/// The same sequence of numbers for each seed (xorshift).
pub(crate) struct Numbers(u64);

impl Numbers {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % end
    }

    fn of<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len())]
    }

    /// True once in so many times.
    fn rarely(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }
}

/// The bytes of one side, and its frames for whoever reads a difference.
pub(crate) struct Case {
    pub(crate) bytes: Vec<u8>,
    frames: Vec<String>,
    next_stream: u32,
    is_client: bool,
}

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const PRIORITY: u8 = 2;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PUSH_PROMISE: u8 = 5;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;

const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;
const PADDED: u8 = 8;
const WITH_PRIORITY: u8 = 32;

type Fields = Vec<(&'static str, &'static str)>;

/// What a client sends.
pub(crate) fn to_server(numbers: &mut Numbers) -> Case {
    let mut case = Case::new(true);
    case.bytes
        .extend_from_slice(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    case.fill(numbers);
    case
}

/// What a server sends to a client that has sent requests on streams 1 and 3.
pub(crate) fn to_client(numbers: &mut Numbers) -> Case {
    let mut case = Case::new(false);
    case.next_stream = 5;
    case.fill(numbers);
    case
}

impl Case {
    fn new(is_client: bool) -> Self {
        Self {
            bytes: Vec::new(),
            frames: Vec::new(),
            next_stream: 1,
            is_client,
        }
    }

    pub(crate) fn description(&self) -> String {
        self.frames.join("\n")
    }

    fn fill(&mut self, numbers: &mut Numbers) {
        if !numbers.rarely(40) {
            self.put(SETTINGS, 0, 0, &[]);
        }
        if !self.is_client {
            // Pushes are wrong once the client knows that it may refuse them.
            self.put(SETTINGS, ACK, 0, &[]);
        }
        for _ in 0..1 + numbers.below(8) {
            self.put_any(numbers);
        }
        self.put(PING, 0, 0, &LAST_PING);
    }

    fn put(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        self.bytes
            .extend_from_slice(&(payload.len() as u32).to_be_bytes()[1..]);
        self.bytes.extend_from_slice(&[kind, flags]);
        self.bytes.extend_from_slice(&stream.to_be_bytes());
        self.bytes.extend_from_slice(payload);
        let shown = payload[..payload.len().min(120)].escape_ascii();
        self.frames.push(format!(
            "  type {kind} flags {flags:#x} stream {stream} {} bytes {shown}",
            payload.len()
        ));
    }

    fn put_any(&mut self, numbers: &mut Numbers) {
        match numbers.below(22) {
            0..=5 => self.put_head(numbers),
            6..=9 => self.put_data(numbers),
            10 | 11 => self.put_trailers(numbers),
            12 => self.put_priority(numbers),
            13 | 14 => self.put_reset(numbers),
            15 => self.put_settings(numbers),
            16 => self.put_ping_or_goaway(numbers),
            17 | 18 => self.put_window_update(numbers),
            19 => self.put_rare(numbers),
            _ => self.put_split_head(numbers),
        }
    }

    /// One that was used, mostly.
    fn stream(&self, numbers: &mut Numbers) -> u32 {
        match numbers.below(16) {
            0 => 0,
            1 => 2,
            2 => self.next_stream + 2 * numbers.below(2) as u32,
            _ => 1 + 2 * numbers.below((self.next_stream / 2).max(1) as usize) as u32,
        }
    }

    /// The same, of HEADERS: none is new below another, which the others tell or not as
    /// they remember that other.
    fn stream_with_head(&mut self, numbers: &mut Numbers) -> u32 {
        let stream = self.stream(numbers);
        if self.is_client && stream % 2 == 1 && stream >= self.next_stream {
            self.next_stream = stream + 2;
        }
        stream
    }

    /// That of a head: for a client a new one, mostly.
    fn stream_of_head(&mut self, numbers: &mut Numbers) -> u32 {
        if !self.is_client || numbers.rarely(12) {
            return self.stream_with_head(numbers);
        }
        let stream = self.next_stream;
        self.next_stream += 2;
        stream
    }

    fn put_head(&mut self, numbers: &mut Numbers) {
        let stream = self.stream_of_head(numbers);
        let mut payload = block(&self.head(numbers));
        let mut flags = END_HEADERS;
        if numbers.rarely(2) {
            flags |= END_STREAM;
        }
        if numbers.rarely(8) {
            flags |= WITH_PRIORITY;
            let parent = numbers.of(&[0, 0, 1, 3, 99, stream]);
            let mut with = parent.to_be_bytes().to_vec();
            with.push(15);
            with.extend_from_slice(&payload);
            payload = if numbers.rarely(12) { vec![0; 3] } else { with };
        }
        if numbers.rarely(10) {
            flags |= PADDED;
            pad(numbers, &mut payload);
        }
        // Of two faults in one frame, each may be told.
        if flags & (PADDED | WITH_PRIORITY) == 0 && numbers.rarely(40) {
            payload.pop();
        }
        self.put(HEADERS, flags, stream, &payload);
    }

    fn put_split_head(&mut self, numbers: &mut Numbers) {
        let stream = self.stream_of_head(numbers);
        let payload = block(&self.head(numbers));
        let cut = numbers.below(payload.len() + 1);
        let flags = numbers.of(&[0, END_STREAM]);
        self.put(HEADERS, flags, stream, &payload[..cut]);
        if numbers.rarely(10) {
            self.put(PING, 0, 0, &[1; 8]);
        }
        let continued = if numbers.rarely(10) {
            stream + 2
        } else {
            stream
        };
        if !numbers.rarely(10) {
            self.put(CONTINUATION, END_HEADERS, continued, &payload[cut..]);
        }
    }

    fn head(&self, numbers: &mut Numbers) -> Fields {
        if self.is_client {
            request(numbers)
        } else {
            response(numbers)
        }
    }

    fn put_trailers(&mut self, numbers: &mut Numbers) {
        let stream = self.stream_with_head(numbers);
        let fields = numbers.of(&[
            &[("x", "1")][..],
            &[("x", "1")],
            &[("X", "1")],
            &[(":status", "200")],
            &[],
        ]);
        let flags = if numbers.rarely(5) { 0 } else { END_STREAM };
        self.put(HEADERS, END_HEADERS | flags, stream, &block(fields));
    }

    fn put_data(&mut self, numbers: &mut Numbers) {
        let stream = self.stream(numbers);
        let len = numbers.of(&[0, 1, 5, 5, 10, 100, 16_000]);
        let mut payload = vec![b'd'; len];
        let mut flags = if numbers.rarely(3) { END_STREAM } else { 0 };
        if numbers.rarely(8) {
            flags |= PADDED;
            pad(numbers, &mut payload);
        }
        self.put(DATA, flags, stream, &payload);
    }

    fn put_priority(&mut self, numbers: &mut Numbers) {
        let stream = self.stream(numbers);
        let parent = numbers.of(&[0, 1, 3, 5, stream]);
        let mut payload = parent.to_be_bytes().to_vec();
        payload.resize(numbers.of(&[5, 5, 5, 5, 4, 6]), 0);
        self.put(PRIORITY, 0, stream, &payload);
    }

    fn put_reset(&mut self, numbers: &mut Numbers) {
        let stream = self.stream(numbers);
        let mut payload = numbers.of(&[0_u32, 8, 5, 99]).to_be_bytes().to_vec();
        payload.resize(numbers.of(&[4, 4, 4, 4, 4, 4, 3, 5]), 0);
        self.put(RST_STREAM, 0, stream, &payload);
    }

    fn put_settings(&mut self, numbers: &mut Numbers) {
        let (id, value) = numbers.of(&[
            (1_u16, 0_u32),
            (1, 100),
            (2, 0),
            (2, 1),
            (2, 2),
            (3, 0),
            (4, 0),
            (4, 0x7fff_ffff),
            (4, 0x8000_0000),
            (5, 16_384),
            (5, 16_383),
            (5, 0x0100_0000),
            (6, 10),
            (8, 1),
            (99, 1),
        ]);
        let mut payload = id.to_be_bytes().to_vec();
        payload.extend_from_slice(&value.to_be_bytes());
        payload.resize(numbers.of(&[6, 6, 6, 6, 6, 6, 0, 5, 7]), 0);
        let flags = if numbers.rarely(8) { ACK } else { 0 };
        let stream = u32::from(numbers.rarely(12));
        self.put(SETTINGS, flags, stream, &payload);
    }

    fn put_ping_or_goaway(&mut self, numbers: &mut Numbers) {
        let stream = u32::from(numbers.rarely(5));
        let len = numbers.of(&[8, 8, 8, 8, 7, 9]);
        match numbers.below(3) {
            0 => {
                // All requests of a client's are still answered.
                let last = if self.is_client { 0_u32 } else { 0x7fff_ffff };
                let mut payload = last.to_be_bytes().to_vec();
                payload.resize(len, 0);
                self.put(GOAWAY, 0, stream, &payload);
            }
            _ => self.put(PING, numbers.of(&[0, 0, 0, ACK]), stream, &vec![1; len]),
        }
    }

    fn put_window_update(&mut self, numbers: &mut Numbers) {
        let stream = self.stream(numbers);
        let increment = numbers.of(&[1_u32, 1, 1000, 1000, 0, 0x7fff_ffff, 0x8000_0001]);
        let mut payload = increment.to_be_bytes().to_vec();
        payload.resize(numbers.of(&[4, 4, 4, 4, 4, 4, 3, 5]), 0);
        self.put(WINDOW_UPDATE, 0, stream, &payload);
    }

    fn put_rare(&mut self, numbers: &mut Numbers) {
        let stream = self.stream(numbers);
        match numbers.below(5) {
            0 => self.put(PUSH_PROMISE, END_HEADERS, stream, &[0, 0, 0, 2, 0x82]),
            1 => self.put(CONTINUATION, END_HEADERS, stream, &[0x82]),
            2 => self.put(0xb, 0xff, stream, b"unknown"),
            // One byte more than frames may have.
            3 => self.put(DATA, 0, stream, &vec![0; 16_385]),
            // The reserved bit is ignored.
            _ => self.put(DATA, 0, stream | 0x8000_0000, b"d"),
        }
    }
}

/// Padding, of a length that fits or does not.
fn pad(numbers: &mut Numbers, payload: &mut Vec<u8>) {
    let len = numbers.of(&[0, 0, 3, 10, 255]);
    payload.insert(0, len);
    let there = if numbers.rarely(6) {
        0
    } else {
        usize::from(len)
    };
    payload.resize(payload.len() + there, 0);
}

/// Fields as literals that enter no table (RFC 7541, section 6.2.2).
fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(0);
        for text in [name, value] {
            block.push(text.len() as u8);
            block.extend_from_slice(text.as_bytes());
        }
    }
    block
}

fn request(numbers: &mut Numbers) -> Fields {
    let mut fields = vec![
        (":method", numbers.of(&["POST", "POST", "GET", "HEAD"])),
        (":scheme", "http"),
        (":path", "/a"),
        (":authority", "a"),
    ];
    match numbers.below(24) {
        0 => {
            fields.remove(numbers.below(4));
        }
        1 => fields.push(fields[numbers.below(4)]),
        2 => fields.insert(numbers.below(4), ("x", "1")),
        3 => fields.push((":other", "1")),
        4 => fields.push((":status", "200")),
        5 => fields = vec![(":method", "CONNECT"), (":authority", "a:1")],
        6 => fields[0].1 = "CONNECT",
        7 => fields[2].1 = "",
        8 => fields[3] = ("host", "a"),
        _ => put_regular(numbers, &mut fields),
    }
    fields
}

fn response(numbers: &mut Numbers) -> Fields {
    let mut fields = vec![(
        ":status",
        numbers.of(&["200", "200", "200", "404", "204", "304", "100"]),
    )];
    match numbers.below(16) {
        0 => fields.clear(),
        1 => fields.push(fields[0]),
        2 => fields.insert(0, ("x", "1")),
        3 => fields[0].1 = numbers.of(&["2x0", "", "20", "101"]),
        4 => fields.push((":path", "/")),
        _ => put_regular(numbers, &mut fields),
    }
    fields
}

fn put_regular(numbers: &mut Numbers, fields: &mut Fields) {
    let more = numbers.of(&[
        ("x", "1"),
        ("x", ""),
        ("X", "1"),
        ("connection", "close"),
        ("transfer-encoding", "chunked"),
        ("upgrade", "a"),
        ("te", "gzip"),
        ("te", "trailers"),
        ("content-length", "5"),
        ("content-length", "5"),
        ("content-length", "0"),
        ("content-length", "x"),
        ("content-length", "-1"),
        ("x", "a\nb"),
        ("x", "a\0b"),
        ("x y", "1"),
    ]);
    if numbers.rarely(3) {
        fields.push(more);
    }
}
