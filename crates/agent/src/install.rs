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
mod plan;
mod restart;
mod skip_reboot;
mod write_image;

pub(crate) use restart::reboot;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use model::host::{HostRole, HostStage};
use model::steps::InstallCmdRequest;

use self::plan::InstallPlan;
use crate::Error;
use crate::host_files::write_private;
use crate::logs::{HostLogs, LogScope};
use crate::steps::context::StepContext;

const IGNITION_FOLDER: &str = "/opt/install-dir";
/// Between two looks at the control plane.
const WATCH_INTERVAL: Duration = Duration::from_secs(10);
/// Members of the control plane that workers wait for.
const READY_MASTERS: usize = 2;
/// etcd needs it after the last report. Source: OCPBUGS-5988.
const REBOOT_DELAY: Duration = Duration::from_mins(1);

/// Starts an installation. False when one runs.
///
/// Errors: the request is wrong, as text.
pub(crate) fn begin(
    context: &Arc<StepContext>,
    request: InstallCmdRequest,
) -> Result<bool, String> {
    let plan = InstallPlan::new(request)?;
    let own = Arc::clone(context);
    let installation = async move { run(&own, &plan).await };
    Ok(context.installation.start(installation))
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
