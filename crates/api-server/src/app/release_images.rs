//! Use cases of release images: those of the settings, and those that administrators added.

use std::sync::Arc;

use model::Error;
use model::versions::{CpuArchitecture, OfferedRelease, ReleaseImage, ReleaseImageParams};

use super::offer::CurrentOffer;
use crate::db::Database;
use crate::db::release_images::{self, AddedRelease};
use crate::db::tx;

/// Release images that may be added.
pub(crate) const ADDED_RELEASES: i64 = 200;

/// The release images on offer.
#[derive(Debug)]
pub(crate) struct ReleaseOffer {
    db: Database,
    offer: Arc<CurrentOffer>,
    /// Those of the settings.
    own: Vec<ReleaseImage>,
}

impl ReleaseOffer {
    /// Offers `own` beside those in the database.
    pub(super) fn new(db: Database, offer: Arc<CurrentOffer>, own: Vec<ReleaseImage>) -> Self {
        Self { db, offer, own }
    }

    /// All release images; those of the settings first, else those of the registry last, with the images that they lack.
    ///
    /// Errors: those of the database.
    pub(crate) async fn list(&self) -> Result<Vec<OfferedRelease>, Error> {
        let added = self.added().await?;
        let own = self.own.iter();
        let has_default = added.iter().any(|added| added.image.default);
        let own = own.map(|image| OfferedRelease {
            image: ReleaseImage {
                // A default that was added takes its place.
                default: image.default && !has_default,
                ..image.clone()
            },
            ..OfferedRelease::default()
        });
        let added = added.into_iter().map(|added| OfferedRelease {
            image: added.image,
            is_added: true,
            added_by: added.added_by,
            added_at: added.added_at.into(),
            ..OfferedRelease::default()
        });
        let held = if self.own.is_empty() {
            registry_content::offered_releases(&self.offer.content())
        } else {
            Vec::new()
        };
        Ok(own.chain(added).chain(held).collect())
    }

    /// Offers a release image from now on, for the user of that name.
    ///
    /// Errors: Invalid; Conflict – one of the settings, or too many.
    pub(crate) async fn add(
        &self,
        user: &str,
        params: ReleaseImageParams,
    ) -> Result<OfferedRelease, Error> {
        let image = rules::versions::release_image(params)?;
        self.check_is_added(&image.version, image.cpu_architecture)?;
        let added = AddedRelease {
            image,
            added_by: user.to_owned(),
            added_at: service::clock::now(),
        };
        let is_added = tx("add release image", async || {
            let mut transaction = self.db.pool()?.begin().await?;
            let is_added = release_images::put(&mut transaction, &added, ADDED_RELEASES).await?;
            if is_added {
                transaction.commit().await?;
            }
            Ok(is_added)
        })
        .await?;
        if !is_added {
            let reason = format!("{ADDED_RELEASES} release images were added: remove one first");
            return Err(Error::conflict(reason));
        }
        self.read_added().await?;
        Ok(OfferedRelease {
            image: added.image,
            is_added: true,
            added_by: added.added_by,
            added_at: added.added_at.into(),
            ..OfferedRelease::default()
        })
    }

    /// Ends the offer of an added release image; clusters keep theirs.
    ///
    /// Errors: NotFound; Conflict – one of the settings.
    pub(crate) async fn remove(
        &self,
        version: &str,
        architecture: CpuArchitecture,
    ) -> Result<(), Error> {
        self.check_is_added(version, architecture)?;
        let is_removed = tx("remove release image", async || {
            let mut connection = self.db.pool()?.acquire().await?;
            release_images::delete(&mut connection, version, architecture.as_str()).await
        })
        .await?;
        self.read_added().await?;
        if is_removed {
            return Ok(());
        }
        Err(Error::not_found("release image", version))
    }

    /// Takes over the added release images, also those that another replica added.
    ///
    /// Errors: those of the database.
    pub(crate) async fn read_added(&self) -> Result<(), Error> {
        let added = self.added().await?;
        let images: Vec<ReleaseImage> = added.into_iter().map(|added| added.image).collect();
        self.offer.set_added_releases(images);
        Ok(())
    }

    async fn added(&self) -> Result<Vec<AddedRelease>, Error> {
        tx("list release images", async || {
            let mut connection = self.db.pool()?.acquire().await?;
            release_images::list(&mut connection).await
        })
        .await
    }

    fn check_is_added(&self, version: &str, architecture: CpuArchitecture) -> Result<(), Error> {
        let is_own = self
            .own
            .iter()
            .any(|image| image.version == version && image.cpu_architecture == architecture);
        if is_own {
            let reason = format!(
                "{version} for {architecture} is in RELEASE_IMAGES: change the settings, and restart the server"
            );
            return Err(Error::conflict(reason));
        }
        Ok(())
    }
}
