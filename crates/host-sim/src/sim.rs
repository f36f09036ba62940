//! A simulation: starts all machines and waits until they end.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ipnet::Ipv4Net;
use tokio::task::JoinSet;

use crate::controller::{Controller, ControllerEnd};
use crate::hardware::NetworkPlacement;
use crate::image::BootConfig;
use crate::lifecycle::MachineExit;
use crate::machine::Machine;
use crate::state_file::StateFile;
use crate::{ApiClient, Error, Hardware, Pace, Role, Stats, Weakness, World};

/// Machines get addresses from this one on; those before it are for routers and virtual addresses.
const FIRST_ADDRESS: usize = 9;

/// Configuration of a simulation.
#[derive(Debug, Clone)]
pub struct SimulationPlan {
    /// The agent's configuration of the image.
    pub boot: BootConfig,
    /// Numbers of machines by role.
    pub hosts: Vec<(Role, usize)>,
    /// Defects by name of the machine; "all" means every one.
    pub weaknesses: Vec<(String, Weakness)>,
    /// Their network.
    pub network: Ipv4Net,
    /// DNS records of the network.
    pub dns: BTreeMap<String, Ipv4Addr>,
    /// Relation of simulated to real time.
    pub pace: Pace,
    /// Seed of serial numbers and host ids.
    pub seed: String,
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
    pub faults: Vec<String>,
}

impl SimulationOutcome {
    /// Logs all failures.
    pub fn log(&self) {
        for (host, why) in &self.frozen {
            tracing::error!(host, why, "frozen");
        }
        for fault in &self.faults {
            tracing::error!(fault, "the server broke the agent protocol");
        }
        if let Some(why) = &self.given_up {
            tracing::error!(why, "the cluster was not installed");
        }
    }

    /// Exit code of the command line: that of the most severe failure.
    pub fn exit_code(&self) -> u8 {
        if !self.faults.is_empty() {
            4
        } else if !self.frozen.is_empty() {
            3
        } else {
            u8::from(self.given_up.is_some())
        }
    }
}

impl SimulationPlan {
    /// The machines of this plan.
    ///
    /// Errors: `Invalid` – more machines than addresses, or a weakness of a machine that does not exist.
    pub fn machines(&self) -> Result<Vec<Arc<Hardware>>, Error> {
        let mut addresses = self.network.hosts();
        let gateway = addresses.next();
        let mut addresses = addresses.skip(FIRST_ADDRESS - 1);
        let mut machines = Vec::new();
        for (role, count) in &self.hosts {
            for number in 0..*count {
                let hostname = format!("{role}-{number}");
                let weaknesses = self
                    .weaknesses
                    .iter()
                    .filter(|(name, _)| *name == hostname || name == "all")
                    .map(|(_, w)| *w)
                    .collect();
                let (Some(ip), Some(gateway)) = (addresses.next(), gateway) else {
                    return Err(Error::invalid(
                        "--network",
                        format!("{} is too small for all machines", self.network),
                    ));
                };
                let place = NetworkPlacement {
                    index: machines.len(),
                    ip,
                    prefix: self.network.prefix_len(),
                    gateway,
                };
                machines.push(Arc::new(Hardware::new(
                    &self.seed, hostname, *role, &place, weaknesses,
                )));
            }
        }
        for (name, _) in &self.weaknesses {
            if name != "all" && !machines.iter().any(|machine| machine.hostname == *name) {
                let known: Vec<_> = machines
                    .iter()
                    .map(|machine| machine.hostname.as_str())
                    .collect();
                return Err(Error::invalid(
                    "--weaken",
                    format!(
                        "there is no machine {name:?}; known are {}",
                        known.join(", ")
                    ),
                ));
            }
        }
        Ok(machines)
    }
}

/// Runs all machines until each is a node or frozen, and the controller until it is done.
///
/// Errors: a plan that cannot be carried out, or damaged state files.
pub async fn run(plan: &SimulationPlan, stats: Arc<Stats>) -> Result<SimulationOutcome, Error> {
    if let Some(state) = &plan.state {
        std::fs::create_dir_all(state).map_err(|source| Error::File {
            path: state.clone(),
            doing: "cannot be made",
            source,
        })?;
    }
    let world = Arc::new(World::new(
        plan.network,
        plan.pace,
        plan.machines()?,
        plan.dns.clone(),
    ));
    let api = ApiClient::new(&plan.boot, plan.pace, stats)?;
    let controller = Arc::new(Controller::new(
        api.clone(),
        Arc::clone(&world),
        plan.state.as_deref(),
    )?);
    let mut machines = JoinSet::new();
    for hardware in world.machines() {
        let disk = StateFile::open(plan.state.as_deref(), &hardware.hostname)?;
        let (hardware, controller) = (Arc::clone(hardware), Arc::clone(&controller));
        let mut machine = Machine::new(
            hardware,
            Arc::clone(&world),
            plan.boot.clone(),
            api.clone(),
            disk,
            controller,
        );
        machine.interval = plan.interval;
        let machine = Arc::new(machine);
        machines.spawn(async move { (machine.name().to_owned(), machine.live().await) });
    }
    let controlling = tokio::spawn(async move { controller.run().await });
    let mut outcome = SimulationOutcome::default();
    while let Some(ended) = machines.join_next().await {
        match ended {
            Ok((_, MachineExit::Node)) => {}
            Ok((name, MachineExit::Frozen(why))) => outcome.frozen.push((name, why)),
            Err(error) => outcome
                .faults
                .push(format!("a machine's task failed: {error}")),
        }
    }
    // With a frozen machine the cluster may never be complete: no reason to wait.
    if !outcome.frozen.is_empty() {
        controlling.abort();
    } else if let Ok(ControllerEnd::GivenUp(why)) = controlling.await {
        outcome.given_up = Some(why);
    }
    outcome.faults.extend(world.faults());
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> SimulationPlan {
        SimulationPlan {
            boot: BootConfig {
                url: "http://127.0.0.1:9".into(),
                infra_env_id: uuid::Uuid::nil(),
                agent_version: "q.io/agent:1".into(),
                insecure: false,
                ca_pem: None,
                token: None,
            },
            hosts: vec![(Role::Master, 3), (Role::Worker, 2)],
            weaknesses: vec![("worker-1".into(), Weakness::Ram)],
            network: "192.168.126.0/24".parse().unwrap(),
            dns: BTreeMap::new(),
            pace: Pace::new(1.0),
            seed: "s".into(),
            state: None,
            interval: None,
        }
    }

    #[test]
    fn machines_are_named_and_addressed() {
        let machines = plan().machines().unwrap();
        assert_eq!(machines[0].hostname, "master-0");
        assert_eq!(machines[0].ip.to_string(), "192.168.126.10");
        assert_eq!(machines[0].gateway.to_string(), "192.168.126.1");
        assert!(machines[4].has(Weakness::Ram) && !machines[3].has(Weakness::Ram));
    }

    #[test]
    fn the_exit_code_is_that_of_the_most_severe_failure() {
        let mut outcome = SimulationOutcome::default();
        assert_eq!(outcome.exit_code(), 0);
        outcome.given_up = Some("error".into());
        assert_eq!(outcome.exit_code(), 1);
        outcome.frozen.push(("worker-0".into(), "404".into()));
        assert_eq!(outcome.exit_code(), 3);
        outcome.faults.push("no arguments".into());
        assert_eq!(outcome.exit_code(), 4);
    }

    #[test]
    fn impossible_plans_are_refused() {
        let small = SimulationPlan {
            network: "10.0.0.0/29".parse().unwrap(),
            ..plan()
        };
        assert!(
            small
                .machines()
                .unwrap_err()
                .to_string()
                .contains("too small")
        );
        let unknown = SimulationPlan {
            weaknesses: vec![("worker-7".into(), Weakness::Ram)],
            ..plan()
        };
        assert!(
            unknown
                .machines()
                .unwrap_err()
                .to_string()
                .contains("worker-7")
        );
    }
}
