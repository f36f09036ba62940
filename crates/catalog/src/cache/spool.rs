//! Spools documents through the file: written as they are read, re-read package by package.

use std::collections::HashMap;
use std::fs::File;

use super::build_error::{BuildError, io};
use super::record::{Line, TextRef};
use super::string_table::StringTable;
use super::writer::{CacheWriter, read};
use crate::schema::is_core;
use crate::{CatalogProblem, Document, DocumentOrigin, PACKAGE, Rule};

/// Names and ranges of the spooled documents.
#[derive(Debug, Default)]
pub(super) struct Spool {
    pub(super) texts: StringTable,
    pub(super) lines: Vec<Line>,
}

impl Spool {
    /// Errors: the file cannot be written.
    pub(super) fn add(
        &mut self,
        document: &Document,
        to: &mut CacheWriter,
    ) -> Result<(), BuildError> {
        let json = to.write(document.json.as_bytes()).map_err(io(WRITING))?;
        to.write(b"\n").map_err(io(WRITING))?;
        self.lines.push(Line {
            schema: self.texts.add(&document.schema)?,
            package: self.texts.add(&document.package)?,
            name: self.texts.add(&document.name)?,
            file: self.texts.add(&document.origin.file.to_string_lossy())?,
            number: document.origin.line,
            json,
        });
        Ok(())
    }

    /// Documents grouped by package, sorted by name: the `olm.package` document first, custom documents last, by
    /// schema.
    pub(super) fn groups(&self) -> Vec<Vec<Line>> {
        let mut groups: HashMap<TextRef, Vec<Line>> = HashMap::new();
        for line in &self.lines {
            groups.entry(self.group(line)).or_default().push(*line);
        }
        let mut groups: Vec<_> = groups.into_iter().collect();
        groups.sort_unstable_by_key(|(name, _)| self.texts.get(*name));
        let sorted = groups.into_iter().map(|(_, mut lines)| {
            lines.sort_by_key(|line| {
                let schema = self.texts.get(line.schema);
                (schema != PACKAGE, (!is_core(schema)).then_some(schema))
            });
            lines
        });
        sorted.collect()
    }

    /// Name of a document's package.
    pub(super) fn group_name(&self, line: &Line) -> &str {
        self.texts.get(self.group(line))
    }

    fn group(&self, line: &Line) -> TextRef {
        if self.texts.get(line.schema) == PACKAGE {
            line.name
        } else {
            line.package
        }
    }

    /// Re-reads the document at `line`.
    ///
    /// Errors: the file cannot be read.
    pub(super) fn read(&self, line: &Line, file: &File) -> Result<Document, BuildError> {
        let get = |text| self.texts.get(text).to_owned();
        let mut json = Vec::new();
        read(file, line.json, &mut json).map_err(io(READING))?;
        Ok(Document {
            schema: get(line.schema),
            package: get(line.package),
            name: get(line.name),
            json: String::from_utf8(json).map_err(|_| self.unreadable(line))?,
            origin: DocumentOrigin::new(self.texts.get(line.file), line.number),
        })
    }

    /// The file was modified by another process.
    fn unreadable(&self, line: &Line) -> BuildError {
        let problem = CatalogProblem {
            origin: Some(DocumentOrigin::new(self.texts.get(line.file), line.number)),
            package: String::new(),
            rule: Rule::Readable,
            text: "the cache was modified by another process while it was built".to_owned(),
        };
        BuildError::Invalid(problem.into())
    }
}

/// Context of write errors.
pub(super) const WRITING: &str = "writing the cache";
/// Context of read errors.
pub(super) const READING: &str = "reading the cache while it is built";
