//! Virtual media: finding the drive, ejecting, inserting. Source: DSP0268 VirtualMedia.

use net::web::shown;
use reqwest::Method;
use serde_json::{Value, json};
use url::Url;

use super::bmc::Bmc;
use super::error::{BmcError, InsertAttempt, not_inserted};
use super::http::RedfishRequest;
use super::insert_form::{InsertForm, InsertWay};
use super::link::RedfishPath;
use super::media_slot::MediaSlot;
use super::remote_media::check_ami_setting;
use super::timing::PollDeadline;

/// Media of one host that are read.
const MEDIA_LIMIT: usize = 16;
/// Attempts of one image, over drives and ways: each waits until the drive settles.
const ATTEMPT_LIMIT: usize = 8;

impl Bmc {
    /// The virtual CD drives that take images from the network, the preferred one first.
    ///
    /// Errors: Unsupported – there is none, or they are switched off.
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
            return Err(self.without_drives().await);
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
            let manager = self.session.get(&manager).await?;
            check_ami_setting(&manager, &system)?;
            homes.extend(manager.link("/VirtualMedia")?);
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
    /// Errors: NotInserted – no drive holds it, with all attempts; of a single attempt its own.
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
        let mut drives = Vec::new();
        for slot in slots {
            drives.push(if slot.is_inserted {
                self.eject(slot).await?
            } else {
                slot
            });
        }
        self.insert_into_any(drives, image, size_bytes).await
    }

    /// Tries each way on each of the empty drives, until one holds the image.
    async fn insert_into_any(
        &mut self,
        mut drives: Vec<MediaSlot>,
        image: &Url,
        size_bytes: Option<u64>,
    ) -> Result<MediaSlot, BmcError> {
        let mut attempts = Vec::new();
        for way in InsertWay::ALL {
            let mut remaining = Vec::new();
            for slot in drives {
                if !slot.has_way(way) {
                    remaining.push(slot);
                    continue;
                }
                let inserted = match slot.check(image, size_bytes) {
                    Ok(()) => self.insert(&slot, way, image).await,
                    Err(error) => Err(error),
                };
                let error = match inserted {
                    Ok(slot) => return Ok(slot),
                    Err(error) => error,
                };
                let leaves_others = InsertAttempt::leaves_others(&error);
                let is_retried =
                    matches!(error, BmcError::NotApplied { .. }) || slot.image.is_some();
                attempts.push(InsertAttempt {
                    drive: slot.name.clone(),
                    way,
                    error,
                });
                if !leaves_others || attempts.len() == ATTEMPT_LIMIT {
                    return Err(not_inserted(shown(image), attempts));
                }
                if is_retried {
                    self.reset_drive(&slot).await;
                    remaining.push(slot);
                }
            }
            drives = remaining;
        }
        Err(not_inserted(shown(image), attempts))
    }

    /// Ejects an image that a drive may hold without showing it: AMI refuses one that an empty drive still names. A refusal is
    /// the usual answer of an empty drive.
    async fn reset_drive(&mut self, slot: &MediaSlot) {
        if let Err(error) = self.send_ejection(slot).await {
            tracing::debug!(drive = %slot.name, %error, "an empty drive was not ejected");
        }
    }

    /// Ejects the image of a drive; the drive as read afterwards.
    async fn eject(&mut self, slot: MediaSlot) -> Result<MediaSlot, BmcError> {
        let mut done = self.send_ejection(&slot).await;
        let is_empty = |slot: &MediaSlot| !slot.is_inserted;
        let mut read = self.await_slot(&slot, done.is_ok(), is_empty).await?;
        if !is_empty(&read) && slot.eject.is_some() {
            let written = self.session.patch(&read.document, &no_image()).await;
            if written.is_ok() {
                read = self.await_slot(&slot, true, is_empty).await?;
                done = written;
            }
        }
        if is_empty(&read) {
            return Ok(read);
        }
        // A refusal is the reason; of an accepted request, the state.
        done?;
        Err(BmcError::NotApplied {
            doing: "eject the medium",
            expected: format!("an empty drive {}", slot.name),
            seen: read.content(),
            cause: String::new(),
        })
    }

    async fn send_ejection(&mut self, slot: &MediaSlot) -> Result<(), BmcError> {
        if let Some(action) = &slot.eject {
            // HPE demands a body.
            let request = RedfishRequest::new(Method::POST, action, Some(json!({})));
            self.session.act(&request).await
        } else {
            self.session.patch(&slot.document, &no_image()).await
        }
    }

    /// Inserts an image into an empty drive; the drive as read afterwards.
    async fn insert(
        &mut self,
        slot: &MediaSlot,
        way: InsertWay,
        image: &Url,
    ) -> Result<MediaSlot, BmcError> {
        let cause = match self.send_insertion(slot, way, image).await {
            Ok(()) => String::new(),
            Err(error) if error.is_uncertain() => format!("; {error}"),
            Err(error) => return Err(with_hint(error, image)),
        };
        let expected = |slot: &MediaSlot| slot.holds(image);
        let read = self.await_slot(slot, true, expected).await?;
        if expected(&read) {
            return Ok(read);
        }
        Err(BmcError::NotApplied {
            doing: "insert the medium",
            expected: shown(image),
            seen: read.content(),
            cause,
        })
    }

    /// Sends an insertion, with other parameters after refusals, and again while the BMC still ejects.
    async fn send_insertion(
        &mut self,
        slot: &MediaSlot,
        way: InsertWay,
        image: &Url,
    ) -> Result<(), BmcError> {
        let settle = PollDeadline::new(self.session.timing.settle, self.session.timing.poll);
        let action = slot
            .insert
            .as_ref()
            .filter(|_| way != InsertWay::Properties);
        let mut form = way.form(self.quirks.insert);
        let mut attempts = 1;
        loop {
            let body = form.body(image);
            let done = match action {
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

/// The properties of an empty drive.
fn no_image() -> Value {
    json!({ "Image": null, "Inserted": false })
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
