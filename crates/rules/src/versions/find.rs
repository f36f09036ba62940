//! Selection of release and OS images by version.

use model::Error;
use model::versions::{CpuArchitecture, OsImage, ReleaseImage, ReleaseSupportLevel};

use super::number::Number;
use crate::urls::OsImageName;

/// The spelling that records carry: `aarch64` is `arm64`.
pub fn architecture(given: CpuArchitecture) -> CpuArchitecture {
    match given {
        CpuArchitecture::Aarch64 => CpuArchitecture::Arm64,
        other => other,
    }
}

/// A release, in the terms of a cluster's record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedRelease {
    /// Full version, as the listing of versions has it.
    pub version: String,
    /// Architecture of the cluster: `multi` for a release of several.
    pub architecture: CpuArchitecture,
    /// Reference of the release image.
    pub image: String,
}

/// The release that a cluster of that version and architecture installs.
///
/// Errors: `Invalid` on `openshift_version` – not a version, ignored by the operator, or no such release image.
pub fn release(
    images: &[ReleaseImage],
    ignored: &[String],
    version: &str,
    wanted: CpuArchitecture,
) -> Result<ResolvedRelease, Error> {
    let image = find_release(images, version, wanted)?;
    let number: Number = parse("openshift_version", &image.version)?;
    let listed = listed_version(image, &number);
    let own = listed.trim_end_matches("-multi");
    if ignored
        .iter()
        .any(|entry| *entry == listed || entry == own || *entry == number.minor_text())
    {
        return Err(Error::invalid(
            "openshift_version",
            format!(
                "{version:?} resolves to {listed}, which IGNORED_OPENSHIFT_VERSIONS rules out: choose another version"
            ),
        ));
    }
    Ok(ResolvedRelease {
        version: listed,
        architecture: architecture(image.cpu_architecture),
        image: image.url.clone(),
    })
}

/// The release image of a version: `x.y.z` exactly, `x.y` the newest, final releases first.
///
/// `x.y-multi` and `x.y.z-multi` select a release of several architectures, regardless of `wanted`.
/// Errors: `Invalid` on `openshift_version`.
/// Source: assisted-service, internal/versions/rest_api_versions.go, GetReleaseImage.
pub fn find_release<'a>(
    images: &'a [ReleaseImage],
    version: &str,
    wanted: CpuArchitecture,
) -> Result<&'a ReleaseImage, Error> {
    let number: Number = parse("openshift_version", version)?;
    let wanted = if number.multi {
        CpuArchitecture::Multi
    } else {
        architecture(wanted)
    };
    let mut matching: Vec<(&ReleaseImage, Number)> = images
        .iter()
        .filter(|image| serves(image, wanted))
        .filter_map(|image| Some((image, image.version.parse::<Number>().ok()?)))
        .filter(|(_, candidate)| is_meant(candidate, &number))
        .collect();
    matching.sort_by(|(left, left_number), (right, right_number)| {
        is_final(left, left_number)
            .cmp(&is_final(right, right_number))
            .then_with(|| left_number.precedence(right_number))
            // Among equals the image made for this architecture alone wins: it is smaller.
            .then_with(|| {
                right
                    .cpu_architectures
                    .len()
                    .cmp(&left.cpu_architectures.len())
            })
    });
    matching.pop().map(|(image, _)| image).ok_or_else(|| {
        Error::invalid(
            "openshift_version",
            format!(
                "no release image for {version:?} on {wanted}: RELEASE_IMAGES offers [{}]",
                offered(images)
            ),
        )
    })
}

/// Name of a release in the listing: that of one for several architectures ends in `-multi`.
pub(super) fn listed_version(image: &ReleaseImage, number: &Number) -> String {
    let several = image.cpu_architectures.len() > 1
        || image.cpu_architecture == CpuArchitecture::Multi
        || number.multi;
    Number {
        multi: several,
        ..number.clone()
    }
    .to_string()
}

fn serves(image: &ReleaseImage, wanted: CpuArchitecture) -> bool {
    architecture(image.cpu_architecture) == wanted
        || image
            .cpu_architectures
            .iter()
            .any(|name| name.parse().map(architecture) == Ok(wanted))
}

fn is_meant(candidate: &Number, wanted: &Number) -> bool {
    candidate.same_minor(wanted)
        && (wanted.patch.is_none()
            || (candidate.patch == wanted.patch && candidate.pre == wanted.pre))
}

fn is_final(image: &ReleaseImage, number: &Number) -> bool {
    image.support_level != Some(ReleaseSupportLevel::Beta) && !number.is_pre_release()
}

fn offered(images: &[ReleaseImage]) -> String {
    let list: Vec<String> = images
        .iter()
        .map(|image| format!("{} {}", image.version, image.cpu_architecture))
        .collect();
    list.join(", ")
}

/// An OS image to boot.
#[derive(Debug, Clone, Copy)]
pub struct FoundOsImage<'a> {
    /// Its entry.
    pub image: &'a OsImage,
    /// Its stream, if that is not the default one of its version; else empty.
    pub other_stream: &'a str,
}

impl<'a> FoundOsImage<'a> {
    /// Its name in URLs: image services find the image of another stream by the version of its operating system.
    pub fn name(&self) -> OsImageName<'a> {
        let version = if self.other_stream.is_empty() {
            &self.image.openshift_version
        } else {
            &self.image.version
        };
        OsImageName {
            version,
            architecture: self.image.cpu_architecture,
        }
    }
}

/// The OS image to boot for a version and a stream; without a stream, that of the default one.
///
/// Errors: `Invalid` on `openshift_version`, `cpu_architecture` or `os_stream`.
pub fn find_os_image<'a>(
    images: &'a [OsImage],
    version: Option<&str>,
    wanted: CpuArchitecture,
    os_stream: &str,
) -> Result<FoundOsImage<'a>, Error> {
    let streams = find_streams(images, version, wanted)?;
    let position = match os_stream {
        "" => Some(0),
        name => streams.iter().position(|image| image.os_stream == name),
    };
    let found = position.and_then(|position| Some((position, *streams.get(position)?)));
    let Some((position, image)) = found else {
        let names = streams.iter().map(|image| image.os_stream.as_str());
        let names: Vec<_> = names.filter(|name| !name.is_empty()).collect();
        let (names, version) = (names.join(", "), &streams[0].openshift_version);
        let reason = format!(
            "{os_stream:?} is no stream of {version} on {wanted}: choose one of [{names}], or none for the default one"
        );
        return Err(Error::invalid("os_stream", reason));
    };
    let other_stream = if position == 0 { "" } else { &image.os_stream };
    Ok(FoundOsImage {
        image,
        other_stream,
    })
}

/// The OS images to boot for a version, one for each stream, that of the default one first: those of the same version, else
/// of its minor release, else of the newest of that minor release; without a version of the newest of all. There is one at
/// least.
///
/// Errors: `Invalid` on `openshift_version` or `cpu_architecture`.
/// Source: assisted-service, internal/versions/osimages.go, GetOsImageOrLatest.
pub(super) fn find_streams<'a>(
    images: &'a [OsImage],
    version: Option<&str>,
    wanted: CpuArchitecture,
) -> Result<Vec<&'a OsImage>, Error> {
    let wanted = architecture(wanted);
    let mut usable: Vec<(&OsImage, Number)> = images
        .iter()
        .filter(|image| architecture(image.cpu_architecture) == wanted)
        .filter_map(|image| Some((image, image.openshift_version.parse::<Number>().ok()?)))
        .collect();
    usable.sort_by(|left, right| left.1.precedence(&right.1));
    if usable.is_empty() {
        return Err(Error::invalid(
            "cpu_architecture",
            format!(
                "no OS image for {wanted}: add one to OS_IMAGES or choose another architecture"
            ),
        ));
    }
    let Some(version) = version.filter(|version| !version.is_empty()) else {
        let newest = newest(&usable, |_| true);
        let newest = newest.ok_or_else(|| Error::invalid("cpu_architecture", "no OS image"))?;
        return Ok(streams_beside(images, newest));
    };
    let number: Number = parse("openshift_version", version)?;
    let exact = |candidate: &Number| {
        candidate.same_minor(&number)
            && candidate.patch == number.patch
            && candidate.pre == number.pre
    };
    let found = newest(&usable, exact)
        .or_else(|| {
            newest(&usable, |candidate| {
                candidate.same_minor(&number) && candidate.patch.is_none()
            })
        })
        .or_else(|| newest(&usable, |candidate| candidate.same_minor(&number)));
    let found = found.ok_or_else(|| {
        let mut list: Vec<&str> = usable
            .iter()
            .map(|(image, _)| image.openshift_version.as_str())
            .collect();
        // One entry for each stream.
        list.dedup();
        Error::invalid(
            "openshift_version",
            format!(
                "no OS image for {version:?} on {wanted}: OS_IMAGES offers [{}]",
                list.join(", ")
            ),
        )
    })?;
    Ok(streams_beside(images, found))
}

/// All OS images of the version and the architecture of `image`, in their order.
fn streams_beside<'a>(images: &'a [OsImage], image: &OsImage) -> Vec<&'a OsImage> {
    let is_beside = |other: &&OsImage| {
        other.openshift_version == image.openshift_version
            && architecture(other.cpu_architecture) == architecture(image.cpu_architecture)
    };
    images.iter().filter(is_beside).collect()
}

fn newest<'a>(
    sorted: &[(&'a OsImage, Number)],
    fits: impl Fn(&Number) -> bool,
) -> Option<&'a OsImage> {
    sorted
        .iter()
        .rev()
        .find(|(_, number)| fits(number))
        .map(|(image, _)| *image)
}

fn parse(field: &str, version: &str) -> Result<Number, Error> {
    version
        .parse()
        .map_err(|error: super::number::MalformedVersion| Error::invalid(field, error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use CpuArchitecture::{Aarch64, Arm64, Multi, Ppc64le, X86_64};

    fn image(version: &str, main: CpuArchitecture, all: &[&str]) -> ReleaseImage {
        ReleaseImage {
            openshift_version: version.to_owned(),
            cpu_architecture: main,
            cpu_architectures: all.iter().map(ToString::to_string).collect(),
            url: format!("registry.example.com/release:{version}-{main}"),
            version: version.to_owned(),
            ..ReleaseImage::default()
        }
    }

    fn images() -> Vec<ReleaseImage> {
        vec![
            image("4.16.9", X86_64, &["x86_64"]),
            image("4.16.10", X86_64, &["x86_64"]),
            image("4.16.10-multi", Multi, &["x86_64", "arm64"]),
            image("4.16.11-rc.1", X86_64, &["x86_64"]),
            image("4.17.0-ec.2", X86_64, &["x86_64"]),
            image("4.16.2", Arm64, &["arm64"]),
        ]
    }

    #[test]
    fn a_version_finds_its_release() {
        for (version, wanted, expected) in [
            ("4.16", X86_64, "4.16.10"),
            ("4.16.9", X86_64, "4.16.9"),
            ("4.16.11-rc.1", X86_64, "4.16.11-rc.1"),
            ("4.17", X86_64, "4.17.0-ec.2"),
            ("4.16-multi", X86_64, "4.16.10-multi"),
            ("4.16.10-multi", X86_64, "4.16.10-multi"),
            ("4.16", Multi, "4.16.10-multi"),
            ("4.16.2", Aarch64, "4.16.2"),
        ] {
            let images = images();
            assert_eq!(
                find_release(&images, version, wanted).unwrap().version,
                expected,
                "{version} {wanted}"
            );
        }
    }

    #[test]
    fn an_unknown_release_names_the_offered_versions() {
        for (version, wanted) in [
            ("4.15", X86_64),
            ("4.16.99", X86_64),
            ("4.16", Ppc64le),
            ("latest", X86_64),
        ] {
            let images = images();
            let error = find_release(&images, version, wanted).unwrap_err();
            assert!(error.to_string().contains(version), "{error}");
        }
    }

    #[test]
    fn ignored_versions_are_refused_with_the_reason() {
        for ignored in ["4.16", "4.16.10"] {
            let error = release(&images(), &[ignored.to_owned()], "4.16", X86_64).unwrap_err();
            assert!(
                error.to_string().contains("IGNORED_OPENSHIFT_VERSIONS"),
                "{error}"
            );
        }
        let found = release(&images(), &[], "4.16-multi", X86_64).unwrap();
        assert_eq!(
            (found.version.as_str(), found.architecture),
            ("4.16.10-multi", Multi)
        );
    }

    #[test]
    fn os_images_fall_back_to_the_minor_release() {
        let os = |version: &str| OsImage {
            openshift_version: version.to_owned(),
            cpu_architecture: X86_64,
            ..OsImage::default()
        };
        let images = vec![
            os("4.15"),
            os("4.16.3"),
            os("4.16.20"),
            os("4.17"),
            os("4.17.1"),
        ];
        for (version, expected) in [
            (Some("4.16.3"), "4.16.3"),
            (Some("4.16.5"), "4.16.20"),
            (Some("4.16"), "4.16.20"),
            (Some("4.17.9"), "4.17"),
            (Some("4.15.1"), "4.15"),
            (None, "4.17.1"),
            (Some(""), "4.17.1"),
        ] {
            let found = find_os_image(&images, version, X86_64, "").unwrap();
            assert_eq!(found.image.openshift_version, expected, "{version:?}");
        }
        assert!(find_os_image(&images, Some("4.12"), X86_64, "").is_err());
        assert!(find_os_image(&images, None, Arm64, "").is_err());
    }

    #[test]
    fn a_stream_is_found_by_its_name_and_the_first_one_is_the_default() {
        let os = |platform: &str, os_stream: &str, version: &str| OsImage {
            openshift_version: platform.to_owned(),
            cpu_architecture: X86_64,
            version: version.to_owned(),
            os_stream: os_stream.to_owned(),
            ..OsImage::default()
        };
        let images = [
            os("4.22", "rhel-9", "9.6"),
            os("4.22", "rhel-10", "10.0"),
            os("4.21", "", "9.4"),
        ];
        let found = |version: &str, os_stream: &str| {
            let found = find_os_image(&images, Some(version), X86_64, os_stream);
            let found = found.map_err(|error| error.to_string())?;
            Ok::<_, String>(format!("{} {}", found.name().version, found.other_stream))
        };
        for (version, os_stream, expected) in [
            ("4.22.1", "", "4.22 "),
            ("4.22.1", "rhel-9", "4.22 "),
            ("4.22.1", "rhel-10", "10.0 rhel-10"),
            ("", "rhel-10", "10.0 rhel-10"),
            ("4.21.1", "", "4.21 "),
        ] {
            assert_eq!(
                found(version, os_stream).unwrap(),
                expected,
                "{version} {os_stream}"
            );
        }
        let refused = found("4.22.1", "rhel-11").unwrap_err();
        assert!(refused.starts_with("os_stream: \"rhel-11\""), "{refused}");
        assert!(refused.contains("one of [rhel-9, rhel-10]"), "{refused}");
        assert!(found("4.21.1", "rhel-9").is_err());
    }
}
