//! Resources of simulated BMCs, as read.

use serde_json::{Map, Value, json};

use super::access::SESSIONS;
use super::answer::BmcAnswer;
use super::fault::BmcFault;
use super::links::{collection, link, with_tag};
use super::simulated::SimulatedBmc;
use super::state::{BmcState, SimulatedOverride};
use super::storage;

/// The answer to a read; `path` has no slash at its end.
pub(super) fn read(bmc: &SimulatedBmc, path: &str) -> BmcAnswer {
    let profile = bmc.profile;
    let (system, manager, media) = (
        profile.system_path(),
        profile.manager_path(),
        profile.media_path(),
    );
    let state = bmc.state();
    let below = |base: &str| {
        path.strip_prefix(base)
            .and_then(|rest| rest.strip_prefix('/'))
    };
    let found = match path {
        "/redfish/v1" => Some(root(bmc)),
        "/redfish/v1/Systems" => Some(collection(bmc, path, &[profile.system.to_owned()])),
        "/redfish/v1/Managers" => Some(collection(bmc, path, &[profile.manager.to_owned()])),
        _ if path == system => {
            return with_tag(bmc, self::system(bmc, &state), state.version);
        }
        _ if path == manager => Some(self::manager(bmc, &state)),
        _ if path == media => Some(collection(bmc, path, &names(bmc))),
        _ => None,
    };
    if let Some(body) = found {
        return BmcAnswer::json(200, body);
    }
    if let Some(name) = below(&media) {
        let at = profile.media.iter().position(|kind| kind.name == name);
        return at.map_or_else(BmcAnswer::not_found, |at| {
            with_tag(bmc, medium(bmc, &state, at), state.media[at].version)
        });
    }
    let body = match below(&system).or(below(&manager)) {
        Some("Settings") if profile.has_settings => {
            return with_tag(bmc, settings(bmc, &state), state.version);
        }
        Some("ResetActionInfo") if profile.has_action_info => Some(action_info(bmc)),
        Some("SecureBoot") => profile.secure_boot.map(secure_boot),
        Some("EthernetInterfaces") => {
            let count = bmc.host.macs.len();
            let ids: Vec<String> = (1..=count).map(|id| id.to_string()).collect();
            Some(collection(bmc, path, &ids))
        }
        Some("BootOptions") => Some(collection(bmc, path, &["1".to_owned(), "2".to_owned()])),
        Some("Attributes") if profile.has_import => Some(attributes(&state)),
        Some(rest) => nic(bmc, rest)
            .or_else(|| boot_option(rest))
            .or_else(|| storage::read(bmc, rest)),
        None => None,
    };
    body.map_or_else(BmcAnswer::not_found, |body| BmcAnswer::json(200, body))
}

fn names(bmc: &SimulatedBmc) -> Vec<String> {
    bmc.profile
        .media
        .iter()
        .map(|kind| kind.name.to_owned())
        .collect()
}

fn root(bmc: &SimulatedBmc) -> Value {
    let profile = bmc.profile;
    let mut body = json!({
        "@odata.type": "#ServiceRoot.v1_9_0.ServiceRoot",
        "@odata.id": "/redfish/v1",
        "Id": "RootService",
        "Name": "Root Service",
        "RedfishVersion": "1.11.0",
        "Systems": link(bmc, "/redfish/v1/Systems"),
        "Managers": link(bmc, "/redfish/v1/Managers"),
        "Links": {},
        "Oem": {},
    });
    if profile.has_sessions {
        body["Links"] = json!({ "Sessions": link(bmc, SESSIONS) });
    }
    if let Some(vendor) = profile.vendor {
        body["Vendor"] = json!(vendor);
    }
    if !profile.product.is_empty() {
        body["Product"] = json!(profile.product);
    }
    if !profile.extension.is_empty() {
        body["Oem"][profile.extension] = json!({});
    }
    body
}

fn system(bmc: &SimulatedBmc, state: &BmcState) -> Value {
    let (profile, host) = (bmc.profile, &bmc.host);
    let path = profile.system_path();
    let mut reset = Map::from_iter([(
        "target".to_owned(),
        json!(format!("{path}/Actions/ComputerSystem.Reset")),
    )]);
    if profile.has_action_info {
        reset.insert(
            "@Redfish.ActionInfo".to_owned(),
            json!(format!("{path}/ResetActionInfo")),
        );
    } else {
        reset.insert(
            "ResetType@Redfish.AllowableValues".to_owned(),
            json!(profile.reset_types),
        );
    }
    let current = SimulatedOverride::default();
    let shown = if profile.has_settings {
        &current
    } else {
        &state.boot
    };
    let mut body = json!({
        "@odata.type": "#ComputerSystem.v1_13_0.ComputerSystem",
        "@odata.id": path,
        "Id": profile.system,
        "Name": host.name,
        "Manufacturer": profile.manufacturer,
        "Model": profile.model,
        "SerialNumber": host.serial,
        "UUID": host.uuid,
        "BiosVersion": "2.4.1",
        "PowerState": state.power.name(),
        "Boot": boot(bmc, state, shown),
        "MemorySummary": { "TotalSystemMemoryGiB": host.memory_gib },
        "ProcessorSummary": { "Count": host.processors, "Model": "Simulated Processor" },
        "EthernetInterfaces": link(bmc, &format!("{path}/EthernetInterfaces")),
        "Links": { "ManagedBy": [link(bmc, &profile.manager_path())] },
        "Actions": { "#ComputerSystem.Reset": reset },
    });
    let storage = storage::resource(bmc);
    body[storage] = link(bmc, &format!("{path}/{storage}"));
    if profile.has_media_below_system {
        body["VirtualMedia"] = link(bmc, &profile.media_path());
    }
    if profile.secure_boot.is_some() {
        body["SecureBoot"] = link(bmc, &format!("{path}/SecureBoot"));
    }
    if profile.has_settings {
        body["@Redfish.Settings"] =
            json!({ "SettingsObject": link(bmc, &format!("{path}/Settings")) });
    }
    body
}

/// Source: DSP0268 SecureBoot.
fn secure_boot(is_on: bool) -> Value {
    let current = if is_on { "Enabled" } else { "Disabled" };
    json!({ "Id": "SecureBoot", "SecureBootEnable": is_on, "SecureBootCurrentBoot": current })
}

fn boot(bmc: &SimulatedBmc, state: &BmcState, shown: &SimulatedOverride) -> Value {
    let mut order = ["Boot0001", "Boot0002"];
    if state.has_cd_first {
        order.reverse();
    }
    json!({
        "BootSourceOverrideTarget": shown.target,
        "BootSourceOverrideTarget@Redfish.AllowableValues": bmc.profile.targets,
        "BootSourceOverrideEnabled": shown.enabled,
        "BootSourceOverrideMode": shown.mode,
        "HttpBootUri": shown.http_uri,
        "BootOrder": order,
        "BootOptions": link(bmc, &format!("{}/BootOptions", bmc.profile.system_path())),
    })
}

fn settings(bmc: &SimulatedBmc, state: &BmcState) -> Value {
    json!({
        "@odata.id": format!("{}/Settings", bmc.profile.system_path()),
        "Id": "Settings",
        "Boot": boot(bmc, state, &state.boot),
    })
}

fn action_info(bmc: &SimulatedBmc) -> Value {
    json!({
        "Id": "ResetActionInfo",
        "Parameters": [{ "Name": "ResetType", "Required": true, "AllowableValues": bmc.profile.reset_types }],
    })
}

fn manager(bmc: &SimulatedBmc, state: &BmcState) -> Value {
    let profile = bmc.profile;
    let path = profile.manager_path();
    let mut body = json!({
        "@odata.type": "#Manager.v1_10_0.Manager",
        "@odata.id": path,
        "Id": profile.manager,
        "Name": "Manager",
        "ManagerType": "BMC",
        "Model": profile.bmc_model,
        "FirmwareVersion": profile.firmware,
        "Actions": {},
    });
    if !profile.has_media_below_system {
        body["VirtualMedia"] = link(bmc, &profile.media_path());
    }
    if profile.has_remote_media_setting {
        let is_off = state.has(&BmcFault::RemoteMediaOff);
        let status = if is_off { "Disabled" } else { "Enabled" };
        body["Oem"] = json!({ "Ami": { "VirtualMedia": { "RMediaStatus": status } } });
        let target = format!("{path}/Actions/Oem/AMIVirtualMedia.EnableRMedia");
        body["Actions"] =
            json!({ "Oem": { "#AMIVirtualMedia.EnableRMedia": { "target": target } } });
    }
    if profile.has_import {
        let import = "#OemManager.ImportSystemConfiguration";
        let target = format!("{path}/Actions/Oem/EID_674_Manager.ImportSystemConfiguration");
        body["Actions"] = json!({ "Oem": { import: { "target": target } } });
    }
    body
}

fn attributes(state: &BmcState) -> Value {
    let (once, device) = if state.boots_virtual_cd {
        ("Enabled", "VCD-DVD")
    } else {
        ("Disabled", "Normal")
    };
    json!({ "Id": "iDRACAttributes", "Attributes": {
        "ServerBoot.1.BootOnce": once, "ServerBoot.1.FirstBootDevice": device } })
}

fn medium(bmc: &SimulatedBmc, state: &BmcState, at: usize) -> Value {
    let (profile, kind, medium) = (bmc.profile, &bmc.profile.media[at], &state.media[at]);
    let path = format!("{}/{}", profile.media_path(), kind.name);
    let file = medium
        .image
        .as_deref()
        .map(|image| image.rsplit('/').next().unwrap_or(image));
    let file = file.and_then(|file| file.split('?').next());
    let image = match (&medium.image, profile.rewrites_image) {
        (Some(_), true) => file.map(|file| format!("\\{file}")),
        (image, _) => image.clone(),
    };
    let mut body = json!({
        "@odata.type": "#VirtualMedia.v1_3_0.VirtualMedia",
        "@odata.id": path,
        "Id": kind.name,
        "Name": "Virtual Media",
        "MediaTypes": kind.types,
        "Image": image,
        "ImageName": file,
        "Inserted": medium.is_inserted,
        "WriteProtected": true,
        "ConnectedVia": if medium.is_connected { "URI" } else { "NotConnected" },
    });
    if profile.has_media_actions {
        let mut insert = json!({ "target": format!("{path}/Actions/VirtualMedia.InsertMedia"),
            "TransferProtocolType@Redfish.AllowableValues": ["HTTP", "HTTPS", "NFS"] });
        if !profile.transfer_methods.is_empty() {
            insert["TransferMethod@Redfish.AllowableValues"] = json!(profile.transfer_methods);
        }
        let eject = json!({ "target": format!("{path}/Actions/VirtualMedia.EjectMedia") });
        body["Actions"] =
            json!({ "#VirtualMedia.InsertMedia": insert, "#VirtualMedia.EjectMedia": eject });
    }
    body
}

fn nic(bmc: &SimulatedBmc, rest: &str) -> Option<Value> {
    let id: usize = rest.strip_prefix("EthernetInterfaces/")?.parse().ok()?;
    let mac = bmc.host.macs.get(id.checked_sub(1)?)?;
    Some(
        json!({ "Id": id.to_string(), "MACAddress": mac.to_uppercase(), "SpeedMbps": 25_000, "LinkStatus": "LinkUp" }),
    )
}

fn boot_option(rest: &str) -> Option<Value> {
    let (reference, name, path) = match rest.strip_prefix("BootOptions/")? {
        "1" => (
            "Boot0001",
            "Red Hat Enterprise Linux CoreOS",
            "HD(2,GPT,5EED,0x1000)/\\EFI\\redhat\\shimx64.efi",
        ),
        "2" => (
            "Boot0002",
            "Virtual CD",
            "PciRoot(0x0)/Pci(0x14,0x0)/USB(0xD,0x0)/CDROM(0x1)",
        ),
        _ => return None,
    };
    Some(
        json!({ "BootOptionReference": reference, "BootOptionEnabled": true, "DisplayName": name,
        "UefiDevicePath": path }),
    )
}
