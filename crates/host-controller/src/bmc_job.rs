//! An action on one BMC, in one session.

use super::action::BmcAction;
use redfish::{Bmc, BmcError, BmcInventory, BmcJob, BmcProgress, PowerAction, PowerState};

/// An action; a failure of the login, or of the look at the power, is that of the job.
#[derive(Debug, Clone, Copy)]
pub(super) struct HostBmcJob(pub(super) BmcAction);

/// A host as its BMC shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SeenHost {
    /// Before the action.
    pub(super) power_before: PowerState,
    /// After it.
    pub(super) power: PowerState,
    /// Of an inspection.
    pub(super) inventory: Option<Box<BmcInventory>>,
    /// The reason why the action failed.
    pub(super) failure: Option<String>,
}

impl SeenHost {
    /// A host that nothing was done with.
    pub(super) fn new(power: PowerState) -> Self {
        Self {
            power_before: power,
            power,
            inventory: None,
            failure: None,
        }
    }
}

impl BmcJob for HostBmcJob {
    type Output = SeenHost;

    async fn run(&self, bmc: &mut Bmc, _: &BmcProgress) -> Result<SeenHost, BmcError> {
        let mut seen = SeenHost::new(bmc.power_state().await?);
        if let Err(error) = act(bmc, self.0, &mut seen).await {
            seen.failure = Some(error.to_string());
        }
        Ok(seen)
    }
}

async fn act(bmc: &mut Bmc, action: BmcAction, seen: &mut SeenHost) -> Result<(), BmcError> {
    match action {
        BmcAction::None | BmcAction::LogIn => {}
        BmcAction::Inspect => seen.inventory = Some(Box::new(bmc.inventory().await?)),
        BmcAction::PowerOn if seen.power == PowerState::On => {}
        BmcAction::PowerOn => seen.power = bmc.power(PowerAction::On).await?,
        BmcAction::ShutDown | BmcAction::PowerOff if seen.power == PowerState::Off => {}
        BmcAction::ShutDown => seen.power = shut_down(bmc).await?,
        BmcAction::PowerOff => seen.power = bmc.power(PowerAction::ForceOff).await?,
        BmcAction::Fence => {
            bmc.fence().await?;
            seen.power = PowerState::Off;
        }
    }
    Ok(())
}

/// By the operating system, where the BMC can ask it.
async fn shut_down(bmc: &mut Bmc) -> Result<PowerState, BmcError> {
    match bmc.power(PowerAction::GracefulShutdown).await {
        Err(BmcError::Unsupported { .. }) => bmc.power(PowerAction::ForceOff).await,
        done => done,
    }
}
