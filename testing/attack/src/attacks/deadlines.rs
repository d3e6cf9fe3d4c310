//! Deadlines that no timer holds.

use std::time::Duration;

use tokio::time::sleep;

use crate::arena::Arena;
use crate::wire::http1::{self, status};
use crate::wire::http2::{self, DATA, END_STREAM, Http2, frame};
use crate::wire::messages::{ECHO, echo, envelope, number_field};

const PATIENCE: Duration = Duration::from_secs(8);
const DELAY_FIELD: u64 = 2;
const WAITING_STREAMS: u32 = 200;

/// Eleven years, and the most that a header holds.
const GRPC: [&str; 3] = ["96426H", "99999999H", "99999999S"];
const MILLIS: [(&str, &str, &str); 3] = [
    ("application/proto", "connect-timeout-ms", "9999999999"),
    ("application/quill+proto", "quill-timeout-ms", "9999999999"),
    ("application/quill+proto", "quill-timeout-ms", "0"),
];

pub(super) async fn eleven_years(arena: Arena) -> Result<String, String> {
    let mut sent = 0;
    while sent == 0 || !arena.is_over() {
        for (content_type, name, value) in MILLIS {
            let fields = [("content-type", content_type), (name, value)];
            let request = http1::post(ECHO, &fields, &echo(b"hi"));
            let (ended, answer) = arena.ask(&request, PATIENCE).await;
            // What is answered at once may be in time for no time at all.
            let is_late = value == "0" && status(&answer) == Some(504);
            if !ended || status(&answer) != Some(200) && !is_late {
                return Err(format!(
                    "{name}: {value} is answered with {:?}",
                    status(&answer)
                ));
            }
            sent += 1;
        }
        for value in GRPC {
            let mut connection = Http2::open(&arena, &[]).await.map_err(|e| e.to_string())?;
            let block = http2::post(ECHO, "application/grpc+proto", &[("grpc-timeout", value)]);
            // One that is answered, and many that wait and then are gone.
            let body = envelope(0, &echo(b"hi"));
            let waiting = envelope(0, &number_field(DELAY_FIELD, u64::from(u32::MAX)));
            let opened = async {
                for n in 0..=WAITING_STREAMS {
                    let (stream, body) = (n * 2 + 1, if n == 0 { &body } else { &waiting });
                    connection.head(stream, 0, &block).await?;
                    connection
                        .send(&frame(DATA, END_STREAM, stream, body))
                        .await?;
                }
                std::io::Result::Ok(())
            };
            opened.await.map_err(|error| error.to_string())?;
            let (ended, data) = connection.answer(1, PATIENCE).await;
            if !ended || data != envelope(0, &echo(b"hi")) {
                return Err(format!("grpc-timeout: {value} has no answer"));
            }
            sleep(Duration::from_millis(10)).await;
            sent += u64::from(WAITING_STREAMS);
        }
    }
    Ok(format!("{sent} calls"))
}
