//! Sources of operators in a new cluster: the catalogs of the registry of its site, in place of the vendor's.

use std::collections::{BTreeMap, BTreeSet};

use model::Error;
use model::cluster::Cluster;
use serde_json::{Value, json};

use super::machine_config::{SystemManifest, yaml};
use crate::ClusterCatalog;
use crate::operators::support::MinorVersion;

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

const MARKETPLACE: &str = "marketplace";
/// The capabilities of the cluster's version.
const ALL_CAPABILITIES: &str = "vCurrent";
const MARKETPLACE_SINCE: MinorVersion = MinorVersion::four(11);
const LIFECYCLE_MANAGER_SINCE: MinorVersion = MinorVersion::four(15);
/// First version that has `ImageTagMirrorSet`.
const TAG_MIRRORS_SINCE: MinorVersion = MinorVersion::four(13);

/// The catalog sources that replace the platform's, by its names.
pub fn replaced_sources(catalogs: &[ClusterCatalog]) -> BTreeMap<String, String> {
    let replaced = |catalog: &ClusterCatalog| {
        let mut known = PLATFORM_SOURCES.iter();
        let (_, name) = known.find(|(repository, _)| *repository == catalog.repository)?;
        Some(((*name).to_owned(), catalog.name.clone()))
    };
    catalogs.iter().filter_map(replaced).collect()
}

/// The catalog sources; those of the platform, which are out of reach, are disabled. None for a cluster without the
/// capabilities that know these kinds: it would wait for them.
pub(super) fn manifests(
    cluster: &Cluster,
    catalogs: &[ClusterCatalog],
) -> Result<Vec<SystemManifest>, Error> {
    let Ok(version) = cluster.openshift_version.parse::<MinorVersion>() else {
        return Ok(Vec::new());
    };
    if catalogs.is_empty() || !has_catalogs(&cluster.install_config_overrides, version) {
        return Ok(Vec::new());
    }
    let hub = json!({
        "apiVersion": "config.openshift.io/v1",
        "kind": "OperatorHub",
        "metadata": { "name": "cluster" },
        "spec": { "disableAllDefaultSources": true },
    });
    let mut manifests = vec![yaml("50_operatorhub.yaml".to_owned(), &hub)?];
    if version >= TAG_MIRRORS_SINCE {
        manifests.extend(tag_mirrors(catalogs)?);
    }
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

/// The mirrors of images by tag: install-configs have those of digests alone.
fn tag_mirrors(catalogs: &[ClusterCatalog]) -> Result<Option<SystemManifest>, Error> {
    let mut merged: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (source, mirrors) in catalogs.iter().flat_map(|it| &it.tag_mirrors) {
        let of_source = merged.entry(source).or_default();
        of_source.extend(mirrors.iter().map(String::as_str));
    }
    if merged.is_empty() {
        return Ok(None);
    }
    let mirrors = merged.into_iter();
    let mirrors = mirrors.map(|(source, mirrors)| json!({ "source": source, "mirrors": mirrors }));
    let set = json!({
        "apiVersion": "config.openshift.io/v1",
        "kind": "ImageTagMirrorSet",
        "metadata": { "name": "operator-catalogs" },
        "spec": { "imageTagMirrors": mirrors.collect::<Vec<_>>() },
    });
    yaml(
        "50_imagetagmirrorset_operator-catalogs.yaml".to_owned(),
        &set,
    )
    .map(Some)
}

/// Whether the cluster has the capability of catalogs.
/// Source: openshift/api, config/v1, `ClusterVersionCapabilitySets`: sets from v4.11 on have the marketplace, and those from
/// v4.15 on the operator lifecycle manager, which was no capability before.
fn has_catalogs(overrides: &str, version: MinorVersion) -> bool {
    let overrides: Value = serde_json::from_str(overrides).unwrap_or_default();
    let capabilities = &overrides["capabilities"];
    let list = |member: &str| capabilities[member].as_array().cloned();
    let added = list("additionalEnabledCapabilities").unwrap_or_default();
    if added.iter().any(|name| name == MARKETPLACE) {
        return true;
    }
    let Some(set) = capabilities["baselineCapabilitySet"].as_str() else {
        return true;
    };
    let since = if version < LIFECYCLE_MANAGER_SINCE {
        MARKETPLACE_SINCE
    } else {
        LIFECYCLE_MANAGER_SINCE
    };
    let named = set.strip_prefix('v').map(str::parse::<MinorVersion>);
    match named {
        Some(Ok(named)) => named >= since,
        _ => set == ALL_CAPABILITIES,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    fn catalog(name: &str, repository: &str) -> ClusterCatalog {
        ClusterCatalog {
            name: name.to_owned(),
            image: format!("r:5000/{repository}:v4.18"),
            repository: repository.to_owned(),
            tag_mirrors: BTreeMap::new(),
        }
    }

    fn cluster(version: &str, overrides: &str) -> Cluster {
        let mut cluster = samples::snapshot().cluster;
        version.clone_into(&mut cluster.openshift_version);
        overrides.clone_into(&mut cluster.install_config_overrides);
        cluster
    }

    #[test]
    fn catalogs_replace_those_of_the_platform() {
        let mut catalogs = [
            catalog("cs-a", "certified-operator-index"),
            catalog("cs-b", "tools"),
        ];
        let mirror = BTreeSet::from(["r:5000/acme/tool".to_owned()]);
        let by_tag = &mut catalogs[1].tag_mirrors;
        by_tag.insert("source.example/acme/tool".to_owned(), mirror);
        let written = manifests(&cluster("4.18.7", ""), &catalogs).unwrap();
        let names: Vec<_> = written.iter().map(|it| it.file_name.as_str()).collect();
        let (hub, tags) = (
            "50_operatorhub.yaml",
            "50_imagetagmirrorset_operator-catalogs.yaml",
        );
        let [one, other] = ["50_catalogsource_cs-a.yaml", "50_catalogsource_cs-b.yaml"];
        assert_eq!(names, [hub, tags, one, other]);
        assert!(written[1].content.contains("- r:5000/acme/tool\n"));
        assert!(written[3].content.contains("image: r:5000/tools:v4.18\n"));
        let replaced = [("certified-operators".to_owned(), "cs-a".to_owned())];
        assert_eq!(replaced_sources(&catalogs), replaced.into());
        let of_old = manifests(&cluster("4.12.9", ""), &catalogs).unwrap();
        assert!(of_old.iter().all(|it| it.file_name != tags));
        assert_eq!(manifests(&cluster("4.18.7", ""), &[]).unwrap(), []);
    }

    #[test]
    fn clusters_without_the_capability_get_no_catalogs() {
        for (version, capabilities, expected) in [
            ("4.18.7", json!({}), true),
            ("4.18.7", json!({ "baselineCapabilitySet": "None" }), false),
            (
                "4.18.7",
                json!({ "baselineCapabilitySet": "vCurrent" }),
                true,
            ),
            ("4.18.7", json!({ "baselineCapabilitySet": "v4.14" }), false),
            ("4.18.7", json!({ "baselineCapabilitySet": "v4.15" }), true),
            ("4.14.1", json!({ "baselineCapabilitySet": "v4.11" }), true),
            (
                "4.18.7",
                json!({
                    "baselineCapabilitySet": "None",
                    "additionalEnabledCapabilities": ["OperatorLifecycleManager", "marketplace"],
                }),
                true,
            ),
        ] {
            let overrides = json!({ "capabilities": capabilities }).to_string();
            let cluster = cluster(version, &overrides);
            let written = manifests(&cluster, &[catalog("cs-a", "tools")]).unwrap();
            assert_eq!(!written.is_empty(), expected, "{version} {overrides}");
        }
    }
}
