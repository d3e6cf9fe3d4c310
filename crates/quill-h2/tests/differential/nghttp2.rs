//! nghttp2, whose library Python calls: this project has no unsafe code of its own.

use crate::python::Python;
use crate::verdict::Verdict;

/// Answers `server BYTES` and `client BYTES` with what a session says to these bytes,
/// in hex. The client has sent two requests.
const SESSIONS: &str = r#"
import sys
from ctypes import *

library = CDLL("libnghttp2.so.14")
library.nghttp2_session_mem_recv.restype = c_ssize_t
library.nghttp2_session_mem_send.restype = c_ssize_t

class Setting(Structure):
    _fields_ = [("id", c_int32), ("value", c_uint32)]

class Field(Structure):
    _fields_ = [("name", c_char_p), ("value", c_char_p), ("name_len", c_size_t),
                ("value_len", c_size_t), ("flags", c_uint8)]

REQUEST = [(b":method", b"GET"), (b":scheme", b"http"), (b":authority", b"a"), (b":path", b"/")]
REQUEST = (Field * 4)(*[Field(n, v, len(n), len(v), 0) for n, v in REQUEST])

def sent(session):
    output, data = b"", c_void_p()
    while (length := library.nghttp2_session_mem_send(session, byref(data))) > 0:
        output += string_at(data, length)
    return output

def answer(role, input):
    callbacks, session = c_void_p(), c_void_p()
    assert library.nghttp2_session_callbacks_new(byref(callbacks)) == 0
    new = getattr(library, f"nghttp2_session_{role}_new")
    assert new(byref(session), callbacks, None) == 0
    library.nghttp2_session_callbacks_del(callbacks)
    if role == "client":
        assert library.nghttp2_submit_settings(session, 0, byref(Setting(2, 0)), 1) == 0
        for _ in range(2):
            assert library.nghttp2_submit_request(session, None, REQUEST, 4, None, None) > 0
    else:
        assert library.nghttp2_submit_settings(session, 0, None, 0) == 0
    output = sent(session)
    library.nghttp2_session_mem_recv(session, input, c_size_t(len(input)))
    output += sent(session)
    library.nghttp2_session_del(session)
    return output

for line in sys.stdin:
    role, _, hex = line.strip().partition(" ")
    print(answer(role, bytes.fromhex(hex)).hex(), flush=True)
"#;

pub(crate) struct Nghttp2(Python);

impl Nghttp2 {
    /// None where the library is missing.
    pub(crate) fn start() -> Option<Self> {
        let load = "import ctypes; ctypes.CDLL('libnghttp2.so.14')";
        Python::start("libnghttp2.so.14", load, SESSIONS).map(Self)
    }

    pub(crate) fn ask(&mut self, role: &str, bytes: &[u8]) -> Verdict {
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let answer = self.0.ask(&format!("{role} {hex}"));
        let digits: Vec<u8> = answer
            .chars()
            .filter_map(|digit| digit.to_digit(16))
            .map(|digit| digit as u8)
            .collect();
        let output: Vec<u8> = digits
            .chunks(2)
            .map(|pair| (pair[0] << 4) | pair[1])
            .collect();
        Verdict::of(&output)
    }
}
