//! Power: actions, and waiting for their state. Source: DSP0268 ComputerSystem, Reset.

use std::fmt;

use reqwest::Method;
use serde::Serialize;
use serde_json::{Value, json};

use super::bmc::Bmc;
use super::document::RedfishDocument;
use super::error::BmcError;
use super::http::RedfishRequest;
use super::timing::PollDeadline;

/// Power state of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum PowerState {
    /// On.
    On,
    /// Off.
    Off,
    /// Between off and on.
    PoweringOn,
    /// Between on and off.
    PoweringOff,
    /// Paused, or a state that the standard does not have.
    Unknown,
}

impl PowerState {
    pub(super) fn of(system: &RedfishDocument) -> Self {
        match system.text("/PowerState") {
            Some("On") => Self::On,
            Some("Off") => Self::Off,
            Some("PoweringOn") => Self::PoweringOn,
            Some("PoweringOff") => Self::PoweringOff,
            _ => Self::Unknown,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::On => "on",
            Self::Off => "off",
            Self::PoweringOn => "powering on",
            Self::PoweringOff => "powering off",
            Self::Unknown => "an unknown power state",
        }
    }
}

impl fmt::Display for PowerState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A change of power.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PowerAction {
    /// On.
    On,
    /// Off, without the operating system's help.
    ForceOff,
    /// Off, by the operating system.
    GracefulShutdown,
    /// Off, seen, and on.
    Restart,
}

/// A power action as a row.
struct PowerRule {
    action: PowerAction,
    /// Words for messages, behind "to".
    doing: &'static str,
    target: PowerState,
    /// Reset types with this effect on a host in another state, the best one first.
    reset_types: &'static [&'static str],
}

static POWER_RULES: &[PowerRule] = &[
    PowerRule {
        action: PowerAction::On,
        doing: "power on",
        target: PowerState::On,
        reset_types: &["On", "ForceOn", "PushPowerButton"],
    },
    PowerRule {
        action: PowerAction::ForceOff,
        doing: "power off",
        target: PowerState::Off,
        reset_types: &["ForceOff"],
    },
    PowerRule {
        action: PowerAction::GracefulShutdown,
        doing: "shut down",
        target: PowerState::Off,
        // iLO without the first: its button starts the shutdown.
        reset_types: &["GracefulShutdown", "PushPowerButton"],
    },
    // Only for BMCs that cannot power off.
    PowerRule {
        action: PowerAction::Restart,
        doing: "restart",
        target: PowerState::On,
        reset_types: &["ForceRestart", "PowerCycle"],
    },
];

impl PowerRule {
    fn of(action: PowerAction) -> &'static Self {
        let found = POWER_RULES.iter().find(|rule| rule.action == action);
        found.unwrap_or(&POWER_RULES[0])
    }

    /// The reset type to send; `allowed` is none where the BMC does not name them.
    fn reset_type(&self, allowed: Option<&[String]>) -> Option<&'static str> {
        let is_allowed = |name: &&&str| allowed.is_none_or(|it| it.iter().any(|it| it == **name));
        self.reset_types.iter().find(is_allowed).copied()
    }
}

/// The proof that a host was seen off by its BMC: made by [`Bmc::fence`] alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FencedHost {
    /// Address of the system.
    pub endpoint: String,
    /// UUID of the system, to be compared with the node's.
    pub uuid: Option<String>,
    /// Serial number of the system.
    pub serial: Option<String>,
}

impl Bmc {
    /// The power state.
    pub async fn power_state(&mut self) -> Result<PowerState, BmcError> {
        Ok(PowerState::of(&self.read_system().await?))
    }

    /// Whether the BMC says if the host is on, without a change.
    ///
    /// Errors: Unsupported – it does not: no change of the power could be seen.
    pub(super) async fn check_power_state(&mut self) -> Result<(), BmcError> {
        let system = self.read_system().await?;
        if system.text("/PowerState").is_some() {
            return Ok(());
        }
        Err(BmcError::Unsupported {
            feature: "readable power state",
            reason: "its system has no PowerState; update its firmware, or restart the BMC"
                .to_owned(),
        })
    }

    /// Changes the power, and waits until the BMC reads the new state. Idempotent, but for a restart.
    ///
    /// Errors: Unsupported – the BMC has no such reset; NotApplied – the state stays another.
    pub async fn power(&mut self, action: PowerAction) -> Result<PowerState, BmcError> {
        match action {
            PowerAction::Restart => self.restart().await,
            _ => self.change_power(action).await,
        }
    }

    async fn change_power(&mut self, action: PowerAction) -> Result<PowerState, BmcError> {
        let rule = PowerRule::of(action);
        let system = self.read_system().await?;
        if PowerState::of(&system) == rule.target {
            return Ok(rule.target);
        }
        let sent = self.reset(&system, rule).await;
        self.await_power(rule, sent).await
    }

    /// Powers off, and reads the state a second time: a BMC that reports a wish as the state is found out.
    ///
    /// Errors: as [`Self::power`]; NotApplied – the second read differs.
    pub async fn fence(&mut self) -> Result<FencedHost, BmcError> {
        self.change_power(PowerAction::ForceOff).await?;
        tokio::time::sleep(self.session.timing.poll).await;
        let system = self.read_system().await?;
        let state = PowerState::of(&system);
        if state != PowerState::Off {
            return Err(BmcError::NotApplied {
                doing: "power off",
                expected: PowerState::Off.to_string(),
                seen: format!("{state} at the second look"),
                cause: String::new(),
            });
        }
        Ok(FencedHost {
            endpoint: self.endpoint.clone(),
            uuid: system.owned_text("/UUID"),
            serial: system.owned_text("/SerialNumber"),
        })
    }

    /// Off and on, each seen: a reset alone cannot be read back.
    async fn restart(&mut self) -> Result<PowerState, BmcError> {
        let system = self.read_system().await?;
        let allowed = self.reset_types(&system).await?;
        let force_off = PowerRule::of(PowerAction::ForceOff);
        if force_off.reset_type(allowed.as_deref()).is_some() {
            self.change_power(PowerAction::ForceOff).await?;
            return self.change_power(PowerAction::On).await;
        }
        let rule = PowerRule::of(PowerAction::Restart);
        let sent = self.reset(&system, rule).await;
        self.await_power(rule, sent).await
    }

    /// Sends the reset of a rule, again while the BMC settles after an earlier one.
    async fn reset(&mut self, system: &RedfishDocument, rule: &PowerRule) -> Result<(), BmcError> {
        let settle = PollDeadline::new(self.session.timing.settle, self.session.timing.poll);
        let allowed = self.reset_types(system).await?;
        let Some(reset_type) = rule.reset_type(allowed.as_deref()) else {
            return Err(BmcError::Unsupported {
                feature: "matching power control",
                reason: format!(
                    "to {} needs one of {}, and it has {}",
                    rule.doing,
                    rule.reset_types.join(", "),
                    allowed.unwrap_or_default().join(", ")
                ),
            });
        };
        let action = system.link("/Actions/#ComputerSystem.Reset/target")?;
        let action = action.unwrap_or_else(|| system.path.below("Actions/ComputerSystem.Reset"));
        let body = json!({ "ResetType": reset_type });
        let request = RedfishRequest::new(Method::POST, &action, Some(body));
        loop {
            let done = self.session.act(&request).await;
            // iDRAC10 refuses On for a while after a power-off, and others a state that is there already.
            let is_conflict = done
                .as_ref()
                .is_err_and(|error| matches!(error.status(), Some(400 | 409)));
            let is_reached = is_conflict && self.power_state().await? == rule.target;
            if is_reached || !is_conflict {
                return done.or_else(|error| if is_reached { Ok(()) } else { Err(error) });
            }
            let may_settle = done
                .as_ref()
                .is_err_and(|error| error.status() == Some(409));
            if !may_settle || !settle.wait(None).await {
                return done;
            }
        }
    }

    /// Reads the power until it is the target of a rule; after a refusal not at all.
    async fn await_power(
        &mut self,
        rule: &PowerRule,
        sent: Result<(), BmcError>,
    ) -> Result<PowerState, BmcError> {
        let cause = match sent {
            Ok(()) => String::new(),
            Err(error) if error.is_uncertain() => format!("; {error}"),
            Err(error) => return Err(error),
        };
        let limit = match rule.action {
            PowerAction::GracefulShutdown => self.session.timing.shutdown,
            _ => self.session.timing.power,
        };
        let deadline = PollDeadline::new(limit, self.session.timing.poll);
        loop {
            let state = self.power_state().await?;
            if state == rule.target {
                return Ok(state);
            }
            if !deadline.wait(None).await {
                return Err(BmcError::NotApplied {
                    doing: rule.doing,
                    expected: rule.target.to_string(),
                    seen: state.to_string(),
                    cause,
                });
            }
        }
    }

    /// The reset types that the BMC names, in the system or in a resource of its own.
    async fn reset_types(
        &mut self,
        system: &RedfishDocument,
    ) -> Result<Option<Vec<String>>, BmcError> {
        let action = "/Actions/#ComputerSystem.Reset";
        if let Some(named) = system.texts(&format!("{action}/ResetType@Redfish.AllowableValues")) {
            return Ok(Some(named));
        }
        let Some(info) = system.link(&format!("{action}/@Redfish.ActionInfo"))? else {
            return Ok(None);
        };
        let info = match self.session.get(&info).await {
            Err(BmcError::NotFound { .. }) => return Ok(None),
            info => info?,
        };
        Ok(parameter_values(&info, "ResetType"))
    }
}

/// The allowable values of a parameter. Source: DSP0268 ActionInfo.
fn parameter_values(info: &RedfishDocument, name: &str) -> Option<Vec<String>> {
    let parameters = info.at("/Parameters").as_array()?;
    let parameter = parameters.iter().find(|it| it["Name"] == name)?;
    let values = parameter["AllowableValues"].as_array()?;
    let values = values.iter().filter_map(Value::as_str).map(str::to_owned);
    Some(values.collect())
}

#[cfg(test)]
mod tests {
    use super::super::document::tests::document;
    use super::*;

    fn chosen(action: PowerAction, allowed: &[&str]) -> Option<&'static str> {
        let allowed: Vec<String> = allowed.iter().map(ToString::to_string).collect();
        PowerRule::of(action).reset_type(Some(&allowed))
    }

    #[test]
    fn every_action_has_a_rule() {
        use PowerAction::{ForceOff, GracefulShutdown, On, Restart};
        for action in [On, ForceOff, GracefulShutdown, Restart] {
            assert_eq!(PowerRule::of(action).action, action);
            assert_eq!(
                PowerRule::of(action).reset_type(None),
                PowerRule::of(action).reset_types.first().copied()
            );
        }
    }

    #[test]
    fn missing_reset_types_are_replaced() {
        let ilo = ["On", "ForceOff", "ForceRestart", "Nmi", "PushPowerButton"];
        assert_eq!(
            chosen(PowerAction::GracefulShutdown, &ilo),
            Some("PushPowerButton")
        );
        assert_eq!(chosen(PowerAction::On, &["ForceOn"]), Some("ForceOn"));
        assert_eq!(
            chosen(PowerAction::ForceOff, &["On", "PushPowerButton"]),
            None
        );
        assert_eq!(
            chosen(PowerAction::Restart, &["PowerCycle"]),
            Some("PowerCycle")
        );
    }

    #[test]
    fn values_are_read_from_action_infos() {
        let info = document(json!({ "Parameters": [
            { "Name": "Other", "AllowableValues": ["x"] },
            { "Name": "ResetType", "AllowableValues": ["On", 7, "ForceOff"] },
        ] }));
        assert_eq!(
            parameter_values(&info, "ResetType").unwrap(),
            ["On", "ForceOff"]
        );
        assert_eq!(parameter_values(&info, "Missing"), None);
    }
}
