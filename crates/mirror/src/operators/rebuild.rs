//! The image of the pruned catalog: the original's layers, one that hides its catalog, and one with the pruned one. The
//! same catalog always makes the same image.
//!
//! Source: the peer's v1, whose catalog images run in clusters unchanged.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::Path;

use catalog::image::{DEFAULT_FOLDER, FOLDER_LABEL, folder};
use model::Error;
use serde_json::{Map, Value, json};

use crate::build_image::{
    BaseImage, BuiltImage, BuiltLayer, Tar, add_file, add_folder, build_image, run_config,
};

/// Builds the image of the catalog in the file `index` from the original. Layers are written below `scratch`.
///
/// Errors: Invalid – the original is no catalog image; Internal – a layer cannot be written; those of its blobs.
pub async fn rebuild(
    original: BaseImage<'_>,
    index: &Path,
    scratch: &Path,
) -> Result<BuiltImage, Error> {
    let index = index.to_owned();
    let path = scratch.join("configs.tar.gz");
    let catalog = BuiltLayer::write(path, move |tar| written(add_catalog(tar, &index))).await?;
    let mut hidden = Hidden {
        scratch,
        layers: BTreeMap::new(),
    };
    build_image(original, "the catalog's wanted part", async |image| {
        let mut added: Vec<BuiltLayer> = hidden.layer(image).await?.into_iter().collect();
        added.push(catalog.clone());
        serve(image).ok_or_else(|| Error::invalid("catalog", "its image has no configuration"))?;
        Ok(added)
    })
    .await
}

/// Layers that hide a folder, by folder.
struct Hidden<'a> {
    scratch: &'a Path,
    layers: BTreeMap<String, BuiltLayer>,
}

impl Hidden<'_> {
    /// The layer that hides the original's catalog.
    async fn layer(&mut self, image: &Map<String, Value>) -> Result<Option<BuiltLayer>, Error> {
        let labels = image.get("config").and_then(|config| config.get("Labels"));
        let labels: BTreeMap<String, String> = labels
            .and_then(|labels| serde_json::from_value(labels.clone()).ok())
            .unwrap_or_default();
        let Some(folder) = folder(&labels).map(|folder| folder.trim_matches('/').to_owned()) else {
            return Ok(None);
        };
        if folder.is_empty() {
            return Ok(None);
        }
        if !self.layers.contains_key(&folder) {
            let name = format!("hidden-{}.tar.gz", self.layers.len());
            let hidden = folder.clone();
            let layer = BuiltLayer::write(self.scratch.join(name), move |tar| {
                written(add_whiteout(tar, &hidden))
            });
            self.layers.insert(folder.clone(), layer.await?);
        }
        Ok(self.layers.get(&folder).cloned())
    }
}

/// Configures the image to serve the catalog. None where the configuration is malformed.
///
/// The original's command is replaced, with its cache options: that cache is of the whole catalog, and `opm` refuses one of
/// other files. Without a cache it builds one in a temporary folder.
fn serve(image: &mut Map<String, Value>) -> Option<()> {
    let config = run_config(image)?;
    config.insert("Labels".into(), json!({FOLDER_LABEL: DEFAULT_FOLDER}));
    config.insert("Cmd".into(), json!(["serve", DEFAULT_FOLDER]));
    Some(())
}

fn add_catalog(tar: &mut Tar, index: &Path) -> io::Result<()> {
    let folder = DEFAULT_FOLDER.trim_matches('/');
    add_folder(tar, folder)?;
    let file = File::open(index)?;
    let size = file.metadata()?.len();
    add_file(tar, &format!("{folder}/index.json"), size, file)
}

fn add_whiteout(tar: &mut Tar, folder: &str) -> io::Result<()> {
    let path = match folder.rsplit_once('/') {
        Some((parent, name)) => format!("{parent}/.wh.{name}"),
        None => format!(".wh.{folder}"),
    };
    add_file(tar, &path, 0, io::empty())
}

fn written(result: io::Result<()>) -> Result<(), Error> {
    result.map_err(|e| Error::internal("writing a layer", e))
}
