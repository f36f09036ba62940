//! A request for an installation, checked before anything is overwritten.

use std::os::unix::fs::FileTypeExt as _;

use model::cluster::HighAvailabilityMode;
use model::host::HostRole;
use model::steps::InstallCmdRequest;

use crate::{HostFiles, console};

/// A checked request.
#[derive(Debug)]
pub(super) struct InstallPlan {
    pub(super) request: InstallCmdRequest,
    /// Arguments of coreos-installer.
    pub(super) arguments: Vec<String>,
}

impl InstallPlan {
    pub(super) fn new(request: InstallCmdRequest) -> Result<Self, String> {
        let arguments = match request.installer_args.as_str() {
            "" => Vec::new(),
            text => serde_json::from_str(text)
                .map_err(|error| format!("installer_args {text:?}: {error}"))?,
        };
        for device in request.disks_to_format.iter().chain([&request.boot_device]) {
            if !is_disk(device) {
                return Err(format!("this host has no disk {device:?}"));
            }
        }
        if request.role == HostRole::AutoAssign {
            return Err("the host has no role".to_owned());
        }
        let plan = Self { request, arguments };
        let image = &plan.request.installer_image;
        // To podman, it would be an option.
        if plan.needs_installer_image() && (image.is_empty() || image.starts_with('-')) {
            return Err(format!("installer_image {image:?} is no image"));
        }
        Ok(plan)
    }

    /// Arguments of coreos-installer: a network of the console's form is copied to the installed system.
    pub(super) fn installer_arguments(&self, files: &HostFiles) -> Vec<String> {
        let mut arguments = self.arguments.clone();
        let is_copied = arguments
            .iter()
            .any(|argument| matches!(argument.as_str(), "-n" | "--copy-network"));
        if console::has_connections(files) && !is_copied {
            arguments.push("--copy-network".to_owned());
        }
        arguments
    }

    /// Whether this host starts the control plane, alone or for others, or keeps the system that it runs.
    pub(super) fn needs_installer_image(&self) -> bool {
        let request = &self.request;
        request.role == HostRole::Bootstrap
            || request.control_plane_count == 1
            || request.high_availability_mode == Some(HighAvailabilityMode::None)
            || !request.coreos_image.is_empty()
    }
}

/// Whether a path leads to a block device, whose content an installation overwrites.
fn is_disk(path: &str) -> bool {
    let target = std::fs::canonicalize(path).ok();
    let target = target.filter(|target| path.starts_with("/dev/") && target.starts_with("/dev"));
    let metadata = target.and_then(|target| std::fs::metadata(target).ok());
    metadata.is_some_and(|metadata| metadata.file_type().is_block_device())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A request for the first disk of this machine, changed by `change`. Nothing is written: only the plan is made.
    fn planned(change: impl FnOnce(&mut InstallCmdRequest)) -> Option<Result<(), String>> {
        let names = std::fs::read_dir("/sys/class/block").ok()?;
        let mut devices = names.filter_map(|entry| {
            let path = format!("/dev/{}", entry.ok()?.file_name().to_str()?);
            is_disk(&path).then_some(path)
        });
        let mut request = InstallCmdRequest {
            role: HostRole::Bootstrap,
            boot_device: devices.next()?,
            installer_image: "registry.example:5000/installer@sha256:0".to_owned(),
            ..InstallCmdRequest::default()
        };
        change(&mut request);
        Some(InstallPlan::new(request).map(drop))
    }

    #[test]
    fn only_disks_are_overwritten() {
        for path in [
            "",
            "/",
            "sda",
            "/etc/passwd",
            "/dev",
            "/dev/",
            "/dev/null",
            "/dev/../etc/passwd",
            "/dev/stdin",
            "/dev/fd/0",
            "/dev/no-such-disk",
        ] {
            assert!(!is_disk(path), "{path}");
        }
        // A container may have no disk.
        let Some(accepted) = planned(|_| {}) else {
            return;
        };
        assert_eq!(accepted, Ok(()));
        let wrong = planned(|request| request.disks_to_format = vec!["/dev/../etc/passwd".into()]);
        assert!(wrong.unwrap().unwrap_err().contains("no disk"));
    }

    #[test]
    fn no_image_is_an_option_of_podman() {
        for image in ["", "-v/:/host", "--volume=/:/host"] {
            let Some(refused) = planned(|request| request.installer_image = image.to_owned())
            else {
                return;
            };
            assert!(refused.unwrap_err().contains("is no image"), "{image}");
        }
    }
}
