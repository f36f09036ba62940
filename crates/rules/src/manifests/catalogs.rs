//! Sources of operators in a new cluster: the catalogs of the registry of its site, in place of the vendor's.

use std::collections::BTreeMap;

use model::Error;
use serde_json::json;

use super::machine_config::{SystemManifest, yaml};
use crate::ClusterCatalog;

/// Where a cluster looks for catalog sources.
const NAMESPACE: &str = "openshift-marketplace";
/// Names of the platform's own catalog sources, by the repository of each catalog.
/// Source: openshift/operator-marketplace, `defaults`.
const PLATFORM_SOURCES: [(&str, &str); 4] = [
    ("redhat-operator-index", "redhat-operators"),
    ("certified-operator-index", "certified-operators"),
    ("community-operator-index", "community-operators"),
    ("redhat-marketplace-index", "redhat-marketplace"),
];

/// The catalog sources that replace the platform's, by its names.
pub fn replaced_sources(catalogs: &[ClusterCatalog]) -> BTreeMap<String, String> {
    let replaced = |catalog: &ClusterCatalog| {
        let mut known = PLATFORM_SOURCES.iter();
        let (_, name) = known.find(|(repository, _)| *repository == catalog.repository)?;
        Some(((*name).to_owned(), catalog.name.clone()))
    };
    catalogs.iter().filter_map(replaced).collect()
}

/// The catalog sources; those of the platform, which are out of reach, are disabled.
pub(super) fn manifests(catalogs: &[ClusterCatalog]) -> Result<Vec<SystemManifest>, Error> {
    if catalogs.is_empty() {
        return Ok(Vec::new());
    }
    let hub = json!({
        "apiVersion": "config.openshift.io/v1",
        "kind": "OperatorHub",
        "metadata": { "name": "cluster" },
        "spec": { "disableAllDefaultSources": true },
    });
    let mut manifests = vec![yaml("50_operatorhub.yaml".to_owned(), &hub)?];
    for ClusterCatalog { name, image, .. } in catalogs {
        // By tag, so that clusters follow the catalogs of later mirroring runs.
        let source = json!({
            "apiVersion": "operators.coreos.com/v1alpha1",
            "kind": "CatalogSource",
            "metadata": { "name": name, "namespace": NAMESPACE },
            "spec": {
                "sourceType": "grpc",
                "image": image,
                "displayName": name,
                "updateStrategy": { "registryPoll": { "interval": "30m" } },
            },
        });
        manifests.push(yaml(format!("50_catalogsource_{name}.yaml"), &source)?);
    }
    Ok(manifests)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn catalogs_replace_those_of_the_platform() {
        let catalog = |name: &str, repository: &str| ClusterCatalog {
            name: name.to_owned(),
            image: format!("r:5000/{repository}:v4.18"),
            repository: repository.to_owned(),
        };
        let catalogs = [
            catalog("cs-a", "certified-operator-index"),
            catalog("cs-b", "tools"),
        ];
        let written = manifests(&catalogs).unwrap();
        let names: Vec<_> = written.iter().map(|it| it.file_name.as_str()).collect();
        let expected = [
            "50_operatorhub.yaml",
            "50_catalogsource_cs-a.yaml",
            "50_catalogsource_cs-b.yaml",
        ];
        assert_eq!(names, expected);
        assert!(written[2].content.contains("image: r:5000/tools:v4.18\n"));
        let replaced = [("certified-operators".to_owned(), "cs-a".to_owned())];
        assert_eq!(replaced_sources(&catalogs), replaced.into());
        assert_eq!(manifests(&[]).unwrap(), []);
    }
}
