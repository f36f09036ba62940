//! From registries into archives.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use model::Error;
use model::image_set;
use model::mirror_metadata::CatalogStart;
use oci::Digest;
use uuid::Uuid;

use super::prepare::{Prepared, PreparedCatalog};
use super::{Setup, blocking};
use crate::archive::{Contents, Extra, Kind, Plan, Signer, Writer, size_limit};
use crate::content::Blob;
use crate::fetch::fetch;
use crate::history::{Former, Next, Run, Store};
use crate::operators::{folder_of, index_path};
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
    let failed = prepared.failed.iter().map(|(wanted, _)| wanted.clone());
    let next = former.next(Run {
        uid: Uuid::new_v4(),
        is_single_use: setup.set.storage.is_none(),
        timestamp: setup.now,
        mirror: prepared.mirror.clone(),
        operators: starts(&prepared.catalogs)?,
        platforms: prepared.channels.clone(),
        content: &prepared.content,
        known: &prepared.known,
        failed: &failed.collect::<Vec<_>>(),
        target: None,
    })?;
    if former.metadata().is_some()
        && let Some(reason) = next.reason_to_stop(&prepared.content)
    {
        return Ok(Planned::Nothing(reason));
    }
    let Next { metadata, carried } = next;
    let stored: Bytes = serde_json::to_vec(&metadata)
        .map_err(|e| Error::internal("writing metadata", e))?
        .into();
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
        for (digest, blob) in original.remote() {
            blobs.entry(digest).or_insert(blob);
        }
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

/// Writes archives into the folder `dest`, and remembers it in `store`.
///
/// Errors: Conflict – somebody else writes there, or there is not enough room; those of the registries and the store.
pub async fn pack(
    setup: Setup<'_>,
    archives: Archives,
    store: Option<&Store>,
    dest: &Path,
) -> Result<Vec<PathBuf>, Error> {
    let Archives {
        plan,
        stored,
        blobs,
    } = archives;
    let dest = dest.to_owned();
    let writer = blocking(move || Writer::open(&dest, plan)).await?;
    let paths = fetch(setup.client, &blobs, writer, setup.limits, setup.progress).await?;
    if let Some(store) = store {
        store.write(stored).await?;
    }
    Ok(paths)
}

/// What is remembered of the catalogs: from which versions later runs go on.
fn starts(catalogs: &[PreparedCatalog]) -> Result<Vec<CatalogStart>, Error> {
    let start = |it: &PreparedCatalog| {
        let catalog = &it.catalog;
        let reference = match &catalog.opened.place {
            oci::image::Place::Registry { reference, .. } if reference.digest.is_none() => {
                reference
                    .with_digest(catalog.opened.digest.clone())
                    .to_string()
            }
            _ => String::new(),
        };
        Ok(CatalogStart {
            catalog: catalog.name.clone(),
            image_pin: reference,
            packages: if catalog.operator.full {
                Vec::new()
            } else {
                packages(catalog)?
            },
        })
    };
    catalogs.iter().map(start).collect()
}

fn packages(catalog: &crate::gather::Catalog) -> Result<Vec<image_set::Package>, Error> {
    let mut packages = Vec::new();
    for (name, part) in &catalog.choice {
        let lowest = catalog.opened.cache.with_package(name, |package, _| {
            let channels = part.channels.iter().filter_map(|(channel, bundles)| {
                let bundles = bundles.iter().filter_map(|bundle| package.bundle(bundle));
                let lowest = bundles.min_by_key(|bundle| bundle.version.clone())?;
                Some(image_set::Channel {
                    name: channel.clone(),
                    versions: image_set::Versions {
                        min_version: lowest.version_text.to_string(),
                        ..image_set::Versions::default()
                    },
                })
            });
            channels.collect::<Vec<_>>()
        });
        let lowest =
            lowest.map_err(|e| Error::internal(format!("reading the package {name}"), e))?;
        packages.push(image_set::Package {
            name: name.clone(),
            channels: lowest.unwrap_or_default(),
            ..image_set::Package::default()
        });
    }
    Ok(packages)
}
