//! Repositories of charts, by their index.

use std::collections::BTreeMap;
use std::path::Path;

use catalog::yaml_to_json;
use model::Error;
use model::image_set::{Chart, ChartRepository};
use net::web::{Web, shown};
use oci::Digest;
use semver::{Version, VersionReq};
use serde::Deserialize;
use url::Url;

use crate::archive::Extra;

/// The largest public index has a third of it. Units: bytes.
const INDEX_LIMIT: u64 = 64 << 20;
/// Type of charts that only other charts include.
const LIBRARY: &str = "library";

/// A repository.
#[derive(Debug)]
pub(super) struct Repository {
    /// With a trailing slash.
    base: Url,
    index: ChartIndex,
}

/// `index.yaml`. Source: helm.
#[derive(Debug, Deserialize)]
struct ChartIndex {
    #[serde(default)]
    entries: BTreeMap<String, Vec<ChartEntry>>,
}

/// A version of a chart.
#[derive(Debug, Deserialize)]
pub(super) struct ChartEntry {
    pub(super) version: String,
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    urls: Vec<String>,
    /// SHA-256 of its file, in hexadecimal.
    #[serde(default)]
    digest: String,
}

impl Repository {
    /// Fetches the index.
    ///
    /// Errors: those of the web server; Invalid – it is no index.
    pub(super) async fn open(web: &Web, repository: &ChartRepository) -> Result<Self, Error> {
        let wrong = |reason: String| {
            let field = format!("chart repository {}", repository.name);
            Error::invalid(field, reason)
        };
        let url = repository.url.trim_end_matches('/');
        let url = url.strip_suffix("/index.yaml").unwrap_or(url);
        let base: Url = format!("{url}/")
            .parse()
            .map_err(|e| wrong(format!("{e}")))?;
        let place = base.join("index.yaml").map_err(|e| wrong(e.to_string()))?;
        let bytes = web.get(&place, "*/*", INDEX_LIMIT).await?;
        let place = shown(&place);
        let text = std::str::from_utf8(&bytes).map_err(|e| wrong(e.to_string()))?;
        let json = yaml_to_json(text).map_err(|e| wrong(format!("{place} is no YAML: {e}")))?;
        let index = serde_json::from_str(&json);
        let index = index.map_err(|e| wrong(format!("{place} is no index of charts: {e}")))?;
        Ok(Self { base, index })
    }

    /// Its address, for messages.
    pub(super) fn shown(&self) -> String {
        shown(&self.base)
    }

    /// The charts that are named, each with its version; all versions of all charts where none is.
    ///
    /// Errors: NotFound – no such chart or version.
    pub(super) fn wanted(&self, named: &[Chart]) -> Result<Vec<Chart>, Error> {
        let resolved = |chart: &Chart| {
            let entry = self.entry(&chart.name, &chart.version)?;
            Ok(Chart {
                version: entry.version.clone(),
                ..chart.clone()
            })
        };
        if !named.is_empty() {
            return named.iter().map(resolved).collect();
        }
        let entries = self.index.entries.iter();
        let all = entries.flat_map(|(name, entries)| {
            let entries = entries.iter().filter(|entry| entry.kind != LIBRARY);
            entries.map(|entry| Chart {
                name: name.clone(),
                version: entry.version.clone(),
                ..Chart::default()
            })
        });
        Ok(all.collect())
    }

    /// The exact version of a chart, or else the newest that matches.
    ///
    /// Errors: NotFound – there is none, with the nearest names.
    pub(super) fn entry(&self, name: &str, version: &str) -> Result<&ChartEntry, Error> {
        let entries = self.index.entries.get(name).ok_or_else(|| {
            let known = self.index.entries.keys().map(String::as_str);
            let meant = model::nearest(name, known, (name.len() / 3).max(1));
            let meant = meant.map_or_else(String::new, |it| format!("; {it} may be meant"));
            Error::not_found("chart", format!("{name} in {}{meant}", self.shown()))
        })?;
        if let Some(entry) = entries.iter().find(|entry| entry.version == version) {
            return Ok(entry);
        }
        let constraint = Constraint::parse(version);
        let fitting = entries.iter().filter_map(|entry| {
            let version = version_of(&entry.version)?;
            constraint
                .as_ref()?
                .fits(&version)
                .then_some((version, entry))
        });
        let newest = fitting.max_by(|(a, _), (b, _)| a.cmp(b));
        newest.map(|(_, entry)| entry).ok_or_else(|| {
            let known: Vec<_> = entries.iter().map(|entry| entry.version.as_str()).collect();
            let known = known.join(", ");
            let what = format!(
                "{version:?} of {name} in {}, which has {known}",
                self.shown()
            );
            Error::not_found("version", what)
        })
    }

    /// Address of the chart's file.
    ///
    /// Errors: Invalid – the index lacks it.
    pub(super) fn url(&self, entry: &ChartEntry) -> Result<Url, Error> {
        let wrong = |reason: String| {
            let field = format!("version {} of a chart in {}", entry.version, self.shown());
            Error::invalid(field, reason)
        };
        let first = entry.urls.first();
        let first = first.ok_or_else(|| wrong("it has no address in the index".into()))?;
        self.base
            .join(first)
            .map_err(|e| wrong(format!("its address in the index: {e}")))
    }
}

impl ChartEntry {
    /// Compares a file with the digest of the index, if it has one.
    ///
    /// Errors: Invalid – it is another one; Internal – it cannot be read.
    pub(super) async fn compare(&self, path: &Path) -> Result<(), Error> {
        let hex = self.digest.trim_start_matches("sha256:");
        if hex.is_empty() {
            return Ok(());
        }
        let expected: Digest = format!("sha256:{hex}").parse()?;
        let owned = path.to_owned();
        let hashed = tokio::task::spawn_blocking(move || Extra::local("", owned)).await;
        let hashed = hashed.map_err(|e| Error::internal("hashing a chart", e))??;
        let Some(found) = hashed.digest().filter(|found| **found != expected) else {
            return Ok(());
        };
        let reason = format!("it has {found}, and the index says {expected}");
        Err(Error::invalid(format!("file {}", path.display()), reason))
    }
}

/// Alternatives of which one has to hold. Source: helm's version constraints.
struct Constraint(Vec<VersionReq>);

impl Constraint {
    /// None where it is malformed.
    fn parse(text: &str) -> Option<Self> {
        let text = if text.is_empty() { "*" } else { text };
        let alternatives = text.split("||").map(|alternative| {
            let conditions = alternative.replace(',', " ");
            // A blank between an operator and its version means nothing.
            let mut whole: Vec<String> = Vec::new();
            for word in conditions.split_whitespace() {
                let is_bare = word.starts_with(|c: char| c.is_ascii_digit() || c == 'v');
                let plain = word.replacen('v', "", usize::from(!word.starts_with('*')));
                match whole.last_mut() {
                    Some(last) if last.ends_with(['<', '>', '=', '~', '^']) => {
                        last.push_str(&plain);
                    }
                    _ if is_bare && !plain.contains(['x', 'X', '*']) => {
                        whole.push(format!("={plain}"));
                    }
                    _ => whole.push(plain),
                }
            }
            VersionReq::parse(&whole.join(", ")).ok()
        });
        alternatives.collect::<Option<_>>().map(Self)
    }

    fn fits(&self, version: &Version) -> bool {
        self.0.iter().any(|it| it.matches(version))
    }
}

/// Parses a version with or without a leading `v`.
fn version_of(text: &str) -> Option<Version> {
    Version::parse(text.strip_prefix('v').unwrap_or(text)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repository() -> Repository {
        let index = "entries:\n  web:\n  - {version: 1.2.0, urls: [web-1.2.0.tgz]}\n  - {version: 1.10.1, urls: ['https://elsewhere.example/web-1.10.1.tgz']}\n  \
            - {version: 2.0.0-rc.1, urls: [web-2.0.0-rc.1.tgz]}\n  - {version: nonsense}\n  base:\n  - {version: 1.0.0, type: library}\n";
        let json = yaml_to_json(index).unwrap();
        Repository {
            base: "http://charts.example/stable/".parse().unwrap(),
            index: serde_json::from_str(&json).unwrap(),
        }
    }

    #[test]
    fn versions_are_chosen_as_helm_does() {
        let repository = repository();
        for (asked, expected) in [
            ("", "1.10.1"),
            ("*", "1.10.1"),
            ("1.2.0", "1.2.0"),
            ("v1.2.0", "1.2.0"),
            ("1.2", "1.2.0"),
            ("~1.2", "1.2.0"),
            ("1.x", "1.10.1"),
            ("^1.2.0", "1.10.1"),
            (">= 1.0 <1.5", "1.2.0"),
            (">=1.0, <1.5", "1.2.0"),
            ("0.9 || 1.2.0", "1.2.0"),
            ("2.0.0-rc.1", "2.0.0-rc.1"),
            ("nonsense", "nonsense"),
        ] {
            let found = repository.entry("web", asked);
            assert_eq!(
                found.map(|it| it.version.as_str()).ok(),
                Some(expected),
                "{asked:?}"
            );
        }
        for asked in ["3.0.0", "^2", "other"] {
            let error = repository.entry("web", asked).unwrap_err().to_string();
            assert!(error.contains("which has 1.2.0, 1.10.1"), "{error}");
        }
        let error = repository.entry("wep", "").unwrap_err().to_string();
        assert!(error.contains("web may be meant"), "{error}");
    }

    #[test]
    fn all_is_all_but_libraries() {
        let repository = repository();
        let all = repository.wanted(&[]).unwrap();
        let all: Vec<_> = all.iter().map(|it| it.version.as_str()).collect();
        assert_eq!(all, ["1.2.0", "1.10.1", "2.0.0-rc.1", "nonsense"]);
    }

    #[test]
    fn addresses_are_relative_to_the_repository() {
        let repository = repository();
        let url = |version: &str| {
            let entry = repository.entry("web", version).unwrap();
            repository.url(entry).map(|url| url.to_string()).ok()
        };
        let expected = "http://charts.example/stable/web-1.2.0.tgz";
        assert_eq!(url("1.2.0").as_deref(), Some(expected));
        let expected = "https://elsewhere.example/web-1.10.1.tgz";
        assert_eq!(url("1.10.1").as_deref(), Some(expected));
        assert_eq!(url("nonsense"), None);
    }
}
