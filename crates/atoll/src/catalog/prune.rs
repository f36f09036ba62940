//! A smaller catalog.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use ::catalog::Document;
use ::catalog::filter::{Filtered, filter};
use clap::Args;
use service::Error;

use super::source::Access;
use super::summary::each_package;
use super::wanted::{self, Wanted};
use crate::terminal;

/// What stays, and where it goes.
#[derive(Debug, Clone, Args)]
pub(crate) struct Arguments {
    /// A folder or an image
    catalog: String,
    /// What stays: PACKAGE or PACKAGE:CHANNEL, either with versions behind it, as in etcd:stable@1.2.0..1.4.9
    #[arg(required = true, value_name = "PACKAGE[:CHANNEL][@VERSIONS]", value_parser = wanted::parse)]
    keep: Vec<Wanted>,
    /// Folder for the smaller catalog; it must not be there yet
    #[arg(long, value_name = "DIR")]
    to: PathBuf,
    /// Of channels without versions, keep the head only
    #[arg(long)]
    heads: bool,
    /// The default channel of a package whose own does not stay
    #[arg(long, value_name = "PACKAGE=CHANNEL", value_parser = wanted::parse_default)]
    default_channel: Vec<wanted::Default>,
    #[command(flatten)]
    access: Access,
}

/// Writes one folder for each package that stays.
///
/// Errors: a catalog that cannot be read, something wanted that it does not have, a folder that is there already.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Error> {
    let Arguments { catalog, to, .. } = arguments;
    let doing = || format!("cutting {catalog} down");
    let selection = wanted::selection(
        &arguments.keep,
        &arguments.default_channel,
        !arguments.heads,
    )
    .map_err(|reason| Error::new(doing(), reason))?;
    if to.exists() {
        return Err(Error::new(
            doing(),
            format!("{} is there already", to.display()),
        ));
    }
    let cache = arguments.access.open()?.cache(catalog)?;
    let part = Part::new(to).map_err(|e| Error::new(doing(), e))?;
    let mut missing: BTreeSet<&str> = selection
        .packages
        .iter()
        .map(|it| it.name.as_str())
        .collect();
    each_package(&cache, |package, documents| {
        let Some(wanted) = selection.of(package.name) else {
            return Ok(());
        };
        missing.remove(package.name);
        let filtered = filter(package, documents, &wanted, selection.full)
            .map_err(|e| Error::new(doing(), e.to_string()))?;
        tell(package.name, &filtered);
        part.write(package.name, &filtered.documents)
            .map_err(|e| Error::new(format!("writing {}", to.display()), e))
    })?;
    if !missing.is_empty() {
        let missing: Vec<_> = missing.into_iter().collect();
        let reason = format!("the catalog has no package {}", missing.join(", "));
        return Err(Error::new(doing(), reason));
    }
    part.finish()
        .map_err(|e| Error::new(format!("writing {}", to.display()), e))
}

fn tell(package: &str, filtered: &Filtered) {
    let count = filtered.documents.len();
    terminal::say(&format!("{package}: {count} documents"));
    for (channel, bundles) in &filtered.left_out {
        let bundles: Vec<_> = bundles.iter().map(String::as_str).collect();
        let bundles = bundles.join(", ");
        terminal::problem(&format!(
            "{package} {channel}: left out, since no upgrade leads to what stays: {bundles}"
        ));
    }
}

/// A folder that gets its name when it is whole.
struct Part<'a> {
    target: &'a Path,
    part: PathBuf,
}

impl<'a> Part<'a> {
    fn new(target: &'a Path) -> io::Result<Self> {
        let mut part = target.as_os_str().to_owned();
        part.push(".part");
        let part = PathBuf::from(part);
        match fs::remove_dir_all(&part) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        fs::create_dir_all(&part)?;
        Ok(Self { target, part })
    }

    /// Names of packages are DNS labels: a catalog with others has problems.
    fn write(&self, package: &str, documents: &[Document]) -> io::Result<()> {
        let folder = self.part.join(package);
        fs::create_dir(&folder)?;
        let mut file = BufWriter::new(File::create(folder.join("catalog.json"))?);
        for document in documents {
            writeln!(file, "{}", document.json)?;
        }
        file.into_inner()?.sync_all()
    }

    fn finish(self) -> io::Result<()> {
        fs::rename(&self.part, self.target)
    }
}

/// Nothing is left behind of what was not finished.
impl Drop for Part<'_> {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.part).ok();
    }
}
