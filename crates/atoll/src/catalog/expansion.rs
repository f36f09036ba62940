//! Documents of catalogs, templates and bundles.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use ::catalog::registry_v1::{BundleFolder, RenderedBundle};
use ::catalog::template::{
    BYTES_LIMIT, CatalogComponent, CompositeTemplate, Template, TemplateError,
};
use ::catalog::{CatalogProblems, Document, cores, read, read_files};
use service::Error;

use super::bundle;
use super::source::{Opener, is_database};
use crate::terminal;

/// Argument for the standard input.
const STANDARD_INPUT: &str = "-";
/// Name of its documents' file.
const INPUT_NAME: &str = "stdin";
/// Reads documents and expands templates.
pub(super) struct Expander<'a> {
    pub(super) opener: &'a Opener,
    /// Catalog whose components of a composite template are rendered.
    pub(super) component: Option<&'a str>,
}

/// Early end.
pub(super) enum Stop {
    /// The output cannot be written.
    Output(io::Error),
    Failed(Error),
}

/// Receiver of the documents.
type Sink<'a> = dyn FnMut(Document) -> io::Result<()> + 'a;

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl Expander<'_> {
    /// Gives all documents of an argument of the command line to `sink`.
    ///
    /// Errors: an unreadable argument; its readable documents are given nevertheless.
    pub(super) fn argument(&self, argument: &str, sink: &mut Sink<'_>) -> Result<(), Stop> {
        let failed = |why: String| Error::new(format!("rendering {argument}"), why);
        let path = Path::new(argument);
        if argument == STANDARD_INPUT {
            let text = bytes(io::stdin().lock()).map_err(|e| failed(e.to_string()))?;
            return self.text(Path::new(INPUT_NAME), text, sink);
        }
        if path.is_file() && !is_database(path) {
            let text = File::open(path).and_then(bytes);
            let text = text.map_err(|e| failed(e.to_string()))?;
            return self.text(path, text, sink);
        }
        if path.is_dir() && BundleFolder::is_bundle(path) {
            let rendered = bundle::of_folder(path).map_err(failed)?;
            return Ok(sink(noted(argument, rendered))?);
        }
        if !path.exists()
            && let Some(rendered) = self.opener.bundle(argument)?
        {
            return Ok(sink(noted(argument, rendered))?);
        }
        let content = self.opener.content(argument)?;
        let files = TemplateFiles::Folder(content.folder());
        let problems = read(content.folder(), cores(), |document| {
            self.document(document, files, sink)
        })?;
        Ok(checked(argument, problems)?)
    }

    /// Documents of a file.
    fn text(&self, path: &Path, content: Vec<u8>, sink: &mut Sink<'_>) -> Result<(), Stop> {
        let text = String::from_utf8_lossy(&content).into_owned();
        let files = TemplateFiles::Text(&text);
        let content = std::iter::once((path.to_owned(), content));
        let mut count = 0;
        let problems = read_files(content, cores(), |document| {
            count += 1;
            self.document(document, files, sink)
        })?;
        let name = path.display().to_string();
        if count == 0 && problems.0.is_empty() {
            return Err(Error::new(format!("reading {name}"), "it has no documents").into());
        }
        Ok(checked(&name, problems)?)
    }

    /// A document, expanded where it is a template.
    fn document(
        &self,
        document: Document,
        files: TemplateFiles<'_>,
        sink: &mut Sink<'_>,
    ) -> Result<(), Stop> {
        if !Template::is_schema(&document.schema) {
            return Ok(sink(document)?);
        }
        let template = files.template(&document)?;
        if let Some(composite) = template.composite() {
            return self.composite(&template, composite, (files, &document), sink);
        }
        if template.is_empty() {
            terminal::notice(&format!(
                "{}: it names destinations of a composite template, and no documents: give that template",
                document.origin
            ));
        }
        self.expand(&template, sink)
    }

    fn expand(&self, template: &Template, sink: &mut Sink<'_>) -> Result<(), Stop> {
        let (bundles, failures) = self.opener.bundles(&template.images());
        if !failures.is_empty() {
            let failures = failures.into_iter();
            let lines = failures.map(|it| template.misfit(it.place, it.why).to_string());
            return Err(expanding(lines.collect::<Vec<_>>().join("\n")).into());
        }
        for (image, rendered) in &bundles {
            notes(image, rendered);
        }
        let documents = template.expand(&bundles);
        let documents = documents.map_err(|e| expanding(e.to_string()))?;
        documents.into_iter().try_for_each(sink)?;
        Ok(())
    }

    /// The components of one catalog; their paths start at the working directory, or else beside the template. Those of
    /// a folder stay inside, since it may be that of an image.
    fn composite(
        &self,
        template: &Template,
        composite: &CompositeTemplate,
        (files, document): (TemplateFiles<'_>, &Document),
        sink: &mut Sink<'_>,
    ) -> Result<(), Stop> {
        let path = files.path(document);
        let components = self.chosen(composite).map_err(expanding)?;
        for component in components {
            let misfit =
                |why: String| expanding(template.misfit(component.input.place, why).to_string());
            let input = Path::new(&component.input.image);
            let beside = path.parent().unwrap_or(Path::new("")).join(input);
            let input = match files {
                TemplateFiles::Folder(folder) => inside(folder, &beside).ok_or_else(|| {
                    misfit(format!(
                        "{} is no file in the folder of the catalog: render the template itself to name others",
                        input.display()
                    ))
                })?,
                TemplateFiles::Text(_) if input.exists() => input.to_owned(),
                TemplateFiles::Text(_) => beside,
            };
            let content = File::open(&input).and_then(bytes);
            let content = content.map_err(|e| misfit(format!("{}: {e}", input.display())))?;
            self.component(component, &input, content, sink)
                .map_err(|stop| match stop {
                    Stop::Failed(error) => Stop::Failed(misfit(model::error::chain(&error))),
                    output @ Stop::Output(_) => output,
                })?;
        }
        Ok(())
    }

    fn component(
        &self,
        component: &CatalogComponent,
        input: &Path,
        content: Vec<u8>,
        sink: &mut Sink<'_>,
    ) -> Result<(), Stop> {
        let text = String::from_utf8_lossy(&content).into_owned();
        let files = TemplateFiles::Text(&text);
        let content = std::iter::once((input.to_owned(), content));
        let problems = read_files(content, cores(), |document| match component.kind.schema() {
            None => Ok(sink(document)?),
            Some(schema) if schema == document.schema => {
                self.expand(&files.template(&document)?, sink)
            }
            Some(schema) => {
                let Document {
                    origin,
                    schema: found,
                    ..
                } = &document;
                let why =
                    format!("{origin}: expected a template of schema {schema:?}, found {found:?}");
                Err(expanding(why).into())
            }
        })?;
        Ok(checked(&input.display().to_string(), problems)?)
    }

    /// The components of the chosen catalog, or of the only one.
    fn chosen<'a>(
        &self,
        composite: &'a CompositeTemplate,
    ) -> Result<Vec<&'a CatalogComponent>, String> {
        let names: BTreeSet<&str> = composite
            .components
            .iter()
            .map(|it| it.catalog.as_str())
            .collect();
        let listed = names.iter().copied().collect::<Vec<_>>().join(", ");
        let chosen = match (self.component, names.len()) {
            (Some(name), _) if names.contains(name) => name,
            (Some(name), _) => {
                return Err(format!(
                    "no component is of the catalog {name}: there are {listed}"
                ));
            }
            (None, 0) => return Ok(Vec::new()),
            (None, 1) => names.first().copied().unwrap_or_default(),
            (None, _) => {
                return Err(format!(
                    "the components are of several catalogs ({listed}): choose one with --component"
                ));
            }
        };
        let components = composite.components.iter();
        Ok(components.filter(|it| it.catalog == chosen).collect())
    }
}

/// The file at a path, if it is one inside of the folder.
fn inside(folder: &Path, path: &Path) -> Option<PathBuf> {
    let (folder, path) = (folder.canonicalize().ok()?, path.canonicalize().ok()?);
    (path.starts_with(folder) && path.is_file()).then_some(path)
}

/// Texts of templates, which are read once more for the places in them.
#[derive(Clone, Copy)]
enum TemplateFiles<'a> {
    Folder(&'a Path),
    Text(&'a str),
}

impl TemplateFiles<'_> {
    fn path(self, document: &Document) -> PathBuf {
        match self {
            Self::Folder(folder) => folder.join(&document.origin.file),
            Self::Text(_) => document.origin.file.to_path_buf(),
        }
    }

    fn template(self, document: &Document) -> Result<Template, Error> {
        let template = match self {
            Self::Text(text) => Template::read(document, text),
            Self::Folder(_) => {
                let content = File::open(self.path(document)).and_then(bytes);
                let content =
                    content.map_err(|e| expanding(format!("{}: {e}", document.origin)))?;
                Template::read(document, &String::from_utf8_lossy(&content))
            }
        };
        template.map_err(|e: TemplateError| expanding(e.to_string()))
    }
}

fn expanding(why: String) -> Error {
    Error::new("expanding a template", why)
}

/// The bundle's document; its notes are printed.
fn noted(name: &str, rendered: RenderedBundle) -> Document {
    notes(name, &rendered);
    rendered.document
}

fn notes(name: &str, rendered: &RenderedBundle) {
    for note in &rendered.notes {
        terminal::notice(&format!("{name}: {note}"));
    }
}

fn checked(name: &str, problems: CatalogProblems) -> Result<(), Error> {
    if problems.0.is_empty() {
        Ok(())
    } else {
        Err(Error::new(format!("reading {name}"), problems))
    }
}

fn bytes(input: impl Read) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    let read = input.take(BYTES_LIMIT + 1).read_to_end(&mut content)?;
    if read as u64 > BYTES_LIMIT {
        let reason = format!("the file has more than {} MiB", BYTES_LIMIT >> 20);
        return Err(io::Error::other(reason));
    }
    Ok(content)
}
