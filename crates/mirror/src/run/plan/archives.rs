//! The plan of an archive set.

use std::collections::BTreeMap;

use bytes::Bytes;
use model::Error;
use oci::Digest;

use super::prepared::{PreparedCatalog, PreparedRun};
use crate::archive::{Contents, Extra, MemberKind, SIGNATURES, SetPlan, Signer, size_limit};
use crate::content::SourceBlob;
use crate::helm;
use crate::history::{NextMetadata, PreviousRuns, stored};
use crate::names::Naming;
use crate::operators::{archived_name, folder_of, index_path, template};
use crate::platform::{BOOT_IMAGE_OFFERS, GRAPH_BASE, GRAPH_DATA};
use crate::progress::Amount;
use crate::run::record::next;
use crate::run::setup::Setup;

/// Whether a run to archives has something to write.
#[derive(Debug)]
pub enum PlannedArchives {
    Archives(Box<ArchivesPlan>),
    /// Previous runs mirrored all of it; the message for the user.
    Nothing(&'static str),
}

/// An archive set, planned to the byte.
#[derive(Debug)]
pub struct ArchivesPlan {
    pub plan: SetPlan,
    /// Metadata that is recorded after the archives are complete.
    pub(in crate::run) metadata: Bytes,
    /// Blobs to fetch, with their sources.
    pub(in crate::run) blobs: BTreeMap<Digest, SourceBlob>,
}

/// Plans an archive set with the content that previous runs did not mirror.
///
/// Errors: Invalid – a member fits into no file; Internal – a file of a catalog cannot be read.
pub fn archives(
    setup: Setup<'_>,
    prepared: &PreparedRun,
    previous: &PreviousRuns,
    signer: Option<&Signer>,
) -> Result<PlannedArchives, Error> {
    let next = next(setup, prepared, previous, None)?;
    if let Some(reason) = next.reason_to_stop() {
        return Ok(PlannedArchives::Nothing(reason));
    }
    let NextMetadata {
        metadata, carried, ..
    } = next;
    let metadata = stored(&metadata)?;
    let mut blobs = prepared.content.blobs.clone();
    for PreparedCatalog { original, .. } in &prepared.catalogs {
        for (digest, blob) in original.remote() {
            blobs.entry(digest).or_insert(blob);
        }
    }
    let contents = Contents {
        metadata: metadata.clone(),
        extras: extras(prepared, setup.naming)?,
        content: &prepared.content,
        carried: &carried,
    };
    let plan = SetPlan::new(contents, size_limit(setup.set.archive_size), signer)?;
    Ok(PlannedArchives::Archives(Box::new(ArchivesPlan {
        plan,
        metadata,
        blobs,
    })))
}

/// Members besides images and metadata: catalogs, upgrade graph, boot-image offers, release signatures, charts.
fn extras(prepared: &PreparedRun, naming: Naming) -> Result<Vec<Extra>, Error> {
    let mut extras = Vec::new();
    for PreparedCatalog {
        catalog,
        original,
        index,
    } in &prepared.catalogs
    {
        let folder = folder_of(&catalog.name);
        extras.extend(original.extras(&folder)?);
        extras.push(Extra::local(index_path(&folder), index.clone())?);
        let template = catalog.template.as_ref();
        extras.extend(template.map(|it| template::extra(&folder, it)));
        if naming != Naming::default() {
            let (repository, tag) = (&catalog.repository, &catalog.tag);
            extras.push(archived_name::extra(&folder, repository, tag));
        }
    }
    if let Some(graph) = &prepared.releases.graph {
        extras.push(Extra::local(GRAPH_DATA, graph.file.clone())?);
        let base = graph.base.to_string();
        extras.push(Extra::inline(GRAPH_BASE, base));
    }
    let offers = prepared.releases.boot_images.offers();
    if !offers.is_empty() {
        let json = serde_json::to_vec(&offers);
        let json = json.map_err(|e| Error::internal("writing the offers of boot images", e))?;
        extras.push(Extra::inline(BOOT_IMAGE_OFFERS, json));
    }
    for signatures in &prepared.releases.signatures {
        let path = format!("{SIGNATURES}{}", signatures.file_name());
        extras.push(Extra::inline(path, signatures.config_map()));
    }
    for chart in &prepared.charts {
        let path = format!("{}{}", helm::FOLDER, chart.name);
        extras.push(Extra::local(path, chart.path.clone())?);
    }
    Ok(extras)
}

impl ArchivesPlan {
    /// Blobs to fetch, and their bytes.
    pub fn fetched(&self) -> Amount {
        let members = self.plan.files.iter().flat_map(|file| &file.members);
        let blobs = members.filter_map(|member| match &member.kind {
            MemberKind::Blob(digest) => Some((digest, member.size)),
            _ => None,
        });
        let blobs: BTreeMap<_, _> = blobs.collect();
        Amount {
            items: blobs.len() as u64,
            bytes: blobs.values().sum(),
        }
    }
}
