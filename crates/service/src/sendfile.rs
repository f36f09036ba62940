//! Zero-copy sending of files from the page cache to plain sockets.
//!
//! hyper writes bytes and knows no files. So a part of a file becomes [`Bytes`] over a mapping that is never read: at
//! the socket, [`SendfileStream`](stream::SendfileStream) knows its address and lets the kernel send from the file.
//! Elsewhere the bytes are still the right ones. A body of several parts, with ordinary bytes between them, is a
//! stream of both.

mod stream;

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::sync::{Arc, PoisonError, RwLock};

use bytes::Bytes;
use http::request::Parts;
use http::{Extensions, Version};
use memmap2::{Mmap, MmapOptions};

pub(crate) use stream::SendfileAcceptor;

/// Every part that is being sent, by its first address.
static PARTS: RwLock<BTreeMap<usize, FileRange>> = RwLock::new(BTreeMap::new());

/// Marks requests whose answers go to a plain socket.
#[derive(Debug, Clone, Copy)]
struct Plain;

/// Some bytes of a file.
#[derive(Debug, Clone)]
struct FileRange {
    file: Arc<File>,
    first: u64,
    length: usize,
}

/// A mapping, for as long as a response holds it.
#[derive(Debug)]
struct MappedPart(Mmap);

/// Whether the answer to a request may be a [`part`]: others would read the mapping.
pub fn is_possible(head: &Parts) -> bool {
    head.version <= Version::HTTP_11 && head.extensions.get::<Plain>().is_some()
}

/// `length` bytes of `file` from `first` on, to be sent but not read: reading the bytes of a file that was truncated
/// ends the process, sending them ends the connection.
///
/// Errors: the file cannot be mapped.
pub fn part(file: impl Into<Arc<File>>, first: u64, length: u64) -> io::Result<Bytes> {
    let file = file.into();
    let length = usize::try_from(length).map_err(io::Error::other)?;
    if length == 0 {
        return Ok(Bytes::new());
    }
    #[expect(
        unsafe_code,
        reason = "Stored content is never written to in place, and the socket's side reads it by its descriptor."
    )]
    let map = unsafe { MmapOptions::new().offset(first).len(length).map(&*file)? };
    let range = FileRange {
        file,
        first,
        length,
    };
    let mut parts = PARTS.write().unwrap_or_else(PoisonError::into_inner);
    parts.insert(map.as_ptr().addr(), range);
    Ok(Bytes::from_owner(MappedPart(map)))
}

/// Whether `bytes` are a [`part`], which is not in memory.
pub(crate) fn is_part(bytes: &[u8]) -> bool {
    FileRange::of(bytes).is_some()
}

/// Lets the handler of the request with these extensions answer with a [`part`].
pub(crate) fn allow(request: &mut Extensions) {
    request.insert(Plain);
}

impl AsRef<[u8]> for MappedPart {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for MappedPart {
    fn drop(&mut self) {
        // Before the mapping is dropped: its address may be reused at once.
        let mut parts = PARTS.write().unwrap_or_else(PoisonError::into_inner);
        parts.remove(&self.0.as_ptr().addr());
    }
}

impl FileRange {
    /// The file behind `bytes`, if there is one.
    fn of(bytes: &[u8]) -> Option<Self> {
        let address = bytes.as_ptr().addr();
        let parts = PARTS.read().unwrap_or_else(PoisonError::into_inner);
        let (start, part) = parts.range(..=address).next_back()?;
        let skipped = address - start;
        (skipped < part.length).then(|| Self {
            file: Arc::clone(&part.file),
            first: part.first + skipped as u64,
            length: bytes.len(),
        })
    }
}

#[cfg(test)]
mod tests;
