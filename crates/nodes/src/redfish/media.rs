//! Virtual media: finding the drive, ejecting, inserting. Source: DSP0268 VirtualMedia.

use reqwest::Method;
use serde_json::json;
use url::Url;

use super::bmc::Bmc;
use super::error::BmcError;
use super::http::RedfishRequest;
use super::insert_form::InsertForm;
use super::link::RedfishPath;
use super::media_slot::{MediaSlot, unsupported};
use super::timing::PollDeadline;

/// Media of one host that are read.
const MEDIA_LIMIT: usize = 16;

impl Bmc {
    /// The virtual CD drives that take images from the network, the preferred one first.
    ///
    /// Errors: Unsupported – there is none.
    pub async fn media(&mut self) -> Result<Vec<MediaSlot>, BmcError> {
        let paths = match &self.media_paths {
            Some(paths) => paths.clone(),
            None => self.find_media().await?,
        };
        let mut slots = Vec::new();
        for path in &paths {
            let document = self.session.get(path).await?;
            slots.extend(MediaSlot::of(document)?);
        }
        if slots.is_empty() {
            return Err(unsupported(
                "neither the system nor its manager has a virtual CD drive; the BMC may need a licence for it"
                    .to_owned(),
            ));
        }
        self.media_paths = Some(slots.iter().map(|it| it.document.path.clone()).collect());
        Ok(slots)
    }

    /// The media of the system and of its managers, without those that take no images.
    async fn find_media(&mut self) -> Result<Vec<RedfishPath>, BmcError> {
        let system = self.read_system().await?;
        let below_system = system.link("/VirtualMedia")?;
        let mut homes = Vec::new();
        for manager in self.managers.clone() {
            homes.extend(self.session.get(&manager).await?.link("/VirtualMedia")?);
        }
        let at = if self.quirks.has_media_below_system {
            0
        } else {
            homes.len()
        };
        homes.splice(at..at, below_system);
        let mut found: Vec<RedfishPath> = Vec::new();
        for home in homes {
            let members = match self.session.members(&home).await {
                // Links to collections that were moved below the system.
                Err(BmcError::NotFound { .. }) => continue,
                members => members?,
            };
            for member in members {
                let skipped = self.quirks.skipped_media;
                let is_skipped = skipped.iter().any(|it| member.name().starts_with(it));
                let is_known = found.iter().any(|it| it.is_same(&member));
                if !is_skipped && !is_known && found.len() < MEDIA_LIMIT {
                    found.push(member);
                }
            }
        }
        Ok(found)
    }

    /// Whether a drive takes this image, without a change. Units: bytes.
    ///
    /// Errors: Unsupported – no drive takes it.
    pub async fn check_image(
        &mut self,
        image: &Url,
        size_bytes: Option<u64>,
    ) -> Result<(), BmcError> {
        let mut refusal = None;
        for slot in self.media().await? {
            match slot.check(image, size_bytes) {
                Ok(()) => return Ok(()),
                Err(error) => refusal = refusal.or(Some(error)),
            }
        }
        refusal.map_or(Ok(()), Err)
    }

    /// Ejects the images of all drives, and reads that they are empty. Idempotent.
    ///
    /// Errors: NotApplied – an image stays inserted.
    pub async fn eject_images(&mut self) -> Result<(), BmcError> {
        for slot in self.media().await? {
            if slot.is_inserted {
                self.eject(slot).await?;
            }
        }
        Ok(())
    }

    /// Inserts an image into the first drive that takes it, and reads that it is there; other images are ejected. The query
    /// of the URL does not show in messages.
    ///
    /// Errors: Refused – by all drives; NotApplied – no drive reads as inserted.
    pub async fn insert_image(
        &mut self,
        image: &Url,
        size_bytes: Option<u64>,
    ) -> Result<MediaSlot, BmcError> {
        self.session.hide_tokens(image);
        let slots = self.media().await?;
        let is_there =
            |slot: &MediaSlot| slot.holds_exactly(image) && !self.quirks.shows_stale_media;
        if let Some(at) = slots.iter().position(is_there) {
            let mut others = slots;
            let slot = others.remove(at);
            for other in others.into_iter().filter(|it| it.is_inserted) {
                self.eject(other).await?;
            }
            return Ok(slot);
        }
        let mut refusal = None;
        let mut empty = Vec::new();
        for slot in slots {
            empty.push(if slot.is_inserted {
                self.eject(slot).await?
            } else {
                slot
            });
        }
        for slot in empty {
            let inserted = match slot.check(image, size_bytes) {
                Ok(()) => self.insert(slot, image).await,
                Err(error) => Err(error),
            };
            match inserted {
                Err(error) if leaves_other_drives(&error) => refusal = refusal.or(Some(error)),
                done => return done,
            }
        }
        Err(refusal.unwrap_or_else(|| unsupported("no drive takes the image".to_owned())))
    }

    /// Ejects the image of a drive; the drive as read afterwards.
    async fn eject(&mut self, slot: MediaSlot) -> Result<MediaSlot, BmcError> {
        let done = if let Some(action) = &slot.eject {
            // HPE demands a body.
            let request = RedfishRequest::new(Method::POST, action, Some(json!({})));
            self.session.act(&request).await
        } else {
            let body = json!({ "Image": null, "Inserted": false });
            self.session.patch(&slot.document, &body).await
        };
        let expected = |slot: &MediaSlot| !slot.is_inserted;
        let read = self.await_slot(&slot, done.is_ok(), expected).await?;
        if expected(&read) {
            return Ok(read);
        }
        // A refusal is the reason; of an accepted request, the state.
        done?;
        Err(BmcError::NotApplied {
            doing: "eject the medium",
            expected: "an empty drive".to_owned(),
            seen: read.content(),
            cause: String::new(),
        })
    }

    /// Inserts an image into an empty drive; the drive as read afterwards.
    async fn insert(&mut self, slot: MediaSlot, image: &Url) -> Result<MediaSlot, BmcError> {
        let cause = match self.send_insertion(&slot, image).await {
            Ok(()) => String::new(),
            Err(error) if error.is_uncertain() => format!("; {error}"),
            Err(error) => return Err(with_hint(error, image)),
        };
        let expected = |slot: &MediaSlot| slot.holds(image);
        let read = self.await_slot(&slot, true, expected).await?;
        if expected(&read) {
            return Ok(read);
        }
        Err(BmcError::NotApplied {
            doing: "insert the medium",
            expected: net::web::shown(image),
            seen: read.content(),
            cause,
        })
    }

    /// Sends an insertion, with other parameters after refusals, and again while the BMC still ejects.
    async fn send_insertion(&mut self, slot: &MediaSlot, image: &Url) -> Result<(), BmcError> {
        let settle = PollDeadline::new(self.session.timing.settle, self.session.timing.poll);
        let mut form = match slot.insert {
            Some(_) => self.quirks.insert,
            // Lenovo inserts nothing without the property.
            None => InsertForm::FULL,
        };
        let mut attempts = 1;
        loop {
            let body = form.body(image);
            let done = match &slot.insert {
                Some(action) => {
                    let request = RedfishRequest::new(Method::POST, action, Some(body));
                    self.session.act(&request).await
                }
                None => self.session.patch(&slot.document, &body).await,
            };
            let Err(BmcError::Refused {
                status, messages, ..
            }) = &done
            else {
                return done;
            };
            let named = form.after(messages);
            if named.is_none() && *status >= 500 {
                // iDRAC, until an eject has ended. Source: ironic, story 2008504.
                if !settle.wait(None).await {
                    return done;
                }
                continue;
            }
            let next = named.or_else(|| form.bare());
            let Some(next) = next.filter(|_| attempts < InsertForm::ATTEMPTS) else {
                return done;
            };
            form = next;
            attempts += 1;
        }
    }

    /// Reads a drive until it is as expected, or once unless `is_awaited`.
    async fn await_slot(
        &mut self,
        slot: &MediaSlot,
        is_awaited: bool,
        is_expected: impl Fn(&MediaSlot) -> bool,
    ) -> Result<MediaSlot, BmcError> {
        let deadline = PollDeadline::new(self.session.timing.settle, self.session.timing.poll);
        loop {
            let document = self.session.get(&slot.document.path).await?;
            let read = MediaSlot::of(document)?.unwrap_or_else(|| slot.clone());
            if is_expected(&read) || !is_awaited || !deadline.wait(None).await {
                return Ok(read);
            }
        }
    }
}

/// Whether another drive may take an image that one refused: some are for the console alone.
///
/// Source: ironic, redfish/boot.py (Cisco UCS).
fn leaves_other_drives(error: &BmcError) -> bool {
    matches!(
        error,
        BmcError::Refused {
            status: 400..=499,
            ..
        } | BmcError::NotFound { .. }
            | BmcError::Unsupported { .. }
    )
}

/// A refusal, with a hint for addresses that some BMCs do not take. Source: ironic, admin/drivers/redfish.rst.
fn with_hint(mut error: BmcError, image: &Url) -> BmcError {
    if let BmcError::Refused { reason, .. } = &mut error
        && image.query().is_some()
    {
        reason.push_str(" (the image's address has a query, which some BMCs do not take)");
    }
    error
}
