//! The data of the upgrade graph, and the image that gives it to an update service in a cluster.
//!
//! Source: the peer; the layout of the image is that of the service's operator.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use bytes::Bytes;
use flate2::read::GzDecoder;
use model::Error;
use model::image_set;
use net::web::shown;
use oci::{Reference, Repository, Tag};
use oci_client::signature::Signatures;
use serde_json::{Map, Value, json};

use super::settings::ReleaseSources;
use crate::build_image::{
    BaseImage, BuiltImage, BuiltLayer, Tar, add_file, add_folder, build_image, run_config,
};

/// Path of the data in an archive.
pub(crate) const ARCHIVED: &str = "cincinnati/cincinnati-graph-data.tar.gz";
/// Base image of the data's image, in an archive of ours.
pub(crate) const ARCHIVED_BASE: &str = "cincinnati/base-image";
/// Repository of its image in the target.
const REPOSITORY: &str = "openshift/graph-image";
const TAG: &str = "latest";
/// Folder of the data in the image, and mount point of the operator's volume.
const FOLDER: &str = "var/lib/cincinnati-graph-data";
const VOLUME: &str = "/var/lib/cincinnati/graph-data";
/// Limits of the fetched data, and of its unpacked files. Units: bytes. The public data takes a hundredth.
const FETCH_LIMIT_BYTES: u64 = 256 << 20;
const FILES_LIMIT_BYTES: u64 = 1 << 30;

/// The data, fetched.
#[derive(Debug, Clone)]
pub struct GraphData {
    /// A compressed archive of files.
    pub(crate) file: PathBuf,
    /// The image that it is put into.
    pub(crate) base: Reference,
}

impl GraphData {
    /// Fetches the data.
    ///
    /// Errors: Invalid – it is no archive; TooLarge; those of the web server.
    pub(super) async fn fetch(sources: &ReleaseSources, scratch: &Path) -> Result<Self, Error> {
        let file = scratch.join("graph-data.tar.gz");
        let web = &sources.web;
        web.download(&sources.graph_data, &file, FETCH_LIMIT_BYTES)
            .await?;
        let named = shown(&sources.graph_data);
        let checked = file.clone();
        let check = move || {
            let checked = each(&checked, |_, _, _| Ok(()));
            checked.map_err(|e| Error::invalid("upgrade graph", format!("{named}: {e}")))
        };
        let checked = tokio::task::spawn_blocking(check).await;
        checked.map_err(|e| Error::internal("reading the upgrade graph", e))??;
        let base = sources.graph_base.clone();
        Ok(Self { file, base })
    }

    /// The base image as an additional image.
    pub(crate) fn base_image(&self) -> image_set::ImageSelection {
        image_set::ImageSelection {
            name: self.base.to_string(),
            ..image_set::ImageSelection::default()
        }
    }

    /// The image with the data and the signatures of releases, out of its base. Its layer is written below `scratch`.
    ///
    /// Errors: Invalid – the data is no archive, or the base no image; Internal – the layer cannot be written.
    pub(crate) async fn image(
        &self,
        base: BaseImage<'_>,
        signatures: &[(String, Bytes)],
        scratch: &Path,
    ) -> Result<BuiltImage, Error> {
        let signatures = signatures.iter();
        let read = signatures.filter_map(|(_, config_map)| Signatures::parse(config_map));
        let signatures: Vec<Signatures> = read.collect();
        let data = self.file.clone();
        let path = scratch.join("graph-data-layer.tar.gz");
        let layer = BuiltLayer::write(path, move |tar| fill(tar, &data, &signatures)).await?;
        build_image(base, "the data of the upgrade graph", async |image| {
            copy_when_run(image)
                .ok_or_else(|| Error::invalid("upgrade graph", "its base has no configuration"))?;
            Ok(vec![layer.clone()])
        })
        .await
    }
}

/// Name of the image below the target's namespace.
pub(crate) fn image_name() -> Result<(Repository, Tag), Error> {
    Ok((REPOSITORY.parse()?, TAG.parse()?))
}

/// The operator runs the image to have the data copied to its volume.
fn copy_when_run(image: &mut Map<String, Value>) -> Option<()> {
    let config = run_config(image)?;
    let copy = format!("exec cp -rp /{FOLDER}/* {VOLUME}");
    config.insert("Cmd".into(), json!(["/bin/bash", "-c", copy]));
    Some(())
}

fn fill(tar: &mut Tar, data: &Path, signatures: &[Signatures]) -> Result<(), Error> {
    let failed = |e| Error::internal("writing a layer", e);
    add_folder(tar, FOLDER).map_err(failed)?;
    let filled = each(data, |path, size, content| match size {
        None => add_folder(tar, &format!("{FOLDER}/{path}")),
        Some(size) => add_file(tar, &format!("{FOLDER}/{path}"), size, content),
    });
    filled.map_err(|e| Error::invalid("upgrade graph", e.to_string()))?;
    let mut files = BTreeMap::new();
    for it in signatures {
        for (signature, number) in it.signatures.iter().zip(1..) {
            let (algorithm, hex) = (it.digest.algorithm().as_str(), it.digest.hex());
            let path = format!("{FOLDER}/signatures/{algorithm}/{hex}/signature-{number}");
            files.insert(path, signature);
        }
    }
    for (path, signature) in files {
        add_file(tar, &path, signature.len() as u64, &signature[..]).map_err(failed)?;
    }
    Ok(())
}

/// Does `work` with each file of the data: its path, its size, which folders do not have, and its content.
fn each(
    data: &Path,
    mut work: impl FnMut(&str, Option<u64>, &mut dyn Read) -> io::Result<()>,
) -> io::Result<()> {
    let unpacked = GzDecoder::new(File::open(data)?).take(FILES_LIMIT_BYTES);
    let mut archive = tar::Archive::new(unpacked);
    let mut count = 0;
    for entry in archive.entries()? {
        let mut entry = entry?;
        let path = plain(&entry.path()?)?;
        let kind = entry.header().entry_type();
        if path.is_empty() {
            continue;
        }
        if kind.is_dir() {
            work(&path, None, &mut entry)?;
        } else if kind.is_file() {
            let size = entry.size();
            work(&path, Some(size), &mut entry)?;
            count += 1;
        }
    }
    if count == 0 {
        return Err(io::Error::other("the archive has no files"));
    }
    Ok(())
}

/// A path that leads nowhere else.
fn plain(path: &Path) -> io::Result<String> {
    let mut parts = Vec::new();
    for part in path.components() {
        match part {
            Component::Normal(part) => parts.push(part.to_str().ok_or(io::ErrorKind::InvalidData)?),
            Component::CurDir => {}
            _ => {
                let reason = format!("{} leads out of the folder", path.display());
                return Err(io::Error::other(reason));
            }
        }
    }
    Ok(parts.join("/"))
}
