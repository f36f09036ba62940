//! The JSON lists that an operator writes: release images, OS images, platform versions.

use std::collections::BTreeMap;

use model::Error;
use model::versions::{
    AddedOsImage, CpuArchitecture, OpenshiftVersion, OsImage, OsImageParams, ReleaseImage,
    ReleaseImageParams, ReleaseSource,
};
use serde::de::DeserializeOwned;
use serde_json::Value;
use url::Url;

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

/// A release image out of the parameters of an administrator.
///
/// Errors: Invalid – as of [`load_release_images`].
pub fn release_image(params: ReleaseImageParams) -> Result<ReleaseImage, Error> {
    let mut parts = params.version.splitn(3, '.');
    let minor: Vec<_> = parts.by_ref().take(2).collect();
    let mut image = ReleaseImage {
        openshift_version: minor.join("."),
        version: params.version.clone(),
        cpu_architecture: params.cpu_architecture,
        url: params.url,
        default: params.default,
        ..ReleaseImage::default()
    };
    complete_release("release images", 0, &mut image)?;
    let host = image.url.split_once('/').map_or("", |(host, _)| host);
    if !host.contains(['.', ':']) {
        let reason = "names no registry: write host/repository:tag";
        return Err(entry("release images", 0, "url", reason));
    }
    Ok(image)
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
    }
    Ok(images)
}

/// Longest address of an added OS image. Units: bytes.
pub const OS_IMAGE_URL_BYTES: usize = 1024;
/// Longest version of an added OS image, which is a part of file names. Units: bytes.
pub const OS_IMAGE_VERSION_BYTES: usize = 128;

/// An OS image out of the parameters of an administrator.
///
/// Errors: Invalid – a malformed version, address or checksum, or credentials in the address, which is public.
pub fn os_image(params: OsImageParams) -> Result<AddedOsImage, Error> {
    let wrong = |member: &str, reason: &str| Err(Error::invalid(member, reason));
    let is_name = |c: char| c.is_ascii_alphanumeric() || "._-+".contains(c);
    for (member, text, longest) in [
        (
            "openshift_version",
            &params.openshift_version,
            OS_IMAGE_VERSION_BYTES,
        ),
        ("version", &params.version, OS_IMAGE_VERSION_BYTES),
        ("url", &params.url, OS_IMAGE_URL_BYTES),
    ] {
        if text.is_empty() || text.len() > longest {
            return wrong(member, &format!("has 1 to {longest} bytes"));
        }
        // Versions are parts of paths and of file names.
        if member != "url" && !text.chars().all(is_name) {
            return wrong(member, "is not made of letters, digits and . _ - +");
        }
    }
    if let Err(error) = params.openshift_version.parse::<Number>() {
        return wrong("openshift_version", &error.to_string());
    }
    let cpu_architecture = architecture(params.cpu_architecture);
    if cpu_architecture == CpuArchitecture::Multi {
        return wrong(
            "cpu_architecture",
            "names no architecture: add an image for each",
        );
    }
    if let Err(reason) = check_address(&params.url) {
        return wrong("url", reason);
    }
    let sha256 = params.sha256.to_ascii_lowercase();
    let is_digest = sha256.len() == 64 && sha256.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !sha256.is_empty() && !is_digest {
        return wrong("sha256", "expected 64 hexadecimal digits");
    }
    Ok(AddedOsImage {
        image: OsImage {
            openshift_version: params.openshift_version,
            cpu_architecture,
            url: params.url,
            version: params.version,
        },
        sha256,
    })
}

fn check_address(address: &str) -> Result<(), &'static str> {
    const EXPECTED: &str = "expected https://…, http://…, file:///… or oci://host/repository:tag";
    let url = Url::parse(address).map_err(|_| EXPECTED)?;
    if !["https", "http", "file", "oci"].contains(&url.scheme())
        || (url.scheme() != "file" && !url.has_host())
        || address.contains(char::is_whitespace)
    {
        return Err(EXPECTED);
    }
    let has_login = !url.username().is_empty() || url.password().is_some();
    if has_login || url.query().is_some() || url.fragment().is_some() {
        return Err(
            "has a login or a query: they belong into OS_IMAGES_REQUEST_HEADERS and OS_IMAGES_REQUEST_QUERY_PARAMS",
        );
    }
    Ok(())
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

    fn os_image_params() -> OsImageParams {
        OsImageParams {
            openshift_version: "4.19".to_owned(),
            cpu_architecture: CpuArchitecture::Aarch64,
            version: "419.96.1-0".to_owned(),
            url: "https://files.example/live.iso".to_owned(),
            sha256: String::new(),
        }
    }

    #[test]
    fn added_os_images_are_completed() {
        let added = os_image(OsImageParams {
            sha256: "AB".repeat(32),
            ..os_image_params()
        });
        let added = added.unwrap();
        assert_eq!(added.image.cpu_architecture, CpuArchitecture::Arm64);
        assert_eq!(added.sha256, "ab".repeat(32));
        for url in [
            "http://10.0.0.1:8080/a/b.iso",
            "file:///images/live.iso",
            "oci://registry.example:5000/openshift/boot-images:419-x86_64",
        ] {
            let url = url.to_owned();
            os_image(OsImageParams {
                url,
                ..os_image_params()
            })
            .unwrap();
        }
    }

    // limit: version of an added OS image
    // limit: address of an added OS image
    #[test]
    fn wrong_members_of_added_os_images_are_named() {
        type Change = fn(&mut OsImageParams);
        let changes: [(&str, Change); 13] = [
            ("openshift_version", |it| {
                it.openshift_version = "4".to_owned();
            }),
            ("openshift_version", |it| it.openshift_version.clear()),
            ("cpu_architecture", |it| {
                it.cpu_architecture = CpuArchitecture::Multi;
            }),
            ("version", |it| it.version = "../419".to_owned()),
            ("version", |it| {
                it.version = "4".repeat(OS_IMAGE_VERSION_BYTES + 1);
            }),
            ("url", |it| it.url.clear()),
            ("url", |it| it.url = "live.iso".to_owned()),
            ("url", |it| {
                it.url = "ftp://files.example/live.iso".to_owned();
            }),
            ("url", |it| it.url = "https:///live.iso?".to_owned()),
            ("url", |it| {
                it.url = "https://root:hunter2@files.example/live.iso".to_owned();
            }),
            ("url", |it| {
                it.url = "https://files.example/live.iso?token=hunter2".to_owned();
            }),
            ("url", |it| {
                it.url = format!("https://a/{}", "b".repeat(OS_IMAGE_URL_BYTES - 9));
            }),
            ("sha256", |it| it.sha256 = "ab".to_owned()),
        ];
        for (member, change) in changes {
            let mut params = os_image_params();
            change(&mut params);
            let refused = os_image(params.clone()).unwrap_err().to_string();
            assert!(refused.contains(member), "{params:?}: {refused}");
            assert!(!refused.contains("hunter2"), "{refused}");
        }
        let longest = OsImageParams {
            version: "4".repeat(OS_IMAGE_VERSION_BYTES),
            url: format!("https://a/{}", "b".repeat(OS_IMAGE_URL_BYTES - 10)),
            ..os_image_params()
        };
        assert_eq!(longest.url.len(), OS_IMAGE_URL_BYTES);
        os_image(longest).unwrap();
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
