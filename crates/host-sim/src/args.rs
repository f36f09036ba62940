//! The command line.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use ipnet::Ipv4Net;
use uuid::Uuid;

use crate::fleet::Fleet;
use crate::image::{self, BootConfig};
use crate::world::Network;
use crate::{Error, Hardware, HostFault, Pace, RackedMachines, Role, SimulationPlan};

/// Simulated hosts: boot from a discovery image, register, install.
///
/// Exit codes: 0 all machines are nodes of an installed cluster; 1 the simulation could not run or the
/// cluster was not installed; 2 wrong usage; 3 the server froze an agent; 4 the server broke the agent protocol.
#[derive(Debug, Parser)]
#[command(name = "host-sim", version, args_conflicts_with_subcommands = true)]
pub struct Cli {
    #[command(subcommand)]
    /// Other mode than the simulation of an installation.
    pub mode: Option<Mode>,
    #[command(flatten)]
    /// The simulation.
    pub simulate: Option<Simulate>,
}

/// Another mode.
#[derive(Debug, Subcommand)]
pub enum Mode {
    /// Register many hosts and poll like agents
    Load(LoadArgs),
    /// Print the ignition embedded in an image
    Ignition {
        /// The image.
        iso: PathBuf,
    },
}

/// The simulation of an installation.
#[derive(Debug, Args)]
pub struct Simulate {
    /// Discovery image that all machines boot
    #[arg(long, conflicts_with = "bmcs")]
    pub iso: Option<PathBuf>,
    /// Machines are off until their simulated BMCs have booted each from a discovery image. Into this folder go their records
    /// (hosts.yaml, bmcs.csv) and the authority of the BMCs' certificates (bmc-ca.pem)
    #[arg(long)]
    pub bmcs: Option<PathBuf>,
    /// Numbers of machines: masters=N,workers=N[,arbiters=N]
    #[arg(long, value_parser = parse_hosts, default_value = "masters=3,workers=2")]
    pub hosts: HostCounts,
    /// Speed-up over real time
    #[arg(long, default_value_t = 1.0)]
    pub speedup: f64,
    /// A fault of a machine: FAULT=NAME, such as ram=worker-1 or ntp=all; may be repeated
    #[arg(long, visible_alias = "fault", value_parser = parse_fault)]
    pub weaken: Vec<(String, HostFault)>,
    /// Directory for the state of machines; a restart with the same directory resumes them
    #[arg(long)]
    pub state_dir: Option<PathBuf>,
    /// Seed of serial numbers and host ids [default: the infra-env's id; "bmcs" with --bmcs]
    #[arg(long)]
    pub seed: Option<String>,
    /// Network of the machines
    #[arg(long, default_value = "192.168.126.0/24")]
    pub network: Ipv4Net,
    /// DNS record of the network: NAME=ADDRESS; may be repeated
    #[arg(long, value_parser = parse_record)]
    pub dns: Vec<(String, Ipv4Addr)>,
}

/// Load on the API.
#[derive(Debug, Args)]
pub struct LoadArgs {
    /// Base address of the API
    #[arg(long)]
    pub api: String,
    /// Infra-env to which hosts register; may be repeated, the hosts are spread over all evenly
    #[arg(long, required = true)]
    pub infra_env: Vec<Uuid>,
    /// Number of hosts
    #[arg(long, default_value_t = 500)]
    pub hosts: usize,
    /// Seconds between two instruction requests of a host
    #[arg(long, default_value_t = 60.0)]
    pub interval: f64,
    /// Seconds of polling after all hosts have registered
    #[arg(long, default_value_t = 60.0)]
    pub duration: f64,
    /// Sent as X-Secret-Key
    #[arg(long)]
    pub token: Option<String>,
}

/// Numbers of machines by role.
#[derive(Debug, Clone)]
pub struct HostCounts(pub Vec<(Role, usize)>);

impl Simulate {
    /// The machines, with the seed of the command line or this one.
    ///
    /// Errors: Invalid – more machines than addresses, or a fault of a machine that does not exist.
    pub fn machines(&mut self, seed: &str) -> Result<Vec<Hardware>, Error> {
        let seed = self.seed.get_or_insert_with(|| seed.to_owned());
        let fleet = Fleet {
            seed: seed.clone(),
            hosts: self.hosts.0.clone(),
            faults: self.weaken.clone(),
            network: self.network,
        };
        fleet.machines()
    }

    /// Boots the machines: the agent's configuration in their image, and the BMCs that started them.
    ///
    /// Errors: the image cannot be read or has nothing embedded; as [`RackedMachines`].
    pub async fn boot(&mut self) -> Result<(BootConfig, Option<RackedMachines>), Error> {
        if let Some(iso) = &self.iso {
            return Ok((image::boot_config(iso)?, None));
        }
        let Some(folder) = self.bmcs.clone() else {
            return Err(Error::invalid("the arguments", "--iso or --bmcs is needed"));
        };
        let machines = self.machines("bmcs")?;
        let mut racked = RackedMachines::start(&machines, &folder).await?;
        tracing::info!(folder = %folder.display(), "BMCs answer: their records are in the folder");
        Ok((racked.booted().await?, Some(racked)))
    }

    /// The plan of machines that booted an image.
    ///
    /// Errors: as [`Self::machines`].
    pub fn plan(mut self, boot: BootConfig) -> Result<SimulationPlan, Error> {
        let machines = self.machines(&boot.infra_env_id.to_string())?;
        let records = self.dns.into_iter();
        Ok(SimulationPlan {
            boot,
            machines,
            network: Network {
                networks: vec![self.network.into()],
                dns: records
                    .map(|(name, address)| (name, address.into()))
                    .collect(),
                forwards_except: None,
            },
            pace: Pace::new(self.speedup),
            seed: self.seed.unwrap_or_default(),
            has_dummy_files: false,
            state: self.state_dir,
            interval: None,
        })
    }
}

impl LoadArgs {
    /// The plans of this load: one for each infra-env.
    ///
    /// Errors: `Invalid` – more hosts than addresses.
    pub fn plans(&self) -> Result<Vec<SimulationPlan>, Error> {
        let count = self.infra_env.len();
        let of = |(at, infra_env): (usize, &Uuid)| {
            let more = usize::from(at < self.hosts % count);
            self.plan(*infra_env, self.hosts / count + more)
        };
        self.infra_env.iter().enumerate().map(of).collect()
    }

    fn plan(&self, infra_env: Uuid, hosts: usize) -> Result<SimulationPlan, Error> {
        let fleet = Fleet {
            seed: format!("load/{infra_env}"),
            hosts: vec![(Role::Worker, hosts)],
            faults: Vec::new(),
            network: LOAD_NETWORK,
        };
        Ok(SimulationPlan {
            boot: BootConfig {
                url: self.api.trim_end_matches('/').to_owned(),
                infra_env_id: infra_env,
                agent_version: "localhost/load/agent:latest".into(),
                insecure: false,
                ca_pem: None,
                token: self.token.clone(),
            },
            machines: fleet.machines()?,
            network: Network {
                networks: vec![LOAD_NETWORK.into()],
                ..Network::default()
            },
            pace: Pace::new(1.0),
            seed: fleet.seed,
            has_dummy_files: false,
            state: None,
            interval: Some(Duration::from_secs_f64(self.interval.clamp(0.01, 86_400.0))),
        })
    }
}

/// Network wide enough for all hosts of one process.
const LOAD_NETWORK: Ipv4Net = Ipv4Net::new_assert(Ipv4Addr::new(10, 88, 0, 0), 16);

fn parse_hosts(text: &str) -> Result<HostCounts, String> {
    text.split(',')
        .map(|part| {
            let (kind, count) = part
                .split_once('=')
                .ok_or_else(|| format!("{part:?} is not KIND=NUMBER"))?;
            let role = match kind {
                "masters" => Role::Master,
                "arbiters" => Role::Arbiter,
                "workers" => Role::Worker,
                _ => return Err(format!("{kind:?} is none of masters, arbiters, workers")),
            };
            Ok((
                role,
                count
                    .parse()
                    .map_err(|_| format!("{count:?} is not a number"))?,
            ))
        })
        .collect::<Result<_, _>>()
        .map(HostCounts)
}

fn parse_fault(text: &str) -> Result<(String, HostFault), String> {
    let (kind, name) = text
        .split_once('=')
        .ok_or("expected FAULT=NAME, such as ram=worker-1")?;
    Ok((name.to_owned(), HostFault::parse(kind)?))
}

fn parse_record(text: &str) -> Result<(String, Ipv4Addr), String> {
    let (name, address) = text.split_once('=').ok_or("expected NAME=ADDRESS")?;
    Ok((
        name.trim_end_matches('.').to_owned(),
        address
            .parse()
            .map_err(|_| format!("{address:?} is no IPv4 address"))?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_valid() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
        let cli = Cli::parse_from([
            "host-sim",
            "--iso",
            "a.iso",
            "--weaken",
            "ram=worker-1",
            "--dns",
            "api.a.b=10.0.0.1",
        ]);
        assert_eq!(
            cli.simulate.unwrap().hosts.0,
            [(Role::Master, 3), (Role::Worker, 2)]
        );
    }

    #[test]
    fn hosts_are_spread_over_infra_envs() {
        let [a, b] = [Uuid::from_u128(1), Uuid::from_u128(2)].map(|id| id.to_string());
        let arguments = [
            "load",
            "--api",
            "http://a",
            "--infra-env",
            &a,
            "--infra-env",
            &b,
            "--hosts",
            "5",
        ];
        let cli = Cli::parse_from(std::iter::once("host-sim").chain(arguments));
        let Some(Mode::Load(load)) = cli.mode else {
            panic!("no load");
        };
        let hosts: Vec<usize> = load
            .plans()
            .unwrap()
            .iter()
            .map(|plan| plan.machines.len())
            .collect();
        assert_eq!(hosts, [3, 2]);
    }

    #[test]
    fn errors_name_the_expected_value() {
        assert!(parse_hosts("nodes=3").unwrap_err().contains("masters"));
        assert!(
            parse_hosts("masters=x")
                .unwrap_err()
                .contains("not a number")
        );
        assert!(parse_fault("fan=worker-0").unwrap_err().contains("ram"));
    }
}
