//! One machine: its parts and its state.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::api::ApiClient;
use crate::controller::Controller;
use crate::image::BootConfig;
use crate::stage::report;
use crate::state_file::{MachineState, StateFile};
use crate::world::NodePhase;
use crate::{Error, Hardware, World};

/// Masters that must be ready before other nodes get their configuration.
pub(crate) const QUORUM: usize = 2;

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
            installation: Mutex::default(),
        }
    }

    /// The name in log lines.
    pub(crate) fn name(&self) -> &str {
        &self.hardware.hostname
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
