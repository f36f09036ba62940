//! OS images as settings and files list them, and the faults of a list.

use std::collections::HashSet;

use serde::Deserialize;

/// An OS image.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct OsImage {
    /// Version of the platform it belongs to.
    #[serde(alias = "platform_version")]
    pub openshift_version: String,
    /// `x86_64`, `arm64`, `ppc64le` or `s390x`; `aarch64` means `arm64`.
    pub cpu_architecture: String,
    /// URL of the live image; empty when it is in the data folder.
    pub url: String,
    /// SHA-256 of the live image in hexadecimal; empty when unknown. Downloads are compared with it.
    #[serde(default)]
    pub sha256: String,
    /// Version of the operating system.
    pub version: String,
    /// `full-iso` or `disconnected-iso`.
    #[serde(default = "full_iso", rename = "type")]
    pub kind: String,
    /// Stream of the operating system, such as `rhel-10`; empty when unknown. Of several for one version and architecture,
    /// the first is the default one.
    #[serde(default)]
    pub os_stream: String,
}

fn full_iso() -> String {
    FULL_ISO.to_owned()
}

/// Start of the URLs of images in registries.
pub(crate) const OCI_SCHEME: &str = "oci://";
/// The kind of image that this service offers.
pub(crate) const FULL_ISO: &str = "full-iso";
/// A full image without the root file system.
pub(crate) const MINIMAL_ISO: &str = "minimal-iso";
/// The architecture whose images have no minimal form.
pub(crate) const S390X: &str = "s390x";
const DISCONNECTED_ISO: &str = "disconnected-iso";

/// Canonical name of an architecture.
pub(crate) fn normalised_architecture(text: &str) -> &str {
    if text == "aarch64" { "arm64" } else { text }
}

fn url_problem(url: &str) -> Option<String> {
    if url.is_empty() {
        return None;
    }
    if let Some(reference) = url.strip_prefix(OCI_SCHEME) {
        let parsed = reference.parse::<oci::Reference>();
        return parsed.err().map(|error| error.to_string());
    }
    let is_known =
        url::Url::parse(url).is_ok_and(|url| matches!(url.scheme(), "http" | "https" | "file"));
    (!is_known).then(|| format!("{url:?} is not an http, https, file or oci URL"))
}

/// Faults of a list of OS images: the entry, counted from 0, and its member.
pub(crate) fn os_image_problems(images: &[OsImage]) -> Vec<String> {
    let mut problems = Vec::new();
    let mut seen = HashSet::new();
    for (index, image) in images.iter().enumerate() {
        let mut add = |member: &str, reason: String| {
            problems.push(format!("[{index}].{member}: {reason}"));
        };
        for (member, text) in [
            ("openshift_version", &image.openshift_version),
            ("version", &image.version),
            ("cpu_architecture", &image.cpu_architecture),
        ] {
            // They are parts of paths and of file names.
            let is_name = |c: char| c.is_ascii_alphanumeric() || "._-+".contains(c);
            if text.is_empty() || !text.chars().all(is_name) {
                let reason = format!("{text:?} is not made of letters, digits and . _ - +");
                add(member, reason);
            }
        }
        if let Some(reason) = url_problem(&image.url) {
            add("url", reason);
        }
        let is_digest =
            image.sha256.len() == 64 && image.sha256.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !image.sha256.is_empty() && !is_digest {
            add("sha256", "expected 64 hexadecimal digits".to_owned());
        }
        if ![FULL_ISO, DISCONNECTED_ISO].contains(&image.kind.as_str()) {
            let reason = format!("{:?} is not {FULL_ISO} or {DISCONNECTED_ISO}", image.kind);
            add("type", reason);
        }
        let architecture = normalised_architecture(&image.cpu_architecture);
        let stream = &image.os_stream;
        if !seen.insert((&image.openshift_version, architecture, &image.kind, stream)) {
            add(
                "openshift_version",
                "duplicate version, architecture and os_stream".to_owned(),
            );
        }
    }
    problems
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn image(version: &str) -> OsImage {
        OsImage {
            openshift_version: version.to_owned(),
            cpu_architecture: "x86_64".to_owned(),
            url: "http://h/x.iso".to_owned(),
            sha256: String::new(),
            version: "418.94.1-0".to_owned(),
            kind: full_iso(),
            os_stream: String::new(),
        }
    }

    #[test]
    fn urls_and_checksums_of_images_are_checked() {
        let digest = "0aF".repeat(21) + "1";
        for (url, sha256, is_sound) in [
            ("", "", true),
            ("https://h/x.iso", digest.as_str(), true),
            ("file:///images/x.iso", "", true),
            ("oci://registry:5000/os/live:4.18", "", true),
            ("oci://registry:5000/os/live@sha256:12", "", false),
            ("oci://", "", false),
            ("ftp://h/x.iso", "", false),
            ("https://h/x.iso", "sha256:12", false),
            ("https://h/x.iso", &digest[1..], false),
        ] {
            let image = OsImage {
                url: url.to_owned(),
                sha256: sha256.to_owned(),
                ..image("4.18")
            };
            let problems = os_image_problems(&[image]);
            assert_eq!(
                problems.is_empty(),
                is_sound,
                "{url} {sha256}: {problems:?}"
            );
        }
    }

    #[test]
    fn the_neutral_spelling_is_read() {
        let text =
            r#"[{"platform_version":"4.18","cpu_architecture":"aarch64","url":"","version":"v"}]"#;
        let images: Vec<OsImage> = serde_json::from_str(text).unwrap();
        assert_eq!(images[0].openshift_version, "4.18");
        assert_eq!(images[0].kind, FULL_ISO);
        assert_eq!(
            normalised_architecture(&images[0].cpu_architecture),
            "arm64"
        );
    }
}
