//! Boot source of the next start. Source: DSP0268 ComputerSystem, Boot.

use std::fmt;

use serde::Serialize;
use serde_json::{Map, Value, json};
use url::Url;

use super::access::FirmwareMode;
use super::bmc::Bmc;
use super::document::RedfishDocument;
use super::error::BmcError;
use super::image_address::shown_address;
use super::quirks::{BmcQuirks, OverrideModeUse, VirtualCdBoot};
use super::timing::PollDeadline;

/// Boot source of the next start.
#[derive(Clone, PartialEq, Eq)]
pub enum BootTarget {
    /// The virtual CD.
    VirtualCd,
    /// An image or program by UEFI HTTP boot.
    UefiHttp(Url),
    /// The disk.
    Disk,
}

impl fmt::Debug for BootTarget {
    /// Without the query of an address, which holds a token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::VirtualCd => f.write_str("VirtualCd"),
            Self::UefiHttp(uri) => f
                .debug_tuple("UefiHttp")
                .field(&net::web::shown(uri))
                .finish(),
            Self::Disk => f.write_str("Disk"),
        }
    }
}

/// The boot override as read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BootOverride {
    /// `Cd`, `UefiHttp`, `Hdd`, `None` …
    pub target: Option<String>,
    /// `Once`, `Continuous` or `Disabled`.
    pub enabled: Option<String>,
    /// `UEFI` or `Legacy`.
    pub mode: Option<String>,
    /// Address of UEFI HTTP boot, without query and token.
    pub http_uri: Option<String>,
    /// Targets that the BMC names.
    pub targets: Vec<String>,
}

impl BootOverride {
    pub(super) fn of(document: &RedfishDocument) -> Self {
        let uri = document.text("/Boot/HttpBootUri");
        // sushy-tools writes a missing one as a word.
        let uri = uri.filter(|uri| *uri != "None");
        Self {
            target: document.owned_text("/Boot/BootSourceOverrideTarget"),
            enabled: document.owned_text("/Boot/BootSourceOverrideEnabled"),
            mode: document.owned_text("/Boot/BootSourceOverrideMode"),
            http_uri: uri.map(shown_address),
            targets: document
                .texts("/Boot/BootSourceOverrideTarget@Redfish.AllowableValues")
                .unwrap_or_default(),
        }
    }

    /// Whether a start would not boot from the disk first because of the override.
    pub fn leaves_disk(&self) -> bool {
        let is_disk = |target: &String| matches!(target.as_str(), "None" | "Hdd");
        let is_on = self.enabled.as_deref().is_some_and(|it| it != "Disabled");
        is_on && !self.target.as_ref().is_none_or(is_disk)
    }

    fn shown(&self) -> String {
        let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| "nothing".to_owned());
        let uri = self.http_uri.as_ref().map(|uri| format!(" at {uri}"));
        format!(
            "{} {}{}",
            or_none(&self.target),
            or_none(&self.enabled),
            uri.unwrap_or_default()
        )
    }
}

/// A change of the override: the properties to write and to read back.
#[derive(Clone, PartialEq, Eq)]
struct OverrideChange {
    target: String,
    enabled: &'static str,
    http_uri: Option<String>,
}

impl OverrideChange {
    /// The change for one boot.
    ///
    /// Errors: Unsupported – the BMC names its targets, and this one is not among them.
    fn once(
        target: &BootTarget,
        seen: &BootOverride,
        quirks: &BmcQuirks,
    ) -> Result<Self, BmcError> {
        let names = match target {
            BootTarget::VirtualCd => quirks.cd_targets,
            BootTarget::UefiHttp(_) => &["UefiHttp"],
            BootTarget::Disk => &["Hdd"],
        };
        let is_there =
            |name: &&&str| seen.targets.is_empty() || seen.targets.iter().any(|it| it == **name);
        let found = names.iter().find(is_there);
        let found = found.ok_or_else(|| BmcError::Unsupported {
            feature: "matching boot source",
            reason: format!(
                "{} is needed, and it has {}",
                names.join(" or "),
                seen.targets.join(", ")
            ),
        })?;
        let http_uri = match target {
            BootTarget::UefiHttp(uri) => Some(uri.to_string()),
            _ => None,
        };
        Ok(Self {
            target: (*found).to_owned(),
            enabled: "Once",
            http_uri,
        })
    }

    /// The end of an override; a boot from the disk where the BMC names no end.
    fn none(seen: &BootOverride) -> Self {
        let has_none = seen.targets.is_empty() || seen.targets.iter().any(|it| it == "None");
        Self {
            target: if has_none { "None" } else { "Hdd" }.to_owned(),
            enabled: if has_none { "Disabled" } else { "Once" },
            http_uri: None,
        }
    }

    fn body(&self, mode: Option<FirmwareMode>) -> Value {
        let mut boot = Map::from_iter([
            ("BootSourceOverrideTarget".to_owned(), json!(self.target)),
            ("BootSourceOverrideEnabled".to_owned(), json!(self.enabled)),
        ]);
        if let Some(mode) = mode {
            boot.insert("BootSourceOverrideMode".to_owned(), json!(mode.name()));
        }
        if let Some(uri) = &self.http_uri {
            boot.insert("HttpBootUri".to_owned(), json!(uri));
        }
        json!({ "Boot": boot })
    }

    /// Whether the override reads as written.
    fn is_in(&self, document: &RedfishDocument, quirks: &BmcQuirks) -> bool {
        let seen = BootOverride::of(document);
        let is_enabled = match seen.enabled.as_deref() {
            Some("Continuous") => quirks.once_reads_continuous,
            enabled => enabled == Some(self.enabled),
        };
        if self.enabled == "Disabled" {
            return !seen.leaves_disk();
        }
        let uri = document.text("/Boot/HttpBootUri");
        let is_uri = self.http_uri.is_none() || uri == self.http_uri.as_deref();
        seen.target.as_deref() == Some(&self.target) && is_enabled && is_uri
    }
}

/// The mode to write: only where the BMC has one, and can have this one.
fn written_mode(
    document: &RedfishDocument,
    quirks: &BmcQuirks,
    mode: FirmwareMode,
) -> Option<FirmwareMode> {
    let allowed = document.texts("/Boot/BootSourceOverrideMode@Redfish.AllowableValues");
    let is_allowed = allowed.is_none_or(|it| it.iter().any(|name| name == mode.name()));
    let present = document.text("/Boot/BootSourceOverrideMode")?;
    let is_wanted = match quirks.mode {
        OverrideModeUse::Always => true,
        OverrideModeUse::WhenDifferent => present != mode.name(),
    };
    (is_allowed && is_wanted).then_some(mode)
}

/// Errors: Unsupported – the host would start in another mode than its record wants.
fn check_mode(
    target: &BootTarget,
    document: &RedfishDocument,
    mode: FirmwareMode,
) -> Result<(), BmcError> {
    let reason = match (mode, target) {
        (FirmwareMode::Uefi, _) => return Ok(()),
        (FirmwareMode::Legacy, BootTarget::UefiHttp(_)) => {
            "UEFI HTTP boot needs UEFI: boot by virtual media, or set bootMode to UEFI"
        }
        (FirmwareMode::Legacy, _) => {
            let allowed = document.texts("/Boot/BootSourceOverrideMode@Redfish.AllowableValues");
            let present = document.text("/Boot/BootSourceOverrideMode");
            let may_be = allowed.is_none_or(|it| it.iter().any(|name| name == mode.name()));
            if present.is_some() && may_be {
                return Ok(());
            }
            "the BMC cannot set it: set bootMode to UEFI"
        }
    };
    Err(BmcError::Unsupported {
        feature: "boot in legacy mode",
        reason: reason.to_owned(),
    })
}

impl Bmc {
    /// The boot override.
    pub async fn boot_override(&mut self) -> Result<BootOverride, BmcError> {
        let system = self.read_system().await?;
        Ok(BootOverride::of(&self.override_document(system).await?))
    }

    /// Whether the BMC has a boot source, without a change.
    ///
    /// Errors: Unsupported – it names its boot sources, and this one is not among them.
    pub async fn check_boot_target(&mut self, target: &BootTarget) -> Result<(), BmcError> {
        let system = self.read_system().await?;
        let document = self.override_document(system).await?;
        check_mode(target, &document, self.mode)?;
        OverrideChange::once(target, &BootOverride::of(&document), self.quirks).map(|_| ())
    }

    /// Boots the next time, and that time only, from `target`, in the mode of the host; and reads that back.
    ///
    /// Errors: Unsupported; NotApplied – the BMC reads another boot source.
    pub async fn boot_once(&mut self, target: &BootTarget) -> Result<(), BmcError> {
        if let BootTarget::UefiHttp(uri) = target {
            self.session.hide_tokens(uri);
        }
        let is_of_dell = self.quirks.virtual_cd == VirtualCdBoot::DellServerBoot;
        if is_of_dell && *target == BootTarget::VirtualCd && self.boot_dell_virtual_cd().await? {
            return Ok(());
        }
        let system = self.read_system().await?;
        let document = self.override_document(system).await?;
        check_mode(target, &document, self.mode)?;
        let seen = BootOverride::of(&document);
        let change = OverrideChange::once(target, &seen, self.quirks)?;
        self.change_override(&document, &change).await
    }

    /// Ends an override that would boot another source than the disk. Idempotent.
    ///
    /// Errors: NotApplied – the BMC reads it still.
    pub async fn clear_boot_override(&mut self) -> Result<(), BmcError> {
        let system = self.read_system().await?;
        let document = self.override_document(system).await?;
        let seen = BootOverride::of(&document);
        if !seen.leaves_disk() {
            return Ok(());
        }
        self.change_override(&document, &OverrideChange::none(&seen))
            .await
    }

    async fn change_override(
        &mut self,
        document: &RedfishDocument,
        change: &OverrideChange,
    ) -> Result<(), BmcError> {
        let mode = written_mode(document, self.quirks, self.mode);
        let mut sent = self.session.patch(document, &change.body(mode)).await;
        if mode == Some(FirmwareMode::Uefi)
            && matches!(
                sent,
                Err(BmcError::Refused {
                    status: 400..=499,
                    ..
                })
            )
        {
            // DL160 Gen10 takes no mode beside the others. Source: bmclib, redfishwrapper/boot_device.go.
            sent = self.session.patch(document, &change.body(None)).await;
        }
        let cause = match sent {
            Ok(()) => String::new(),
            Err(error) if error.is_uncertain() => format!("; {error}"),
            Err(error) => return Err(error),
        };
        let deadline = PollDeadline::new(self.session.timing.settle, self.session.timing.poll);
        loop {
            let read = self.session.get(&document.path).await?;
            if change.is_in(&read, self.quirks) {
                return Ok(());
            }
            if !deadline.wait(None).await {
                let expected = BootOverride {
                    target: Some(change.target.clone()),
                    enabled: Some(change.enabled.to_owned()),
                    mode: None,
                    http_uri: change.http_uri.as_deref().map(shown_address),
                    targets: Vec::new(),
                };
                return Err(BmcError::NotApplied {
                    doing: "set the boot source",
                    expected: expected.shown(),
                    seen: BootOverride::of(&read).shown(),
                    cause,
                });
            }
        }
    }

    /// The resource with the override to write: the system, or its pending settings where these have an override.
    ///
    /// Source: sushy, system.py; community.general (iDRAC10 refuses writes of the system).
    async fn override_document(
        &mut self,
        system: RedfishDocument,
    ) -> Result<RedfishDocument, BmcError> {
        let Some(settings) = system.link("/@Redfish.Settings/SettingsObject")? else {
            return Ok(system);
        };
        match self.session.get(&settings).await {
            Ok(mut settings) if settings.text("/Boot/BootSourceOverrideTarget").is_some() => {
                // Settings may leave out the names of targets.
                let targets = "BootSourceOverrideTarget@Redfish.AllowableValues";
                if settings.at("/Boot")[targets].is_null() {
                    settings.body["Boot"][targets] = system.at("/Boot")[targets].clone();
                }
                Ok(settings)
            }
            Ok(_) | Err(BmcError::NotFound { .. }) => Ok(system),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::document::tests::document;
    use super::super::quirks::QUIRKS;
    use super::*;

    fn quirks(name: &str) -> &'static BmcQuirks {
        QUIRKS.iter().find(|row| row.name == name).unwrap()
    }

    fn boot(boot: &Value) -> RedfishDocument {
        document(json!({ "Boot": boot }))
    }

    fn allowing(targets: &[&str]) -> BootOverride {
        BootOverride::of(&boot(
            &json!({ "BootSourceOverrideTarget@Redfish.AllowableValues": targets }),
        ))
    }

    #[test]
    fn the_virtual_cd_has_the_name_of_its_vendor() {
        let chosen = |vendor: &str, targets: &[&str]| {
            let change =
                OverrideChange::once(&BootTarget::VirtualCd, &allowing(targets), quirks(vendor));
            change.map(|change| change.target)
        };
        assert_eq!(chosen("Supermicro", &["Cd", "UsbCd"]).unwrap(), "UsbCd");
        assert_eq!(chosen("Supermicro Grace", &["Cd", "UsbCd"]).unwrap(), "Cd");
        assert_eq!(chosen("standard", &[]).unwrap(), "Cd");
        let error = chosen("standard", &["Pxe", "Hdd"]).unwrap_err();
        assert!(error.to_string().contains("Pxe, Hdd"), "{error}");
    }

    #[test]
    fn the_mode_is_written_where_it_can_be() {
        use FirmwareMode::{Legacy, Uefi};
        let uefi = json!({ "BootSourceOverrideMode": "UEFI" });
        let legacy = json!({ "BootSourceOverrideMode": "Legacy" });
        let only_legacy = json!({ "BootSourceOverrideMode": "Legacy",
            "BootSourceOverrideMode@Redfish.AllowableValues": ["Legacy"] });
        for (body, vendor, mode, expected) in [
            (&uefi, "standard", Uefi, false),
            (&uefi, "Supermicro", Uefi, true),
            (&legacy, "standard", Uefi, true),
            (&only_legacy, "Supermicro", Uefi, false),
            (&json!({}), "Supermicro", Uefi, false),
            (&uefi, "standard", Legacy, true),
            (&legacy, "standard", Legacy, false),
            (&only_legacy, "Supermicro", Legacy, true),
        ] {
            let written = written_mode(&boot(body), quirks(vendor), mode);
            let expected = expected.then_some(mode);
            assert_eq!(written, expected, "{vendor} {body}");
        }
    }

    #[test]
    fn a_host_starts_in_no_other_mode_than_its_record_wants() {
        use FirmwareMode::{Legacy, Uefi};
        let http = BootTarget::UefiHttp("http://a/b.efi".parse().unwrap());
        let both = boot(&json!({ "BootSourceOverrideMode": "UEFI" }));
        let only_uefi = boot(&json!({ "BootSourceOverrideMode": "UEFI",
            "BootSourceOverrideMode@Redfish.AllowableValues": ["UEFI"] }));
        let is_refused = |target: &BootTarget, document: &RedfishDocument, mode| {
            check_mode(target, document, mode).is_err()
        };
        for (target, document, mode, expected) in [
            (&http, &both, Uefi, false),
            (&http, &both, Legacy, true),
            (&BootTarget::VirtualCd, &both, Legacy, false),
            (&BootTarget::VirtualCd, &only_uefi, Legacy, true),
            (&BootTarget::VirtualCd, &only_uefi, Uefi, false),
            (&BootTarget::VirtualCd, &boot(&json!({})), Legacy, true),
        ] {
            assert_eq!(is_refused(target, document, mode), expected, "{target:?}");
        }
    }

    #[test]
    fn changes_are_recognised_when_read_back() {
        let http = BootTarget::UefiHttp("http://a/b.efi?t=1".parse().unwrap());
        let change = OverrideChange::once(&http, &allowing(&[]), quirks("standard")).unwrap();
        let read = |enabled: &str, uri: &str| {
            boot(
                &json!({ "BootSourceOverrideTarget": "UefiHttp", "BootSourceOverrideEnabled": enabled,
                "HttpBootUri": uri }),
            )
        };
        for (enabled, uri, vendor, expected) in [
            ("Once", "http://a/b.efi?t=1", "standard", true),
            ("Once", "http://a/other.efi", "standard", false),
            ("Disabled", "http://a/b.efi?t=1", "standard", false),
            ("Continuous", "http://a/b.efi?t=1", "standard", false),
            ("Continuous", "http://a/b.efi?t=1", "sushy-tools", true),
        ] {
            assert_eq!(
                change.is_in(&read(enabled, uri), quirks(vendor)),
                expected,
                "{enabled} {uri} {vendor}"
            );
        }
        assert_eq!(
            change.body(Some(FirmwareMode::Uefi))["Boot"]["BootSourceOverrideMode"],
            "UEFI"
        );
        assert!(change.body(None)["Boot"]["BootSourceOverrideMode"].is_null());
    }

    #[test]
    fn overrides_end_where_the_bmc_can() {
        let ended = OverrideChange::none(&allowing(&["None", "Cd"]));
        assert_eq!((ended.target.as_str(), ended.enabled), ("None", "Disabled"));
        let disk = OverrideChange::none(&allowing(&["Pxe", "Cd", "Hdd"]));
        assert_eq!((disk.target.as_str(), disk.enabled), ("Hdd", "Once"));
        for (target, enabled, expected) in [
            ("Cd", "Once", true),
            ("Cd", "Continuous", true),
            ("Cd", "Disabled", false),
            ("Hdd", "Continuous", false),
            ("None", "Once", false),
        ] {
            let read = boot(
                &json!({ "BootSourceOverrideTarget": target, "BootSourceOverrideEnabled": enabled }),
            );
            assert_eq!(
                BootOverride::of(&read).leaves_disk(),
                expected,
                "{target} {enabled}"
            );
        }
    }
}
