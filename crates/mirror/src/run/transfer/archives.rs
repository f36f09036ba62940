//! From registries into an archive set.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use model::Error;
use oci::Digest;

use crate::archive::ArchiveWriter;
use crate::blobs::Registries;
use crate::fetch::fetch;
use crate::history::BlobList;
use crate::run::plan::ArchivesPlan;
use crate::run::setup::{RunContext, Sources, blocking};

/// The record of this stage.
pub(in crate::run) enum Transferred {
    Complete(CompleteArchives),
    /// These blobs could not be fetched; what was fetched stays for the next attempt.
    Incomplete(Vec<(Digest, Error)>),
}

/// Archives under their final names, which are not recorded yet.
pub(in crate::run) struct CompleteArchives {
    pub(in crate::run) paths: Vec<PathBuf>,
    pub(in crate::run) metadata: Bytes,
    pub(in crate::run) history: Option<BlobList>,
    pub(in crate::run) writer: ArchiveWriter,
}

/// Writes the archive set into the folder `dest`. A run that failed is resumed.
///
/// Errors: Conflict – another run writes there, or the medium is full; those of the registries.
pub(in crate::run) async fn archives(
    sources: Sources<'_>,
    context: RunContext<'_>,
    plan: ArchivesPlan,
    dest: &Path,
) -> Result<Transferred, Error> {
    let ArchivesPlan {
        plan,
        metadata,
        blobs,
        history,
    } = plan;
    let dest = dest.to_owned();
    let writer = blocking(move || ArchiveWriter::open(&dest, plan)).await?;
    let sources = Registries {
        client: sources.client,
        web: &sources.platform.web,
        blobs: &blobs,
    };
    let failed = fetch(&sources, &writer, context.limits, context.progress).await?;
    if !failed.is_empty() {
        return Ok(Transferred::Incomplete(failed));
    }
    let named = writer.clone();
    let paths = blocking(move || named.name()).await?;
    Ok(Transferred::Complete(CompleteArchives {
        paths,
        metadata,
        history,
        writer,
    }))
}
