//! Use cases of OS images: those of the settings, and those that administrators added, which image services ask for.

use std::sync::Arc;

use model::Error;
use model::versions::{AddedOsImage, CpuArchitecture, OfferedOsImage, OsImage, OsImageParams};
use url::Url;

use super::offer::CurrentOffer;
use crate::db::Database;
use crate::db::os_images::{self, OsImageRow};
use crate::db::tx;

/// OS images that may be added: each has a GiB.
pub(crate) const ADDED_OS_IMAGES: i64 = 50;

/// The OS images on offer.
#[derive(Debug)]
pub(crate) struct OsImageOffer {
    db: Database,
    offer: Arc<CurrentOffer>,
}

impl OsImageOffer {
    /// Offers those in the database beside those of `offer`.
    pub(super) fn new(db: Database, offer: Arc<CurrentOffer>) -> Self {
        Self { db, offer }
    }

    /// All OS images; those of the settings first, their addresses without secrets.
    ///
    /// Errors: those of the database.
    pub(crate) async fn list(&self) -> Result<Vec<OfferedOsImage>, Error> {
        let own = self.offer.own_os_images();
        let own = own.into_iter().map(|image| OfferedOsImage {
            image: AddedOsImage {
                image: OsImage {
                    url: without_secrets(&image.url),
                    ..image
                },
                ..AddedOsImage::default()
            },
            ..OfferedOsImage::default()
        });
        let added = self.rows().await?.into_iter().map(offered);
        let held = self.offer.held_os_images().into_iter();
        let held = held.map(|image| OfferedOsImage {
            image,
            is_found: true,
            ..OfferedOsImage::default()
        });
        Ok(own.chain(added).chain(held).collect())
    }

    /// Offers an OS image from now on, for the user of that name.
    ///
    /// Errors: Invalid; Conflict – one of the settings, or too many.
    pub(crate) async fn add(
        &self,
        user: &str,
        params: OsImageParams,
    ) -> Result<OfferedOsImage, Error> {
        let image = rules::versions::os_image(params)?;
        self.check_is_added(&image.image.openshift_version, image.image.cpu_architecture)?;
        let added = OsImageRow {
            image,
            added_by: user.to_owned(),
            added_at: service::clock::now(),
        };
        let is_added = tx("add OS image", async || {
            let mut transaction = self.db.pool()?.begin().await?;
            let is_added = os_images::put(&mut transaction, &added, ADDED_OS_IMAGES).await?;
            if is_added {
                transaction.commit().await?;
            }
            Ok(is_added)
        })
        .await?;
        if !is_added {
            let reason = format!("{ADDED_OS_IMAGES} OS images were added: remove one first");
            return Err(Error::conflict(reason));
        }
        self.read_added().await?;
        Ok(offered(added))
    }

    /// Ends the offer of an added OS image: its discovery images cannot be downloaded any more.
    ///
    /// Errors: NotFound; Conflict – one of the settings.
    pub(crate) async fn remove(
        &self,
        version: &str,
        architecture: CpuArchitecture,
    ) -> Result<(), Error> {
        let architecture = rules::versions::architecture(architecture);
        self.check_is_added(version, architecture)?;
        let is_removed = tx("remove OS image", async || {
            let mut connection = self.db.pool()?.acquire().await?;
            os_images::delete(&mut connection, version, architecture.as_str()).await
        })
        .await?;
        self.read_added().await?;
        if is_removed {
            return Ok(());
        }
        Err(Error::not_found("OS image", version))
    }

    /// Takes over the added OS images, also those that another replica added.
    ///
    /// Errors: those of the database.
    pub(crate) async fn read_added(&self) -> Result<(), Error> {
        let rows = self.rows().await?.into_iter();
        let images = rows.map(|row| row.image).collect();
        self.offer.set_added_os_images(images);
        Ok(())
    }

    async fn rows(&self) -> Result<Vec<OsImageRow>, Error> {
        tx("list OS images", async || {
            let mut connection = self.db.pool()?.acquire().await?;
            os_images::list(&mut connection).await
        })
        .await
    }

    fn check_is_added(&self, version: &str, architecture: CpuArchitecture) -> Result<(), Error> {
        let own = self.offer.own_os_images();
        let is_own = own.iter().any(|image| {
            let own_architecture = rules::versions::architecture(image.cpu_architecture);
            image.openshift_version == version && own_architecture == architecture
        });
        if is_own {
            let reason = format!(
                "{version} for {architecture} is in OS_IMAGES or the file of OS_IMAGES_FILE: change it there"
            );
            return Err(Error::conflict(reason));
        }
        Ok(())
    }
}

fn offered(row: OsImageRow) -> OfferedOsImage {
    OfferedOsImage {
        image: row.image,
        is_added: true,
        added_by: row.added_by,
        added_at: row.added_at.into(),
        ..OfferedOsImage::default()
    }
}

/// An address of the settings, whose login and query may be secrets.
fn without_secrets(address: &str) -> String {
    let Ok(mut url) = Url::parse(address) else {
        return String::new();
    };
    // Fails for addresses that cannot have one.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_query(None);
    url.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_settings_are_shown_without_secrets() {
        for (address, shown) in [
            ("https://a:b@c.example/d.iso?e=f", "https://c.example/d.iso"),
            ("file:///images/d.iso", "file:///images/d.iso"),
            ("oci://c.example:5000/d:e", "oci://c.example:5000/d:e"),
            ("d.iso", ""),
        ] {
            assert_eq!(without_secrets(address), shown);
        }
    }
}
