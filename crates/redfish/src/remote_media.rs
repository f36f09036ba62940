//! Virtual media that the BMC's settings switch off: found before the host is touched.

use super::bmc::Bmc;
use super::document::RedfishDocument;
use super::error::BmcError;
use super::media_slot::unsupported;

/// Setting of AMI MegaRAC, in the manager. A new BMC may be delivered with it off.
const AMI_STATUS: &str = "/Oem/Ami/VirtualMedia/RMediaStatus";
/// The action of AMI MegaRAC that changes it, by the end of its name.
const AMI_ACTION: &str = "AMIVirtualMedia.EnableRMedia";

/// Errors: Unsupported – AMI's setting is off. Insertions would be accepted without an effect, or find no drives.
pub(super) fn check_ami_setting(
    manager: &RedfishDocument,
    system: &RedfishDocument,
) -> Result<(), BmcError> {
    let status = manager.text(AMI_STATUS).unwrap_or_default();
    if !["disabled", "disable"].contains(&status.to_ascii_lowercase().as_str()) {
        return Ok(());
    }
    let action = [manager, system].into_iter().find_map(ami_action);
    let by_action = match action {
        Some(path) => format!(", or by POST {path} with {{\"RMediaState\":\"Enable\"}}"),
        None => String::new(),
    };
    Err(unsupported(format!(
        "its remote media support is disabled (RMediaStatus of {} is {status}); enable it in the BMC's web interface \
         under Settings, Media Redirection, General Settings{by_action}, wait some seconds, and boot again",
        manager.path
    )))
}

/// The path of the action.
fn ami_action(document: &RedfishDocument) -> Option<String> {
    let actions = document.at("/Actions/Oem").as_object()?;
    let (_, action) = actions
        .iter()
        .find(|(name, _)| name.ends_with(AMI_ACTION))?;
    let path = document.parse_link(action["target"].as_str()?).ok()?;
    Some(path.to_string())
}

impl Bmc {
    /// The reason why there are no drives, if the manager's network settings name it. Source: DSP0268
    /// ManagerNetworkProtocol, VirtualMedia.
    pub(super) async fn without_drives(&mut self) -> BmcError {
        for manager in self.managers.clone() {
            let Ok(Some(manager)) = self.session.find(&manager).await else {
                continue;
            };
            let Ok(Some(path)) = manager.link("/NetworkProtocol") else {
                continue;
            };
            let Ok(Some(settings)) = self.session.find(&path).await else {
                continue;
            };
            if settings.flag("/VirtualMedia/ProtocolEnabled") == Some(false) {
                return unsupported(format!(
                    "they are switched off (VirtualMedia.ProtocolEnabled of {path} is false); switch them on"
                ));
            }
        }
        let reason = "neither the system nor its manager has a virtual CD drive; the BMC may need a licence for it";
        unsupported(reason.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::document::tests::document;
    use super::*;

    #[test]
    fn a_disabled_setting_is_named_with_its_action() {
        let system = document(json!({}));
        let manager = |status: &str| {
            document(json!({
                "Oem": { "Ami": { "VirtualMedia": { "RMediaStatus": status } } },
                "Actions": { "Oem": { "#AMIVirtualMedia.EnableRMedia": {
                    "target": "/redfish/v1/Managers/Self/Actions/Oem/AMIVirtualMedia.EnableRMedia" } } },
            }))
        };
        assert!(check_ami_setting(&manager("Enabled"), &system).is_ok());
        assert!(check_ami_setting(&system, &system).is_ok());
        let error = check_ami_setting(&manager("Disabled"), &system).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("remote media support is disabled"), "{text}");
        assert!(
            text.contains(
                "POST /redfish/v1/Managers/Self/Actions/Oem/AMIVirtualMedia.EnableRMedia"
            ),
            "{text}"
        );
    }

    #[test]
    fn the_action_may_be_at_the_system_or_missing() {
        let off = document(
            json!({ "Oem": { "Ami": { "VirtualMedia": { "RMediaStatus": "Disabled" } } } }),
        );
        let system = document(
            json!({ "Actions": { "Oem": { "#AMIVirtualMedia.EnableRMedia": { "target": "/redfish/v1/x" } } } }),
        );
        let text =
            |system: &RedfishDocument| check_ami_setting(&off, system).unwrap_err().to_string();
        assert!(
            text(&system).contains("POST /redfish/v1/x"),
            "{}",
            text(&system)
        );
        assert!(!text(&off).contains("POST"), "{}", text(&off));
    }
}
