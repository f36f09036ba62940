//! Request of an installation: the argument of the install step.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::Hardware;
use crate::steps::arguments::is_image;

const BOOTSTRAP_STAGES: &[&str] = &[
    "Starting installation",
    "Installing",
    "Writing image to disk",
    "Waiting for control plane",
    "Waiting for bootkube",
    "Waiting for controller",
    "Rebooting",
];
const MASTER_STAGES: &[&str] = &[
    "Starting installation",
    "Installing",
    "Writing image to disk",
    "Rebooting",
];
const WORKER_STAGES: &[&str] = &[
    "Starting installation",
    "Installing",
    "Writing image to disk",
    "Waiting for control plane",
    "Rebooting",
];
const SINGLE_NODE_STAGES: &[&str] = &[
    "Starting installation",
    "Installing",
    "Waiting for bootkube",
    "Writing image to disk",
    "Rebooting",
];

/// Masters that are ready before other nodes get their configuration, by the size of the control plane: those without the
/// bootstrap host, two at most. Source: openshift/assisted-installer, waitForMinMasterNodes.
pub(crate) fn quorum(masters: usize) -> usize {
    masters.saturating_sub(1).clamp(1, 2)
}

/// Arguments of the install step.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct InstallRequest {
    pub(crate) cluster_id: Uuid,
    pub(crate) infra_env_id: Uuid,
    pub(crate) host_id: Uuid,
    pub(crate) role: String,
    boot_device: String,
    controller_image: String,
    installer_image: String,
    #[serde(default)]
    control_plane_count: u32,
    #[serde(default)]
    mco_image: String,
    #[serde(default)]
    must_gather_image: String,
    #[serde(default)]
    openshift_version: String,
    #[serde(default)]
    installer_args: String,
    disks_to_format: Option<Vec<String>>,
    service_ips: Option<Vec<String>>,
}

impl InstallRequest {
    /// Masters that are ready before the other nodes of the cluster get their configuration. Older services send no count.
    pub(crate) fn quorum(&self) -> usize {
        let count = usize::try_from(self.control_plane_count).unwrap_or(usize::MAX);
        quorum(if count == 0 { usize::MAX } else { count })
    }

    /// Parses the step's argument and checks it against the machine, as the real agent and installer do.
    /// Errors: the reason, as text.
    pub(crate) fn parse(arg: &str, hardware: &Hardware) -> Result<Self, String> {
        let request: Self =
            serde_json::from_str(arg).map_err(|e| format!("install_cmd_request: {e}"))?;
        request.check(hardware)?;
        Ok(request)
    }

    fn check(&self, hardware: &Hardware) -> Result<(), String> {
        if self.host_id != hardware.host_id {
            return Err(format!("host_id {} is another host", self.host_id));
        }
        if !matches!(
            self.role.as_str(),
            "bootstrap" | "master" | "worker" | "arbiter"
        ) {
            return Err(format!("role {:?} cannot be installed", self.role));
        }
        for device in [&self.boot_device]
            .into_iter()
            .chain(self.disks_to_format.iter().flatten())
        {
            if !hardware.has_disk(device) {
                return Err(format!("this machine has no disk {device:?}"));
            }
        }
        for (name, image) in [
            ("controller_image", &self.controller_image),
            ("installer_image", &self.installer_image),
        ] {
            if !is_image(image) {
                return Err(format!("{name} {image:?} is no image"));
            }
        }
        if !self.mco_image.is_empty() && !is_image(&self.mco_image) {
            return Err(format!("mco_image {:?} is no image", self.mco_image));
        }
        if !self.mco_image.is_empty() && self.openshift_version.is_empty() {
            return Err("openshift_version is missing".into());
        }
        if !self.installer_args.is_empty()
            && serde_json::from_str::<Vec<String>>(&self.installer_args).is_err()
        {
            return Err(format!(
                "installer_args {:?} is no JSON list of texts",
                self.installer_args
            ));
        }
        check_must_gather(&self.must_gather_image)
    }

    /// Whether the cluster is one machine.
    pub(crate) fn is_single_node(&self) -> bool {
        self.control_plane_count == 1
    }

    /// Requests of hosts that join an existing cluster have no images of the release.
    pub(crate) fn joins_existing_cluster(&self) -> bool {
        self.mco_image.is_empty()
    }

    pub(crate) fn stages(&self) -> &'static [&'static str] {
        match self.role.as_str() {
            "bootstrap" if self.is_single_node() => SINGLE_NODE_STAGES,
            "bootstrap" => BOOTSTRAP_STAGES,
            "worker" if !self.joins_existing_cluster() => WORKER_STAGES,
            _ => MASTER_STAGES,
        }
    }
}

/// A plain image, or a JSON map from operator to image.
fn check_must_gather(text: &str) -> Result<(), String> {
    if text.is_empty() || is_image(text) {
        return Ok(());
    }
    match serde_json::from_str::<Value>(text) {
        Ok(Value::Object(map))
            if map
                .values()
                .all(|image| image.as_str().is_some_and(is_image)) =>
        {
            Ok(())
        }
        _ => Err(format!(
            "must_gather_image {text:?} is neither an image nor a map of images"
        )),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Role;
    use crate::hardware::tests::machine;

    fn request(hardware: &Hardware) -> Value {
        json!({
            "cluster_id": Uuid::nil(), "infra_env_id": Uuid::nil(), "host_id": hardware.host_id, "role": "master",
            "boot_device": hardware.disk_by_id(), "controller_image": "q.io/a/controller:1", "installer_image": "q.io/a/installer:1",
            "control_plane_count": 3, "mco_image": "r:5000/o/mco@sha256:00", "openshift_version": "4.18.3",
            "must_gather_image": r#"{"ocp":"r:5000/o/mg@sha256:00"}"#, "installer_args": r#"["--append-karg","ip=dhcp"]"#,
            "service_ips": null, "disks_to_format": [],
        })
    }

    #[test]
    fn two_nodes_with_fencing_wait_for_one() {
        for (masters, expected) in [(5, 2), (3, 2), (2, 1), (1, 1), (0, 1)] {
            assert_eq!(quorum(masters), expected, "{masters}");
        }
    }

    #[test]
    fn a_complete_request_is_accepted() {
        let hardware = machine(0, Role::Master, &[]);
        InstallRequest::parse(&request(&hardware).to_string(), &hardware).unwrap();
    }

    #[test]
    fn requests_that_the_real_agent_refuses_are_refused() {
        let hardware = machine(0, Role::Master, &[]);
        for (member, value) in [
            ("role", json!("auto-assign")),
            ("host_id", json!(Uuid::nil())),
            ("boot_device", json!("/dev/vda")),
            ("installer_image", json!("")),
            ("installer_args", json!("--append-karg")),
            ("must_gather_image", json!("{}x")),
            ("disks_to_format", json!(["/dev/sdb"])),
            ("openshift_version", json!("")),
        ] {
            let mut bad = request(&hardware);
            bad[member] = value;
            assert!(
                InstallRequest::parse(&bad.to_string(), &hardware).is_err(),
                "{member}"
            );
        }
    }

    #[test]
    fn stages_follow_the_role() {
        let hardware = machine(0, Role::Master, &[]);
        let stages = |role: &str, planes: u32| {
            let mut value = request(&hardware);
            value["role"] = json!(role);
            value["control_plane_count"] = json!(planes);
            InstallRequest::parse(&value.to_string(), &hardware)
                .unwrap()
                .stages()
        };
        assert_eq!(stages("bootstrap", 3), BOOTSTRAP_STAGES);
        assert_eq!(stages("bootstrap", 1), SINGLE_NODE_STAGES);
        assert_eq!(stages("worker", 3), WORKER_STAGES);
        assert_eq!(stages("arbiter", 2), MASTER_STAGES);
    }
}
