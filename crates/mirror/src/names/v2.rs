//! Names of images in the target as the peer's v2 gives them: an image that its source names by digest alone gets that digest
//! as its tag.
//!
//! Source: oc-mirror v2, the collectors below `internal/pkg`.

use model::Error;
use model::image_set::{ImageSelection, OperatorSelection};
use oci::{Digest, Reference, Repository, Tag, Transport};

use crate::image_source::ImageSource;

/// Tag of an image in a folder.
const LATEST: &str = "latest";
/// Units: characters. Longest tag. Source: OCI distribution specification.
const TAG_LIMIT: usize = 128;

/// The tag of a digest: `sha256-<hex>`, or as much of it as a tag may have.
pub fn tag_of_digest(digest: &Digest) -> Tag {
    let mut tag = format!("{}-{}", digest.algorithm().as_str(), digest.hex());
    tag.truncate(TAG_LIMIT);
    tag.parse()
        .expect("algorithm and hexadecimal digits are a tag")
}

/// The tag of an image with that reference: its own one, also beside a digest.
pub fn tag(source: &Reference) -> Tag {
    match (&source.tag, &source.digest) {
        (Some(tag), _) => tag.clone(),
        (None, Some(digest)) => tag_of_digest(digest),
        (None, None) => latest(),
    }
}

/// The repository and tag of an additional image.
///
/// Errors: Invalid – a malformed name.
pub fn additional(image: &ImageSelection, source: &Reference) -> Result<(Repository, Tag), Error> {
    let repository = match image.target_repo.as_str() {
        "" if source.registry.folder().is_some() => source.repository.clone(),
        "" => written_repository(&image.name).parse()?,
        other => other.parse()?,
    };
    let tag = match image.target_tag.as_str() {
        "" => tag(source),
        other => other.parse()?,
    };
    Ok((repository, tag))
}

/// The repository in the name of an image, as it is written: the part after the first `/`, or all of it.
fn written_repository(name: &str) -> &str {
    let path = ImageName::of(name).path;
    path.split_once('/').map_or(path, |(_, below)| below)
}

/// The repository of a catalog: that of a catalog in a folder is the last component of the folder's path.
///
/// Errors: Invalid – that component is no repository.
pub fn catalog_repository(operator: &OperatorSelection) -> Result<Repository, Error> {
    let name = ImageName::of(&operator.catalog);
    let repository = match operator.target_catalog.as_str() {
        "" if ImageSource::is_layout(&operator.catalog) => last(name.path).to_lowercase().parse(),
        "" => name
            .path
            .split_once('/')
            .map_or(name.path, |it| it.1)
            .parse(),
        other => other.parse(),
    };
    repository.map_err(|error: Error| {
        let reason = format!("{error}; choose a name with targetCatalog");
        Error::invalid(operator.catalog.clone(), reason)
    })
}

/// The tag of a catalog; none where it is given by digest alone.
///
/// Errors: Invalid – a malformed tag.
pub fn catalog_tag(operator: &OperatorSelection) -> Result<Option<Tag>, Error> {
    let name = ImageName::of(&operator.catalog);
    let given = Some(operator.target_tag.as_str()).filter(|tag| !tag.is_empty());
    match (given.or(name.tag), name.digest) {
        (Some(tag), _) => tag.parse().map(Some),
        (None, Some(_)) => Ok(None),
        (None, None) => Ok(Some(latest())),
    }
}

/// Whether a configuration names a catalog by digest alone.
pub fn is_by_digest(operator: &OperatorSelection) -> bool {
    catalog_tag(operator).is_ok_and(|tag| tag.is_none())
}

/// The digest that a configuration gives a catalog.
pub fn catalog_digest(operator: &OperatorSelection) -> Option<Digest> {
    ImageName::of(&operator.catalog).digest?.parse().ok()
}

/// Last component of a catalog's own name, without tag and digest: the folder of its files in a workspace.
pub fn catalog_component(operator: &OperatorSelection) -> &str {
    last(ImageName::of(&operator.catalog).path)
}

fn latest() -> Tag {
    LATEST.parse().expect("the word is a tag")
}

fn last(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, last)| last)
}

/// The parts of the own name of a catalog or image.
struct ImageName<'a> {
    /// With the host, or the path of the folder.
    path: &'a str,
    tag: Option<&'a str>,
    digest: Option<&'a str>,
}

impl<'a> ImageName<'a> {
    fn of(name: &'a str) -> Self {
        let written = Transport::split(name.trim()).1.trim_end_matches('/');
        let (named, digest) = match written.split_once('@') {
            Some((named, digest)) => (named, Some(digest)),
            None => (written, None),
        };
        let (path, tag) = match named.rsplit_once(':') {
            Some((path, tag)) if !tag.contains('/') => (path, Some(tag)),
            _ => (named, None),
        };
        Self { path, tag, digest }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_by_digest_alone_have_it_as_their_tag() {
        let digest = Digest::sha256(b"");
        let hex = digest.hex();
        for (source, expected) in [
            (format!("r.io/a/b@{digest}"), format!("sha256-{hex}")),
            (format!("r.io/a/b:v1@{digest}"), "v1".to_owned()),
            ("r.io/a/b:v1".to_owned(), "v1".to_owned()),
            ("r.io/a/b".to_owned(), "latest".to_owned()),
        ] {
            let reference: Reference = source.parse().unwrap();
            assert_eq!(tag(&reference).as_str(), expected, "{source}");
        }
    }

    #[test]
    fn catalogs_have_the_names_of_their_sources() {
        let digest = Digest::sha256(b"");
        let pinned = format!("r.io/ns/index@{digest}");
        let both = format!("r.io/ns/index:v4@{digest}");
        for (catalog, [target_catalog, target_tag], repository, tag, component) in [
            (
                "r.io:5000/ns/sub/index:v4",
                ["", ""],
                "ns/sub/index",
                Some("v4"),
                "index",
            ),
            (
                "docker://r.io/index:v4",
                ["", ""],
                "index",
                Some("v4"),
                "index",
            ),
            ("r.io/ns/index:v4", ["x/y", "z"], "x/y", Some("z"), "index"),
            (&pinned, ["", ""], "ns/index", None, "index"),
            (&both, ["", ""], "ns/index", Some("v4"), "index"),
            (
                "oci:///root/.ibm-pak/data/publish/latest/catalog-oci/ibm-catalog",
                ["", ""],
                "ibm-catalog",
                Some("latest"),
                "ibm-catalog",
            ),
            ("oci:///srv/Cat/", ["", "v9"], "cat", Some("v9"), "Cat"),
        ] {
            let operator = OperatorSelection {
                catalog: catalog.into(),
                target_catalog: target_catalog.into(),
                target_tag: target_tag.into(),
                ..OperatorSelection::default()
            };
            assert_eq!(
                catalog_repository(&operator).unwrap().as_str(),
                repository,
                "{catalog}"
            );
            let named = catalog_tag(&operator).unwrap();
            assert_eq!(named.as_ref().map(Tag::as_str), tag, "{catalog}");
            assert_eq!(catalog_component(&operator), component, "{catalog}");
        }
    }
}
