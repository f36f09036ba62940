//! A plain connection that sends mapped parts of files by `sendfile(2)`.

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

use super::FileRange;

/// Bytes that one call sends, or reads where the page cache does not have them.
const CHUNK_BYTES: usize = 512 * 1024;
/// Bytes that one call copies where the kernel cannot send the file.
const COPY_BYTES: usize = 64 * 1024;

/// Makes each connection a [`SendfileStream`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct SendfileAcceptor;

/// A connection.
#[derive(Debug)]
pub(crate) struct SendfileStream {
    stream: TcpStream,
    /// Read-ahead of the next chunk from the disk, so that sending does not block.
    reading: Option<JoinHandle<()>>,
    /// Address up to which that was done.
    is_read_until: usize,
}

impl<S> Accept<TcpStream, S> for SendfileAcceptor {
    type Stream = SendfileStream;
    type Service = S;
    type Future = Ready<io::Result<(SendfileStream, S)>>;

    fn accept(&self, stream: TcpStream, service: S) -> Self::Future {
        // Without it, Nagle's algorithm delays the end of a response until its start is acknowledged.
        let is_set = stream.set_nodelay(true);
        let wire = SendfileStream {
            stream,
            reading: None,
            is_read_until: 0,
        };
        ready(is_set.map(|()| (wire, service)))
    }
}

impl SendfileStream {
    fn stream(&mut self) -> Pin<&mut TcpStream> {
        Pin::new(&mut self.stream)
    }

    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &[u8],
        mut range: FileRange,
    ) -> Poll<io::Result<usize>> {
        range.length = range.length.min(CHUNK_BYTES);
        let address = bytes.as_ptr().addr();
        let has_read = self.is_read_until.checked_sub(address);
        match has_read.filter(|length| *length > 0 && *length <= CHUNK_BYTES) {
            Some(length) => range.length = range.length.min(length),
            None if range.is_cached() => {}
            None => {
                self.is_read_until = address + range.length;
                let range = range.clone();
                self.reading = Some(spawn_blocking(move || range.read()));
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
                let mut offset = range.first;
                let sent = rustix::fs::sendfile(
                    &self.stream,
                    &range.file,
                    Some(&mut offset),
                    range.length,
                );
                match sent {
                    // Not every filesystem can.
                    Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => range.copy(&self.stream),
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

impl AsyncRead for SendfileStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.stream().poll_read(cx, buf)
    }
}

impl AsyncWrite for SendfileStream {
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
            .find_map(|(place, buf)| Some((place, FileRange::of(buf)?)));
        match found {
            None => self.stream().poll_write_vectored(cx, bufs),
            Some((0, range)) => self.poll_send(cx, &bufs[0], range),
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

impl FileRange {
    /// Whether the last byte is in the page cache, so that sending does not block. True when unknown.
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
