//! The plan of an archive set.

use std::collections::BTreeMap;

use bytes::Bytes;
use model::Error;
use oci::Digest;

use super::prepared::{PreparedCatalog, PreparedRun};
use crate::archive::{
    Contents, Extra, MemberKind, SIGNATURES, SetPlan, Signer, size_limit, v2_paths,
};
use crate::content::SourceBlob;
use crate::helm;
use crate::history::{self, BlobList, NextMetadata, PreviousRuns, stored};
use crate::names::Naming;
use crate::operators::{archived_name, folder_of, index_path, template};
use crate::platform::{BOOT_IMAGE_OFFERS, GRAPH_BASE, GRAPH_DATA};
use crate::progress::Amount;
use crate::run::record::next;
use crate::run::setup::{RunContext, V2Archives};

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
    /// List of these and previous archives' blobs, which archives of the peer's v2 have.
    pub(in crate::run) history: Option<BlobList>,
}

/// Plans an archive set with the content that previous runs did not mirror.
///
/// Errors: Invalid – a member fits into no file; Internal – a file of a catalog cannot be read.
pub fn archives(
    context: RunContext<'_>,
    prepared: &PreparedRun,
    previous: &PreviousRuns,
    signer: Option<&Signer>,
) -> Result<PlannedArchives, Error> {
    let next = next(context, prepared, previous, None)?;
    if let Some(reason) = next.reason_to_stop() {
        return Ok(PlannedArchives::Nothing(reason));
    }
    let NextMetadata {
        metadata,
        mut carried,
        ..
    } = next;
    // Readers make the catalogs of an archive anew: their blobs are in each.
    let built = prepared.v2.iter().flat_map(|v2| v2.images.blobs.keys());
    built.for_each(|digest| {
        carried.remove(digest);
    });
    let metadata = stored(&metadata)?;
    let mut blobs = prepared.content.blobs.clone();
    for PreparedCatalog { original, .. } in &prepared.catalogs {
        for (digest, blob) in original.remote() {
            blobs.entry(digest).or_insert(blob);
        }
    }
    let (mut content, mut extras) = (prepared.content.clone(), extras(prepared, context.naming)?);
    let mut local = BTreeMap::new();
    let format = context.v2_archives.map(V2Archives::format);
    if let Some(v2) = &prepared.v2 {
        content.extend(v2.images.clone());
        local.clone_from(&v2.local);
        extras.extend(v2.files.values().cloned());
        let list = |time| history::carried_extra(time, &carried);
        extras.extend(previous.time().and_then(list));
        for (digest, blob) in &v2.images.blobs {
            blobs.entry(digest.clone()).or_insert_with(|| blob.clone());
        }
    }
    let contents = Contents {
        format: format.unwrap_or_default(),
        metadata: metadata.clone(),
        extras,
        content: &content,
        local: &local,
        carried: &carried,
    };
    let plan = SetPlan::new(contents, size_limit(prepared.archive_size), signer)?;
    let history = context.v2_archives.map(|form| {
        let of_images = content.manifests.keys().chain(content.blobs.keys());
        BlobList::new(form.history, context.now, of_images.chain(&carried))
    });
    Ok(PlannedArchives::Archives(Box::new(ArchivesPlan {
        plan,
        metadata,
        blobs,
        history,
    })))
}

/// Members besides images and metadata: catalogs, upgrade graph, boot-image offers, release signatures, charts.
fn extras(prepared: &PreparedRun, naming: Naming) -> Result<Vec<Extra>, Error> {
    let is_v2 = prepared.v2.is_some();
    let mut extras = Vec::new();
    for PreparedCatalog {
        catalog,
        original,
        index,
    } in &prepared.catalogs
    {
        let folder = folder_of(&catalog.name);
        if is_v2 {
            extras.extend(original.manifest_extras(&folder));
        } else {
            extras.extend(original.extras(&folder)?);
        }
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
    // Archives of v2 have the signatures themselves.
    let signatures = prepared.releases.signatures.iter().filter(|_| !is_v2);
    for signatures in signatures {
        let path = format!("{SIGNATURES}{}", signatures.file_name());
        extras.push(Extra::inline(path, signatures.config_map()));
    }
    let charts = if is_v2 {
        v2_paths::CHARTS
    } else {
        helm::FOLDER
    };
    for chart in &prepared.charts {
        let path = format!("{charts}{}", chart.name);
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
