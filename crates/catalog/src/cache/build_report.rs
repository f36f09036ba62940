//! Lenient builds: catalogs of others, validated package by package.

use std::collections::BTreeMap;

use crate::CatalogProblems;

/// Strictness of a build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Strictness {
    /// Any broken rule fails the build, as in `opm validate`.
    Strict,
    /// Invalid packages are omitted; rules that older versions of opm lack are warnings.
    Lenient,
}

/// Report of a lenient build.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BuildReport {
    /// Packages omitted from the cache, with their validation errors.
    pub refused: BTreeMap<String, CatalogProblems>,
    /// Packages in the cache that break rules which older versions of opm lack.
    pub warned: BTreeMap<String, CatalogProblems>,
    /// Unreadable documents, whose package is unknown.
    pub unread: CatalogProblems,
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::num::NonZeroUsize;

    use tempfile::TempDir;

    use crate::content::PackageModel;
    use crate::{CatalogProblems, Rule};

    const TWO: NonZeroUsize = NonZeroUsize::new(2).unwrap();

    /// Three packages: one valid, one that only older versions of opm serve, one invalid.
    fn mixed_catalog() -> String {
        let entries = |name: &str, entries: serde_json::Value| {
            let mut documents = vec![
                serde_json::json!({"schema": "olm.package", "name": name, "defaultChannel": "c"}),
                serde_json::json!({"schema": "olm.channel", "package": name, "name": "c", "entries": entries}),
            ];
            for entry in entries.as_array().unwrap() {
                let bundle = entry["name"].as_str().unwrap();
                let version = format!("{}.0.0", bundle.rsplit('v').next().unwrap());
                documents.push(serde_json::json!({
                    "schema": "olm.bundle", "package": name, "name": bundle, "image": "r.io/a/b:c",
                    "properties": [{"type": "olm.package", "value": {"packageName": name, "version": version}}],
                }));
            }
            let lines: Vec<_> = documents.iter().map(ToString::to_string).collect();
            lines.join("\n") + "\n"
        };
        [
            entries("sound", serde_json::json!([{"name": "sound.v1"}])),
            entries(
                "older",
                serde_json::json!([
                    {"name": "older.v1"},
                    {"name": "older.v2", "replaces": "older.v1"},
                    {"name": "older.v3", "replaces": "older.v2", "skips": ["older.v2"]},
                ]),
            ),
            entries(
                "broken",
                serde_json::json!([{"name": "broken.v1"}, {"name": "broken.v2"}]),
            ),
        ]
        .concat()
    }

    #[test]
    fn lenient_builds_validate_each_package_by_itself() {
        let folder = TempDir::new().unwrap();
        let configs = folder.path().join("configs");
        fs::create_dir(&configs).unwrap();
        fs::write(configs.join("catalog.json"), mixed_catalog()).unwrap();
        let strict =
            crate::cache::prepare(&configs, &folder.path().join("strict"), TWO, 0).unwrap_err();
        let strict = strict.to_string();
        assert!(
            strict.contains("[stranded]") && strict.contains("[channel-head]"),
            "{strict}"
        );
        let path = folder.path().join("lenient");
        let (cache, report) = crate::cache::build_leniently(&configs, &path, TWO).unwrap();
        let refused: Vec<_> = report.refused.iter().collect();
        let [(name, problems)] = &refused[..] else {
            panic!("{refused:?}");
        };
        assert_eq!(*name, "broken");
        assert_eq!(problems.0[0].rule, Rule::ChannelHead);
        let warned: Vec<_> = report.warned.iter().collect();
        let [(name, problems)] = &warned[..] else {
            panic!("{warned:?}");
        };
        assert_eq!(
            (name.as_str(), problems.0[0].rule),
            ("older", Rule::Stranded)
        );
        assert!(problems.0[0].text.contains("older.v1"), "{problems}");
        let entries = |name: &str| {
            let count = |package: &PackageModel<'_>| package.channels[0].entries.len();
            cache
                .with_package(name, |package, _| count(package))
                .unwrap()
        };
        assert_eq!(entries("sound"), Some(1));
        assert_eq!(entries("older"), Some(3));
        assert_eq!(entries("broken"), None);
        assert_eq!(report.unread, CatalogProblems::default());
    }

    #[test]
    fn packages_beside_unreadable_files_are_refused() {
        let folder = TempDir::new().unwrap();
        let configs = folder.path().join("configs");
        fs::create_dir(&configs).unwrap();
        fs::write(configs.join("catalog.json"), mixed_catalog()).unwrap();
        let other = configs.join("other");
        fs::create_dir(&other).unwrap();
        fs::write(other.join("a.json"), "{\"schema\": ").unwrap();
        fs::write(
            other.join("b.json"),
            "{\"schema\": \"olm.package\", \"name\": \"beside\"}",
        )
        .unwrap();
        let path = folder.path().join("lenient");
        let (_, report) = crate::cache::build_leniently(&configs, &path, TWO).unwrap();
        let refused: Vec<_> = report.refused.keys().map(String::as_str).collect();
        assert_eq!(refused, ["beside", "broken"]);
        assert_eq!(report.unread.0.len(), 1);
        assert_eq!(report.refused["beside"], report.unread);
    }
}
