//! Templates of catalogs, which name bundle images instead of bundles. They are expanded to documents.
//!
//! Pure: the caller renders the bundles. Source: operator-registry, `alpha/template`.

mod arrange;
mod basic;
mod composite;
mod fields;
mod legacy_release;
mod semver;
mod substitutes;
#[cfg(test)]
mod tests;

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use located_yaml::{Position, v1_1};

use self::arrange::arranged;
use self::basic::{BASIC, BasicTemplate};
use self::composite::{COMPOSITE, COMPOSITE_CATALOGS};
use self::fields::Misfit;
use self::semver::{SEMVER, SemverTemplate};
use self::substitutes::{SUBSTITUTES, SubstitutesTemplate};
use crate::{CatalogProblems, Document};

pub use self::composite::{CatalogComponent, CompositeTemplate, InputKind};
pub use self::fields::{Bundles, TemplateImage};

/// Largest template. Units: bytes.
pub const BYTES_LIMIT: u64 = 64 << 20;
/// Most bundles of one template.
pub const BUNDLES_LIMIT: usize = 10_000;

/// All schemas.
pub const SCHEMAS: &[&str] = &[BASIC, SEMVER, SUBSTITUTES, COMPOSITE, COMPOSITE_CATALOGS];

/// A template.
#[derive(Debug)]
pub struct Template {
    file: Arc<Path>,
    kind: TemplateKind,
}

#[derive(Debug)]
enum TemplateKind {
    Basic(BasicTemplate),
    Semver(SemverTemplate),
    Substitutes(SubstitutesTemplate),
    Composite(CompositeTemplate),
    /// Nothing to expand.
    Catalogs,
}

/// Failure to read or expand a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TemplateError {
    /// A misfit at a place of the template's file.
    Misfit {
        file: Arc<Path>,
        place: Position,
        why: String,
    },
    /// The documents of a template are no valid packages.
    Invalid(CatalogProblems),
}

impl Template {
    /// Whether documents of the schema are templates.
    pub fn is_schema(schema: &str) -> bool {
        SCHEMAS.contains(&schema)
    }

    /// Reads the template `document` of a file with the content `text`.
    ///
    /// Errors: members that are unknown, missing or of a wrong type.
    pub fn read(document: &Document, text: &str) -> Result<Self, TemplateError> {
        let first = usize::try_from(document.origin.line).unwrap_or(1).max(1);
        let own = own_text(text, first);
        let misfit = |wrong: Misfit| {
            let line = first - 1 + wrong.place.line;
            TemplateError::Misfit {
                file: Arc::clone(&document.origin.file),
                place: Position {
                    line,
                    ..wrong.place
                },
                why: wrong.why,
            }
        };
        let root = v1_1::read(own).map_err(|e| misfit(Misfit::new(e.at, e.reason)))?;
        let file = &document.origin.file;
        let kind = match document.schema.as_str() {
            BASIC => BasicTemplate::read(&root, document, first).map(TemplateKind::Basic),
            SEMVER => SemverTemplate::read(&root).map(TemplateKind::Semver),
            SUBSTITUTES => {
                SubstitutesTemplate::read(&root, document, first).map(TemplateKind::Substitutes)
            }
            COMPOSITE => CompositeTemplate::read(&root).map(TemplateKind::Composite),
            _ => Ok(TemplateKind::Catalogs),
        };
        let mut template = Self {
            file: Arc::clone(file),
            kind: kind.map_err(misfit)?,
        };
        template.kind.shift(first - 1);
        let count = template.images().len();
        if count > BUNDLES_LIMIT {
            let why = format!("it names {count} bundles, and at most {BUNDLES_LIMIT} are rendered");
            return Err(template.misfit(
                Position {
                    line: first,
                    column: 1,
                },
                why,
            ));
        }
        Ok(template)
    }

    /// The bundle images that it names, each once.
    pub fn images(&self) -> Vec<&TemplateImage> {
        let all: Vec<&TemplateImage> = match &self.kind {
            TemplateKind::Basic(basic) => basic.images().collect(),
            TemplateKind::Semver(semver) => semver.images().collect(),
            TemplateKind::Substitutes(substitutes) => substitutes.images().collect(),
            TemplateKind::Composite(_) | TemplateKind::Catalogs => Vec::new(),
        };
        let mut seen = std::collections::HashSet::new();
        let each = all.into_iter().filter(|it| seen.insert(&it.image));
        each.collect()
    }

    /// The components of a composite template, whose own files are templates.
    pub fn composite(&self) -> Option<&CompositeTemplate> {
        match &self.kind {
            TemplateKind::Composite(composite) => Some(composite),
            _ => None,
        }
    }

    /// Whether nothing is to be expanded: the destinations of composite templates.
    pub fn is_empty(&self) -> bool {
        matches!(self.kind, TemplateKind::Catalogs)
    }

    /// The documents of the template, in the order of `opm render`; `bundles` has all of its images.
    ///
    /// Errors: bundles that do not fit together.
    pub fn expand(&self, bundles: &Bundles) -> Result<Vec<Document>, TemplateError> {
        let documents = match &self.kind {
            TemplateKind::Basic(basic) => basic.expand(bundles),
            TemplateKind::Semver(semver) => semver
                .expand(bundles, &self.file)
                .map_err(|wrong| self.misfit(wrong.place, wrong.why))?,
            TemplateKind::Substitutes(substitutes) => {
                substitutes.expand(bundles).map_err(|e| match e {
                    substitutes::SubstituteError::Misfit(wrong) => {
                        self.misfit(wrong.place, wrong.why)
                    }
                    substitutes::SubstituteError::Invalid(problems) => {
                        TemplateError::Invalid(problems)
                    }
                })?
            }
            TemplateKind::Composite(_) | TemplateKind::Catalogs => Vec::new(),
        };
        Ok(arranged(documents))
    }

    /// Error at a place of the template.
    pub fn misfit(&self, place: Position, why: String) -> TemplateError {
        TemplateError::Misfit {
            file: Arc::clone(&self.file),
            place,
            why,
        }
    }
}

impl TemplateKind {
    /// Places count from the start of the file instead of the document's.
    fn shift(&mut self, lines: usize) {
        match self {
            Self::Basic(basic) => basic.shift(lines),
            Self::Semver(semver) => semver.shift(lines),
            Self::Substitutes(substitutes) => substitutes.shift(lines),
            Self::Composite(composite) => composite.shift(lines),
            Self::Catalogs => {}
        }
    }
}

/// The text of the document at the line `first`.
fn own_text(text: &str, first: usize) -> &str {
    let before: usize = text
        .split_inclusive('\n')
        .take(first - 1)
        .map(str::len)
        .sum();
    let rest = &text[before..];
    if rest.trim_start().starts_with('{') {
        let mut values =
            serde_json::Deserializer::from_str(rest).into_iter::<serde::de::IgnoredAny>();
        if let Some(Ok(_)) = values.next() {
            return &rest[..values.byte_offset()];
        }
    }
    match rest.find("\n---") {
        Some(end) => &rest[..=end],
        None => rest,
    }
}

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Misfit { file, place, why } => {
                write!(f, "{}:{place}: {why}", file.display())
            }
            Self::Invalid(problems) => problems.fmt(f),
        }
    }
}

impl std::error::Error for TemplateError {}
