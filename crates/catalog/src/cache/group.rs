//! Merges the batches of one package.

use std::collections::HashMap;

use super::batch::EncodedBatch;
use super::build_error::{BuildError, io};
use super::build_report::BuildReport;
use super::encode::{CommonRanges, EncodeBuffer};
use super::record::ByteRange;
use super::spool::WRITING;
use super::string_table::StringTable;
use super::tables::Tables;
use super::unread::UnreadDocuments;
use super::writer::CacheWriter;
use crate::Document;
use crate::content::PackageModel;

/// State of one package's documents. Ranges are absolute.
#[derive(Default)]
pub(super) struct Group {
    /// Documents reduced to the input of package validation.
    documents: Vec<Document>,
    bundles: HashMap<String, CommonRanges>,
    customs: Vec<(String, ByteRange)>,
}

impl Group {
    /// Adds the next batch and writes its output.
    ///
    /// Errors: the file cannot be written.
    pub(super) fn add(
        &mut self,
        part: EncodedBatch,
        file: &mut CacheWriter,
    ) -> Result<(), BuildError> {
        let written = file.write(&part.output.bytes).map_err(io(WRITING))?;
        let base = written.offset;
        self.documents.extend(part.documents);
        let bundles = part.bundles.into_iter();
        self.bundles
            .extend(bundles.map(|(name, common)| (name, common.behind(base))));
        for (schema, place) in part.customs {
            let place = place.behind(base);
            match self.customs.last_mut() {
                Some((last, all)) if *last == schema => *all = all.with(place),
                _ => self.customs.push((schema, place)),
            }
        }
        Ok(())
    }

    /// Name of the package; empty without documents.
    pub(super) fn name(&self) -> &str {
        self.documents.first().map_or("", Document::group)
    }

    /// Validates the package and writes its replies, unless `unread` documents or broken rules keep it from being served.
    ///
    /// Errors: the file cannot be written.
    pub(super) fn finish(
        self,
        unread: UnreadDocuments,
        file: &mut CacheWriter,
        tables: &mut Tables,
        texts: &mut StringTable,
        report: &mut BuildReport,
    ) -> Result<(), BuildError> {
        let name = self.name();
        let (package, problems) = PackageModel::validate(&self.documents);
        if !problems.warnings.0.is_empty() {
            report.warned.insert(name.to_owned(), problems.warnings);
        }
        let is_invalid = !problems.errors.0.is_empty();
        if is_invalid || (unread.is_own && package.is_some()) {
            // Rules may be broken for want of the unread documents.
            let reasons = if unread.near.0.is_empty() {
                problems.errors
            } else {
                unread.near
            };
            let list = if problems.is_refused {
                &mut report.refused
            } else {
                &mut report.partial
            };
            list.insert(name.to_owned(), reasons);
        } else if let Some(package) = package {
            let mut output = EncodeBuffer::at(file.position());
            let encoded = output.package(&package, &self.bundles);
            file.write(&output.bytes).map_err(io(WRITING))?;
            tables.package(&encoded, texts)?;
        }
        for (schema, reply) in &self.customs {
            tables.custom(schema, name, *reply, texts)?;
        }
        Ok(())
    }
}
