//! Mirrored releases, found by the tags that the mirroring tool gives them.

use std::collections::{BTreeMap, BTreeSet};

use model::Error;
use model::versions::{CpuArchitecture, OpenshiftVersion, ReleaseImage, ReleaseSupportLevel};
use oci::{Kind, Reference};
use oci_client::Client;
use semver::Version;

/// Repository of releases below a target's namespace.
const RELEASES: &str = "openshift/release-images";

/// A mirrored release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MirroredRelease {
    version: Version,
    /// Whether it is a multi-architecture release.
    is_multi: bool,
    architectures: BTreeSet<String>,
    image: String,
}

/// Releases mirrored to `place`, a host with an optional namespace, in ascending order.
///
/// Errors: Invalid – malformed place; NotFound – no releases; those of the registry.
pub async fn releases(client: &Client, place: &str) -> Result<Vec<MirroredRelease>, Error> {
    let place = place.strip_prefix("docker://").unwrap_or(place);
    let place = place.trim_end_matches('/');
    let repository: Reference = format!("{place}/{RELEASES}").parse()?;
    let tags = client.tags(&repository);
    let mut found = Vec::new();
    for tag in tags.await? {
        let Some((version, architecture)) = parts(tag.as_str()) else {
            continue;
        };
        let image = Reference {
            tag: Some(tag),
            ..repository.clone()
        };
        let is_multi = architecture == CpuArchitecture::Multi;
        let architectures = if is_multi {
            of_index(client, &image).await?
        } else {
            BTreeSet::from([architecture.to_string()])
        };
        found.push(MirroredRelease {
            version,
            is_multi,
            architectures,
            image: image.to_string(),
        });
    }
    found.sort_by(|a, b| (&a.version, &a.image).cmp(&(&b.version, &b.image)));
    Ok(found)
}

/// Value of `RELEASE_IMAGES` for the releases mirrored to `place`.
///
/// Errors: as [`releases`].
pub async fn offered(client: &Client, place: &str) -> Result<Vec<ReleaseImage>, Error> {
    Ok(release_images(&releases(client, place).await?))
}

/// Value of `PLATFORM_VERSIONS`; the newest final release is the default.
pub fn versions(releases: &[MirroredRelease]) -> BTreeMap<String, OpenshiftVersion> {
    let finals = releases.iter().filter(|it| it.version.pre.is_empty());
    let newest = finals
        .max_by_key(|it| &it.version)
        .map(MirroredRelease::name);
    let mut versions: BTreeMap<String, OpenshiftVersion> = BTreeMap::new();
    for release in releases {
        let name = release.name();
        let entry = versions.entry(name.clone()).or_default();
        entry.default = newest.as_ref() == Some(&name);
        entry.support_level = release.support_level();
        entry.display_name = name;
        let known: BTreeSet<String> = std::mem::take(&mut entry.cpu_architectures)
            .into_iter()
            .chain(release.architectures.clone())
            .collect();
        entry.cpu_architectures = known.into_iter().collect();
    }
    versions
}

/// Value of `RELEASE_IMAGES`.
pub fn release_images(releases: &[MirroredRelease]) -> Vec<ReleaseImage> {
    let finals = releases.iter().filter(|it| it.version.pre.is_empty());
    let newest = finals.max_by_key(|it| &it.version).map(|it| &it.image);
    let image = |it: &MirroredRelease| {
        let architectures: Vec<String> = it.architectures.iter().cloned().collect();
        let only = architectures.first().and_then(|it| it.parse().ok());
        ReleaseImage {
            openshift_version: format!("{}.{}", it.version.major, it.version.minor),
            cpu_architecture: match only {
                Some(only) if !it.is_multi => only,
                _ => CpuArchitecture::Multi,
            },
            cpu_architectures: architectures,
            url: it.image.clone(),
            version: it.name(),
            default: newest == Some(&it.image),
            support_level: Some(it.support_level()),
        }
    };
    releases.iter().map(image).collect()
}

impl MirroredRelease {
    fn name(&self) -> String {
        let multi = if self.is_multi { "-multi" } else { "" };
        format!("{}{multi}", self.version)
    }

    fn support_level(&self) -> ReleaseSupportLevel {
        if self.version.pre.is_empty() {
            ReleaseSupportLevel::Production
        } else {
            ReleaseSupportLevel::Beta
        }
    }
}

/// Version and architecture of a tag such as `4.14.5-x86_64`. Other tags are attached artifacts.
fn parts(tag: &str) -> Option<(Version, CpuArchitecture)> {
    let (version, architecture) = tag.rsplit_once('-')?;
    let architecture = match architecture.parse().ok()? {
        CpuArchitecture::Aarch64 => CpuArchitecture::Arm64,
        other => other,
    };
    Some((version.parse().ok()?, architecture))
}

/// Architectures of an index.
async fn of_index(client: &Client, image: &Reference) -> Result<BTreeSet<String>, Error> {
    let Kind::Index { manifests } = client.pull_manifest(image).await?.kind else {
        let reason =
            format!("{image} has the tag of a multi-architecture release, but is no index");
        return Err(Error::invalid("release", reason));
    };
    let platforms = manifests.iter().filter_map(|it| it.platform.as_ref());
    let known = platforms.filter_map(|it| match it.architecture.as_str() {
        "amd64" => Some(CpuArchitecture::X86_64),
        other => other.parse().ok(),
    });
    Ok(known.map(|it| it.to_string()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn release(tag: &str, architectures: &[&str]) -> MirroredRelease {
        let (version, architecture) = parts(tag).unwrap();
        MirroredRelease {
            version,
            is_multi: architecture == CpuArchitecture::Multi,
            architectures: architectures.iter().map(|it| (*it).to_owned()).collect(),
            image: format!("r.example:5000/ns/{RELEASES}:{tag}"),
        }
    }

    fn sample() -> Vec<MirroredRelease> {
        vec![
            release("4.14.5-aarch64", &["arm64"]),
            release("4.14.5-x86_64", &["x86_64"]),
            release("4.15.0-multi", &["arm64", "x86_64"]),
            release("4.16.0-rc.1-x86_64", &["x86_64"]),
        ]
    }

    #[test]
    fn the_api_server_loads_the_versions() {
        let versions = versions(&sample());
        let text = serde_json::to_string(&versions).unwrap();
        let read = rules::versions::load_platform_versions(&text).unwrap();
        let found: Vec<_> = read
            .iter()
            .map(|(key, it)| (key.as_str(), it.default, it.cpu_architectures.len()))
            .collect();
        let expected = [
            ("4.14.5", false, 2),
            ("4.15.0-multi", true, 2),
            ("4.16.0-rc.1", false, 1),
        ];
        assert_eq!(found, expected);
        assert_eq!(read["4.16.0-rc.1"].support_level, ReleaseSupportLevel::Beta);
    }

    #[test]
    fn the_api_server_loads_the_images() {
        let text = serde_json::to_string(&release_images(&sample())).unwrap();
        let read = rules::versions::load_release_images(&text).unwrap();
        let found: Vec<_> = read
            .iter()
            .map(|it| (it.version.as_str(), it.default))
            .collect();
        let expected = [
            ("4.14.5", false),
            ("4.14.5", false),
            ("4.15.0-multi", true),
            ("4.16.0-rc.1", false),
        ];
        assert_eq!(found, expected);
        assert_eq!(read[2].cpu_architecture, CpuArchitecture::Multi);
        assert_eq!(
            read[1].url,
            "r.example:5000/ns/openshift/release-images:4.14.5-x86_64"
        );
    }

    #[test]
    fn other_tags_are_ignored() {
        for tag in [
            "latest",
            "4.14-x86_64",
            "4.14.5",
            "sha256-abc.sig",
            "4.14.5-sparc",
        ] {
            assert_eq!(parts(tag), None, "{tag}");
        }
    }
}
