//! One machine from power-on to a node of the cluster.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::agent::{self, AgentExit};
use crate::api::{ApiCall, ApiClient, RetryPolicy};
use crate::controller::Controller;
use crate::image::BootConfig;
use crate::install;
use crate::state_file::{MachineState, StateFile};
use crate::world::NodePhase;
use crate::{Error, Hardware, World};

/// Duration of firmware and kernel.
const BOOT_TIME: Duration = Duration::from_secs(90);
/// Duration of applying the configuration.
const CONFIGURE_TIME: Duration = Duration::from_mins(1);
/// Time until a joined node is ready.
const READY_TIME: Duration = Duration::from_mins(1);
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
    installation: Mutex<Option<JoinHandle<()>>>,
}

/// Final state of a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum MachineExit {
    /// It is a ready node.
    Node,
    /// Its agent hangs, as the real one does.
    Frozen(String),
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

    /// Runs until the machine is a node or frozen.
    pub(crate) async fn live(self: &Arc<Self>) -> MachineExit {
        if self.disk.get().node == NodePhase::Live {
            self.resume_installation();
            match agent::run(self).await {
                AgentExit::Rebooted => self.enter(NodePhase::Booting),
                AgentExit::Frozen(why) => {
                    tracing::error!(
                        host = self.name(),
                        why,
                        "agent hangs: the machine must be rebooted"
                    );
                    return MachineExit::Frozen(why);
                }
            }
        }
        self.start_from_disk().await;
        MachineExit::Node
    }

    /// Starts the installer unless it runs already.
    pub(crate) fn begin_installation(self: &Arc<Self>, request: install::InstallRequest) -> bool {
        let mut installation = self
            .installation
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if installation
            .as_ref()
            .is_some_and(|task| !task.is_finished())
        {
            return false;
        }
        self.disk
            .change(|record| record.install = Some(request.clone()));
        let machine = Arc::clone(self);
        *installation = Some(tokio::spawn(async move {
            install::run(&machine, &request).await;
        }));
        true
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

    fn resume_installation(self: &Arc<Self>) {
        if let Some(request) = self.disk.get().install {
            tracing::info!(host = self.name(), "resuming its installation");
            self.begin_installation(request);
        }
    }

    /// Boots the installed system until the node is ready.
    async fn start_from_disk(&self) {
        let pace = self.world.pace;
        let request = self.disk.get().install;
        let waits_for_control_plane = request
            .as_ref()
            .is_some_and(|r| r.role == "worker" || r.role == "bootstrap")
            && !request
                .as_ref()
                .is_some_and(install::InstallRequest::is_single_node);
        if self.world.node(self.hardware.index) == NodePhase::Booting {
            pace.sleep(BOOT_TIME).await;
            if waits_for_control_plane {
                self.world
                    .nodes_until(|nodes| {
                        nodes.iter().filter(|n| **n == NodePhase::Ready).count() >= QUORUM
                    })
                    .await;
            }
            self.enter(NodePhase::Configuring);
        }
        if self.world.node(self.hardware.index) == NodePhase::Configuring {
            pace.sleep(CONFIGURE_TIME).await;
            self.enter(NodePhase::Joined);
        }
        if self.world.node(self.hardware.index) == NodePhase::Joined {
            pace.sleep(READY_TIME).await;
            self.enter(NodePhase::Ready);
        }
    }

    fn enter(&self, phase: NodePhase) {
        tracing::info!(host = self.name(), ?phase, "phase of the installed system");
        self.disk.change(|record| record.node = phase);
        self.world.set_node(self.hardware.index, phase);
    }
}

/// Reports a stage of any host: the bootstrap host and the controller speak for others.
pub(crate) async fn report(
    api: &ApiClient,
    infra_env: &str,
    host: &str,
    stage: &str,
    info: &str,
) -> Result<(), Error> {
    let call = ApiCall::new(
        "progress",
        reqwest::Method::PUT,
        format!("/v2/infra-envs/{infra_env}/hosts/{host}/progress"),
    )
    .json(&serde_json::json!({ "current_stage": stage, "progress_info": info }));
    api.send(RetryPolicy::Installer, call).await.map(drop)
}
