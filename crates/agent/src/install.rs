//! The installation of this host.
//!
//! Hosts that join a control plane (masters, arbiters, workers) are installed here, without any container image. The host
//! that starts the control plane runs the installer's image, as the peer's agent does: it runs the cluster's own images.
//!
//! Source: openshift/assisted-installer, src/installer.

mod boot_order;
mod container;
mod disk;
mod node_config;
mod partitions;
mod restart;
mod skip_reboot;
mod write_image;

pub(crate) use restart::reboot;

use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use model::host::{HostRole, HostStage};
use model::steps::InstallCmdRequest;
use tokio::task::JoinHandle;

use crate::host_files::write_private;
use crate::logs::{HostLogs, LogScope};
use crate::steps::StepContext;
use crate::{Error, HostFiles, console};

const IGNITION_FOLDER: &str = "/opt/install-dir";
/// Between two looks at the control plane.
const WATCH_INTERVAL: Duration = Duration::from_secs(10);
/// Members of the control plane that workers wait for.
const READY_MASTERS: usize = 2;
/// etcd needs it after the last report. Source: OCPBUGS-5988.
const REBOOT_DELAY: Duration = Duration::from_mins(1);

/// The installation that runs, if any.
#[derive(Debug, Default)]
pub(crate) struct InstallationTask(Mutex<Option<JoinHandle<()>>>);

impl InstallationTask {
    /// Starts an installation. False when one runs.
    ///
    /// Errors: the request is wrong, as text.
    pub(crate) fn begin(
        &self,
        context: &Arc<StepContext>,
        request: InstallCmdRequest,
    ) -> Result<bool, String> {
        let plan = InstallPlan::new(request)?;
        let mut task = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if task.as_ref().is_some_and(|task| !task.is_finished()) {
            return Ok(false);
        }
        let context = Arc::clone(context);
        *task = Some(tokio::spawn(async move { run(&context, &plan).await }));
        Ok(true)
    }

    /// Stops it; its programs are killed.
    pub(crate) fn stop(&self) {
        if let Some(task) = self.0.lock().unwrap_or_else(PoisonError::into_inner).take() {
            task.abort();
        }
    }
}

/// A checked request.
#[derive(Debug)]
struct InstallPlan {
    request: InstallCmdRequest,
    /// Arguments of coreos-installer.
    arguments: Vec<String>,
}

impl InstallPlan {
    fn new(request: InstallCmdRequest) -> Result<Self, String> {
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
    fn installer_arguments(&self, files: &HostFiles) -> Vec<String> {
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
    fn needs_installer_image(&self) -> bool {
        let request = &self.request;
        request.role == HostRole::Bootstrap
            || request.control_plane_count == 1
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

async fn run(context: &StepContext, plan: &InstallPlan) {
    let result = if plan.needs_installer_image() {
        container::run(context, plan).await
    } else {
        (HostInstaller { context, plan }).run().await
    };
    if let Err(error) = result {
        let text = error.chain();
        tracing::error!(error = text, "installation failed");
        context
            .status
            .change(|status| status.installation = Some(format!("failed: {text}")));
        let reported = context
            .api
            .progress(context.host_id, HostStage::Failed, &text)
            .await;
        if let Err(error) = reported {
            tracing::error!(error = error.chain(), "failure not reported");
        }
    }
}

struct HostInstaller<'a> {
    context: &'a StepContext,
    plan: &'a InstallPlan,
}

impl HostInstaller<'_> {
    async fn run(&self) -> Result<(), Error> {
        let request = &self.plan.request;
        self.stage(HostStage::StartingInstallation, &request.role.to_string())
            .await;
        let device = std::fs::canonicalize(&request.boot_device)
            .map_err(|error| Error::io(format!("finding {}", request.boot_device), error))?;
        for disk in &request.disks_to_format {
            if let Err(error) = disk::erase_start(Path::new(disk)) {
                tracing::warn!(disk, %error, "disk not formatted");
            }
        }
        if !request.skip_installation_disk_cleanup
            && let Err(error) = disk::clean(&self.context.files, &device).await
        {
            let text = format!(
                "the installation disk {} could not be cleaned, the installation continues: {}",
                device.display(),
                error.chain()
            );
            tracing::warn!(text);
            self.stage(HostStage::StartingInstallation, &text).await;
        }
        self.stage(HostStage::Installing, &request.role.to_string())
            .await;
        let ignition = self.download_ignition().await?;
        self.stage(HostStage::WritingImageToDisk, "").await;
        let arguments = self.plan.installer_arguments(&self.context.files);
        write_image::write(self.context, &ignition, &device, &arguments).await?;
        if request.role == HostRole::Worker {
            self.await_control_plane().await?;
        }
        if request.enable_skip_mco_reboot {
            self.deploy_node_image(&ignition, &device).await;
        }
        if let Err(error) = boot_order::set(&self.context.files, &device).await {
            tracing::warn!(error = error.chain(), "boot order not changed");
        }
        let logs = HostLogs {
            api: &self.context.api,
            files: &self.context.files,
            cluster_id: request.cluster_id.0,
            host_id: self.context.host_id,
        };
        // The live system and its journal end here.
        let scope = LogScope {
            is_full: true,
            bootstrap: None,
        };
        if let Err(error) = logs.upload(&scope).await {
            tracing::warn!(error = error.chain(), "logs not uploaded");
        }
        if restart::has_ironic_agent(restart::SYSTEMCTL).await {
            self.stage(HostStage::Rebooting, "Ironic restarts the host")
                .await;
            return restart::stop_agent(restart::SYSTEMCTL).await;
        }
        self.stage(HostStage::Rebooting, "").await;
        tokio::time::sleep(REBOOT_DELAY).await;
        reboot().await
    }

    /// Without it, the node restarts once more to get its operating system.
    async fn deploy_node_image(&self, ignition: &Path, device: &Path) {
        let (files, plan) = (&self.context.files, self.plan);
        match skip_reboot::run(files, plan, ignition, device).await {
            Ok(()) => tracing::info!("the node's operating system is deployed"),
            Err(error) => {
                let error = error.chain();
                tracing::warn!(error, "the node will restart once more");
            }
        }
    }

    /// Reports a stage. A refused report does not end an installation.
    async fn stage(&self, stage: HostStage, info: &str) {
        tracing::info!(%stage, info, "installation");
        self.context
            .status
            .change(|status| status.installation = Some(stage.to_string()));
        if let Err(error) = self
            .context
            .api
            .progress(self.context.host_id, stage, info)
            .await
        {
            tracing::warn!(error = error.chain(), "progress not reported");
        }
    }

    async fn download_ignition(&self) -> Result<PathBuf, Error> {
        let ignition = self.context.api.host_ignition(self.context.host_id).await?;
        let path = Path::new(IGNITION_FOLDER).join("host.ign");
        // It has the cluster's secrets.
        let written =
            std::fs::create_dir_all(IGNITION_FOLDER).and_then(|()| write_private(&path, &ignition));
        written.map_err(|error| Error::io(format!("writing {}", path.display()), error))?;
        Ok(path)
    }

    /// A worker gets its configuration from the control plane, which two members have to run by then.
    async fn await_control_plane(&self) -> Result<(), Error> {
        self.stage(HostStage::WaitingForControlPlane, "").await;
        let api = &self.context.api;
        let cluster_id = self.plan.request.cluster_id.0;
        // A host that joins an installed cluster has no other host that is installed with it.
        if self.plan.request.mco_image.is_empty() {
            return Ok(());
        }
        loop {
            let mut done = 0;
            for role in ["master", "arbiter"] {
                match api.hosts(cluster_id, role).await {
                    Ok(hosts) => {
                        let is_done = |host: &&model::host::Host| {
                            host.progress.as_ref().is_some_and(|progress| {
                                progress.current_stage == Some(HostStage::Done)
                            })
                        };
                        done += hosts.iter().filter(is_done).count();
                    }
                    Err(error) => {
                        tracing::warn!(error = error.chain(), "control plane unknown");
                    }
                }
            }
            if done >= READY_MASTERS {
                return Ok(());
            }
            tokio::time::sleep(WATCH_INTERVAL).await;
        }
    }
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
