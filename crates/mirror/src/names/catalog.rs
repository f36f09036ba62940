//! Names of operator catalogs in the target, distinct for catalogs of one image.

use model::Error;
use model::image_set::OperatorSelection;
use oci::{Digest, Repository, Tag, Transport};

use super::tag_of_digest;
use crate::image_source::ImageSource;

/// Length of a digest's prefix in a tag. Units: hexadecimal digits.
const DIGITS: usize = 6;

/// Unique name of a catalog in metadata: its reference as written, without `oci://` or `docker://`. Renamed parts are
/// replaced; a renamed layout has no leading slash.
pub fn unique_name(operator: &OperatorSelection) -> String {
    let is_renamed = [
        &operator.target_catalog,
        &operator.target_name,
        &operator.target_tag,
    ]
    .iter()
    .any(|it| !it.is_empty());
    if !is_renamed {
        return Transport::split(&operator.catalog).1.to_owned();
    }
    let parts = CatalogNameParts::of(operator);
    let host = parts.host.map_or(String::new(), |host| format!("{host}/"));
    let path = &parts.path;
    match (&parts.tag, parts.digest) {
        (Some(tag), _) => format!("{host}{path}:{tag}"),
        (None, Some(digest)) => format!("{host}{path}@{digest}"),
        (None, None) => format!("{host}{path}"),
    }
}

/// The repository, below the target's namespace, and the tag of a rebuilt catalog. `original` is the digest of the catalog
/// that it is made from: it gives the tag where the configuration has none.
///
/// Errors: Invalid – the path of a folder is no repository.
pub fn rebuilt(
    operator: &OperatorSelection,
    original: &Digest,
) -> Result<(Repository, Tag), Error> {
    let (repository, tag) = named(operator)?;
    Ok((
        repository,
        tag.unwrap_or_else(|| tag_of_digest(original, DIGITS)),
    ))
}

/// As [`rebuilt`], with the tag that the configuration gives; nothing where the digest of the original does.
///
/// Errors: as [`rebuilt`].
pub fn named(operator: &OperatorSelection) -> Result<(Repository, Option<Tag>), Error> {
    let parts = CatalogNameParts::of(operator);
    let is_layout = ImageSource::is_layout(&operator.catalog);
    let whole = parts.path.to_lowercase();
    let repository = whole
        .parse::<Repository>()
        .or_else(|error| match whole.rsplit_once('/') {
            // The folders above, such as `.ibm-pak`, may be none of a repository.
            Some((_, last)) if is_layout => last.parse().map_err(|_| error),
            _ => Err(error),
        });
    let repository = repository.map_err(|error: Error| {
        let reason = format!("{error}; choose a name with targetCatalog");
        Error::invalid(operator.catalog.clone(), reason)
    })?;
    let tag = match parts.tag {
        Some(tag) => Some(tag.parse()?),
        None if is_layout || parts.digest.is_some() => None,
        None => Some("latest".parse()?),
    };
    Ok((repository, tag))
}

/// Whether it is a tag that the digest of a catalog gives.
pub fn is_of_digest(tag: &Tag) -> bool {
    let digits = tag.as_str().as_bytes();
    digits.len() == DIGITS && digits.iter().all(u8::is_ascii_hexdigit)
}

/// A catalog's name, renamed as the configuration says.
struct CatalogNameParts<'a> {
    /// Host of a catalog in a registry.
    host: Option<&'a str>,
    path: String,
    tag: Option<&'a str>,
    digest: Option<&'a str>,
}

impl<'a> CatalogNameParts<'a> {
    fn of(operator: &'a OperatorSelection) -> Self {
        let written = Transport::split(&operator.catalog).1.trim_matches('/');
        let (named, digest) = match written.split_once('@') {
            Some((named, digest)) => (named, Some(digest)),
            None => (written, None),
        };
        let (named, tag) = match named.rsplit_once(':') {
            Some((named, tag)) if !tag.contains('/') => (named, Some(tag)),
            _ => (named, None),
        };
        let (host, path) = match named.split_once('/') {
            Some((host, path)) if !ImageSource::is_layout(&operator.catalog) => (Some(host), path),
            _ => (None, named),
        };
        let path = match (
            operator.target_catalog.as_str(),
            operator.target_name.as_str(),
        ) {
            ("", "") => path.to_owned(),
            ("", name) => match path.rsplit_once('/') {
                Some((above, _)) => format!("{above}/{name}"),
                None => name.to_owned(),
            },
            (catalog, _) => catalog.to_owned(),
        };
        let own_tag = Some(operator.target_tag.as_str()).filter(|tag| !tag.is_empty());
        Self {
            host,
            path,
            tag: own_tag.or(tag),
            digest: digest.filter(|_| own_tag.is_none()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operator(
        catalog: &str,
        [target_catalog, target_name, target_tag]: [&str; 3],
    ) -> OperatorSelection {
        OperatorSelection {
            catalog: catalog.into(),
            target_catalog: target_catalog.into(),
            target_name: target_name.into(),
            target_tag: target_tag.into(),
            ..OperatorSelection::default()
        }
    }

    fn names(catalog: &str, renamed: [&str; 3]) -> [String; 2] {
        let operator = operator(catalog, renamed);
        let (repository, tag) = rebuilt(&operator, &Digest::sha256(b"")).unwrap();
        [unique_name(&operator), format!("{repository}:{tag}")]
    }

    #[test]
    fn catalogs_of_registries() {
        let digest = Digest::sha256(b"");
        let tagged = "r.io:5000/ns/sub/index:v4";
        let pinned = format!("r.io/ns/index@{digest}");
        for (catalog, renamed, unique, target) in [
            (tagged, ["", "", ""], tagged, "ns/sub/index:v4"),
            (
                "docker://r.io/ns/i:1",
                ["", "", ""],
                "r.io/ns/i:1",
                "ns/i:1",
            ),
            (tagged, ["a/b", "", ""], "r.io:5000/a/b:v4", "a/b:v4"),
            (tagged, ["a/b", "c", "d"], "r.io:5000/a/b:d", "a/b:d"),
            (
                tagged,
                ["", "c", ""],
                "r.io:5000/ns/sub/c:v4",
                "ns/sub/c:v4",
            ),
            (
                tagged,
                ["", "", "d"],
                "r.io:5000/ns/sub/index:d",
                "ns/sub/index:d",
            ),
            ("r.io/i:1", ["", "c", ""], "r.io/c:1", "c:1"),
            ("r.io/ns/i", ["", "", ""], "r.io/ns/i", "ns/i:latest"),
            (&pinned, ["", "", ""], &pinned, "ns/index:e3b0c4"),
            (
                &pinned,
                ["a", "", ""],
                &format!("r.io/a@{digest}"),
                "a:e3b0c4",
            ),
            (&pinned, ["", "", "d"], "r.io/ns/index:d", "ns/index:d"),
        ] {
            assert_eq!(
                names(catalog, renamed),
                [unique, target],
                "{catalog} {renamed:?}"
            );
        }
    }

    #[test]
    fn catalogs_in_folders() {
        for (catalog, renamed, unique, target) in [
            ("oci:///Srv/cat", ["", "", ""], "/Srv/cat", "srv/cat:e3b0c4"),
            ("oci://oci/cat:v9", ["", "", ""], "oci/cat:v9", "oci/cat:v9"),
            (
                "oci:///root/.ibm-pak/data/publish/Cloud-Catalog",
                ["", "", "v1"],
                "root/.ibm-pak/data/publish/Cloud-Catalog:v1",
                "cloud-catalog:v1",
            ),
            ("oci:///srv/cat", ["", "", "v9"], "srv/cat:v9", "srv/cat:v9"),
            (
                "oci:///srv/cat",
                ["", "other", ""],
                "srv/other",
                "srv/other:e3b0c4",
            ),
            (
                "oci:///srv/cat:v9",
                ["def/cat", "", ""],
                "def/cat:v9",
                "def/cat:v9",
            ),
        ] {
            assert_eq!(
                names(catalog, renamed),
                [unique, target],
                "{catalog} {renamed:?}"
            );
        }
    }

    #[test]
    fn a_folder_that_is_no_repository_needs_a_name() {
        let wrong = operator("oci:///srv/my catalog", ["", "", ""]);
        let refused = rebuilt(&wrong, &Digest::sha256(b""))
            .unwrap_err()
            .to_string();
        assert!(refused.contains("targetCatalog"), "{refused}");
    }
}
