//! Bytes between two TCP connections, within the kernel.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};

/// Capacity of a new pipe, which one call moves at most. Units: bytes. Source: pipe(7).
const PIPE_BYTES: usize = 64 * 1024;
/// The same of a pipe that was filled once. Pipes of a user share a bound, so those of short answers stay small.
const LARGE_PIPE_BYTES: usize = 256 * 1024;

/// Carries bytes both ways until both sides have ended, one has failed, or neither has sent any for `idle`.
///
/// Errors: of a connection; `TimedOut`.
pub(crate) async fn tunnel(
    one: &TcpStream,
    other: &TcpStream,
    idle: Duration,
    moved: &MovedBytes,
) -> io::Result<()> {
    let last = LastMove(Mutex::new(Instant::now()));
    tokio::try_join!(
        one_way(one, other, idle, (&last, &moved.from_one)),
        one_way(other, one, idle, (&last, &moved.from_other)),
    )?;
    Ok(())
}

/// Bytes that a tunnel has carried, also while it is open.
#[derive(Debug, Default)]
pub(crate) struct MovedBytes {
    pub(crate) from_one: AtomicU64,
    pub(crate) from_other: AtomicU64,
}

/// When bytes were moved last, in either direction.
struct LastMove(Mutex<Instant>);

impl LastMove {
    fn get(&self) -> Instant {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }
}

async fn one_way(
    from: &TcpStream,
    to: &TcpStream,
    idle: Duration,
    (last, total): (&LastMove, &AtomicU64),
) -> io::Result<()> {
    let (output, input) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
    let mut capacity = PIPE_BYTES;
    loop {
        let moved = loop {
            let filling = from.async_io(Interest::READABLE, || fill(from, &input, capacity));
            match timeout_at(last.get() + idle, filling).await {
                Ok(moved) => break moved?,
                // The other direction may have moved some meanwhile.
                Err(_) if last.get().elapsed() < idle => {}
                Err(elapsed) => return Err(elapsed.into()),
            }
        };
        if moved == 0 {
            return rustix::net::shutdown(to, rustix::net::Shutdown::Write).or_else(|error| {
                match error {
                    // The other side has closed already.
                    rustix::io::Errno::NOTCONN => Ok(()),
                    error => Err(error.into()),
                }
            });
        }
        if moved == PIPE_BYTES && capacity == PIPE_BYTES {
            // Beyond the user's bound, it stays as it is.
            capacity = fcntl_setpipe_size(&input, LARGE_PIPE_BYTES).unwrap_or(PIPE_BYTES);
        }
        let mut rest = moved;
        while rest > 0 {
            last.set();
            let emptying = to.async_io(Interest::WRITABLE, || empty(&output, to, rest));
            let emptied = tokio::time::timeout(idle, emptying).await??;
            total.fetch_add(emptied as u64, Ordering::Relaxed);
            rest -= emptied;
        }
    }
}

/// Moves the bytes that have arrived into an empty pipe.
fn fill(from: &TcpStream, input: &OwnedFd, capacity: usize) -> io::Result<usize> {
    Ok(splice(from, None, input, None, capacity, flags())?)
}

fn empty(output: &OwnedFd, to: &TcpStream, length: usize) -> io::Result<usize> {
    Ok(splice(output, None, to, None, length, flags())?)
}

fn flags() -> SpliceFlags {
    SpliceFlags::MOVE | SpliceFlags::NONBLOCK
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    const LONG: Duration = Duration::from_mins(10);
    const SHORT: Duration = Duration::from_millis(50);

    /// Both ends of a connection.
    async fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (one, other) = tokio::join!(TcpStream::connect(address), listener.accept());
        (one.unwrap(), other.unwrap().0)
    }

    #[tokio::test]
    async fn both_ways_are_carried_until_both_have_ended() {
        let (mut client, front) = pair().await;
        let (back, mut server) = pair().await;
        let carrying = tokio::spawn(async move {
            let moved = MovedBytes::default();
            tunnel(&front, &back, LONG, &moved).await.unwrap();
            moved
        });
        let sent: Vec<u8> = (0..3_000_000_u32).map(|n| (n % 251) as u8).collect();
        let (mut request, mut response) = (vec![0; sent.len()], Vec::new());
        tokio::join!(async { client.write_all(&sent).await.unwrap() }, async {
            server.read_exact(&mut request).await.unwrap()
        },);
        assert!(request == sent);
        // The client has ended, its answer comes after that.
        client.shutdown().await.unwrap();
        assert_eq!(server.read(&mut [0]).await.unwrap(), 0);
        server.write_all(b"answer").await.unwrap();
        drop(server);
        client.read_to_end(&mut response).await.unwrap();
        assert_eq!(response, b"answer");
        let moved = carrying.await.unwrap();
        assert_eq!(moved.from_one.into_inner(), 3_000_000);
        assert_eq!(moved.from_other.into_inner(), 6);
    }

    // limit: silence of a tunnel
    #[tokio::test]
    async fn a_silent_tunnel_ends() {
        let (_client, front) = pair().await;
        let (back, _server) = pair().await;
        let error = tunnel(&front, &back, SHORT, &MovedBytes::default())
            .await
            .unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
