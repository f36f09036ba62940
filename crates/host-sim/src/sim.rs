//! A simulation: starts all machines and waits until they end.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::{JoinHandle, JoinSet};

use crate::controller::{Controller, ControllerEnd};
use crate::image::BootConfig;
use crate::lifecycle::MachineExit;
use crate::machine::Machine;
use crate::state_file::StateFile;
use crate::world::Network;
use crate::{ApiClient, Connections, Error, Hardware, Pace, World};

/// Configuration of a simulation.
#[derive(Debug, Clone)]
pub struct SimulationPlan {
    /// The agent's configuration of the image.
    pub boot: BootConfig,
    /// The machines; their indexes are their positions.
    pub machines: Vec<Hardware>,
    /// Their networks.
    pub network: Network,
    /// Relation of simulated to real time.
    pub pace: Pace,
    /// Seed of chance events.
    pub seed: String,
    /// Whether the server makes files without an installer (DUMMY_IGNITION): machines accept them.
    pub has_dummy_files: bool,
    /// Directory for the state of machines.
    pub state: Option<PathBuf>,
    /// Overrides the polling interval.
    pub interval: Option<Duration>,
}

/// Result of a simulation.
#[derive(Debug, Default)]
pub struct SimulationOutcome {
    /// Machines whose agent hangs, with the reason.
    pub frozen: Vec<(String, String)>,
    /// Reason why the controller gave up.
    pub given_up: Option<String>,
    /// Breaches of the protocol by the server.
    pub breaches: Vec<String>,
}

impl SimulationOutcome {
    /// Logs all failures.
    pub fn log(&self) {
        for (host, why) in &self.frozen {
            tracing::error!(host, why, "frozen");
        }
        for breach in &self.breaches {
            tracing::error!(breach, "the server broke the agent protocol");
        }
        if let Some(why) = &self.given_up {
            tracing::error!(why, "the cluster was not installed");
        }
    }

    /// Exit code of the command line: that of the most severe failure.
    pub fn exit_code(&self) -> u8 {
        if !self.breaches.is_empty() {
            4
        } else if !self.frozen.is_empty() {
            3
        } else {
            u8::from(self.given_up.is_some())
        }
    }
}

/// Running machines; they end when it is dropped.
#[derive(Debug)]
pub struct Simulation {
    world: Arc<World>,
    machines: JoinSet<(String, MachineExit)>,
    controlling: JoinHandle<ControllerEnd>,
}

impl Simulation {
    /// Switches the machines on. Must run in a tokio runtime.
    ///
    /// Errors: a plan that cannot be carried out, or damaged state files.
    pub fn start(plan: &SimulationPlan, connections: Arc<Connections>) -> Result<Self, Error> {
        if let Some(state) = &plan.state {
            std::fs::create_dir_all(state).map_err(|source| Error::File {
                path: state.clone(),
                doing: "cannot be made",
                source,
            })?;
        }
        let machines = plan.machines.iter().cloned().map(Arc::new).collect();
        let mut world = World::new(plan.network.clone(), plan.pace, &plan.seed, machines);
        world.has_dummy_files = plan.has_dummy_files;
        let world = Arc::new(world);
        let api = ApiClient::new(&plan.boot, plan.pace, connections)?;
        let state = plan.state.as_deref();
        let controller = Controller::new(api.clone(), Arc::clone(&world), state)?;
        let controller = Arc::new(controller);
        let mut machines = JoinSet::new();
        for hardware in world.machines() {
            let disk = StateFile::open(state, &hardware.hostname)?;
            let mut machine = Machine::new(
                Arc::clone(hardware),
                Arc::clone(&world),
                plan.boot.clone(),
                api.clone(),
                disk,
                Arc::clone(&controller),
            );
            machine.interval = plan.interval;
            let machine = Arc::new(machine);
            machines.spawn(async move { (machine.name().to_owned(), machine.live().await) });
        }
        let controlling = tokio::spawn(async move { controller.run().await });
        Ok(Self {
            world,
            machines,
            controlling,
        })
    }

    /// The world of the machines.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// Switches on the machines that join the installed cluster.
    pub fn boot_joining(&self) {
        self.world.open();
    }

    /// Waits until each machine is a node or frozen, and the controller is done.
    pub async fn wait(mut self) -> SimulationOutcome {
        let mut outcome = SimulationOutcome::default();
        while let Some(ended) = self.machines.join_next().await {
            match ended {
                Ok((_, MachineExit::Node)) => {}
                Ok((name, MachineExit::Frozen(why))) => outcome.frozen.push((name, why)),
                Err(error) => outcome
                    .breaches
                    .push(format!("a machine's task failed: {error}")),
            }
        }
        // With a frozen machine the cluster may never be complete: no reason to wait.
        if outcome.frozen.is_empty()
            && let Ok(ControllerEnd::GivenUp(why)) = (&mut self.controlling).await
        {
            outcome.given_up = Some(why);
        }
        outcome.breaches.extend(self.world.breaches());
        outcome
    }
}

impl Drop for Simulation {
    fn drop(&mut self) {
        self.controlling.abort();
        // Installers are tasks of their own.
        self.world.ended.cancel();
    }
}

/// Runs all machines until each is a node or frozen, and the controller until it is done.
///
/// Errors: as [`Simulation::start`].
pub async fn run(
    plan: &SimulationPlan,
    connections: Arc<Connections>,
) -> Result<SimulationOutcome, Error> {
    Ok(Simulation::start(plan, connections)?.wait().await)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exit_code_is_that_of_the_most_severe_failure() {
        let mut outcome = SimulationOutcome::default();
        assert_eq!(outcome.exit_code(), 0);
        outcome.given_up = Some("error".into());
        assert_eq!(outcome.exit_code(), 1);
        outcome.frozen.push(("worker-0".into(), "404".into()));
        assert_eq!(outcome.exit_code(), 3);
        outcome.breaches.push("no arguments".into());
        assert_eq!(outcome.exit_code(), 4);
    }
}
