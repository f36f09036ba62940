//! Documents of one package, so many at a time: what they say by themselves is encoded, and no more of them is kept than
//! their package has to know.

use std::fs::File;

use super::BuildError;
use super::custom_schema;
use super::encode::{Common, EncodeBuffer};
use super::record::{ByteRange, Line};
use super::spool::Spool;
use crate::Document;
use crate::content::Unpacked;
use crate::csv::PackageMetadata;
use crate::schema::{BUNDLE, PACKAGE, is_core};

/// Units: bytes. Of documents that are in memory together, for each thread: enough for threads not to wait for each
/// other all the time. One larger document is a part of its own.
pub(super) const PART: u64 = 1 << 20;

/// Consecutive documents of a group.
#[derive(Debug, Clone, Copy)]
pub(super) struct DocumentBatch<'a> {
    group: &'a [Line],
    lines: &'a [Line],
    /// Of its group.
    pub(super) is_last: bool,
}

/// What has become of documents. Places are from the beginning of the bytes.
#[derive(Debug, Default)]
pub(super) struct EncodedBatch {
    pub(super) output: EncodeBuffer,
    /// What their package has to know of them.
    pub(super) documents: Vec<Document>,
    /// Those that are sound, by name.
    pub(super) bundles: Vec<(String, Common)>,
    /// Messages of each schema; those of one schema come together.
    pub(super) customs: Vec<(String, ByteRange)>,
}

impl<'a> DocumentBatch<'a> {
    /// All parts of all groups.
    pub(super) fn all(groups: &'a [Vec<Line>]) -> Vec<Self> {
        groups.iter().flat_map(|group| Self::of(group)).collect()
    }

    fn of(group: &'a [Line]) -> impl Iterator<Item = Self> {
        let mut rest = group;
        std::iter::from_fn(move || {
            let mut bytes = 0;
            let is_more = |line: &&Line| {
                bytes += line.json.length();
                bytes <= PART
            };
            let count = rest.iter().take_while(is_more).count().max(1);
            let (lines, behind) = rest.split_at_checked(count)?;
            rest = behind;
            Some(Self {
                group,
                lines,
                is_last: rest.is_empty(),
            })
        })
    }

    /// Reads and encodes them.
    ///
    /// Errors: the file cannot be read.
    pub(super) fn make(&self, spool: &Spool, source: &File) -> Result<EncodedBatch, BuildError> {
        let package = self.group.first();
        let package = package.filter(|line| spool.texts.get(line.schema) == PACKAGE);
        let package = package.map(|line| spool.read(line, source)).transpose()?;
        let metadata = package
            .as_ref()
            .map(PackageMetadata::new)
            .unwrap_or_default();
        let mut parted = EncodedBatch::default();
        for line in self.lines {
            parted.add(spool.read(line, source)?, &metadata);
        }
        Ok(parted)
    }
}

impl EncodedBatch {
    fn add(&mut self, mut document: Document, metadata: &PackageMetadata) {
        if !is_core(&document.schema) {
            let place = self.output.framed(&custom_schema::encode(&document.json));
            // Their package has to know that they are there.
            document.json = String::new();
            self.customs.push((document.schema.clone(), place));
        } else if document.schema == BUNDLE
            && let Some(Unpacked {
                bundle,
                contents,
                rest,
            }) = Unpacked::new(&document, metadata)
        {
            let common = self.output.common(&bundle, &contents);
            self.bundles.push((document.name.clone(), common));
            document = rest;
        }
        self.documents.push(document);
    }
}
