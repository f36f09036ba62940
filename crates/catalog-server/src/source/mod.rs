//! Where catalogs come from: folders, images in registries, images in folders.
//!
//! A source is asked what is there now, and then for that very content: what a tag is moved to meanwhile, or what is
//! written into a folder while it is read, never gets half into a catalog.

mod folder;
mod image;
mod staging;

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use model::Error;
use oci::image::{Layout, Place};
use oci::{Client, Digest, Reference};

pub use staging::Staging;

/// Before the folder of an image layout.
const LAYOUT: &str = "oci:";
/// Before an image, as some tools write it.
const REGISTRY: &str = "docker://";

/// Units: characters. As many of a digest as tell a few images from each other.
const NAME_LENGTH: usize = 16;

/// Where a catalog comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A folder with its files.
    Folder(PathBuf),
    /// An image with them.
    Registry(Reference),
    /// An image that lies in a folder.
    Layout(Layout),
}

/// What was at a source at one moment: changes with its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revision(String);

/// The files of a catalog. Those that were taken out of an image go with this.
#[derive(Debug)]
pub struct Content {
    folder: PathBuf,
    _staging: Option<Staging>,
}

impl Source {
    /// What is there now.
    ///
    /// Errors: NotFound – nothing; Unavailable, Unauthenticated, Forbidden – the registry's; Internal – a folder that
    /// cannot be read.
    pub async fn revision(&self, client: &Client) -> Result<Revision, Error> {
        match self.place(client) {
            Some(place) => Ok(Revision(place.digest().await?.to_string())),
            None => folder::stamp(self.folder()).await.map(Revision),
        }
    }

    /// The files of `revision`; those of an image are put below `scratch`.
    ///
    /// Errors: as [`Self::revision`]; Invalid – an image without a catalog, or with files that lead out of it;
    /// TooLarge.
    pub async fn content(
        &self,
        client: &Client,
        revision: &Revision,
        scratch: &Path,
    ) -> Result<Content, Error> {
        let Some(place) = self.place(client) else {
            return Ok(Content {
                folder: self.folder().to_owned(),
                _staging: None,
            });
        };
        let staging = image::extract(&place, &revision.0.parse()?, scratch).await?;
        Ok(Content {
            folder: staging.path().join(image::CATALOG),
            _staging: Some(staging),
        })
    }

    /// Name of the file for the cache of the catalog `name` from here. That of a folder is found again when the folder was
    /// moved; that of an image tells by its name alone which image it is of.
    pub fn cache_file(&self, name: &str) -> String {
        if matches!(self, Self::Folder(_)) {
            return format!("{name}.cache");
        }
        let digest = Digest::sha256(self.to_string().as_bytes());
        format!("{name}-{}.cache", &digest.hex()[..NAME_LENGTH])
    }

    /// Whether what is there can ever be something else.
    pub fn is_fixed(&self) -> bool {
        matches!(self, Self::Registry(reference) if reference.digest.is_some())
    }

    fn place(&self, client: &Client) -> Option<Place> {
        match self {
            Self::Folder(_) => None,
            Self::Layout(layout) => Some(Place::Layout(layout.clone())),
            Self::Registry(reference) => Some(Place::Registry {
                client: client.clone(),
                reference: reference.clone(),
            }),
        }
    }

    fn folder(&self) -> &Path {
        match self {
            Self::Folder(folder) | Self::Layout(Layout { folder, .. }) => folder,
            Self::Registry(_) => Path::new(""),
        }
    }
}

impl Revision {
    /// Of what nobody knows any more what it was.
    pub(crate) fn unknown() -> Self {
        Self(String::new())
    }

    pub(crate) fn is_known(&self) -> bool {
        !self.0.is_empty()
    }
}

impl Content {
    /// Those in a folder that stays.
    pub fn of_folder(folder: PathBuf) -> Self {
        Self {
            folder,
            _staging: None,
        }
    }

    /// The folder with the files.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

impl FromStr for Source {
    type Err = String;

    /// Images are told from folders by the host that their names begin with.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is neither a folder nor an image");
        if let Some(layout) = text.strip_prefix(LAYOUT) {
            return self::layout(layout).ok_or_else(wrong).map(Self::Layout);
        }
        if let Some(image) = text.strip_prefix(REGISTRY) {
            return image
                .parse()
                .map(Self::Registry)
                .map_err(|e: Error| e.to_string());
        }
        if text.is_empty() {
            return Err(wrong());
        }
        if text.starts_with(['/', '.']) {
            return Ok(Self::Folder(text.into()));
        }
        match text.parse() {
            Ok(reference) => Ok(Self::Registry(reference)),
            // A name with a tag or digest cannot be meant as a folder.
            Err(error) if text.contains([':', '@']) => Err(Error::to_string(&error)),
            Err(_) => Ok(Self::Folder(text.into())),
        }
    }
}

fn layout(text: &str) -> Option<Layout> {
    let (folder, tag) = match text.rsplit_once(':') {
        Some((folder, tag)) if !tag.contains('/') => (folder, Some(tag.parse().ok()?)),
        _ => (text, None),
    };
    (!folder.is_empty()).then(|| Layout {
        folder: folder.into(),
        tag,
    })
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(folder) => folder.display().fmt(f),
            Self::Registry(reference) => reference.fmt(f),
            Self::Layout(layout) => write!(f, "{LAYOUT}{layout}"),
        }
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_told_apart() {
        for (text, is_right) in [
            (
                "/configs",
                (|s| matches!(s, Source::Folder(_))) as fn(&Source) -> bool,
            ),
            ("./a.b/c", |s| matches!(s, Source::Folder(_))),
            ("configs", |s| matches!(s, Source::Folder(_))),
            ("/odd:name", |s| matches!(s, Source::Folder(_))),
            ("a.b/c:v1", |s| matches!(s, Source::Registry(_))),
            ("docker://localhost:5000/c", |s| {
                matches!(s, Source::Registry(_))
            }),
            (
                "oci:/a/b",
                |s| matches!(s, Source::Layout(l) if l.tag.is_none()),
            ),
            (
                "oci:/a/b:v1",
                |s| matches!(s, Source::Layout(l) if l.tag.is_some()),
            ),
        ] {
            let source: Source = text.parse().unwrap();
            assert!(is_right(&source), "{text}: {source:?}");
            assert_eq!(source.to_string(), text.trim_start_matches(REGISTRY));
        }
        for wrong in [
            "",
            "oci:",
            "oci:/a:-x",
            "docker://",
            "a.b/c:d:e",
            "name:tag",
        ] {
            assert!(wrong.parse::<Source>().is_err(), "{wrong}");
        }
    }
}
