//! Paths in the storage tree of a distribution registry, which archives of the peer's v2 have inside.
//!
//! Source: distribution/distribution, `registry/storage/paths.go`; oc-mirror v2, `internal/pkg/archive`.

use oci::{Digest, Repository, Tag};

/// Folder of the tree.
pub(super) const ROOT: &str = "docker/registry/v2/";
const BLOBS: &str = "blobs/";
const REPOSITORIES: &str = "repositories/";
/// First number in the names of files.
const FIRST: usize = 1;

/// A file of the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TreeFile {
    /// The bytes of a blob or manifest.
    Blob(Digest),
    /// The digest that a tag has now.
    Tag(Repository, Tag),
    /// A manifest that the repository has.
    Manifest(Repository, Digest),
    /// A blob that the repository has.
    Layer(Repository, Digest),
    /// A digest that a tag has or had.
    TagHistory(Repository, Tag, Digest),
}

impl TreeFile {
    /// The file of a member; none for other members, and for digests that tags had.
    pub(super) fn parse(path: &str) -> Option<Self> {
        let path = path.strip_prefix(ROOT)?;
        if let Some(blob) = path.strip_prefix(BLOBS) {
            let (algorithm, rest) = blob.strip_suffix("/data")?.split_once('/')?;
            let (start, hex) = rest.split_once('/')?;
            let is_own = hex.starts_with(start);
            return is_own.then(|| digest(algorithm, hex).map(Self::Blob))?;
        }
        let link = path.strip_prefix(REPOSITORIES)?.strip_suffix("/link")?;
        if let Some((repository, digest)) = link.split_once("/_layers/") {
            return Some(Self::Layer(repository.parse().ok()?, linked(digest)?));
        }
        let (repository, manifest) = link.split_once("/_manifests/")?;
        let repository = repository.parse().ok()?;
        if let Some(digest) = manifest.strip_prefix("revisions/") {
            return Some(Self::Manifest(repository, linked(digest)?));
        }
        let tag = manifest.strip_prefix("tags/")?;
        if let Some((tag, digest)) = tag.split_once("/index/") {
            return Some(Self::TagHistory(
                repository,
                tag.parse().ok()?,
                linked(digest)?,
            ));
        }
        let tag = tag.strip_suffix("/current")?;
        Some(Self::Tag(repository, tag.parse().ok()?))
    }

    /// The path of its member.
    pub(super) fn path(&self) -> String {
        let linked = |digest: &Digest| format!("{}/{}", digest.algorithm().as_str(), digest.hex());
        let link = match self {
            Self::Blob(digest) => {
                let (algorithm, hex) = (digest.algorithm().as_str(), digest.hex());
                return format!("{ROOT}{BLOBS}{algorithm}/{}/{hex}/data", &hex[..2]);
            }
            Self::Layer(repository, digest) => {
                format!("{repository}/_layers/{}", linked(digest))
            }
            Self::Manifest(repository, digest) => {
                format!("{repository}/_manifests/revisions/{}", linked(digest))
            }
            Self::Tag(repository, tag) => format!("{repository}/_manifests/tags/{tag}/current"),
            Self::TagHistory(repository, tag, digest) => {
                format!(
                    "{repository}/_manifests/tags/{tag}/index/{}",
                    linked(digest)
                )
            }
        };
        format!("{ROOT}{REPOSITORIES}{link}/link")
    }
}

/// The name of a file of an archive; the first one has the number 0.
pub(super) fn file_name(number: usize) -> String {
    format!("mirror_{:06}.tar", number + FIRST)
}

/// The number of a file of an archive; nothing where it is called otherwise.
pub(super) fn file_number(name: &str) -> Option<usize> {
    let digits = name.strip_prefix("mirror_")?.strip_suffix(".tar")?;
    let number = digits.parse::<usize>().ok()?.checked_sub(FIRST)?;
    (file_name(number) == name).then_some(number)
}

fn linked(path: &str) -> Option<Digest> {
    let (algorithm, hex) = path.split_once('/')?;
    digest(algorithm, hex)
}

fn digest(algorithm: &str, hex: &str) -> Option<Digest> {
    format!("{algorithm}:{hex}").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_the_tree_are_parsed() {
        let digest = Digest::sha256(b"");
        let hex = digest.hex();
        let repository: Repository = "a/b".parse().unwrap();
        let tag = "v1".parse().unwrap();
        let below = "docker/registry/v2/repositories/a/b";
        for (path, file) in [
            (
                format!("docker/registry/v2/blobs/sha256/e3/{hex}/data"),
                TreeFile::Blob(digest.clone()),
            ),
            (
                format!("{below}/_layers/sha256/{hex}/link"),
                TreeFile::Layer(repository.clone(), digest.clone()),
            ),
            (
                format!("{below}/_manifests/revisions/sha256/{hex}/link"),
                TreeFile::Manifest(repository.clone(), digest.clone()),
            ),
            (
                format!("{below}/_manifests/tags/v1/current/link"),
                TreeFile::Tag(repository.clone(), tag),
            ),
            (
                format!("{below}/_manifests/tags/v1/index/sha256/{hex}/link"),
                TreeFile::TagHistory(repository, "v1".parse().unwrap(), digest.clone()),
            ),
        ] {
            assert_eq!(file.path(), path);
            assert_eq!(TreeFile::parse(&path), Some(file), "{path}");
        }
        for other in [
            format!("{below}/_uploads/x/data"),
            format!("docker/registry/v2/blobs/sha256/00/{hex}/data"),
            format!("working-dir/blobs/sha256/e3/{hex}/data"),
        ] {
            assert_eq!(TreeFile::parse(&other), None, "{other}");
        }
    }

    #[test]
    fn files_are_numbered_from_one() {
        assert_eq!(file_name(0), "mirror_000001.tar");
        assert_eq!(file_number("mirror_000012.tar"), Some(11));
        for other in [
            "mirror_000000.tar",
            "mirror_1.tar",
            "mirror_seq1_000000.tar",
            "mirror_+00001.tar",
            "mirror_000001.tar.part",
        ] {
            assert_eq!(file_number(other), None, "{other}");
        }
    }
}
