//! The manifest of a bundle.

use std::collections::BTreeSet;
use std::path::{Component, Path};

use model::Error;
use oci::Digest;
use serde::{Deserialize, Serialize};

/// Version of the file's layout.
pub const FORMAT: u32 = 1;
/// First member.
pub(crate) const MANIFEST: &str = "manifest.json";
/// Second member of signed bundles: the signature of the first one, ed25519.
pub(crate) const SIGNATURE: &str = "manifest.sig";
/// Last member of the head: the checksums of the members before it, in the format of `sha256sum`.
pub(crate) const SUMS: &str = "manifest.sha256";
/// Units: bytes. Some 100 000 members.
pub(crate) const MANIFEST_LIMIT_BYTES: u64 = 32 << 20;
/// Units: bytes. Largest member, so that sums of all members are exact.
pub(crate) const MEMBER_LIMIT_BYTES: u64 = 1 << 44;
/// Units: bytes. Longest path of a member: that of the plain tar header.
pub(crate) const PATH_LIMIT_BYTES: usize = 100;

/// First member of a bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BundleManifest {
    /// Version of the file's layout.
    pub format: u32,
    /// Version of the program and of the service images.
    pub version: String,
    /// Architecture of the program and of the service images, as the kernel names it.
    pub architecture: String,
    /// Length of the whole file. Units: bytes.
    pub size: u64,
    /// The images.
    pub images: Vec<BundledImage>,
    /// Images that manifests of the bundle name, and the places that name them.
    pub closure: Vec<ClosureImage>,
    /// Images of the local registry that manifests name, and the bundle does not have: the site gets them otherwise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub elsewhere: Vec<ClosureImage>,
    /// All members behind the head, in file order.
    pub members: Vec<BundleMember>,
}

/// A member of a bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BundleMember {
    /// Relative path with slashes.
    pub path: String,
    /// Place of its stored bytes in the file. Units: bytes.
    pub offset: u64,
    /// Units: bytes. As stored.
    pub size: u64,
    /// Hexadecimal. Of the stored bytes.
    pub sha256: String,
    /// Permission bits.
    pub mode: u32,
    /// Compression of the stored bytes.
    #[serde(default, skip_serializing_if = "Encoding::is_plain")]
    pub encoding: Encoding,
    /// Length without compression. Units: bytes.
    pub content_size: u64,
}

/// Compression of a member.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Encoding {
    /// None.
    #[default]
    Plain,
    /// Gzip.
    Gzip,
}

impl Encoding {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
    fn is_plain(&self) -> bool {
        *self == Self::Plain
    }
}

/// An image of a bundle, whose blobs are members in the OCI image layout.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BundledImage {
    /// Its name: `localhost/atoll/db:0.1.0`.
    pub name: String,
    /// Digest of its manifest or index.
    pub digest: Digest,
    /// Media type of its manifest or index.
    pub media_type: String,
    /// Length of its manifest or index. Units: bytes.
    pub size: u64,
    /// Its use.
    #[serde(rename = "use")]
    pub used: ImageUse,
    /// Digests of all its manifests and blobs.
    pub content: Vec<Digest>,
}

/// Use of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ImageUse {
    /// A service of the pod: loaded into the container engine.
    Service,
    /// Pulled by hosts and clusters: pushed into the local registry.
    Registry,
}

/// An image of the closure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClosureImage {
    /// The reference.
    pub image: String,
    /// Files that name it, each with the place in it.
    pub named_by: Vec<String>,
}

/// The members that every format has.
#[derive(Deserialize)]
struct FormatNumber {
    format: u32,
    #[serde(default)]
    version: String,
}

impl BundleManifest {
    /// Parses and checks a manifest.
    ///
    /// Errors: Invalid – malformed, of another format, or with unsafe or contradictory members.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let wrong = |reason: String| Error::invalid(MANIFEST, reason);
        // Other formats may have other members: the number is read first.
        let number: FormatNumber =
            serde_json::from_slice(bytes).map_err(|e| wrong(e.to_string()))?;
        if number.format != FORMAT {
            return Err(wrong(format!(
                "format {} is not supported, expected {FORMAT}: use the program of version {}, which is in the bundle \
                 (`tar -xf BUNDLE atoll`)",
                number.format, number.version
            )));
        }
        let manifest: Self = serde_json::from_slice(bytes).map_err(|e| wrong(e.to_string()))?;
        let mut paths = BTreeSet::new();
        for member in &manifest.members {
            let path = &member.path;
            if !is_safe(path) || [MANIFEST, SIGNATURE, SUMS].contains(&path.as_str()) {
                return Err(wrong(format!("unexpected member {path:?}")));
            }
            if !paths.insert(path) {
                return Err(wrong(format!("{path} is listed twice")));
            }
            if member.size.max(member.content_size) > MEMBER_LIMIT_BYTES {
                let reason = format!("{path} is larger than {MEMBER_LIMIT_BYTES} bytes");
                return Err(wrong(reason));
            }
            if member.encoding == Encoding::Plain && member.size != member.content_size {
                return Err(wrong(format!("{path} has two lengths")));
            }
        }
        Ok(manifest)
    }
}

/// Whether the path of a member stays below the target folder, and fits into a plain tar header.
pub(crate) fn is_safe(path: &str) -> bool {
    !path.is_empty()
        && path.len() <= PATH_LIMIT_BYTES
        && !path.ends_with('/')
        && !path.contains(['\\', '\0', '\n'])
        && Path::new(path)
            .components()
            .all(|component| matches!(component, Component::Normal(_)))
}
