//! Streams of single files of an image: no layer and no file is held in memory or on disk.

use std::collections::BTreeSet;
use std::io::Read;

use bytes::Bytes;
use model::Error;
use tar::EntryType;

use super::with_layer;
use crate::Client;
use crate::layer::{self, BUFFER_BYTES, EntryEffect, LayerEntry, below, unreadable};
use oci::{Descriptor, Reference};

/// Receiver of files of an image.
pub trait FileVisitor: Send + 'static {
    /// Receives a file, on the blocking pool. Content that is not read is skipped. A path may come again, from the same
    /// layer: the later file replaces the earlier one, as in unpacking.
    ///
    /// Errors: they end the visit.
    fn file(&mut self, path: &str, content: &mut FileContent<'_>) -> Result<(), Error>;

    /// Whether lower layers are not needed.
    fn is_complete(&self) -> bool;
}

/// The content of a file in a layer.
pub struct FileContent<'a> {
    size: u64,
    left: u64,
    reader: &'a mut dyn Read,
}

impl FileContent<'_> {
    /// Length of the file by its header. Units: bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The next bytes, 64 KiB at most; `None` after `size` bytes.
    ///
    /// Errors: Invalid – the layer is unreadable, or ends before the file.
    pub fn next_chunk(&mut self) -> Result<Option<Bytes>, Error> {
        if self.left == 0 {
            return Ok(None);
        }
        let bound = usize::try_from(self.left).unwrap_or(BUFFER_BYTES);
        let mut chunk = vec![0; bound.min(BUFFER_BYTES)];
        let length = self.reader.read(&mut chunk).map_err(unreadable)?;
        if length == 0 {
            let read = self.size - self.left;
            let reason = format!("it ends after {read} of the {} bytes of a file", self.size);
            return Err(Error::invalid("layer", reason));
        }
        chunk.truncate(length);
        self.left -= length as u64;
        Ok(Some(chunk.into()))
    }
}

/// Passes the files at `wanted` (paths as in a layer, without a leading slash) to `visitor`, from the topmost layer down.
/// Each layer is read once, to its end, where its digest is verified. Links are not followed.
///
/// Errors: Invalid – an unreadable layer, or another digest; those of `visitor`; others as the client's.
pub async fn visit_files<V: FileVisitor>(
    client: &Client,
    reference: &Reference,
    layers: &[Descriptor],
    wanted: impl IntoIterator<Item = String>,
    visitor: V,
) -> Result<V, Error> {
    let mut visit = ImageVisit {
        open: wanted.into_iter().collect(),
        visitor,
    };
    for layer in layers.iter().rev() {
        if visit.open.is_empty() || visit.visitor.is_complete() {
            break;
        }
        let read = with_layer(client, reference, layer, move |bytes| {
            visit.read(bytes)?;
            Ok(visit)
        });
        visit = read.await.map_err(|error| match error {
            Error::Invalid { field, reason } if field == "layer" => {
                let layer = &layer.digest;
                let reason = format!("{reference}: layer {layer}: {reason}; push the image again");
                Error::invalid("image", reason)
            }
            other => other,
        })?;
    }
    Ok(visit.visitor)
}

struct ImageVisit<V> {
    /// Paths that no layer so far determines.
    open: BTreeSet<String>,
    visitor: V,
}

impl<V: FileVisitor> ImageVisit<V> {
    fn read(&mut self, layer: &mut dyn Read) -> Result<(), Error> {
        let mut determined = BTreeSet::new();
        layer::unpacked(layer, |archive| {
            layer::each_entry(archive, |effect, entry| {
                determined.extend(self.determined(&effect, entry));
                match effect {
                    EntryEffect::Exists(path) if self.open.contains(&path) => {
                        self.file(&path, entry)
                    }
                    _ => Ok(()),
                }
            })
        })?;
        // Whiteouts hide the lower layers only.
        self.open.retain(|path| !determined.contains(path));
        Ok(())
    }

    /// Open paths that lower layers cannot change after this entry.
    fn determined(&self, effect: &EntryEffect, entry: &LayerEntry<'_, '_>) -> Vec<String> {
        let at = match effect {
            EntryEffect::Exists(_) if entry.header().entry_type().is_dir() => return Vec::new(),
            EntryEffect::Exists(path) | EntryEffect::Hides(path) | EntryEffect::Closes(path) => {
                path
            }
        };
        let open = self.open.iter();
        open.filter(|path| at.is_empty() || below(path, at).is_some())
            .cloned()
            .collect()
    }

    fn file(&mut self, path: &str, entry: &mut LayerEntry<'_, '_>) -> Result<(), Error> {
        let kind = entry.header().entry_type();
        if !matches!(
            kind,
            EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse
        ) {
            return Ok(());
        }
        let size = entry.size();
        let mut content = FileContent {
            size,
            left: size,
            reader: entry,
        };
        self.visitor.file(path, &mut content)
    }
}

#[cfg(test)]
#[path = "visit_tests.rs"]
mod tests;
