//! One simulated BMC: its state from outside, and its power.

use std::fmt;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::fault::{BmcFault, BmcFaultRule};
use super::host::BmcHost;
use super::profile::BmcProfile;
use super::state::{BmcBootSource, BmcRequestRecord, BmcState, SimulatedOverride, SimulatedPower};

/// Times of BMCs; real ones take seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BmcPace {
    /// Time of each request.
    pub request: Duration,
    /// Time of a power change.
    pub power: Duration,
    /// Time of an insertion or import, which becomes a task then.
    pub task: Duration,
}

/// A start of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BmcBoot {
    /// Position of the BMC in its rack.
    pub index: usize,
    /// Name of the host.
    pub host: String,
    /// The medium that it started from.
    pub source: BmcBootSource,
}

/// Receives the starts of hosts. It must not wait.
pub type BmcBootHook = Arc<dyn Fn(&BmcBoot) + Send + Sync>;

/// A BMC.
pub struct SimulatedBmc {
    /// Position in its rack.
    pub index: usize,
    /// Its family.
    pub profile: &'static BmcProfile,
    /// Its host.
    pub host: BmcHost,
    /// Its address.
    pub address: Ipv4Addr,
    pub(super) user: String,
    pub(super) password: String,
    pub(super) pace: BmcPace,
    pub(super) hook: Option<BmcBootHook>,
    state: Mutex<BmcState>,
}

impl fmt::Debug for SimulatedBmc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimulatedBmc")
            .field("index", &self.index)
            .field("profile", &self.profile.name)
            .finish_non_exhaustive()
    }
}

impl SimulatedBmc {
    pub(super) fn new(
        index: usize,
        (profile, host): (&'static BmcProfile, BmcHost),
        address: Ipv4Addr,
        (user, password): (String, String),
        pace: BmcPace,
        hook: Option<BmcBootHook>,
    ) -> Self {
        Self {
            index,
            profile,
            host,
            address,
            user,
            password,
            pace,
            hook,
            state: Mutex::new(BmcState::new(profile)),
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, BmcState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Power of the host.
    pub fn power(&self) -> SimulatedPower {
        self.state().power
    }

    /// Sets the power, without a boot.
    pub fn set_power(&self, power: SimulatedPower) {
        let mut state = self.state();
        state.power = power;
        state.pending = None;
    }

    /// Images of the media that are connected, by name of the medium.
    pub fn images(&self) -> Vec<(&'static str, String)> {
        let state = self.state();
        let media = state.media.iter().zip(self.profile.media);
        let connected = media.filter(|(medium, _)| medium.is_connected);
        connected
            .filter_map(|(medium, kind)| Some((kind.name, medium.image.clone()?)))
            .collect()
    }

    /// Inserts an image into the medium of this name. False without such a medium.
    pub fn insert(&self, name: &str, image: &str) -> bool {
        let at = self.profile.media.iter().position(|kind| kind.name == name);
        if let Some(at) = at {
            self.state().insert(at, image);
        }
        at.is_some()
    }

    /// The boot override.
    pub fn boot_override(&self) -> SimulatedOverride {
        self.state().boot.clone()
    }

    /// Sets the boot override.
    pub fn set_boot_override(&self, boot: SimulatedOverride) {
        self.state().boot = boot;
    }

    /// Puts the virtual CD in front of the disk in the boot order, or behind it.
    pub fn set_cd_first(&self, is_first: bool) {
        self.state().has_cd_first = is_first;
    }

    /// The starts of the host so far.
    pub fn boots(&self) -> Vec<BmcBootSource> {
        self.state().boots.clone()
    }

    /// The requests so far.
    pub fn requests(&self) -> Vec<BmcRequestRecord> {
        self.state().records.clone()
    }

    /// Forgets the requests so far.
    pub fn clear_requests(&self) {
        self.state().records.clear();
    }

    /// Number of open sessions.
    pub fn open_sessions(&self) -> usize {
        self.state().sessions.len()
    }

    /// Number of sessions that were ever opened.
    pub fn opened_sessions(&self) -> u64 {
        self.state().session_count
    }

    /// Ends all sessions, as their timeout does.
    pub fn end_sessions(&self) {
        self.state().sessions.clear();
    }

    /// Number of requests with wrong credentials.
    pub fn refused_logins(&self) -> u32 {
        self.state().refused_logins
    }

    /// Adds a fault.
    pub fn add_fault(&self, rule: BmcFaultRule) {
        self.state().rules.push(rule);
    }

    /// Removes all faults.
    pub fn clear_faults(&self) {
        self.state().rules.clear();
    }

    /// Starts a change of the power; it ends after its time.
    pub(super) fn change_power(self: &Arc<Self>, target: SimulatedPower) {
        let delay = self.pace.power;
        {
            let mut state = self.state();
            state.power = match target {
                SimulatedPower::On | SimulatedPower::PoweringOn => SimulatedPower::PoweringOn,
                SimulatedPower::Off | SimulatedPower::PoweringOff => SimulatedPower::PoweringOff,
            };
            state.pending = Some((target, Instant::now() + delay));
        }
        if delay == Duration::ZERO {
            self.end_power_change();
        } else {
            let bmc = Arc::clone(self);
            tokio::spawn(async move {
                tokio::time::sleep(delay).await;
                bmc.end_power_change();
            });
        }
    }

    /// Ends the change of power whose time has come. The hook runs without the lock.
    pub(super) fn end_power_change(&self) {
        let booted = {
            let mut state = self.state();
            let Some((target, _)) = state.pending.filter(|(_, end)| *end <= Instant::now()) else {
                return;
            };
            state.pending = None;
            let is_starting = matches!(state.power, SimulatedPower::PoweringOn);
            state.power = target;
            state.version += 1;
            if target == SimulatedPower::Off {
                state.off_left = self.profile.off_lasts;
                if state.has(&BmcFault::ForgetsOverride) {
                    let mode = state.boot.mode.clone();
                    state.boot = SimulatedOverride {
                        mode,
                        ..SimulatedOverride::default()
                    };
                }
            }
            let starts = is_starting && target == SimulatedPower::On;
            starts.then(|| state.boot(self.profile))
        };
        if let (Some(source), Some(hook)) = (booted, &self.hook) {
            hook(&BmcBoot {
                index: self.index,
                host: self.host.name.clone(),
                source,
            });
        }
    }

    /// Restarts the host at once.
    pub(super) fn restart(self: &Arc<Self>) {
        self.change_power(SimulatedPower::On);
    }
}
