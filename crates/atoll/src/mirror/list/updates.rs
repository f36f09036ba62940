//! Updates that the next run of an image set would mirror. Source of the columns: oc-mirror v1, `list updates`.

use std::path::PathBuf;

use ::mirror::select::SelectOptions;
use ::mirror::updates::{self, CatalogUpdates, ReleaseUpdates};
use clap::Args;
use service::{Error, ResultExt as _};

use crate::catalog::table;
use crate::mirror::registry_args::SourceRegistryArgs;
use crate::mirror::release_args::UpdateArgs;
use crate::mirror::run::configuration;
use crate::terminal;

/// Arguments of `list updates`.
#[derive(Debug, Clone, Args)]
pub(in crate::mirror) struct ListUpdatesArgs {
    /// Image-set configuration with a storageConfig
    #[arg(value_name = "FILE")]
    config: PathBuf,
    #[command(flatten)]
    updates: UpdateArgs,
    #[command(flatten)]
    registries: SourceRegistryArgs,
}

/// Prints the list.
///
/// Errors: an image set without metadata; an update service or catalog that cannot be read.
pub(super) fn run(arguments: &ListUpdatesArgs) -> Result<(), Error> {
    let doing = "listing updates";
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .doing(doing)?;
    let lines = runtime.block_on(arguments.lines());
    let lines = lines.map_err(|e| e.chain()).doing(doing)?;
    terminal::print(&lines.join("\n"));
    Ok(())
}

impl ListUpdatesArgs {
    async fn lines(&self) -> Result<Vec<String>, model::Error> {
        let set = configuration(&self.config)?;
        let wrong = |reason: &str| model::Error::invalid("storageConfig", reason);
        let storage = set.storage.as_ref();
        let storage =
            storage.ok_or_else(|| wrong("required: it stores the metadata of past runs"))?;
        let client = self.registries.source()?;
        let store = self.registries.store(storage)?;
        let metadata = store.read().await?;
        let metadata =
            metadata.ok_or_else(|| wrong("no metadata detected: mirror the image set first"))?;
        let sources = self.updates.sources(self.registries.ca_pem()?.as_deref())?;
        let mut lines = Vec::new();
        for update in updates::releases(&set.mirror, &metadata, &sources).await? {
            lines.push(release_text(&update));
        }
        let scratch = tempfile::tempdir()
            .map_err(|e| model::Error::internal("creating a temporary folder", e))?;
        let options = SelectOptions {
            scratch: scratch.path(),
            platform: &sources,
            skip_missing: true,
            continue_on_error: false,
        };
        for update in updates::operators(&client, &set.mirror, &metadata, options).await? {
            lines.push(catalog_text(&update));
        }
        Ok(lines)
    }
}

fn release_text(update: &ReleaseUpdates) -> String {
    let ReleaseUpdates {
        channel,
        architecture,
        versions,
    } = update;
    if versions.is_empty() {
        return format!("No updates found for release channel {channel}");
    }
    let mut lines = vec![
        format!("Listing update for release channel:  {channel}"),
        format!("Architecture:                        {architecture}"),
    ];
    lines.extend(versions.iter().map(ToString::to_string));
    lines.join("\n")
}

fn catalog_text(update: &CatalogUpdates) -> String {
    let CatalogUpdates { catalog, bundles } = update;
    if bundles.is_empty() {
        return format!("No updates found for catalog {catalog}");
    }
    let rows = bundles.iter().map(|it| {
        let replaces = it.replaces.clone();
        [
            it.package.clone(),
            it.channel.clone(),
            it.bundle.clone(),
            replaces,
        ]
    });
    let rows: Vec<_> = rows.collect();
    let heads = ["Package", "Channel", "Bundle", "Replaces"];
    format!(
        "Listing update for catalog:  {catalog}\n{}",
        table(heads, &rows)
    )
}
