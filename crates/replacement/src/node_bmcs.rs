//! The machines of nodes by their BMCs, for a replacement.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use redfish::{
    self, BmcAccess, BmcError, BmcEvent, BmcJob, BmcRunner, BmcTarget, BootJob, BootMedium,
    FenceJob, FinishJob, PowerStateJob, RedfishConnector, observation_timing,
};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use crate::{MachineSide, NodeHardware, NodePlace, PowerState, WorldError};

/// The BMCs of a replacement.
///
/// A machine without one has no readable power, is not turned off and not booted: a person does it.
#[derive(Debug)]
pub struct NodeBmcs {
    acting: BmcRunner,
    observing: BmcRunner,
    machines: BTreeMap<MachineSide, Arc<NodeMachine>>,
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

    /// With the BMC of a machine. Both may have the same one: the node is installed again.
    #[must_use]
    pub fn with_machine(mut self, side: MachineSide, access: BmcAccess) -> Self {
        let mut known = self.machines.values();
        let same = known.find(|it| it.access.endpoint == access.endpoint);
        let machine = same.cloned();
        let machine = machine.unwrap_or_else(|| Arc::new(NodeMachine::new(access)));
        self.machines.insert(side, machine);
        self
    }

    /// With the medium that the new machine boots from. Without one, a person boots it.
    #[must_use]
    pub fn with_medium(mut self, medium: BootMedium) -> Self {
        self.medium = Some(medium);
        self
    }

    /// Whether a BMC boots the new machine; otherwise a person does.
    pub fn boots(&self) -> bool {
        self.medium.is_some() && self.machines.contains_key(&MachineSide::New)
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
    async fn power(
        &self,
        side: MachineSide,
        node: &NodePlace,
    ) -> Result<Option<PowerState>, WorldError> {
        let Some(machine) = self.machines.get(&side) else {
            return Ok(None);
        };
        let doing = "reading the power";
        let state = machine.run(&self.observing, &node.name, doing, PowerStateJob);
        Ok(Some(match state.await? {
            redfish::PowerState::Off => PowerState::Off,
            // A machine between two states, or in an unknown one, may still write to its disk.
            _ => PowerState::On,
        }))
    }

    async fn power_off(&self, node: &NodePlace) -> Result<(), WorldError> {
        if let Some(machine) = self.machines.get(&MachineSide::Old) {
            let fenced = machine.run(&self.acting, &node.name, "power-off", FenceJob);
            fenced.await?;
        }
        Ok(())
    }

    async fn boot(&self, node: &NodePlace) -> Result<(), WorldError> {
        let machine = self.machines.get(&MachineSide::New);
        let (Some(machine), Some(medium)) = (machine, self.medium.clone()) else {
            return Ok(());
        };
        let job = BootJob(medium);
        machine.run(&self.acting, &node.name, "boot", job).await
    }

    async fn eject(&self, node: &NodePlace) -> Result<(), WorldError> {
        let Some(machine) = self.machines.get(&MachineSide::New) else {
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
