//! Sources: URLs, headers, compression and hashes of everything that is fetched.

use super::data_url;
use super::go_url::GoUrl;
use super::node::CheckedNode;
use super::node::Step::{Item, Member};
use crate::config::SpecVersion;
use crate::problem::{ProblemList, quoted};

/// URL schemes with the first version that has them.
const SCHEMES: &[(&str, SpecVersion)] = &[
    ("data", SpecVersion::V3_0),
    ("http", SpecVersion::V3_0),
    ("https", SpecVersion::V3_0),
    ("tftp", SpecVersion::V3_0),
    ("s3", SpecVersion::V3_0),
    ("gs", SpecVersion::V3_2),
    ("arn", SpecVersion::V3_4),
];

/// Hash functions: first version, hexadecimal digits.
const HASHES: &[(&str, SpecVersion, usize)] = &[
    ("sha512", SpecVersion::V3_0, 128),
    ("sha256", SpecVersion::V3_1, 64),
];

/// `ignition.config`
pub(super) fn merged_configurations(config: &CheckedNode<'_>, problems: &mut ProblemList) {
    require_sources(config, "merge", problems);
}

/// `ignition.security.tls`
pub(super) fn certificate_authorities(tls: &CheckedNode<'_>, problems: &mut ProblemList) {
    require_sources(tls, "certificateAuthorities", problems);
}

fn require_sources(parent: &CheckedNode<'_>, list: &str, problems: &mut ProblemList) {
    // 3.0 demands the source of certificates only.
    if parent.version == SpecVersion::V3_0 && list == "merge" {
        return;
    }
    for (index, node) in parent.items(list).iter().enumerate() {
        let item = CheckedNode { node, ..*parent };
        if item.is_blank("source") {
            let steps = [Member(list), Item(index), Member("source")];
            parent.refuse(problems, &steps, "a URL is needed here");
        }
    }
}

/// A configuration or a certificate.
pub(super) fn reference(reference: &CheckedNode<'_>, problems: &mut ProblemList) {
    if reference.version == SpecVersion::V3_0 {
        source(reference, problems);
    } else {
        resource(reference, problems);
    }
}

/// The contents of a file, a key, and since 3.1 every reference.
pub(super) fn resource(resource: &CheckedNode<'_>, problems: &mut ProblemList) {
    source(resource, problems);
    if let Some(compression) = resource.filled("compression")
        && compression != "gzip"
    {
        let compression = quoted(compression);
        let reason = format!("{compression} is not supported, expected gzip or nothing");
        resource.refuse(problems, &[Member("compression")], reason);
    }
    let hash = resource.node.find(&["verification", "hash"]);
    if hash.is_some() && !resource.has("source") {
        let steps = [Member("verification"), Member("hash")];
        resource.refuse(problems, &steps, "a hash needs a source to verify");
    }
    if !resource.items("httpHeaders").is_empty() {
        let scheme = resource.filled("source").and_then(GoUrl::parse);
        let is_http = scheme.is_some_and(|url| ["http", "https"].contains(&url.scheme.as_str()));
        if !is_http {
            let reason = "headers need a source that starts with http:// or https://";
            resource.refuse(problems, &[Member("httpHeaders")], reason);
        }
    }
}

fn source(resource: &CheckedNode<'_>, problems: &mut ProblemList) {
    let Some(source) = resource.filled("source") else {
        return;
    };
    if let Err(reason) = check_url(source, resource.version) {
        resource.refuse(problems, &[Member("source")], reason);
    }
}

/// The URL is not part of the reason: it may have credentials.
fn check_url(text: &str, version: SpecVersion) -> Result<(), String> {
    let url = GoUrl::parse(text).ok_or("not a URL")?;
    let known = SCHEMES.iter().find(|(scheme, _)| *scheme == url.scheme);
    match known {
        Some((_, since)) if *since <= version => {}
        Some((scheme, since)) => {
            return Err(format!(
                "scheme {scheme:?} is supported since version {since}, this configuration has {version}"
            ));
        }
        None => {
            let schemes = SCHEMES.iter().filter(|(_, since)| *since <= version);
            let schemes: Vec<_> = schemes.map(|(scheme, _)| *scheme).collect();
            let scheme = quoted(&url.scheme);
            let schemes = schemes.join(", ");
            return Err(format!(
                "scheme {scheme} is not supported, expected one of {schemes}"
            ));
        }
    }
    match url.scheme.as_str() {
        "data" => data_url::check(text).map_err(|reason| format!("data URL: {reason}")),
        "s3" => check_object_version(&url),
        "arn" => check_arn(&url).and_then(|()| check_object_version(&url)),
        _ => Ok(()),
    }
}

fn check_object_version(url: &GoUrl) -> Result<(), String> {
    if url.query_value("versionId").is_some_and(|id| id.is_empty()) {
        return Err("the parameter versionId is empty".to_owned());
    }
    Ok(())
}

fn check_arn(url: &GoUrl) -> Result<(), String> {
    let opaque = url.opaque.as_str();
    let parts: Vec<&str> = opaque.splitn(5, ':').collect();
    let is_object = match parts[..] {
        [_, "s3", _, _, resource] => {
            let needed = if resource.starts_with("accesspoint/") {
                2
            } else {
                1
            };
            opaque.matches('/').count() >= needed
        }
        _ => false,
    };
    if is_object {
        return Ok(());
    }
    Err("not the ARN of an S3 object, expected arn:<partition>:s3:::<bucket>/<key>".to_owned())
}

/// `httpHeaders[]`
pub(super) fn header(header: &CheckedNode<'_>, problems: &mut ProblemList) {
    if header.is_blank("name") {
        header.refuse(problems, &[Member("name")], "a header needs a name");
    }
    if header.text("value") == Some("") {
        let reason =
            "a header's value is not empty; without the member, merging removes the header";
        header.refuse(problems, &[Member("value")], reason);
    }
}

/// `verification`
pub(super) fn verification(verification: &CheckedNode<'_>, problems: &mut ProblemList) {
    let Some(hash) = verification.text("hash") else {
        return;
    };
    let version = verification.version;
    let at = [Member("hash")];
    let known = HASHES.iter().filter(|(_, since, _)| *since <= version);
    let expected: Vec<_> = known
        .clone()
        .map(|(name, _, digits)| format!("{name}- and {digits} hexadecimal digits"))
        .collect();
    let expected = format!("expected {}", expected.join(", or "));
    let (function, digits) = hash.split_once('-').unwrap_or((hash, ""));
    let length = known.clone().find(|(name, _, _)| *name == function);
    let Some((_, _, length)) = length else {
        return verification.refuse(problems, &at, format!("not a supported hash, {expected}"));
    };
    if digits.len() != *length {
        let found = digits.len();
        let reason = format!("the hash has {found} digits, {expected}");
        verification.refuse(problems, &at, reason);
    } else if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        verification.doubt(
            problems,
            &at,
            format!("no contents have this hash, {expected}"),
        );
    }
}

/// `ignition.proxy`
pub(super) fn proxy(proxy: &CheckedNode<'_>, problems: &mut ProblemList) {
    for name in ["httpProxy", "httpsProxy"] {
        let Some(text) = proxy.text(name) else {
            continue;
        };
        let scheme = GoUrl::parse(text).map(|url| url.scheme);
        match scheme.as_deref() {
            Some("https") => {}
            Some("http") if name == "httpProxy" => {}
            Some("http") => {
                let reason = "requests to https URLs reach this proxy without encryption";
                proxy.doubt(problems, &[Member(name)], reason);
            }
            _ => {
                let reason = "not a URL that starts with http:// or https://";
                proxy.refuse(problems, &[Member(name)], reason);
            }
        }
    }
}
