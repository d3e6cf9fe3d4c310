//! Connections that are only there.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, sleep_until, timeout};

use crate::arena::Arena;
use crate::attack::ADDRESS_CONNECTIONS;
use crate::victim::raise_descriptors;
use crate::wire::http1;
use crate::wire::http2::{PREFACE, settings};
use crate::wire::messages::ECHO;

const IDLE_CONNECTIONS: usize = 10_000;
const LEAST_CONNECTIONS: usize = 1000;
/// Descriptors that this program needs for other things.
const DESCRIPTORS_KEPT: u64 = 2000;
/// Connections to a server that may have 64 descriptors.
const TOO_MANY: usize = 120;
const AT_ONCE: usize = 256;

/// Opens so many connections, and holds them to the attack's end.
async fn hold(arena: &Arena, count: usize) -> usize {
    let at_once = Arc::new(Semaphore::new(AT_ONCE));
    let mut tasks = JoinSet::new();
    for number in 0..count {
        let (arena, at_once) = (arena.clone(), Arc::clone(&at_once));
        tasks.spawn(async move {
            let permit = at_once.acquire().await.ok()?;
            let opened = timeout(Duration::from_secs(5), arena.connect()).await;
            let mut socket = opened.ok()?.ok()?;
            let _ = begin(&mut socket, number).await;
            drop(permit);
            Some(socket)
        });
    }
    let mut held = Vec::new();
    let opening = async {
        while let Some(opened) = tasks.join_next().await {
            held.extend(opened.ok().flatten());
        }
    };
    arena.until_the_end(opening).await;
    sleep_until(arena.ends).await;
    held.len()
}

/// A third says nothing, a third has made a call, a third has begun HTTP/2.
async fn begin(socket: &mut TcpStream, number: usize) -> std::io::Result<()> {
    match number % 3 {
        0 => Ok(()),
        1 => {
            let body = b"{}";
            let head = http1::head(ECHO, &[("content-type", "application/json")]);
            let head = format!("{head}content-length: {}\r\n\r\n", body.len());
            socket.write_all(&[head.as_bytes(), body].concat()).await
        }
        _ => socket.write_all(&[PREFACE, &settings(&[])].concat()).await,
    }
}

pub(super) async fn idle(arena: Arena) -> Result<String, String> {
    let may_have = raise_descriptors().saturating_sub(DESCRIPTORS_KEPT);
    let count = IDLE_CONNECTIONS.min(usize::try_from(may_have).unwrap_or(usize::MAX));
    let held = hold(&arena, count).await;
    // A slow machine makes fewer; a few are no attack.
    if held < LEAST_CONNECTIONS {
        return Err(format!("only {held} of {count} connections could be made"));
    }
    Ok(format!("{held} of {IDLE_CONNECTIONS} idle connections"))
}

pub(super) async fn too_many(arena: Arena) -> Result<String, String> {
    let held = hold(&arena, TOO_MANY).await;
    // What waits in the kernel's queue is dropped there by now, or is accepted
    // and found closed.
    sleep(Duration::from_millis(300)).await;
    Ok(format!("{held} connections"))
}

/// Not the good client's.
const FLOODING: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
const FLOODERS: u64 = 64;

/// As many connections as can be made from one address, each with a call; what is let in
/// is held for a while.
pub(super) async fn of_one_address(arena: Arena) -> Result<String, String> {
    let (served, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let seen = Arc::clone(&most);
    arena
        .on_connections(FLOODERS, move |arena, _| {
            let (served, seen) = (Arc::clone(&served), Arc::clone(&seen));
            async move {
                arena.add(1);
                let Ok(socket) = asked_from(FLOODING, arena.address).await else {
                    return;
                };
                let held = Held::new(socket, served);
                seen.fetch_max(held.count(), Ordering::SeqCst);
                sleep(Duration::from_millis(20)).await;
            }
        })
        .await;
    let most = most.load(Ordering::SeqCst);
    if most == 0 || most > ADDRESS_CONNECTIONS {
        return Err(format!(
            "{most} connections of one address were served at once"
        ));
    }
    Ok(format!(
        "{} connections, {most} served at once",
        arena.counted()
    ))
}

/// A connection that was served; counted as gone before it is, so that there are never
/// too many for that.
struct Held {
    served: Arc<AtomicUsize>,
    _socket: TcpStream,
}

impl Held {
    fn new(socket: TcpStream, served: Arc<AtomicUsize>) -> Self {
        served.fetch_add(1, Ordering::SeqCst);
        Self {
            served,
            _socket: socket,
        }
    }

    fn count(&self) -> usize {
        self.served.load(Ordering::SeqCst)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.served.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A connection from this address on which a call was answered.
async fn asked_from(from: Ipv4Addr, to: SocketAddr) -> std::io::Result<TcpStream> {
    const BODY: &[u8] = b"{}";
    let socket = TcpSocket::new_v4()?;
    socket.bind(SocketAddr::from((from, 0)))?;
    let mut socket = socket.connect(to).await?;
    let path = "/grpc.health.v1.Health/Check";
    let head = http1::head(path, &[("content-type", "application/json")]);
    let head = format!("{head}content-length: {}\r\n\r\n", BODY.len());
    socket.write_all(&[head.as_bytes(), BODY].concat()).await?;
    socket.read_u8().await?;
    Ok(socket)
}
