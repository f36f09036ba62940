//! Results where the peer's v2 has them: the objects that clusters get are in one folder, all other files beside it.
//!
//! Source: oc-mirror v2, `internal/pkg/clusterresources`.

use model::Error;
use model::api_group_map::ApiGroupMap;
use serde_json::{Map, Value};

use super::file::{self, ResultFile};
use super::outcome::MirrorResults;
use super::{catalogs, policy, tools, yaml};

/// Folder of the objects.
pub const FOLDER: &str = "cluster-resources";

/// Name of the ConfigMap with signatures.
const CONFIG_MAP: &str = "mirrored-release-signatures";

/// The files of the results, with paths in the working folder.
///
/// Errors: Invalid – the template of a catalog is malformed.
pub fn v2_files(outcome: &MirrorResults, groups: &ApiGroupMap) -> Result<Vec<ResultFile>, Error> {
    let mut files = vec![ResultFile::new("mapping.txt", tools::mapping(outcome))];
    if outcome.is_folder {
        return Ok(files);
    }
    files.extend(tools::os_images(outcome)?);
    files.extend(policy::install_config(outcome)?);
    files.push(ResultFile::new(
        "registries.conf",
        tools::registries_conf(outcome),
    ));
    let mut objects = policy::mirror_sets(outcome)?;
    objects.extend(catalogs::v2_sources(outcome)?);
    objects.extend(catalogs::cluster_catalogs(outcome)?);
    objects.extend(policy::update_service(outcome)?);
    objects.extend(signatures(outcome)?);
    files.extend(objects.into_iter().map(|file| ResultFile {
        path: format!("{FOLDER}/{}", file.path),
        ..file
    }));
    Ok(file::in_groups(files, groups))
}

/// One ConfigMap with the signatures of all releases, in both formats.
fn signatures(outcome: &MirrorResults) -> Result<Vec<ResultFile>, Error> {
    let mut all: Option<Value> = None;
    let mut signatures = Map::new();
    for (_, content) in &outcome.signatures {
        let config_map: Value = serde_json::from_slice(content)
            .map_err(|e| Error::invalid("signatures of a release", e.to_string()))?;
        signatures.extend(
            config_map["binaryData"]
                .as_object()
                .cloned()
                .unwrap_or_default(),
        );
        all.get_or_insert(config_map);
    }
    let Some(mut config_map) = all else {
        return Ok(Vec::new());
    };
    config_map["metadata"]["name"] = CONFIG_MAP.into();
    config_map["binaryData"] = signatures.into();
    Ok(vec![
        ResultFile::new("signature-configmap.json", config_map.to_string()),
        ResultFile::new("signature-configmap.yaml", yaml::document(&config_map)?),
    ])
}
