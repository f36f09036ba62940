//! The JSON lists that an operator writes: release images, OS images, platform versions.

use std::collections::BTreeMap;

use model::Error;
use model::versions::{CpuArchitecture, OpenshiftVersion, OsImage, ReleaseImage, ReleaseSource};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::find::architecture;
use super::number::Number;

/// Required members of images.
const IMAGE: &[&str] = &["openshift_version", "cpu_architecture", "url"];

/// Reads `RELEASE_IMAGES`.
///
/// Errors: `Invalid` naming `RELEASE_IMAGES` and the entry, counted from 0.
/// Source: assisted-service, internal/versions/common.go, ParseReleaseImages, validateReleaseImage.
pub fn load_release_images(json: &str) -> Result<Vec<ReleaseImage>, Error> {
    const NAME: &str = "RELEASE_IMAGES";
    let mut images: Vec<ReleaseImage> = list(NAME, json, IMAGE)?;
    for (index, image) in images.iter_mut().enumerate() {
        complete_release(NAME, index, image)?;
    }
    unique_default(NAME, images.iter().map(|image| image.default))?;
    Ok(images)
}

/// Checks a release image, and completes its versions and architectures.
fn complete_release(list: &str, index: usize, image: &mut ReleaseImage) -> Result<(), Error> {
    version(list, index, "openshift_version", &image.openshift_version)?;
    if image.version.is_empty() {
        image.version.clone_from(&image.openshift_version);
    }
    let number = version(list, index, "version", &image.version)?;
    if number.patch.is_none() {
        return Err(entry(
            list,
            index,
            "version",
            &format!(
                "{:?} has no patch number: write the full version",
                image.version
            ),
        ));
    }
    reference(list, index, &image.url)?;
    image.cpu_architecture = architecture(image.cpu_architecture);
    if image.cpu_architectures.is_empty() {
        image.cpu_architectures = vec![image.cpu_architecture.to_string()];
    }
    for name in &mut image.cpu_architectures {
        let parsed: CpuArchitecture = name.parse().map_err(|error: model::UnknownValue| {
            entry(list, index, "cpu_architectures", &error.to_string())
        })?;
        *name = architecture(parsed).to_string();
    }
    Ok(())
}

/// Reads `OS_IMAGES`.
///
/// Errors: `Invalid` naming `OS_IMAGES` and the entry, counted from 0.
/// Source: assisted-service, internal/versions/osimages.go, validateOSImage.
pub fn load_os_images(json: &str) -> Result<Vec<OsImage>, Error> {
    const NAME: &str = "OS_IMAGES";
    let mut images: Vec<OsImage> = list(NAME, json, IMAGE)?;
    for (index, image) in images.iter_mut().enumerate() {
        version(NAME, index, "openshift_version", &image.openshift_version)?;
        image.cpu_architecture = architecture(image.cpu_architecture);
        if image.url.is_empty() {
            return Err(entry(
                NAME,
                index,
                "url",
                "is missing: set the location of the ISO",
            ));
        }
        if image.version.is_empty() && !image.os_stream.is_empty() {
            let reason = "is missing: image services distinguish streams by the version of their operating system";
            return Err(entry(NAME, index, "version", reason));
        }
    }
    Ok(images)
}

/// Reads `RELEASE_SOURCES`.
///
/// Errors: `Invalid` naming `RELEASE_SOURCES` and the entry, counted from 0.
/// Source: assisted-service, internal/releasesources/release_sources.go, validateReleaseSources.
pub fn load_release_sources(json: &str) -> Result<Vec<ReleaseSource>, Error> {
    const NAME: &str = "RELEASE_SOURCES";
    let required = [
        "openshift_version",
        "multi_cpu_architectures",
        "upgrade_channels",
    ];
    let sources: Vec<ReleaseSource> = list(NAME, json, &required)?;
    for (index, source) in sources.iter().enumerate() {
        version(NAME, index, "openshift_version", &source.openshift_version)?;
        if source
            .multi_cpu_architectures
            .contains(&CpuArchitecture::Multi)
        {
            let reason =
                "contains \"multi\": name the architectures of multi-architecture releases";
            return Err(entry(NAME, index, "multi_cpu_architectures", reason));
        }
    }
    Ok(sources)
}

/// Reads `PLATFORM_VERSIONS`: an object whose keys are version selectors.
///
/// Errors: `Invalid` naming `PLATFORM_VERSIONS` and the key.
pub fn load_platform_versions(json: &str) -> Result<BTreeMap<String, OpenshiftVersion>, Error> {
    const NAME: &str = "PLATFORM_VERSIONS";
    if json.trim().is_empty() {
        return Ok(BTreeMap::new());
    }
    let raw: BTreeMap<String, Value> = serde_json::from_str(json).map_err(|error| {
        Error::invalid(NAME, format!("is not a JSON object of versions: {error}"))
    })?;
    let mut versions = BTreeMap::new();
    for (key, value) in raw {
        let at = |reason: String| Error::invalid(format!("{NAME}[{key:?}]"), reason);
        key.parse::<Number>()
            .map_err(|error| at(format!("the key {error}")))?;
        for member in ["cpu_architectures", "display_name", "support_level"] {
            if value.get(member).is_none() {
                return Err(at(format!("{member} is missing")));
            }
        }
        let mut read: OpenshiftVersion =
            serde_json::from_value(value).map_err(|error| at(error.to_string()))?;
        for name in &mut read.cpu_architectures {
            let parsed: CpuArchitecture = name
                .parse()
                .map_err(|error: model::UnknownValue| at(error.to_string()))?;
            *name = architecture(parsed).to_string();
        }
        versions.insert(key, read);
    }
    unique_default(NAME, versions.values().map(|version| version.default))?;
    Ok(versions)
}

fn list<T: DeserializeOwned>(name: &str, json: &str, required: &[&str]) -> Result<Vec<T>, Error> {
    if json.trim().is_empty() {
        return Ok(Vec::new());
    }
    let raw: Vec<Value> = serde_json::from_str(json)
        .map_err(|error| Error::invalid(name, format!("is not a JSON list: {error}")))?;
    raw.into_iter()
        .enumerate()
        .map(|(index, value)| {
            let missing = required.iter().find(|member| value.get(member).is_none());
            if let Some(member) = missing {
                return Err(entry(name, index, member, "is missing"));
            }
            serde_json::from_value(value)
                .map_err(|error| Error::invalid(format!("{name}[{index}]"), error.to_string()))
        })
        .collect()
}

fn version(name: &str, index: usize, member: &str, text: &str) -> Result<Number, Error> {
    text.parse()
        .map_err(|error: super::number::MalformedVersion| {
            entry(name, index, member, &error.to_string())
        })
}

fn reference(name: &str, index: usize, url: &str) -> Result<(), Error> {
    if url.is_empty() || url.contains("://") || url.contains(char::is_whitespace) {
        return Err(entry(
            name,
            index,
            "url",
            &format!(
                "{url:?} is not an image reference: write host/repository:tag or host/repository@sha256:…"
            ),
        ));
    }
    Ok(())
}

fn unique_default(name: &str, defaults: impl Iterator<Item = bool>) -> Result<(), Error> {
    if defaults.filter(|is_default| *is_default).count() > 1 {
        return Err(Error::invalid(
            name,
            "more than one entry is marked default: keep one",
        ));
    }
    Ok(())
}

fn entry(name: &str, index: usize, member: &str, reason: &str) -> Error {
    Error::invalid(format!("{name}[{index}].{member}"), reason)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn architectures_are_completed() {
        let images = load_release_images(
            r#"[{"openshift_version":"4.16","cpu_architecture":"aarch64","url":"r.example.com/o/release:4.16.3","version":"4.16.3"}]"#,
        )
        .unwrap();
        assert_eq!(images[0].cpu_architecture, CpuArchitecture::Arm64);
        assert_eq!(images[0].cpu_architectures, ["arm64"]);
    }

    #[test]
    fn problems_name_the_entry() {
        let good = r#"{"openshift_version":"4.16","cpu_architecture":"x86_64","url":"r/x:1","version":"4.16.3"}"#;
        for (bad, expected) in [
            (
                r#"{"openshift_version":"4.16","cpu_architecture":"x86_64","version":"4.16.3"}"#,
                "RELEASE_IMAGES[1].url",
            ),
            (
                r#"{"openshift_version":"x","cpu_architecture":"x86_64","url":"r/x:1","version":"4.16.3"}"#,
                "RELEASE_IMAGES[1].openshift_version",
            ),
            (
                r#"{"openshift_version":"4.16","cpu_architecture":"x86_64","url":"r/x:1","version":"4.16"}"#,
                "RELEASE_IMAGES[1].version",
            ),
            (
                r#"{"openshift_version":"4.16","cpu_architecture":"z80","url":"r/x:1","version":"4.16.3"}"#,
                "RELEASE_IMAGES[1]",
            ),
            (
                r#"{"openshift_version":"4.16","cpu_architecture":"x86_64","url":"https://r/x","version":"4.16.3"}"#,
                "RELEASE_IMAGES[1].url",
            ),
            ("7", "RELEASE_IMAGES[1].openshift_version"),
        ] {
            let error = load_release_images(&format!("[{good},{bad}]")).unwrap_err();
            assert!(error.to_string().starts_with(expected), "{error}");
        }
        assert!(load_release_images("{}").is_err());
        assert!(load_release_images("").unwrap().is_empty());
    }

    #[test]
    fn release_sources_are_read() {
        let good = r#"{"openshift_version":"4.14","multi_cpu_architectures":["x86_64","arm64"],
            "upgrade_channels":[{"cpu_architecture":"multi","channels":["stable","eus"]}]}"#;
        let sources = load_release_sources(&format!("[{good}]")).unwrap();
        assert_eq!(sources[0].upgrade_channels[0].channels[1].as_str(), "eus");
        assert!(load_release_sources("").unwrap().is_empty());
        let end = r#""upgrade_channels":[]}"#;
        for (bad, expected) in [
            (
                format!(r#"{{"openshift_version":"4.14",{end}"#),
                "RELEASE_SOURCES[1].multi_cpu_architectures: is missing",
            ),
            (
                format!(r#"{{"openshift_version":"x","multi_cpu_architectures":[],{end}"#),
                "RELEASE_SOURCES[1].openshift_version",
            ),
            (
                format!(
                    r#"{{"openshift_version":"4.14","multi_cpu_architectures":["multi"],{end}"#
                ),
                "RELEASE_SOURCES[1].multi_cpu_architectures",
            ),
            (
                good.replace("stable", "nightly"),
                "RELEASE_SOURCES[1]: \"nightly\" is not a ReleaseChannel",
            ),
            (
                good.replace("cpu_architecture\"", "architecture\""),
                "RELEASE_SOURCES[1]: missing field `cpu_architecture`",
            ),
        ] {
            let error = load_release_sources(&format!("[{good},{bad}]")).unwrap_err();
            let flat = error.to_string();
            assert!(flat.starts_with(expected), "{flat}");
        }
    }

    #[test]
    fn the_platform_versions_file_is_read() {
        let text = r#"{"4.10":{"cpu_architectures":["x86_64","arm64"],"display_name":"4.10.16","support_level":"production","default":true},
            "4.11.0-fc.0":{"cpu_architectures":["x86_64"],"display_name":"4.11.0-fc.0","support_level":"beta"}}"#;
        let versions = load_platform_versions(text).unwrap();
        assert!(versions["4.10"].default);
        assert_eq!(versions.len(), 2);
        for bad in [
            r#"{"4.10":{"display_name":"4.10.16","support_level":"production"}}"#,
            r#"{"x":{"cpu_architectures":[],"display_name":"x","support_level":"beta"}}"#,
            r#"{"4.10":{"cpu_architectures":["z80"],"display_name":"4.10","support_level":"beta"}}"#,
            "[]",
        ] {
            assert!(load_platform_versions(bad).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn loading_never_panics(text in "\\PC*") {
            let _ = load_release_images(&text);
            let _ = load_os_images(&text);
            let _ = load_platform_versions(&text);
        }
    }
}
