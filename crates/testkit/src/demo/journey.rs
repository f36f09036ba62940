//! The journey from nothing to an installed cluster: its options and its state.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};

use super::client::DemoClient;
use super::console::Console;
use super::state::AtollState;

/// Machines of the demo.
pub(super) const HOSTS: usize = 5;

/// Until all hosts are known and the cluster is ready.
pub(super) const READY_DEADLINE: Duration = Duration::from_mins(10);

/// Until the installation begins or is given up.
pub(super) const PREPARE_DEADLINE: Duration = Duration::from_mins(12);

/// Injected fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Break {
    /// One machine has too little memory.
    Ram,
    /// The registry stops before the installation.
    Registry,
}

/// How the journey goes.
#[derive(Debug, Clone)]
pub struct JourneyOptions {
    /// `atoll.json`.
    pub state: PathBuf,
    /// Where the image, logs and credentials go.
    pub work: PathBuf,
    /// The program of the simulated machines.
    pub host_sim: PathBuf,
    /// The real coreos-installer.
    pub coreos_installer: Option<PathBuf>,
    /// Injected fault.
    pub broken: Option<Break>,
    /// How many times faster than real time the machines are.
    pub speedup: f64,
    /// Token of a user, where callers are authenticated.
    pub token: Option<String>,
}

/// One run.
#[derive(Debug)]
pub struct Journey<'a> {
    pub(super) options: &'a JourneyOptions,
    pub(super) console: &'a Console,
    pub(super) state: AtollState,
    pub(super) client: DemoClient,
}

impl<'a> Journey<'a> {
    /// Reads the addresses of the services.
    ///
    /// Errors: the state cannot be read, the work directory cannot be made.
    pub fn new(options: &'a JourneyOptions, console: &'a Console) -> Result<Self> {
        std::fs::create_dir_all(&options.work)
            .with_context(|| format!("{}: cannot be made", options.work.display()))?;
        let state = AtollState::read(&options.state)?;
        let client = DemoClient::new(&state.api_url, options.token.clone())?;
        Ok(Self {
            options,
            console,
            state,
            client,
        })
    }
}
