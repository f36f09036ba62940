//! `atoll catalog diff`: differences between two catalogs.

use std::collections::BTreeSet;

use ::catalog::diff::diff;
use clap::Args;
use service::{Error, ResultExt as _};

use super::format::CatalogFormatArgs;
use super::source::RegistryAccessArgs;
use crate::output_format::OutputFormat;
use crate::terminal;

/// Arguments of `atoll catalog diff`.
#[derive(Debug, Clone, Args)]
pub(crate) struct DiffArgs {
    /// Older catalog: a folder, an image or an index.db
    from: String,
    /// Newer catalog
    to: String,
    #[command(flatten)]
    output: CatalogFormatArgs<OutputFormat>,
    #[command(flatten)]
    access: RegistryAccessArgs,
}

/// Compares package by package and prints the differences.
///
/// Errors: a catalog that cannot be read.
pub(crate) fn run(arguments: &DiffArgs) -> Result<(), Error> {
    let opener = arguments.access.open()?;
    let (from, to) = (opener.cache(&arguments.from)?, opener.cache(&arguments.to)?);
    let (mut old, mut new) = (from.groups(), to.groups());
    let names: BTreeSet<&str> = old.keys().chain(new.keys()).copied().collect();
    let refused = [from.report().not_served(), to.report().not_served()];
    let is_valid = |name: &&str| refused.iter().all(|it| !it.contains_key(*name));
    for name in names.into_iter().filter(is_valid) {
        let failed = |e| Error::new(format!("reading the package {name}"), e);
        let [old, new] = [(&from, &mut old), (&to, &mut new)]
            .map(|(cache, groups)| cache.read(groups.remove(name).unwrap_or_default()));
        let (old, new) = (old.map_err(failed)?, new.map_err(failed)?);
        let changes = diff(&old, &new).doing(|| format!("comparing the package {name}"))?;
        for change in changes {
            terminal::print(&match arguments.output.format {
                OutputFormat::Text => change.to_string(),
                OutputFormat::Json => serde_json::to_string(&change).doing("printing")?,
            });
        }
    }
    Ok(())
}
