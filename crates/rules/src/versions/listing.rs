//! The versions listing of the API.

use std::collections::BTreeMap;

use model::versions::{
    CpuArchitecture, OfferedOsStream, OpenshiftVersion, OsImage, ReleaseImage, ReleaseSupportLevel,
};

use super::find::{architecture, find_streams, listed_version};
use super::number::Number;

/// Filters of the listing.
#[derive(Debug, Clone, Default)]
pub struct Query {
    /// Substring of the version.
    pub version: Option<String>,
    /// Only the newest of each minor release.
    pub only_latest: bool,
}

/// The versions that can be installed: those with an OS image for at least one of their architectures.
/// Source: assisted-service, internal/versions/api.go, V2ListSupportedOpenshiftVersions.
pub fn listing(
    releases: &[ReleaseImage],
    os_images: &[OsImage],
    query: &Query,
) -> BTreeMap<String, OpenshiftVersion> {
    let mut entries = BTreeMap::new();
    for image in releases {
        let Ok(number) = image.version.parse::<Number>() else {
            continue;
        };
        let architectures = bootable(image, os_images);
        let wanted = query
            .version
            .as_ref()
            .is_none_or(|part| image.version.contains(part.as_str()));
        if architectures.is_empty() || !wanted {
            continue;
        }
        let name = listed_version(image, &number);
        let entry = entries
            .entry(name.clone())
            .or_insert_with(|| OpenshiftVersion {
                display_name: name,
                support_level: support_level(image, &number),
                default: false,
                cpu_architectures: Vec::new(),
                os_streams: os_streams(os_images, &image.version, &architectures),
            });
        entry.default |= image.default;
        for architecture in architectures {
            if !entry.cpu_architectures.contains(&architecture) {
                entry.cpu_architectures.push(architecture);
            }
        }
    }
    if query.only_latest {
        keep_latest(&mut entries);
    }
    entries
}

fn bootable(image: &ReleaseImage, os_images: &[OsImage]) -> Vec<String> {
    image
        .cpu_architectures
        .iter()
        .filter_map(|name| name.parse::<CpuArchitecture>().ok().map(architecture))
        .filter(|wanted| find_streams(os_images, Some(&image.version), *wanted).is_ok())
        .map(|wanted| wanted.to_string())
        .collect()
}

/// The streams of a version for any of these architectures, the default one first; none, if there is only one.
pub fn os_streams(
    os_images: &[OsImage],
    version: &str,
    architectures: &[String],
) -> Vec<OfferedOsStream> {
    let parsed = architectures.iter().filter_map(|name| name.parse().ok());
    let found = parsed.filter_map(|wanted| find_streams(os_images, Some(version), wanted).ok());
    let mut streams: Vec<OfferedOsStream> = Vec::new();
    for image in found.flatten() {
        if streams.iter().all(|known| known.name != image.os_stream) {
            streams.push(OfferedOsStream {
                name: image.os_stream.clone(),
                default: streams.is_empty(),
            });
        }
    }
    if streams.len() < 2 {
        streams.clear();
    }
    streams
}

fn support_level(image: &ReleaseImage, number: &Number) -> ReleaseSupportLevel {
    image.support_level.unwrap_or(if number.is_pre_release() {
        ReleaseSupportLevel::Beta
    } else {
        ReleaseSupportLevel::Production
    })
}

fn keep_latest(entries: &mut BTreeMap<String, OpenshiftVersion>) {
    let mut newest: BTreeMap<(u64, u64, bool), Number> = BTreeMap::new();
    for number in entries.keys().filter_map(|key| key.parse::<Number>().ok()) {
        let slot = newest
            .entry((number.major, number.minor, number.multi))
            .or_insert_with(|| number.clone());
        if slot.precedence(&number).is_lt() {
            *slot = number;
        }
    }
    entries.retain(|key, _| newest.values().any(|number| number.to_string() == *key));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fixtures() -> (Vec<ReleaseImage>, Vec<OsImage>) {
        let release = |version: &str, main: &str, all: &[&str]| ReleaseImage {
            openshift_version: version.to_owned(),
            cpu_architecture: main.parse().unwrap(),
            cpu_architectures: all.iter().map(ToString::to_string).collect(),
            version: version.to_owned(),
            default: version == "4.16.3",
            ..ReleaseImage::default()
        };
        let os = |version: &str, name: &str| OsImage {
            openshift_version: version.to_owned(),
            cpu_architecture: name.parse().unwrap(),
            ..OsImage::default()
        };
        (
            vec![
                release("4.16.3", "x86_64", &["x86_64"]),
                release("4.16.2", "x86_64", &["x86_64"]),
                release("4.16.3", "multi", &["x86_64", "arm64", "s390x"]),
                release("4.17.0-ec.1", "x86_64", &["x86_64"]),
                release("4.15.1", "x86_64", &["x86_64"]),
            ],
            vec![
                os("4.16", "x86_64"),
                os("4.16", "arm64"),
                os("4.17", "x86_64"),
            ],
        )
    }

    #[test]
    fn only_bootable_versions_are_listed() {
        let (releases, os_images) = fixtures();
        insta::assert_json_snapshot!(listing(&releases, &os_images, &Query::default()), @r#"
        {
          "4.16.2": {
            "display_name": "4.16.2",
            "support_level": "production",
            "cpu_architectures": [
              "x86_64"
            ]
          },
          "4.16.3": {
            "display_name": "4.16.3",
            "support_level": "production",
            "default": true,
            "cpu_architectures": [
              "x86_64"
            ]
          },
          "4.16.3-multi": {
            "display_name": "4.16.3-multi",
            "support_level": "production",
            "default": true,
            "cpu_architectures": [
              "x86_64",
              "arm64"
            ]
          },
          "4.17.0-ec.1": {
            "display_name": "4.17.0-ec.1",
            "support_level": "beta",
            "cpu_architectures": [
              "x86_64"
            ]
          }
        }
        "#);
    }

    #[test]
    fn streams_are_listed_if_there_are_several() {
        let (_, os_images) = fixtures();
        let mut nine = os_images[0].clone();
        let architectures = ["arm64", "x86_64"].map(str::to_owned);
        assert!(os_streams(&[nine.clone()], "4.16.3", &architectures).is_empty());
        nine.os_stream = "rhel-9".to_owned();
        let ten = OsImage {
            os_stream: "rhel-10".to_owned(),
            ..nine.clone()
        };
        let streams = os_streams(&[nine, ten], "4.16.3", &architectures);
        let streams = serde_json::to_value(streams).unwrap();
        let expected =
            serde_json::json!([{"name": "rhel-9", "default": true}, {"name": "rhel-10"}]);
        assert_eq!(streams, expected);
    }

    #[test]
    fn the_query_narrows() {
        let (releases, os_images) = fixtures();
        let keys = |query: &Query| -> Vec<String> {
            listing(&releases, &os_images, query).into_keys().collect()
        };
        assert_eq!(
            keys(&Query {
                only_latest: true,
                ..Query::default()
            }),
            ["4.16.3", "4.16.3-multi", "4.17.0-ec.1"]
        );
        assert_eq!(
            keys(&Query {
                version: Some("4.17".to_owned()),
                ..Query::default()
            }),
            ["4.17.0-ec.1"]
        );
    }
}
