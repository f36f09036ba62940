//! Tags of pruned catalogs in the cache of the peer's v2: digests of the part of the configuration that prunes them.
//!
//! Source: oc-mirror v2, `internal/pkg/operator`; the serialisation is that of Go.

use md5::{Digest as _, Md5};
use model::Error;
use model::image_set::{
    IncludeBundle, IncludeChannel, IncludePackage, Instance, OperatorSelection,
};
use oci::{Digest, Tag, Transport};
use serde::{Serialize, Serializer};

/// The members that count, in the order of the peer.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Filter<'a> {
    #[serde(serialize_with = "null_when_empty")]
    packages: Vec<FilterPackage<'a>>,
    catalog: &'a str,
    #[serde(skip_serializing_if = "is_false")]
    full: bool,
    #[serde(skip_serializing_if = "is_false")]
    skip_dependencies: bool,
    #[serde(skip_serializing_if = "<[Instance]>::is_empty")]
    platforms: &'a [Instance],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FilterPackage<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    channels: Vec<FilterChannel<'a>>,
    #[serde(skip_serializing_if = "str::is_empty")]
    default_channel: &'a str,
    #[serde(flatten)]
    versions: Versions<'a>,
}

#[derive(Serialize)]
struct FilterChannel<'a> {
    name: &'a str,
    #[serde(flatten)]
    versions: Versions<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Versions<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    min_version: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    max_version: &'a str,
}

/// The tags of a pruned catalog: recent versions of the peer take the catalog by its digest, older ones as the configuration
/// names it.
///
/// Errors: Internal – it cannot be serialised.
pub(crate) fn filter_tags(
    operator: &OperatorSelection,
    digest: &Digest,
) -> Result<Vec<Tag>, Error> {
    let pinned = pinned(&operator.catalog, digest);
    let mut tags = vec![tag(operator, &pinned)?];
    let named = tag(operator, &operator.catalog)?;
    if !tags.contains(&named) {
        tags.push(named);
    }
    Ok(tags)
}

/// The catalog by its digest, without a tag; the name of a folder keeps its transport out, too.
fn pinned(catalog: &str, digest: &Digest) -> String {
    let (transport, written) = Transport::split(catalog);
    let name = written.split_once('@').map_or(written, |(name, _)| name);
    let name = match name.rsplit_once(':') {
        Some((name, tag)) if transport != Some(Transport::Oci) && !tag.contains('/') => name,
        _ => name,
    };
    format!("{name}@{digest}")
}

fn tag(operator: &OperatorSelection, catalog: &str) -> Result<Tag, Error> {
    let filter = Filter {
        packages: operator.packages.iter().map(FilterPackage::of).collect(),
        catalog,
        full: operator.full,
        skip_dependencies: operator.skip_dependencies,
        platforms: &operator.platforms,
    };
    let json = serde_json::to_string(&filter);
    let json = json.map_err(|e| Error::internal("writing the part of a catalog", e))?;
    format!("{:x}", Md5::digest(go_escaped(&json))).parse()
}

impl<'a> FilterPackage<'a> {
    fn of(package: &'a IncludePackage) -> Self {
        Self {
            name: &package.name,
            channels: package.channels.iter().map(FilterChannel::of).collect(),
            default_channel: &package.default_channel,
            versions: Versions::of(&package.versions),
        }
    }
}

impl<'a> FilterChannel<'a> {
    fn of(channel: &'a IncludeChannel) -> Self {
        Self {
            name: &channel.name,
            versions: Versions::of(&channel.versions),
        }
    }
}

impl<'a> Versions<'a> {
    fn of(versions: &'a IncludeBundle) -> Self {
        Self {
            min_version: &versions.min_version,
            max_version: &versions.max_version,
        }
    }
}

/// With the escapes of Go's encoder, which keeps JSON out of HTML.
fn go_escaped(json: &str) -> String {
    let escapes = [
        ('<', "\\u003c"),
        ('>', "\\u003e"),
        ('&', "\\u0026"),
        ('\u{2028}', "\\u2028"),
        ('\u{2029}', "\\u2029"),
    ];
    let escaped = |json: String, (character, escape): (char, &str)| json.replace(character, escape);
    escapes.into_iter().fold(json.to_owned(), escaped)
}

fn null_when_empty<S: Serializer>(
    packages: &[FilterPackage<'_>],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let some = Some(packages).filter(|it| !it.is_empty());
    some.serialize(serializer)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_false(value: &bool) -> bool {
    !value
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST: &str = "sha256:1f969b61188aa96f329d7490e35a921aeb440511304c3c808251c656ea4f9296";

    fn package(name: &str, min: &str, max: &str) -> IncludePackage {
        IncludePackage {
            name: name.into(),
            versions: IncludeBundle {
                min_version: min.into(),
                max_version: max.into(),
                ..IncludeBundle::default()
            },
            ..IncludePackage::default()
        }
    }

    /// The tags are those in archives of oc-mirror 4.22.
    #[test]
    fn tags_are_the_peers() {
        let channel = IncludeChannel {
            name: "stable".into(),
            versions: package("", "1.1.0", "").versions,
        };
        let channels = IncludePackage {
            channels: vec![channel],
            ..package("thing", "", "")
        };
        let both = vec![channels, package("zebra", "1.0.0", "1.0.0")];
        let index = "registry.example/redhat/thing-index";
        for (catalog, packages, full, expected) in [
            (
                format!("{index}:v4.16"),
                vec![package("thing", "1.0.0", "")],
                false,
                "c43cd98fe1a7d46a55755eb3e0bb5316",
            ),
            (
                format!("docker://{index}:v4.16"),
                both,
                false,
                "58dcf5a44d2e2c038e6e328eaee4fd13",
            ),
            (
                format!("{index}:v4.16"),
                Vec::new(),
                false,
                "623fb82f623c49ce7f2cf0027350933c",
            ),
            (
                "oci:///tmp/ocm/ocicat".to_owned(),
                vec![package("thing", "", "")],
                false,
                "6546f956fe05b7ef744077780a633c67",
            ),
        ] {
            let operator = OperatorSelection {
                catalog: catalog.clone(),
                packages,
                full,
                target_tag: "v9".into(),
                ..OperatorSelection::default()
            };
            let tags = filter_tags(&operator, &DIGEST.parse().unwrap()).unwrap();
            assert_eq!(tags[0].as_str(), expected, "{catalog}");
            assert_eq!(tags.len(), 2, "{catalog}");
        }
        let pinned = OperatorSelection {
            catalog: format!("{index}@{DIGEST}"),
            ..OperatorSelection::default()
        };
        let tags = filter_tags(&pinned, &DIGEST.parse().unwrap()).unwrap();
        assert_eq!(tags.len(), 1);
    }
}
