//! The life of a machine, from power-on to a node of the cluster.

use std::sync::Arc;
use std::time::Duration;

use crate::HostFault;
use crate::agent::{self, AgentExit};
use crate::install_request::InstallRequest;
use crate::machine::Machine;
use crate::world::NodePhase;

/// Duration of firmware and kernel.
const BOOT_TIME: Duration = Duration::from_secs(90);
/// Delay of machines that boot late.
const LATE_TIME: Duration = Duration::from_mins(5);
/// Duration of applying the configuration.
const CONFIGURE_TIME: Duration = Duration::from_mins(1);
/// Time until a joined node is ready.
const READY_TIME: Duration = Duration::from_mins(1);

/// Final state of a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum MachineExit {
    /// It is a ready node.
    Node,
    /// Its agent hangs, as the real one does.
    Frozen(String),
}

impl Machine {
    /// Runs until the machine is a node or frozen.
    pub(crate) async fn live(self: &Arc<Self>) -> MachineExit {
        if self.disk.get().node == NodePhase::Live {
            self.await_power_on().await;
            self.resume_installation();
            if let Err(why) = self.run_live().await {
                tracing::error!(
                    host = self.name(),
                    why,
                    "agent hangs: the machine must be rebooted"
                );
                return MachineExit::Frozen(why);
            }
            self.enter(NodePhase::Booting);
        }
        self.start_from_disk().await;
        MachineExit::Node
    }

    async fn await_power_on(&self) {
        if self.hardware.joins {
            self.world.until_open().await;
        }
        if self.hardware.has(HostFault::Late) {
            self.world.pace.sleep(LATE_TIME).await;
        }
    }

    /// Runs the discovery image until the machine boots from its disk. Errors: the agent hangs.
    async fn run_live(self: &Arc<Self>) -> Result<(), String> {
        loop {
            match agent::run(self).await {
                AgentExit::Frozen(why) => return Err(why),
                AgentExit::Rebooted if !self.hardware.has(HostFault::BootOrder) => return Ok(()),
                AgentExit::Rebooted => {
                    self.world.pace.sleep(BOOT_TIME).await;
                    self.disk.change(|record| record.runner = None);
                }
            }
        }
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
            && !request.as_ref().is_some_and(InstallRequest::is_single_node);
        if self.world.node(self.hardware.index) == NodePhase::Booting {
            pace.sleep(BOOT_TIME).await;
            if waits_for_control_plane {
                let wanted = request.as_ref().map_or(1, InstallRequest::quorum);
                self.world
                    .nodes_until(|nodes| {
                        let ready = nodes.iter().filter(|node| **node == NodePhase::Ready);
                        ready.count() >= wanted
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
}
