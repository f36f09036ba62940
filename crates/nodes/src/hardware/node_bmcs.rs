//! The machines of nodes by their BMCs, for a replacement.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use crate::redfish::{
    self, BmcAccess, BmcError, BmcEvent, BmcJob, BmcRunner, BmcTarget, BootJob, BootMedium,
    FenceJob, FinishJob, PowerStateJob, RedfishConnector, RedfishTiming,
};
use crate::replace::{NodeHardware, NodePlace, PowerState, WorldError};

/// The power is observed before each change: a dead BMC must not hold a replacement for minutes.
fn observation_timing(timing: &RedfishTiming) -> RedfishTiming {
    RedfishTiming {
        connect: timing.connect.min(Duration::from_secs(5)),
        answer: timing.answer.min(Duration::from_secs(15)),
        attempts: timing.attempts.min(3),
        longest_retry_after: timing.longest_retry_after.min(Duration::from_secs(5)),
        ..timing.clone()
    }
}

/// BMCs by the names of their nodes.
///
/// A node without one has no readable power, is not turned off and not booted: a person does it.
#[derive(Debug)]
pub struct NodeBmcs {
    acting: BmcRunner,
    observing: BmcRunner,
    machines: BTreeMap<String, NodeMachine>,
    successors: BTreeMap<String, NodeMachine>,
    medium: Option<BootMedium>,
}

/// The BMC of one machine.
#[derive(Debug)]
struct NodeMachine {
    access: BmcAccess,
    /// The refusal of its credentials, which are not sent again: BMCs lock accounts. Held during an operation, since BMCs
    /// have few sessions.
    refusal: Mutex<Option<BmcError>>,
}

impl NodeBmcs {
    /// No BMCs yet. Events of operations go to the log.
    pub fn new(connector: &RedfishConnector) -> Self {
        let runner =
            |connector: RedfishConnector| BmcRunner::new(connector, CancellationToken::new());
        let observer = observation_timing(connector.timing());
        Self {
            acting: runner(connector.clone()).with_receiver(log),
            observing: runner(connector.clone().with_timing(observer)),
            machines: BTreeMap::new(),
            successors: BTreeMap::new(),
            medium: None,
        }
    }

    /// With a receiver of the events of changes: the name of the node, and the event.
    #[must_use]
    pub fn with_receiver(
        mut self,
        receiver: impl Fn(&str, BmcEvent) + Send + Sync + 'static,
    ) -> Self {
        self.acting = self.acting.with_receiver(receiver);
        self
    }

    /// With the BMC of the machine of a node.
    #[must_use]
    pub fn with_machine(mut self, node: impl Into<String>, access: BmcAccess) -> Self {
        self.machines.insert(node.into(), NodeMachine::new(access));
        self
    }

    /// With the BMC of another machine that takes over the name of a node.
    ///
    /// Until then the name belongs to both machines: it is off when both are, and unknown when the power of the first
    /// cannot be read.
    #[must_use]
    pub fn with_successor(mut self, node: impl Into<String>, access: BmcAccess) -> Self {
        self.successors
            .insert(node.into(), NodeMachine::new(access));
        self
    }

    /// With the medium that new nodes boot from.
    #[must_use]
    pub fn with_medium(mut self, medium: BootMedium) -> Self {
        self.medium = Some(medium);
        self
    }

    /// Whether a BMC boots the machine that joins under this name; otherwise a person does.
    pub fn has_bmc(&self, node: &str) -> bool {
        self.joining(node).is_some()
    }

    /// The machine that joins under a name.
    fn joining(&self, node: &str) -> Option<&NodeMachine> {
        let successor = self.successors.get(node);
        successor.or_else(|| self.machines.get(node))
    }

    /// All machines of a name; none when one of them has no BMC.
    fn all(&self, node: &str) -> Option<impl Iterator<Item = &NodeMachine>> {
        let first = self.machines.get(node)?;
        Some([first].into_iter().chain(self.successors.get(node)))
    }
}

impl NodeMachine {
    fn new(access: BmcAccess) -> Self {
        Self {
            access,
            refusal: Mutex::new(None),
        }
    }

    /// Runs a job in a session of its own.
    async fn run<J: BmcJob>(
        &self,
        runner: &BmcRunner,
        node: &str,
        doing: &str,
        job: J,
    ) -> Result<J::Output, WorldError> {
        let failed = |error: &BmcError| WorldError {
            doing: format!("{doing} of {node} by its BMC {}", self.access.endpoint),
            reason: error.to_string(),
            is_transient: error.is_transient(),
        };
        let mut refusal = self.refusal.lock().await;
        if let Some(refusal) = &*refusal {
            return Err(failed(refusal));
        }
        let target = BmcTarget {
            name: node.to_owned(),
            access: self.access.clone(),
        };
        let mut results = runner.run(vec![target], job).await;
        let result = results.pop().map(|(_, result)| result);
        result.unwrap_or(Err(BmcError::Cancelled)).map_err(|error| {
            if let refused @ BmcError::Unauthenticated { .. } = error.cause() {
                *refusal = Some(refused.clone());
            }
            failed(&error)
        })
    }
}

#[async_trait]
impl NodeHardware for NodeBmcs {
    async fn power(&self, node: &NodePlace) -> Result<Option<PowerState>, WorldError> {
        let name = &node.name;
        let Some(machines) = self.all(name) else {
            return Ok(None);
        };
        for machine in machines {
            let doing = "reading the power";
            let state = machine
                .run(&self.observing, name, doing, PowerStateJob)
                .await?;
            // A machine between two states, or in an unknown one, may still write to its disk.
            if state != redfish::PowerState::Off {
                return Ok(Some(PowerState::On));
            }
        }
        Ok(Some(PowerState::Off))
    }

    async fn power_off(&self, node: &NodePlace) -> Result<(), WorldError> {
        for machine in self.all(&node.name).into_iter().flatten() {
            let doing = "power-off";
            machine
                .run(&self.acting, &node.name, doing, FenceJob)
                .await?;
        }
        Ok(())
    }

    async fn boot(&self, node: &NodePlace) -> Result<(), WorldError> {
        let Some(machine) = self.joining(&node.name) else {
            return Ok(());
        };
        let Some(medium) = self.medium.clone() else {
            return Err(WorldError {
                doing: format!("boot of {}", node.name),
                reason: "it has a BMC, and no image to boot from: name the address of its live image for the BMC \
                         (virtual media), or that of its image for UEFI HTTP boot"
                    .to_owned(),
                is_transient: false,
            });
        };
        let job = BootJob(medium);
        machine.run(&self.acting, &node.name, "boot", job).await
    }

    async fn eject(&self, node: &NodePlace) -> Result<(), WorldError> {
        let Some(machine) = self.joining(&node.name) else {
            return Ok(());
        };
        // The node is ready, and is not restarted: an entry before its disk is a warning of the job.
        let job = FinishJob { restarts: false };
        let doing = "eject of the boot image";
        machine.run(&self.acting, &node.name, doing, job).await?;
        Ok(())
    }
}

fn log(node: &str, event: BmcEvent) {
    match event {
        BmcEvent::Step(step) => tracing::info!(node, step = step.title(), "step of a BMC begins"),
        BmcEvent::Warning(warning) => tracing::warn!(node, warning, "warning of a BMC"),
        // The caller has them.
        BmcEvent::Connecting | BmcEvent::Connected(_) | BmcEvent::Done | BmcEvent::Failed(_) => {}
    }
}
