//! The lists that settings would have, from the content of a registry.

use std::collections::{BTreeMap, BTreeSet};

use model::versions::{
    CpuArchitecture, OfferedRelease, OsImage, ReleaseImage, ReleaseSupportLevel,
};
use semver::Version;

use crate::live_images::LiveImages;
use crate::{HeldMirror, HeldRelease, RegistryContent};

impl HeldRelease {
    fn number(&self) -> Option<Version> {
        self.version.parse().ok()
    }

    fn is_complete(&self) -> bool {
        self.missing.is_empty()
    }

    fn release_image(&self, number: &Version, default: bool) -> ReleaseImage {
        let multi = if self.is_multi { "-multi" } else { "" };
        let only = self.architectures.first().and_then(|it| it.parse().ok());
        ReleaseImage {
            openshift_version: minor(number),
            cpu_architecture: match only {
                Some(only) if !self.is_multi => only,
                _ => CpuArchitecture::Multi,
            },
            cpu_architectures: self.architectures.clone(),
            url: self.image.clone(),
            version: format!("{}{multi}", self.version),
            default,
            support_level: Some(if number.pre.is_empty() {
                ReleaseSupportLevel::Production
            } else {
                ReleaseSupportLevel::Beta
            }),
        }
    }
}

/// `x.y` of a version.
fn minor(version: &Version) -> String {
    format!("{}.{}", version.major, version.minor)
}

/// All releases, the complete and the incomplete; the newest complete final one is the default. Of several images of one
/// version and architecture, the first complete one is taken, or the first.
pub fn offered_releases(content: &RegistryContent) -> Vec<OfferedRelease> {
    let mut chosen: BTreeMap<(Version, bool, &[String]), &HeldRelease> = BTreeMap::new();
    for release in &content.releases {
        let Some(number) = release.number() else {
            continue;
        };
        let slot = chosen
            .entry((number, release.is_multi, &release.architectures))
            .or_insert(release);
        if !slot.is_complete() && release.is_complete() {
            *slot = release;
        }
    }
    let mut finals = chosen
        .iter()
        .rev()
        .filter(|((number, ..), release)| number.pre.is_empty() && release.is_complete());
    let newest = finals.next().map(|(_, release)| release.image.clone());
    let offered =
        |((number, ..), release): ((Version, bool, &[String]), &HeldRelease)| OfferedRelease {
            image: release.release_image(&number, newest.as_ref() == Some(&release.image)),
            is_found: true,
            is_signed: release.is_signed,
            missing: release
                .missing
                .iter()
                .map(|it| it.component.clone())
                .collect(),
        };
    chosen.into_iter().map(offered).collect()
}

/// The complete releases, in the form of `RELEASE_IMAGES`.
pub fn release_images(content: &RegistryContent) -> Vec<ReleaseImage> {
    let offered = offered_releases(content).into_iter();
    let complete = offered.filter(|release| release.missing.is_empty());
    complete.map(|release| release.image).collect()
}

/// The live images of the newest complete release of each minor version and architecture, in the form of `OS_IMAGES`: that
/// of its default stream comes first.
pub fn os_images(content: &RegistryContent) -> Vec<OsImage> {
    let live_images = LiveImages::of(content);
    let mut newest: BTreeMap<(String, String), (Version, Vec<OsImage>)> = BTreeMap::new();
    for release in content.releases.iter().filter(|it| it.is_complete()) {
        let Some(number) = release.number() else {
            continue;
        };
        let minor = minor(&number);
        for architecture in &release.architectures {
            let Ok(cpu_architecture) = architecture.parse() else {
                continue;
            };
            let found = live_images.find(release, &minor, architecture).into_iter();
            let images = found.map(|boot| OsImage {
                openshift_version: minor.clone(),
                cpu_architecture,
                url: format!("oci://{}", boot.image),
                version: boot.version,
                os_stream: boot.stream,
            });
            let images: Vec<_> = images.collect();
            let key = (minor.clone(), architecture.clone());
            let is_newer = newest.get(&key).is_none_or(|(known, _)| *known < number);
            if is_newer && !images.is_empty() {
                newest.insert(key, (number.clone(), images));
            }
        }
    }
    newest
        .into_values()
        .flat_map(|(_, images)| images)
        .collect()
}

/// The mirrors of all complete releases, by the repository that they replace.
pub fn mirrors(content: &RegistryContent) -> BTreeMap<String, BTreeSet<String>> {
    let complete = content.releases.iter().filter(|it| it.is_complete());
    by_source(complete.flat_map(|release| &release.mirrors))
}

/// Mirrors by the repository that they replace.
pub fn by_source<'a>(
    all: impl IntoIterator<Item = &'a HeldMirror>,
) -> BTreeMap<String, BTreeSet<String>> {
    let mut mirrors: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for HeldMirror { source, mirror } in all {
        let of_source = mirrors.entry(source.clone()).or_default();
        of_source.insert(mirror.clone());
    }
    mirrors
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{HeldBootImage, HeldLiveImage, MissingImage};

    fn release(version: &str, missing: usize) -> HeldRelease {
        HeldRelease {
            image: format!("r:5000/openshift/release-images:{version}-x86_64"),
            version: version.to_owned(),
            architectures: vec!["x86_64".to_owned()],
            missing: vec![MissingImage::default(); missing],
            boot_images: vec![HeldBootImage {
                architecture: "x86_64".to_owned(),
                version: format!("os-{version}"),
                image: format!("r:5000/openshift/release@{version}"),
                ..HeldBootImage::default()
            }],
            ..HeldRelease::default()
        }
    }

    #[test]
    fn complete_releases_are_offered() {
        let content = RegistryContent {
            releases: vec![
                release("4.18.7", 0),
                release("4.18.30", 0),
                release("4.18.31", 1),
                release("4.19.0-rc.1", 0),
                HeldRelease {
                    image: "r:5000/elsewhere:4.18.7-x86_64".to_owned(),
                    ..release("4.18.7", 0)
                },
            ],
            ..RegistryContent::default()
        };
        let offered = release_images(&content);
        let shown: Vec<_> = offered
            .iter()
            .map(|it| (it.version.as_str(), it.default))
            .collect();
        assert_eq!(
            shown,
            [("4.18.7", false), ("4.18.30", true), ("4.19.0-rc.1", false)]
        );
        assert_eq!(offered[2].support_level, Some(ReleaseSupportLevel::Beta));
        let incomplete = offered_releases(&content);
        let incomplete: Vec<_> = incomplete
            .iter()
            .filter(|it| !it.missing.is_empty())
            .collect();
        assert_eq!(incomplete.len(), 1);
        assert_eq!(incomplete[0].image.version, "4.18.31");
        assert!(!incomplete[0].image.default);
        let images = os_images(&content);
        let shown: Vec<_> = images
            .iter()
            .map(|it| {
                (
                    it.openshift_version.as_str(),
                    it.version.as_str(),
                    it.url.as_str(),
                )
            })
            .collect();
        assert_eq!(
            shown,
            [
                (
                    "4.18",
                    "os-4.18.30",
                    "oci://r:5000/openshift/release@4.18.30"
                ),
                (
                    "4.19",
                    "os-4.19.0-rc.1",
                    "oci://r:5000/openshift/release@4.19.0-rc.1"
                ),
            ]
        );
    }

    #[test]
    fn live_images_of_the_site_come_before_those_of_runs_and_of_payloads() {
        let url = |names: &[&str], release: HeldRelease| {
            let live_images = names.iter().map(|name| {
                let held = HeldLiveImage {
                    digest: "D".to_owned(),
                    version: "1".to_owned(),
                };
                ((*name).to_owned(), held)
            });
            let content = RegistryContent {
                releases: vec![release],
                live_images: live_images.collect(),
                ..RegistryContent::default()
            };
            let found = os_images(&content).into_iter().next();
            found.map(|it| format!("{} {}", it.version, it.url))
        };
        let all = [
            "r:5000/a/openshift/boot-images:4.18-x86_64",
            "r:5000/openshift/boot-images:4.18-x86_64",
            "r:5000/openshift/boot-images:os-4.18.7-x86_64",
            "r:5000/openshift/boot-images:4.19-x86_64",
            "r:5000/openshift/boot-images:4.18-aarch64",
        ];
        for (names, expected) in [
            (&all[..], "1 oci://r:5000/openshift/boot-images@D"),
            (&all[..1], "1 oci://r:5000/a/openshift/boot-images@D"),
            (&all[2..], "os-4.18.7 oci://r:5000/openshift/boot-images@D"),
            (&all[3..], "os-4.18.7 oci://r:5000/openshift/release@4.18.7"),
        ] {
            assert_eq!(url(names, release("4.18.7", 0)).as_deref(), Some(expected));
        }
        let mut bare = release("4.18.7", 0);
        bare.boot_images[0].image.clear();
        assert_eq!(url(&all[3..], bare.clone()), None);
        assert!(url(&all[2..], bare.clone()).is_some());
        bare.boot_images.clear();
        assert_eq!(url(&all[2..], bare.clone()), None);
        assert!(url(&all, bare).is_some());
    }

    #[test]
    fn other_streams_follow_the_default_one() {
        let live_images = |names: &[&str]| {
            let held = HeldLiveImage {
                digest: "D".to_owned(),
                version: String::new(),
            };
            let images = names.iter().map(|name| {
                let name = format!("r:5000/openshift/boot-images:{name}-x86_64");
                (name, held.clone())
            });
            images.collect()
        };
        let boot = |stream: &str, version: &str, image: &str| HeldBootImage {
            architecture: "x86_64".to_owned(),
            stream: stream.to_owned(),
            version: version.to_owned(),
            image: image.to_owned(),
        };
        let shown = |boot_images: &[HeldBootImage], names: &[&str]| {
            let content = RegistryContent {
                releases: vec![HeldRelease {
                    boot_images: boot_images.to_vec(),
                    ..release("4.22.1", 0)
                }],
                live_images: live_images(names),
                ..RegistryContent::default()
            };
            let images = os_images(&content).into_iter();
            let shown = images.map(|it| format!("{}/{}/{}", it.os_stream, it.version, it.url));
            let place = "oci://r:5000/openshift/boot-images@D";
            shown.collect::<Vec<_>>().join(" ").replace(place, "D")
        };
        let both = [boot("rhel-9", "9.6", "P"), boot("rhel-10", "10.0", "P")];
        let bare = both.clone().map(|it| boot(&it.stream, &it.version, ""));
        for (boot_images, names, expected) in [
            (&both, &[][..], "rhel-9/9.6/oci://P rhel-10/10.0/oci://P"),
            (&both, &["10.0"], "rhel-9/9.6/oci://P rhel-10/10.0/D"),
            // That of the site is in place of the default one.
            (&both, &["4.22"], "rhel-9/4.22/D rhel-10/10.0/oci://P"),
            (&bare, &["9.6"], "rhel-9/9.6/D"),
            (&bare, &["9.6", "10.0"], "rhel-9/9.6/D rhel-10/10.0/D"),
            (&bare, &["10.0"], ""),
        ] {
            assert_eq!(shown(boot_images, names), expected, "{names:?}");
        }
        let same = [boot("", "9.6", "P"), boot("rhel-9", "9.6", "P")];
        assert_eq!(shown(&same, &[]), "/9.6/oci://P");
    }
}
