//! One machine: its parts and its state.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::api::ApiClient;
use crate::controller::Controller;
use crate::image::BootConfig;
use crate::stage::report;
use crate::state_file::{MachineState, StateFile};
use crate::world::NodePhase;
use crate::{Error, Hardware, HostFault, World};

/// A simulated machine.
#[derive(Debug)]
pub(crate) struct Machine {
    pub(crate) hardware: Arc<Hardware>,
    pub(crate) world: Arc<World>,
    pub(crate) boot: BootConfig,
    pub(crate) api: ApiClient,
    pub(crate) disk: StateFile<MachineState>,
    pub(crate) controller: Arc<Controller>,
    /// Replaces the pause that the server asks for (load tests).
    pub(crate) interval: Option<Duration>,
    pub(crate) rebooting: CancellationToken,
    /// Ends the running agent: the machine restarts from its medium.
    pub(crate) restarting: Notify,
    pub(crate) installation: Mutex<Option<JoinHandle<()>>>,
}

impl Machine {
    pub(crate) fn new(
        hardware: Arc<Hardware>,
        world: Arc<World>,
        boot: BootConfig,
        api: ApiClient,
        disk: StateFile<MachineState>,
        controller: Arc<Controller>,
    ) -> Self {
        world.set_node(hardware.index, disk.get().node);
        Self {
            hardware,
            world,
            boot,
            api,
            disk,
            controller,
            interval: None,
            rebooting: CancellationToken::new(),
            restarting: Notify::new(),
            installation: Mutex::default(),
        }
    }

    /// The name in log lines.
    pub(crate) fn name(&self) -> &str {
        &self.hardware.hostname
    }

    /// Waits for the restart at the end of the installation; a machine that boots from its medium again has had its own.
    pub(crate) async fn until_reboot(&self) {
        let is_over = self.rebooting.is_cancelled();
        if is_over && self.hardware.has(HostFault::BootOrder) {
            std::future::pending::<()>().await;
        } else {
            self.rebooting.cancelled().await;
        }
    }

    /// Restarts from the discovery image: the agent registers again, and the installer no longer runs.
    pub(crate) fn restart_from_medium(&self) {
        self.stop_installation();
        self.disk.change(|record| record.runner = None);
        self.restarting.notify_one();
    }

    /// Stops the installer, if it runs, and removes its state.
    pub(crate) fn stop_installation(&self) {
        if let Some(task) = self
            .installation
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
        {
            task.abort();
        }
        self.disk.change(|record| {
            record.install = None;
            record.stage = None;
        });
    }

    /// Reports the installation stage of a host.
    pub(crate) async fn report_stage(&self, stage: &str, info: &str) -> Result<(), Error> {
        let (infra_env, host) = (self.boot.infra_env_id, self.hardware.host_id);
        report(
            &self.api,
            &infra_env.to_string(),
            &host.to_string(),
            stage,
            info,
        )
        .await
    }

    /// Enters a phase of the installed system.
    pub(crate) fn enter(&self, phase: NodePhase) {
        tracing::info!(host = self.name(), ?phase, "phase of the installed system");
        self.disk.change(|record| record.node = phase);
        self.world.set_node(self.hardware.index, phase);
    }
}
