//! Batches of one package's documents: encodes each document by itself and keeps only the input of package validation.

use std::fs::File;

use super::build_error::BuildError;
use super::custom_schema;
use super::encode::{CommonRanges, EncodeBuffer};
use super::record::{ByteRange, Line};
use super::spool::Spool;
use crate::Document;
use crate::content::UnpackedBundle;
use crate::csv::PackageMetadata;
use crate::schema::{BUNDLE, PACKAGE, is_core};

/// Documents in memory per thread: enough to keep threads from waiting for each other. A larger document is a batch of
/// its own. Units: bytes.
pub(super) const BATCH_BYTES: u64 = 1 << 20;

/// Consecutive documents of a package.
#[derive(Debug, Clone, Copy)]
pub(super) struct DocumentBatch<'a> {
    group: &'a [Line],
    lines: &'a [Line],
    /// Last batch of its package.
    pub(super) is_last: bool,
}

/// Encoded documents. Ranges are relative to the output.
#[derive(Debug, Default)]
pub(super) struct EncodedBatch {
    pub(super) output: EncodeBuffer,
    /// Documents reduced to the input of package validation.
    pub(super) documents: Vec<Document>,
    /// Valid bundles by name.
    pub(super) bundles: Vec<(String, CommonRanges)>,
    /// Custom messages, grouped by schema.
    pub(super) customs: Vec<(String, ByteRange)>,
}

impl<'a> DocumentBatch<'a> {
    /// Batches of all packages.
    pub(super) fn all(groups: &'a [Vec<Line>]) -> Vec<Self> {
        groups.iter().flat_map(|group| Self::of(group)).collect()
    }

    fn of(group: &'a [Line]) -> impl Iterator<Item = Self> {
        let mut rest = group;
        std::iter::from_fn(move || {
            let mut bytes = 0;
            let is_more = |line: &&Line| {
                bytes += line.json.length();
                bytes <= BATCH_BYTES
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

    /// Reads and encodes the documents.
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
        let mut batch = EncodedBatch::default();
        for line in self.lines {
            batch.add(spool.read(line, source)?, &metadata);
        }
        Ok(batch)
    }
}

impl EncodedBatch {
    fn add(&mut self, mut document: Document, metadata: &PackageMetadata) {
        if !is_core(&document.schema) {
            let range = self.output.framed(&custom_schema::encode(&document.json));
            // Package validation needs the schema and name only.
            document.json = String::new();
            self.customs.push((document.schema.clone(), range));
        } else if document.schema == BUNDLE
            && let Some(UnpackedBundle {
                bundle,
                contents,
                rest,
            }) = UnpackedBundle::new(&document, metadata)
        {
            let common = self.output.common(&bundle, &contents);
            self.bundles.push((document.name.clone(), common));
            document = rest;
        }
        self.documents.push(document);
    }
}
