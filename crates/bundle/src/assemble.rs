//! Everything of a bundle in its order: program, manifests, images, content.

use std::path::Path;

use mirror::archive::{self, Signer};
use model::Error;
use oci_client::client::BlobSource;

use crate::archives::ArchivedImages;
use crate::closure::is_of_local_registry;
use crate::images::ImageSet;
use crate::manifest::{BundleManifest, FORMAT};
use crate::writer::{PlannedContent, write};

/// Name of the program.
pub const PROGRAM: &str = "atoll";
/// Folder of manifests and settings.
pub const DEPLOY: &str = "deploy/";
/// Folder of mirror archives, with a folder for each set: `atoll mirror` reads them in the bundle, too.
pub const ARCHIVES: &str = "archives/";
/// Folder of boot images.
pub const BOOT_IMAGES: &str = "images/";
/// Their entries of `OS_IMAGES`.
pub const BOOT_IMAGE_LIST: &str = "boot-images.json";
const PROGRAM_MODE: u32 = 0o755;

/// Content of a bundle.
#[derive(Debug, Default)]
pub struct BundleContent {
    /// The images.
    pub images: ImageSet,
    /// Manifests and settings, by their path below [`DEPLOY`].
    pub manifests: Vec<(String, String)>,
    /// Further members.
    pub others: Vec<PlannedContent>,
    /// Number of archive sets.
    pub archive_sets: usize,
    /// Images of the archives.
    pub archived: ArchivedImages,
    /// Whether images of the local registry may be absent: the site gets them otherwise.
    pub is_registry_elsewhere: bool,
}

impl BundleContent {
    /// Adds the program.
    pub fn add_program(&mut self, path: &Path) {
        self.others.insert(
            0,
            PlannedContent {
                mode: PROGRAM_MODE,
                ..PlannedContent::file(PROGRAM, path)
            },
        );
    }

    /// Adds the archives of a set. Sets are published in the order in which they were added.
    ///
    /// Blocking. Errors: those of the set.
    pub fn add_archives(&mut self, path: &Path) -> Result<(), Error> {
        let set = archive::Set::open(path)?;
        self.archive_sets += 1;
        let number = self.archive_sets;
        for file in set.files() {
            let (Some(name), Some(member)) = (file.name(), file.local()) else {
                return Err(Error::invalid("archives", "a name is not UTF-8"));
            };
            self.others.push(PlannedContent {
                source: BlobSource::Part {
                    path: member.file.clone(),
                    offset: member.start,
                    size: member.size,
                },
                ..PlannedContent::text(format!("{ARCHIVES}{number:02}/{name}"), "")
            });
        }
        if self.is_registry_elsewhere {
            self.archived.add_previous(&set)?;
        }
        self.archived.add(&set)
    }

    /// Computes the closure and writes the bundle.
    ///
    /// Errors: Invalid – images that are named and not inside; as [`write`].
    pub async fn write(
        self,
        target: &Path,
        heading: BundleHeading<'_>,
        signer: Option<&Signer>,
        progress: &mut (dyn FnMut(u64) + Send),
    ) -> Result<BundleManifest, Error> {
        let mut references = self.archived.references.clone();
        for (path, text) in &self.manifests {
            references.find(path, text)?;
        }
        references.find_in_images(&self.images).await?;
        let is_elsewhere = |image: &str| self.is_registry_elsewhere && is_of_local_registry(image);
        let (closure, elsewhere) =
            references.closure(&self.images, &self.archived, is_elsewhere)?;
        let manifest = BundleManifest {
            format: FORMAT,
            version: heading.version.to_owned(),
            architecture: heading.architecture.to_owned(),
            size: 0,
            images: self.images.images().to_vec(),
            closure,
            elsewhere,
            members: Vec::new(),
        };
        let mut contents = self.others;
        // Behind the program, which `tar -xf BUNDLE atoll` finds at once.
        let at = usize::from(contents.first().is_some_and(|first| first.path == PROGRAM));
        let texts = self.manifests.into_iter();
        let texts = texts.map(|(path, text)| PlannedContent::text(format!("{DEPLOY}{path}"), text));
        contents.splice(at..at, texts.chain(self.images.contents()));
        write(target, manifest, &contents, signer, progress).await
    }
}

/// Version and architecture of a bundle.
#[derive(Debug, Clone, Copy)]
pub struct BundleHeading<'a> {
    /// Version of the program.
    pub version: &'a str,
    /// Architecture, as the kernel names it.
    pub architecture: &'a str,
}
