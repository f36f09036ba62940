//! Operator catalogs of the site, which its new clusters get.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError, RwLock};

use model::catalog_source;
use rules::manifests::replaced_sources;
use rules::{ClusterCatalog, InstallationPolicy};

/// A catalog in the registry of the site.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SiteCatalog {
    /// Minor version of its clusters: `x.y`.
    pub version: String,
    /// Repository without the registry.
    pub repository: String,
    /// Tag in that repository.
    pub tag: String,
    /// `HOST/REPOSITORY:TAG`.
    pub image: String,
    /// Mirrors of the repositories that its operators name, for images by digest.
    pub mirrors: BTreeMap<String, BTreeSet<String>>,
    /// Those for images by tag.
    pub tag_mirrors: BTreeMap<String, BTreeSet<String>>,
}

/// The catalogs now. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct SiteCatalogs(Arc<RwLock<Vec<SiteCatalog>>>);

impl SiteCatalogs {
    /// Replaces them.
    pub fn set(&self, catalogs: Vec<SiteCatalog>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = catalogs;
    }

    /// Those for a cluster of `version`, `x.y` or longer.
    pub(crate) fn of(&self, version: &str) -> Vec<SiteCatalog> {
        let catalogs = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let fits = |catalog: &&SiteCatalog| {
            let rest = version.strip_prefix(catalog.version.as_str());
            rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()))
        };
        catalogs.iter().filter(fits).cloned().collect()
    }
}

/// The policy for a cluster with these catalogs: operators come from them, unless the settings name catalog sources.
pub(crate) fn with_catalogs(
    policy: &InstallationPolicy,
    catalogs: &[SiteCatalog],
) -> InstallationPolicy {
    let mut policy = policy.clone();
    if policy.catalog_sources.is_empty() {
        let last = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
        let catalogs = catalogs.iter().map(|catalog| ClusterCatalog {
            name: catalog_source::name("cs", &catalog.repository, &catalog.tag),
            image: catalog.image.clone(),
            repository: last(&catalog.repository),
            tag_mirrors: catalog.tag_mirrors.clone(),
        });
        policy.catalogs = catalogs.collect();
        // The first of one name: an object of a cluster is there once.
        let mut names = BTreeSet::new();
        policy.catalogs.retain(|it| names.insert(it.name.clone()));
        policy.catalog_sources = replaced_sources(&policy.catalogs);
    }
    policy
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_gets_the_catalogs_of_its_minor_version() {
        let catalog = |repository: &str, version: &str| SiteCatalog {
            version: version.to_owned(),
            repository: repository.to_owned(),
            tag: format!("v{version}"),
            image: format!("r:5000/{repository}:v{version}"),
            mirrors: BTreeMap::new(),
            tag_mirrors: BTreeMap::new(),
        };
        let catalogs = SiteCatalogs::default();
        catalogs.set(vec![
            catalog("ocp/redhat/redhat-operator-index", "4.1"),
            catalog("ocp/redhat/redhat-operator-index", "4.18"),
            catalog("other/redhat-operator-index", "4.18"),
            catalog("acme/tools", "4.18"),
        ]);
        let of = |version: &str| {
            let policy = with_catalogs(&InstallationPolicy::default(), &catalogs.of(version));
            let images = policy.catalogs.into_iter().map(|it| (it.name, it.image));
            (images.collect::<Vec<_>>(), policy.catalog_sources)
        };
        let (images, sources) = of("4.18.7-multi");
        let index = "cs-redhat-operator-index-v4-18";
        let expected = [
            (index, "r:5000/ocp/redhat/redhat-operator-index:v4.18"),
            ("cs-tools-v4-18", "r:5000/acme/tools:v4.18"),
        ];
        assert_eq!(
            images,
            expected.map(|(name, image)| (name.to_owned(), image.to_owned()))
        );
        assert_eq!(sources["redhat-operators"], index);
        assert_eq!(of("4.19.0").0, []);

        // Settings win.
        let mut own = InstallationPolicy::default();
        own.catalog_sources
            .insert("redhat-operators".to_owned(), "mine".to_owned());
        let policy = with_catalogs(&own, &catalogs.of("4.18"));
        assert_eq!(
            (policy.catalogs, policy.catalog_sources),
            (vec![], own.catalog_sources)
        );
    }
}
