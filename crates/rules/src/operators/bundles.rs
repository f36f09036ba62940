//! Bundles: operators that are chosen together.
//!
//! Source: assisted-service, internal/operators/common/bundles.go, internal/operators/manager.go (ListBundles,
//! GetBundle).

use model::Error;
use model::operators::BundleDescription;
use model::support::FeatureId;

use super::catalogue::operator;
use crate::operators::support::{SupportQuery, feature};

/// Operators by which a bundle is made up.
#[derive(Debug, Clone, Copy)]
pub struct BundleContent {
    /// Operators that it always has, sorted.
    pub operators: &'static [&'static str],
    /// Operators that it has when they are chosen, sorted.
    pub optional_operators: &'static [&'static str],
}

/// A bundle of operators.
#[derive(Debug, Clone, Copy)]
pub struct OperatorBundle {
    /// Id on the wire.
    pub id: &'static str,
    /// Title on pages.
    pub title: &'static str,
    /// Description on pages.
    pub description: &'static str,
    content: BundleContent,
    /// Content on single-node clusters, where it differs.
    single_node: Option<BundleContent>,
}

/// Every bundle.
pub static BUNDLES: &[OperatorBundle] = &[
    OperatorBundle {
        id: "virtualization",
        title: "Virtualization",
        description: "Virtual machines beside containers on one platform.",
        content: BundleContent {
            operators: &[
                "cluster-observability",
                "cnv",
                "fence-agents-remediation",
                "kube-descheduler",
                "loki",
                "metallb",
                "mtv",
                "nmstate",
                "node-healthcheck",
                "node-maintenance",
                "numaresources",
                "oadp",
                "openshift-logging",
            ],
            optional_operators: &[],
        },
        single_node: None,
    },
    OperatorBundle {
        id: "openshift-ai",
        title: "OpenShift AI",
        description: "Training and serving of AI models on GPUs.",
        content: BundleContent {
            operators: &[
                "authorino",
                "odf",
                "openshift-ai",
                "pipelines",
                "serverless",
                "servicemesh",
            ],
            optional_operators: &["amd-gpu", "nvidia-gpu"],
        },
        single_node: Some(BundleContent {
            operators: &["lvm", "openshift-ai"],
            optional_operators: &[],
        }),
    },
];

impl OperatorBundle {
    /// Its operators on a single-node cluster, or on any other.
    pub fn content(&self, single_node: bool) -> BundleContent {
        self.single_node
            .filter(|_| single_node)
            .unwrap_or(self.content)
    }

    fn record(&self, single_node: bool) -> BundleDescription {
        let content = self.content(single_node);
        let texts = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        BundleDescription {
            id: self.id.to_owned(),
            title: self.title.to_owned(),
            description: self.description.to_owned(),
            operators: texts(content.operators),
            optional_operators: texts(content.optional_operators),
        }
    }
}

/// A bundle, with its operators for the given features (`SNO` selects those of single-node clusters).
///
/// Errors: `NotFound`.
pub fn bundle(id: &str, features: &[FeatureId]) -> Result<BundleDescription, Error> {
    let found = BUNDLES.iter().find(|bundle| bundle.id == id);
    found
        .map(|bundle| bundle.record(features.contains(&FeatureId::Sno)))
        .ok_or_else(|| Error::not_found("bundle", id))
}

/// Bundles whose operators are all usable by `query` and beside `features`, without unusable optional operators; all of
/// them without a query.
///
/// Errors: `Invalid` on `cpu_architecture` or `platform_type` – the version does not support it.
pub fn bundles(
    query: Option<&SupportQuery>,
    features: &[FeatureId],
) -> Result<Vec<BundleDescription>, Error> {
    query.map_or(Ok(()), SupportQuery::check)?;
    let is_usable = |name: &String| {
        let row = operator(name).and_then(|operator| feature(operator.feature));
        query.is_none_or(|query| row.is_some_and(|row| query.allows(row, features)))
    };
    let single_node = features.contains(&FeatureId::Sno);
    let all = BUNDLES.iter().map(|bundle| bundle.record(single_node));
    let mut found: Vec<BundleDescription> = all
        .filter(|bundle| bundle.operators.iter().all(is_usable))
        .collect();
    for bundle in &mut found {
        bundle.optional_operators.retain(is_usable);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::cluster::PlatformType;
    use model::versions::CpuArchitecture;

    fn ids(
        version: &str,
        architecture: CpuArchitecture,
        platform: Option<PlatformType>,
        features: &[FeatureId],
    ) -> Vec<String> {
        let query = SupportQuery::new(version, Some(architecture), platform, None).unwrap();
        let found = bundles(Some(&query), features).unwrap();
        found.into_iter().map(|bundle| bundle.id).collect()
    }

    #[test]
    fn bundles_name_known_operators_in_order() {
        for bundle in BUNDLES {
            for single_node in [false, true] {
                let content = bundle.content(single_node);
                for names in [content.operators, content.optional_operators] {
                    assert!(names.is_sorted(), "{}", bundle.id);
                    assert!(
                        names.iter().all(|name| operator(name).is_some()),
                        "{}",
                        bundle.id
                    );
                }
            }
        }
    }

    #[test]
    fn bundles_need_all_their_operators() {
        use CpuArchitecture::{Arm64, X86_64};
        assert_eq!(
            ids("4.18", X86_64, None, &[]),
            ["virtualization", "openshift-ai"]
        );
        // Its logging operators exist from 4.17 on.
        assert_eq!(ids("4.16", X86_64, None, &[]), ["openshift-ai"]);
        assert!(ids("4.18", Arm64, None, &[]).is_empty());
        assert_eq!(
            ids("4.18", X86_64, Some(PlatformType::Vsphere), &[]),
            ["openshift-ai"]
        );
        assert_eq!(
            ids("4.18", X86_64, None, &[FeatureId::Sno]),
            ["openshift-ai"]
        );
    }

    #[test]
    fn single_nodes_have_another_content() {
        let bundle_of = |features: &[FeatureId]| bundle("openshift-ai", features).unwrap();
        assert_eq!(bundle_of(&[]).optional_operators, ["amd-gpu", "nvidia-gpu"]);
        assert_eq!(
            bundle_of(&[FeatureId::Sno]).operators,
            ["lvm", "openshift-ai"]
        );
        assert!(matches!(bundle("x", &[]), Err(Error::NotFound { .. })));
    }

    #[test]
    fn unsupported_architectures_and_platforms_are_refused() {
        let query = SupportQuery::new("4.9", Some(CpuArchitecture::Arm64), None, None).unwrap();
        assert!(matches!(
            bundles(Some(&query), &[]),
            Err(Error::Invalid { .. })
        ));
        let platform = Some(PlatformType::Nutanix);
        let query = SupportQuery::new("4.9", None, platform, None).unwrap();
        assert!(matches!(
            bundles(Some(&query), &[]),
            Err(Error::Invalid { .. })
        ));
    }
}
