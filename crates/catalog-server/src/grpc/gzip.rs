//! Compressed replies, for clients that send compressed requests.

use std::io::{self, Write as _};

use bytes::{Buf as _, Bytes, BytesMut};
use catalog::cache::{Damaged, Slices};
use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::{Stream, stream};

use super::wire::FRAME;

/// Compresses each message of `slices` on the blocking pool; buffers one message.
pub(super) fn compress(slices: Slices) -> impl Stream<Item = Result<Bytes, Damaged>> + Unpin {
    let messages = Messages {
        slices,
        read: BytesMut::new(),
    };
    Box::pin(stream::unfold(messages, |mut messages| async {
        let next = tokio::task::spawn_blocking(move || {
            let message = messages.next();
            (
                message.map(|message| message.map(|message| framed(&message))),
                messages,
            )
        });
        let (message, messages) = next.await.ok()?;
        message.map(|message| (message, messages))
    }))
}

/// Reassembles single messages from pieces.
struct Messages {
    slices: Slices,
    read: BytesMut,
}

impl Messages {
    /// Buffers `length` bytes; false at the end.
    fn fill(&mut self, length: usize) -> Result<bool, Damaged> {
        while self.read.len() < length {
            match self.slices.next() {
                Some(piece) => self.read.extend_from_slice(&piece?),
                None => return Ok(false),
            }
        }
        Ok(true)
    }

    fn message(&mut self) -> Result<Option<BytesMut>, Damaged> {
        if !self.fill(FRAME)? {
            return Ok(None);
        }
        let mut frame = self.read.split_to(FRAME);
        frame.advance(1);
        let length = frame.get_u32() as usize;
        if !self.fill(length)? {
            return Err(Damaged);
        }
        Ok(Some(self.read.split_to(length)))
    }
}

impl Iterator for Messages {
    type Item = Result<BytesMut, Damaged>;

    fn next(&mut self) -> Option<Self::Item> {
        self.message().transpose()
    }
}

fn framed(message: &[u8]) -> Bytes {
    match deflate(message) {
        Ok(framed) => framed,
        // Writing to memory does not fail; uncompressed messages are valid in a compressed stream.
        Err(_) => [&frame(0, message.len())[..], message].concat().into(),
    }
}

fn deflate(message: &[u8]) -> io::Result<Bytes> {
    let mut gzip = GzEncoder::new(vec![0; FRAME], Compression::fast());
    gzip.write_all(message)?;
    let mut framed = gzip.finish()?;
    let length = framed.len() - FRAME;
    framed[..FRAME].copy_from_slice(&frame(1, length));
    Ok(framed.into())
}

fn frame(flag: u8, length: usize) -> [u8; FRAME] {
    let length = u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes();
    [flag, length[0], length[1], length[2], length[3]]
}
