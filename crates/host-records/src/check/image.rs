//! The image of a host.

use super::finding::{FindingList, shown};
use super::scope::CheckScope;
use crate::RecordNode;

/// Schemes of image URLs. Source: baremetal-operator, `validateURL`.
const SCHEMES: [&str; 5] = ["http", "https", "ftp", "gopher", "oci"];
/// Checksums by the length of their hexadecimal text.
const CHECKSUMS: [(&str, usize); 3] = [("md5", 32), ("sha256", 64), ("sha512", 128)];
const IMAGE: &[&str] = &["spec", "image"];
const URL: &[&str] = &["spec", "image", "url"];
const CHECKSUM: &[&str] = &["spec", "image", "checksum"];

pub(super) fn check(host: &RecordNode<'_>, _: &CheckScope<'_>, findings: &mut FindingList<'_>) {
    if host.get(IMAGE).is_none() {
        return;
    }
    if host.flag(&["spec", "externallyProvisioned"]) == Some(true) {
        let reason = "is not written, because the host is externally provisioned";
        findings.warning(
            host,
            IMAGE,
            reason,
            "remove image, or externallyProvisioned",
        );
    }
    let url = host.text(URL);
    if host.get(URL).is_some() {
        check_url(host, url, findings);
    }
    let checksum = host.text(CHECKSUM);
    let is_oci = url.to_ascii_lowercase().starts_with("oci://");
    if is_oci {
        if !checksum.is_empty() {
            let reason = "is given for an OCI image, whose digest is its checksum";
            findings.error(host, CHECKSUM, reason, "remove it");
        }
    } else if host.text(&["spec", "image", "format"]) == "live-iso" {
        if !checksum.is_empty() {
            let reason = "is ignored, because a live ISO is booted and not written";
            findings.warning(host, CHECKSUM, reason, "remove it");
        }
    } else if checksum.is_empty() {
        let remedy = "add the checksum or its URL, or write format: live-iso";
        findings.error(host, CHECKSUM, "is missing", remedy);
    } else if !checksum.contains("://") {
        check_checksum(host, checksum, findings);
    }
}

/// The URL may hold a password: it is not shown.
fn check_url(host: &RecordNode<'_>, url: &str, findings: &mut FindingList<'_>) {
    let schemes = SCHEMES.join(", ");
    let Some((scheme, rest)) = url.split_once("://") else {
        let reason = format!("is no URL of {schemes}");
        findings.error(host, URL, reason, "write the whole URL");
        return;
    };
    if !SCHEMES.contains(&scheme.to_ascii_lowercase().as_str()) {
        let reason = format!("has the scheme {}, and not {schemes}", shown(scheme));
        findings.error(host, URL, reason, "use a web server or a registry");
    }
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.is_empty() || url.contains(|c: char| c.is_whitespace() || c.is_control()) {
        findings.error(
            host,
            URL,
            "has no host, or has white space",
            "correct the URL",
        );
    }
    if authority.contains('@') {
        let reason = "holds a user name or password, which everyone reads that reads the host";
        findings.warning(host, URL, reason, "offer the image without a password");
    }
}

fn check_checksum(host: &RecordNode<'_>, checksum: &str, findings: &mut FindingList<'_>) {
    if !checksum.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        let digits = checksum.rsplit(':').next().unwrap_or_default();
        let is_prefixed =
            digits.len() < checksum.len() && digits.bytes().all(|b| b.is_ascii_hexdigit());
        let remedy = if is_prefixed {
            "remove the part before the colon, and set checksumType"
        } else {
            "write the digits only, or the URL of the checksums"
        };
        findings.error(host, CHECKSUM, "is neither hexadecimal nor a URL", remedy);
        return;
    }
    let kind = host.text(&["spec", "image", "checksumType"]);
    let fitting = CHECKSUMS
        .iter()
        .find(|(_, length)| *length == checksum.len());
    match (fitting, CHECKSUMS.iter().find(|(name, _)| *name == kind)) {
        (None, _) => {
            let reason = format!("has {} digits, as no checksum has", checksum.len());
            findings.error(
                host,
                CHECKSUM,
                reason,
                "write 32 (md5), 64 (sha256) or 128 (sha512)",
            );
        }
        (Some((found, _)), Some((named, _))) if found != named => {
            let reason = format!("has the length of {found}, and checksumType is {named}");
            findings.error(host, CHECKSUM, reason, "change one of them");
        }
        _ => {}
    }
}
