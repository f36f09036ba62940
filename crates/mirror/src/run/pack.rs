//! From registries into archives.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use model::Error;
use oci::Digest;

use super::prepare::{Prepared, PreparedCatalog};
use super::remember::next;
use super::{Setup, blocking};
use crate::archive::{Contents, Extra, Kind, Plan, SIGNATURES, Signer, Writer, size_limit};
use crate::content::Blob;
use crate::fetch::fetch;
use crate::helm;
use crate::history::{Former, Next, Store, stored};
use crate::operators::{folder_of, index_path, template};
use crate::platform::{GRAPH_BASE, GRAPH_DATA};
use crate::progress::Amount;

/// What a run to archives will do.
#[derive(Debug)]
pub enum Planned {
    /// Write these.
    Archives(Box<Archives>),
    /// There is nothing that former runs did not carry.
    Nothing(&'static str),
}

/// Archives that are planned to the byte.
#[derive(Debug)]
pub struct Archives {
    pub plan: Plan,
    /// The metadata that is stored once they are written.
    stored: Bytes,
    /// What has to be fetched for them, and from where.
    blobs: BTreeMap<Digest, Blob>,
}

/// Plans archives of what was prepared, and former runs did not carry.
///
/// Errors: Invalid – a member fits into no file; Internal – a file of a catalog cannot be read.
pub fn plan(
    setup: Setup<'_>,
    prepared: &Prepared,
    former: &Former,
    signer: Option<&Signer>,
) -> Result<Planned, Error> {
    let next = next(setup, prepared, former, None)?;
    if let Some(reason) = next.reason_to_stop() {
        return Ok(Planned::Nothing(reason));
    }
    let Next {
        metadata, carried, ..
    } = next;
    let stored = stored(&metadata)?;
    let mut extras = Vec::new();
    let mut blobs = prepared.content.blobs.clone();
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
        for (digest, blob) in original.remote() {
            blobs.entry(digest).or_insert(blob);
        }
    }
    if let Some(graph) = &prepared.releases.graph {
        extras.push(Extra::local(GRAPH_DATA, graph.file.clone())?);
        let base = graph.base.to_string();
        extras.push(Extra::inline(GRAPH_BASE, base));
    }
    for signatures in &prepared.releases.signatures {
        let path = format!("{SIGNATURES}{}", signatures.file_name());
        extras.push(Extra::inline(path, signatures.config_map()));
    }
    for chart in &prepared.charts {
        let path = format!("{}{}", helm::FOLDER, chart.name);
        extras.push(Extra::local(path, chart.path.clone())?);
    }
    let contents = Contents {
        metadata: stored.clone(),
        extras,
        content: &prepared.content,
        carried: &carried,
    };
    let plan = Plan::new(contents, size_limit(setup.set.archive_size), signer)?;
    Ok(Planned::Archives(Box::new(Archives {
        plan,
        stored,
        blobs,
    })))
}

impl Archives {
    /// What is fetched for them: blobs, and their bytes.
    pub fn fetched(&self) -> Amount {
        let members = self.plan.files.iter().flat_map(|file| &file.members);
        let blobs = members.filter_map(|member| match &member.kind {
            Kind::Blob(digest) => Some((digest, member.size)),
            _ => None,
        });
        let blobs: BTreeMap<_, _> = blobs.collect();
        Amount {
            items: blobs.len() as u64,
            bytes: blobs.values().sum(),
        }
    }
}

/// What became of archives.
enum Packed {
    Files(Vec<PathBuf>),
    /// They are not whole: these blobs could not be had.
    Without(Vec<(Digest, Error)>),
}

/// Writes archives into the folder `dest`, and remembers it in `store`. Where that fails, the same run finds its archives whole.
///
/// Errors: Conflict – somebody else writes there, or there is not enough room; those of the registries and the store.
pub async fn pack(
    setup: Setup<'_>,
    archives: Archives,
    store: Option<&Store>,
    dest: &Path,
) -> Result<Vec<PathBuf>, Error> {
    match try_pack(setup, archives, store, dest).await? {
        Packed::Files(paths) => Ok(paths),
        Packed::Without(failed) => {
            let failed = failed.into_iter().map(|(_, error)| error);
            failed.reduce(|first, _| first).map_or(Ok(Vec::new()), Err)
        }
    }
}

/// Plans archives of what was prepared, and writes them as [`pack`] does. Where the run goes on after failures, images of which
/// something cannot be had are left out, and archives are planned without them: what was fetched already is taken over. No
/// files, where nothing is left.
///
/// Errors: as [`plan`] and [`pack`].
pub async fn pack_what_is_there(
    setup: Setup<'_>,
    prepared: &mut Prepared,
    former: &Former,
    signer: Option<&Signer>,
    store: Option<&Store>,
    dest: &Path,
) -> Result<Vec<PathBuf>, Error> {
    while let Planned::Archives(archives) = plan(setup, prepared, former, signer)? {
        match try_pack(setup, *archives, store, dest).await? {
            Packed::Files(paths) => return Ok(paths),
            Packed::Without(failed) => prepared.leave_out(failed)?,
        }
    }
    Ok(Vec::new())
}

async fn try_pack(
    setup: Setup<'_>,
    archives: Archives,
    store: Option<&Store>,
    dest: &Path,
) -> Result<Packed, Error> {
    let Archives {
        plan,
        stored,
        blobs,
    } = archives;
    let dest = dest.to_owned();
    let writer = blocking(move || Writer::open(&dest, plan)).await?;
    let failed = fetch(setup.client, &blobs, &writer, setup.limits, setup.progress).await?;
    if !failed.is_empty() {
        return Ok(Packed::Without(failed));
    }
    let named = writer.clone();
    let paths = blocking(move || named.name()).await?;
    if let Some(store) = store {
        store.write(stored).await?;
    }
    blocking(move || writer.forget()).await?;
    Ok(Packed::Files(paths))
}
