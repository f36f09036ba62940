//! A plain connection that knows which of the bytes it writes are those of a file.

use std::future::{Ready, ready};
use std::io::{self, IoSlice, IoSliceMut};
use std::os::unix::fs::FileExt as _;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum_server::accept::Accept;
use rustix::io::{Errno, ReadWriteFlags};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;
use tokio::task::{JoinHandle, spawn_blocking};

use super::Stretch;

/// Units: bytes. What is sent at once, and read at once where the page cache does not have it.
const CHUNK_BYTES: usize = 512 * 1024;
/// Units: bytes. What is copied at once where the kernel cannot send the file.
const COPY_BYTES: usize = 64 * 1024;

/// Makes each connection a [`Wire`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct WireAcceptor;

/// A connection.
#[derive(Debug)]
pub(crate) struct Wire {
    stream: TcpStream,
    /// Reads from the disk what is to be sent next, so that sending does not wait for it.
    reading: Option<JoinHandle<()>>,
    /// Address up to which that was done.
    is_read_until: usize,
}

impl<S> Accept<TcpStream, S> for WireAcceptor {
    type Stream = Wire;
    type Service = S;
    type Future = Ready<io::Result<(Wire, S)>>;

    fn accept(&self, stream: TcpStream, service: S) -> Self::Future {
        // Else the end of an answer may wait for the client's word on its beginning.
        let is_set = stream.set_nodelay(true);
        let wire = Wire {
            stream,
            reading: None,
            is_read_until: 0,
        };
        ready(is_set.map(|()| (wire, service)))
    }
}

impl Wire {
    fn stream(&mut self) -> Pin<&mut TcpStream> {
        Pin::new(&mut self.stream)
    }

    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &[u8],
        mut stretch: Stretch,
    ) -> Poll<io::Result<usize>> {
        stretch.length = stretch.length.min(CHUNK_BYTES);
        let address = bytes.as_ptr().addr();
        let has_read = self.is_read_until.checked_sub(address);
        match has_read.filter(|length| *length > 0 && *length <= CHUNK_BYTES) {
            Some(length) => stretch.length = stretch.length.min(length),
            None if stretch.is_cached() => {}
            None => {
                self.is_read_until = address + stretch.length;
                let stretch = stretch.clone();
                self.reading = Some(spawn_blocking(move || stretch.read()));
            }
        }
        if let Some(reading) = &mut self.reading {
            // Where it cannot be read, sending says why.
            ready!(Pin::new(reading).poll(cx)).ok();
            self.reading = None;
        }
        loop {
            ready!(self.stream.poll_write_ready(cx))?;
            let sent = self.stream.try_io(Interest::WRITABLE, || {
                let mut offset = stretch.first;
                let sent = rustix::fs::sendfile(
                    &self.stream,
                    &stretch.file,
                    Some(&mut offset),
                    stretch.length,
                );
                match sent {
                    // Not every filesystem can.
                    Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                        stretch.copy(&self.stream)
                    }
                    sent => Ok(sent?),
                }
            });
            match sent {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // The file is shorter than it was.
                Ok(0) => return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into())),
                sent => return Poll::Ready(sent),
            }
        }
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.stream().poll_read(cx, buf)
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(buf)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let found = bufs
            .iter()
            .enumerate()
            .find_map(|(place, buf)| Some((place, Stretch::of(buf)?)));
        match found {
            None => self.stream().poll_write_vectored(cx, bufs),
            Some((0, stretch)) => self.poll_send(cx, &bufs[0], stretch),
            Some((place, _)) => self.stream().poll_write_vectored(cx, &bufs[..place]),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().poll_shutdown(cx)
    }
}

impl Stretch {
    /// Whether sending will not wait for the disk, as far as the last byte tells. Where nobody can say, it is tried.
    fn is_cached(&self) -> bool {
        let last = self.first + self.length as u64 - 1;
        let mut byte = [0];
        let mut byte = [IoSliceMut::new(&mut byte)];
        let read = rustix::io::preadv2(&self.file, &mut byte, last, ReadWriteFlags::NOWAIT);
        !matches!(read, Err(Errno::AGAIN))
    }

    /// Brings it into the page cache. Blocks.
    fn read(&self) {
        let mut buffer = vec![0; COPY_BYTES];
        let end = self.first + self.length as u64;
        let mut first = self.first;
        while first < end {
            match self.file.read_at(&mut buffer, first) {
                Ok(0) | Err(_) => return,
                Ok(read) => first += read as u64,
            }
        }
    }

    fn copy(&self, stream: &TcpStream) -> io::Result<usize> {
        let mut buffer = vec![0; self.length.min(COPY_BYTES)];
        let read = self.file.read_at(&mut buffer, self.first)?;
        Ok(rustix::io::write(stream, &buffer[..read])?)
    }
}
