//! The bill of materials of an image, as CycloneDX: the crates of its programs with the packages of the web UI's pages, or
//! the packages of the distribution.
//!
//! The output is reproducible: the same source gives the same bytes at any time, on any machine.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use super::db;
use super::list::{AGENT, ServiceImage, VERSION};
use crate::cargo::{cargo, root};
use crate::command::output;

/// Suffix of the image's name.
pub(super) const EXTENSION: &str = "cdx.json";
/// The version of the format. Source: CycloneDX 1.6.
const SPECIFICATION: &str = "1.6";
/// Separator of the fields of a line of `cargo tree`.
const SEPARATOR: char = '\t';

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Bom {
    #[serde(rename = "bomFormat")]
    format: &'static str,
    spec_version: &'static str,
    version: u32,
    metadata: BomMetadata,
    components: Vec<Component>,
}

#[derive(Debug, Serialize)]
struct BomMetadata {
    component: Component,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(super) struct Component {
    #[serde(rename = "type")]
    kind: &'static str,
    name: String,
    version: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    licenses: Vec<License>,
    #[serde(skip_serializing_if = "Option::is_none")]
    purl: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    hashes: Vec<Hash>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
struct License {
    expression: String,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
struct Hash {
    alg: &'static str,
    content: String,
}

/// A package of npm that is part of the pages, as their build lists it.
#[derive(Debug, Deserialize)]
struct PagePackage {
    name: String,
    version: String,
    license: String,
}

/// The bill of materials of an image with this digest, whose program was built for `triple`, and whose pages are in the
/// folder `pages`.
///
/// Errors: cargo's, those of the package database; the list of the pages' packages cannot be read.
pub(super) fn of(
    image: &ServiceImage,
    digest: &str,
    triple: &str,
    pages: Option<&Path>,
) -> Result<Vec<u8>> {
    let mut components = match image.program() {
        Some(own) => {
            let agent = image.has_agent.then_some(&AGENT);
            let packages: Vec<_> = [own]
                .into_iter()
                .chain(agent)
                .map(|it| it.package)
                .collect();
            crates(&packages, triple)?
        }
        None => db::packages()?
            .into_iter()
            .map(|(name, version)| debian(name, version))
            .collect(),
    };
    if let Some(pages) = pages.filter(|_| image.has_pages) {
        components.extend(page_packages(pages)?);
        components.sort();
    }
    let bom = Bom {
        format: "CycloneDX",
        spec_version: SPECIFICATION,
        version: 1,
        metadata: BomMetadata {
            component: Component {
                kind: "container",
                name: format!("atoll/{}", image.name),
                version: VERSION.to_owned(),
                licenses: Vec::new(),
                purl: Some(format!("pkg:oci/{}@{digest}", image.name)),
                hashes: Vec::new(),
            },
        },
        components,
    };
    let mut text = serde_json::to_vec_pretty(&bom)?;
    text.push(b'\n');
    Ok(text)
}

/// The packages that are part of the pages in a folder.
fn page_packages(folder: &Path) -> Result<Vec<Component>> {
    let path = folder.join("packages.json");
    let text = fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
    let packages: Vec<PagePackage> =
        serde_json::from_slice(&text).with_context(|| path.display().to_string())?;
    let components = packages.into_iter().map(|package| Component {
        kind: "library",
        purl: Some(format!(
            "pkg:npm/{}@{}",
            package.name.replace('@', "%40"),
            package.version
        )),
        licenses: expression(&package.license),
        hashes: Vec::new(),
        name: package.name,
        version: package.version,
    });
    Ok(components.collect())
}

/// The crates that are linked into the programs of `packages`, without build and dev dependencies and those of other
/// systems.
fn crates(packages: &[&str], triple: &str) -> Result<Vec<Component>> {
    let format = format!("{{p}}{SEPARATOR}{{l}}");
    let mut command = cargo(&["tree", "--locked", "--edges", "normal", "--prefix", "none"]);
    command.args(["--target", triple, "--format", &format]);
    for package in packages {
        command.args(["--package", package]);
    }
    let answer = output(&mut command)?;
    let lock = fs::read_to_string(root().join("Cargo.lock")).context("reading Cargo.lock")?;
    let tree = String::from_utf8(answer).context("cargo's output is not UTF-8")?;
    parse(&tree, &checksums(&lock)?)
}

fn parse(tree: &str, checksums: &BTreeMap<(String, String), String>) -> Result<Vec<Component>> {
    let mut components = Vec::new();
    for line in tree.lines().filter(|line| !line.is_empty()) {
        // A repeated crate ends in `(*)`.
        let line = line.trim_end_matches(" (*)");
        let (package, license) = line.split_once(SEPARATOR).unwrap_or((line, ""));
        let mut words = package.split_whitespace();
        let (name, version) = words
            .next()
            .zip(words.next().and_then(|word| word.strip_prefix('v')))
            .with_context(|| format!("malformed line of cargo tree: {line:?}"))?;
        let key = (name.to_owned(), version.to_owned());
        // Members of the workspace have no checksum and are in no registry.
        let checksum = checksums.get(&key);
        components.push(Component {
            kind: "library",
            purl: checksum.map(|_| format!("pkg:cargo/{name}@{version}")),
            licenses: expression(license),
            hashes: checksum
                .map(|content| Hash {
                    alg: "SHA-256",
                    content: content.clone(),
                })
                .into_iter()
                .collect(),
            name: key.0,
            version: key.1,
        });
    }
    components.sort();
    components.dedup();
    Ok(components)
}

/// In SPDX syntax: older crates write a slash between alternatives.
fn expression(license: &str) -> Vec<License> {
    let license = license.trim();
    if license.is_empty() {
        return Vec::new();
    }
    let alternatives: Vec<&str> = license.split('/').map(str::trim).collect();
    vec![License {
        expression: alternatives.join(" OR "),
    }]
}

/// The checksums of Cargo.lock by name and version.
fn checksums(lock: &str) -> Result<BTreeMap<(String, String), String>> {
    let lock: toml::Table = toml::from_str(lock).context("reading Cargo.lock")?;
    let packages = lock.get("package").and_then(toml::Value::as_array);
    let field = |package: &toml::Value, name: &str| Some(package.get(name)?.as_str()?.to_owned());
    let entry = |package| {
        let key = (field(package, "name")?, field(package, "version")?);
        Some((key, field(package, "checksum")?))
    };
    Ok(packages.into_iter().flatten().filter_map(entry).collect())
}

fn debian(name: String, version: String) -> Component {
    Component {
        kind: "library",
        purl: Some(format!("pkg:deb/debian/{name}@{version}")),
        licenses: Vec::new(),
        hashes: Vec::new(),
        name,
        version,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::images::list::IMAGES;

    const LOCK: &str = "[[package]]\nname = \"acme\"\nversion = \"1.2.3\"\nchecksum = \"1f\"\n\
                        [[package]]\nname = \"own\"\nversion = \"0.1.0\"\n";

    #[test]
    fn crates_are_sorted_and_listed_once() {
        let tree = "own v0.1.0 (/somewhere)\tApache-2.0\nacme v1.2.3\tMIT/Apache-2.0\n\nacme v1.2.3\tMIT/Apache-2.0 (*)\n";
        let found = parse(tree, &checksums(LOCK).unwrap()).unwrap();
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].purl.as_deref(), Some("pkg:cargo/acme@1.2.3"));
        assert_eq!(found[0].licenses[0].expression, "MIT OR Apache-2.0");
        assert_eq!(found[0].hashes[0].content, "1f");
        assert_eq!((found[1].name.as_str(), &found[1].purl), ("own", &None));
        assert!(parse("nonsense", &BTreeMap::new()).is_err());
    }

    /// The bill of an image for this machine's own target, whose crates are built here anyway: no download is needed.
    fn bill(name: &str) -> String {
        let image = IMAGES.iter().find(|image| image.name == name).unwrap();
        let triple = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
        String::from_utf8(of(image, "sha256:1f", &triple, None).unwrap()).unwrap()
    }

    #[test]
    fn packages_of_the_pages_are_listed() {
        let folder = tempfile::tempdir().unwrap();
        let list = r#"[{"name":"@scope/a","version":"1.2.3","license":"MIT"}]"#;
        fs::write(folder.path().join("packages.json"), list).unwrap();
        let found = page_packages(folder.path()).unwrap();
        assert_eq!(found[0].purl.as_deref(), Some("pkg:npm/%40scope/a@1.2.3"));
        assert_eq!(found[0].licenses[0].expression, "MIT");
    }

    #[test]
    fn the_bill_of_an_image_is_reproducible() {
        let text = bill("proxy");
        assert_eq!(text, bill("proxy"));
        let bom: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(bom["bomFormat"], "CycloneDX");
        // No path of this machine.
        assert!(!text.contains(root().to_str().unwrap()));
    }

    #[test]
    fn the_bill_has_all_programs_of_the_image() {
        let has = |image: &str, package: &str| {
            let bom: serde_json::Value = serde_json::from_str(&bill(image)).unwrap();
            let components = bom["components"].as_array().unwrap();
            components
                .iter()
                .any(|component| component["name"] == package)
        };
        // The services share a program.
        for package in ["hyper", "service", "sqlx", "redb", "tonic"] {
            assert!(has("proxy", package), "{package}");
        }
        assert!(!has("proxy", "rtnetlink") && has("image-service", "rtnetlink"));
        assert!(has("agent", "rtnetlink") && !has("agent", "sqlx"));
    }
}
