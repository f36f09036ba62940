//! Changes of simulated BMCs: actions and writes of properties.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::answer::BmcAnswer;
use super::fault::BmcFault;
use super::links::tag;
use super::profile::BmcProfile;
use super::simulated::SimulatedBmc;
use super::state::{BmcState, BmcTask, SimulatedPower, TaskEffect};

/// Prefix of the monitors of tasks.
pub(super) const MONITORS: &str = "/redfish/v1/TaskService/TaskMonitors/";

/// A change, and the faults that it has.
pub(super) struct BmcChange<'a> {
    pub(super) bmc: &'a Arc<SimulatedBmc>,
    pub(super) path: &'a str,
    pub(super) body: &'a Value,
    pub(super) if_match: Option<&'a str>,
    pub(super) faults: &'a [BmcFault],
}

impl BmcChange<'_> {
    fn profile(&self) -> &'static BmcProfile {
        self.bmc.profile
    }

    fn has_no_effect(&self) -> bool {
        self.faults.contains(&BmcFault::NoEffect) || self.faults.contains(&BmcFault::RemoteMediaOff)
    }

    /// The answer to an action.
    pub(super) fn act(&self) -> BmcAnswer {
        let profile = self.profile();
        let reset = format!("{}/Actions/ComputerSystem.Reset", profile.system_path());
        let oem = format!("{}/Actions/Oem/", profile.manager_path());
        if self.path == reset {
            return self.reset();
        }
        if profile.has_import && self.path.starts_with(&oem) {
            return self.import();
        }
        let media = profile.media.iter().enumerate();
        for (at, kind) in media.filter(|_| profile.has_media_actions) {
            let actions = format!(
                "{}/{}/Actions/VirtualMedia.",
                profile.media_path(),
                kind.name
            );
            match self.path.strip_prefix(&actions) {
                Some("InsertMedia") => return self.insert(at),
                Some("EjectMedia") => return self.eject(at),
                _ => {}
            }
        }
        BmcAnswer::not_found()
    }

    /// The answer to a write of properties.
    pub(super) fn write(&self) -> BmcAnswer {
        let profile = self.profile();
        let system = profile.system_path();
        let settings = format!("{system}/Settings");
        if self.path == system && profile.has_settings {
            return BmcAnswer::error(
                400,
                "PropertyNotWritable",
                "Boot is written to the settings",
                &["Boot"],
            );
        }
        if self.path == system || (profile.has_settings && self.path == settings) {
            let version = self.bmc.state().version;
            return self.precondition(version).unwrap_or_else(|| self.boot());
        }
        let name = self.path.strip_prefix(&profile.media_path());
        let name = name.and_then(|rest| rest.strip_prefix('/'));
        let at = profile
            .media
            .iter()
            .position(|kind| Some(kind.name) == name);
        match at {
            Some(at) if !profile.has_media_actions => {
                let version = self.bmc.state().media[at].version;
                self.precondition(version)
                    .unwrap_or_else(|| self.write_medium(at))
            }
            Some(_) => BmcAnswer::error(405, "OperationNotAllowed", "PATCH is not allowed", &[]),
            None => BmcAnswer::not_found(),
        }
    }

    /// The refusal of a write with a missing or another entity tag.
    fn precondition(&self, version: u64) -> Option<BmcAnswer> {
        let profile = self.profile();
        let current = tag(self.bmc, version);
        let strong = current.trim_start_matches("W/").to_owned();
        match self.if_match {
            None if profile.needs_if_match => Some(BmcAnswer::error(
                428,
                "PreconditionRequired",
                "the request has no If-Match header",
                &[],
            )),
            Some(tag)
                if tag != "*"
                    && tag != strong
                    && (tag != current || profile.matches_strong_only) =>
            {
                Some(BmcAnswer::error(
                    412,
                    "PreconditionFailed",
                    "the entity tag does not match",
                    &[],
                ))
            }
            _ => None,
        }
    }

    fn reset(&self) -> BmcAnswer {
        let kind = self.body["ResetType"].as_str().unwrap_or_default();
        if !self.profile().reset_types.contains(&kind) {
            return BmcAnswer::error(
                400,
                "ActionParameterNotSupported",
                "the reset type is not supported",
                &["ResetType"],
            );
        }
        let (is_on, off_left) = {
            let mut state = self.bmc.state();
            let left = state.off_left;
            if kind == "On" {
                state.off_left = left.saturating_sub(1);
            }
            (state.power == SimulatedPower::On, left)
        };
        if kind == "On" && off_left > 0 {
            return BmcAnswer::error(
                409,
                "ActionParameterValueConflict",
                "the value conflicts with the state",
                &["ResetType"],
            );
        }
        let target = match (kind, is_on) {
            ("On" | "ForceOn" | "PushPowerButton", false) => Some(SimulatedPower::On),
            ("ForceOff" | "GracefulShutdown" | "PushPowerButton", true) => {
                Some(SimulatedPower::Off)
            }
            ("ForceRestart" | "PowerCycle" | "GracefulRestart", true) => {
                if !self.has_no_effect() {
                    self.bmc.restart();
                }
                return BmcAnswer::empty(204);
            }
            _ => None,
        };
        let Some(target) = target else {
            return BmcAnswer::error(
                409,
                "ResourceInStateError",
                "the host is in this state already",
                &[],
            );
        };
        if !self.has_no_effect() {
            self.bmc.change_power(target);
        }
        BmcAnswer::empty(204)
    }

    fn insert(&self, at: usize) -> BmcAnswer {
        let profile = self.profile();
        let has = |name: &&&str| !self.body[**name].is_null();
        if let Some(name) = profile.refused_parameters.iter().find(has) {
            let text = format!("the parameter {name} is not supported");
            return BmcAnswer::error(400, "ActionParameterNotSupported", &text, &[name]);
        }
        if let Some(name) = profile.demanded_parameters.iter().find(|name| !has(name)) {
            let text = format!("the parameter {name} is required");
            return BmcAnswer::error(400, "ActionParameterMissing", &text, &[name]);
        }
        let Some(image) = self.body["Image"].as_str() else {
            return BmcAnswer::error(
                400,
                "ActionParameterMissing",
                "the image is missing",
                &["Image"],
            );
        };
        self.insert_image(at, image, profile.inserts_by_task)
    }

    fn insert_image(&self, at: usize, image: &str, by_task: bool) -> BmcAnswer {
        if !self.profile().media[at].takes_images {
            return BmcAnswer::error(
                400,
                "OperationNotSupported",
                "the medium takes no images",
                &[],
            );
        }
        let mut state = self.bmc.state();
        if state.ejects_left > 0 {
            state.ejects_left -= 1;
            return BmcAnswer::error(500, "InternalError", "the medium is being ejected", &[]);
        }
        if state.media[at].is_connected {
            return BmcAnswer::error(
                400,
                "ResourceAlreadyExists",
                "the medium holds an image already",
                &[],
            );
        }
        let effect = TaskEffect::Insert {
            medium: at,
            image: image.to_owned(),
        };
        self.done(&mut state, effect, by_task)
    }

    fn eject(&self, at: usize) -> BmcAnswer {
        // As of HPE.
        if !self.body.is_object() {
            return BmcAnswer::error(400, "MalformedJSON", "the body is no JSON object", &[]);
        }
        self.eject_image(at)
    }

    fn eject_image(&self, at: usize) -> BmcAnswer {
        let mut state = self.bmc.state();
        if !state.media[at].is_connected {
            return BmcAnswer::error(400, "ResourceNotFound", "the medium is empty", &[]);
        }
        if !self.has_no_effect() {
            let keeps_all = self.faults.contains(&BmcFault::KeepsImage);
            state.eject(at, self.profile(), keeps_all);
        }
        BmcAnswer::empty(204)
    }

    fn write_medium(&self, at: usize) -> BmcAnswer {
        let image = &self.body["Image"];
        if self.body["Inserted"] == false || (image.is_null() && self.body.get("Image").is_some()) {
            return self.eject_image(at);
        }
        match (image.as_str(), &self.body["Inserted"]) {
            (Some(image), Value::Bool(true)) => self.insert_image(at, image, false),
            // An image alone is remembered, and not inserted.
            (Some(image), _) => {
                let mut state = self.bmc.state();
                state.media[at].image = Some(image.to_owned());
                state.media[at].version += 1;
                BmcAnswer::empty(200)
            }
            (None, _) => {
                BmcAnswer::error(400, "PropertyMissing", "the image is missing", &["Image"])
            }
        }
    }

    fn boot(&self) -> BmcAnswer {
        let profile = self.profile();
        let boot = &self.body["Boot"];
        let text = |name: &str| boot[name].as_str();
        let target = text("BootSourceOverrideTarget");
        let enabled = text("BootSourceOverrideEnabled");
        let mode = text("BootSourceOverrideMode");
        let is_full = target.is_some() && enabled.is_some() && mode.is_some();
        if profile.demands_full_override && !is_full {
            let names = ["BootSourceOverrideMode"];
            return BmcAnswer::error(
                400,
                "PropertyMissing",
                "the boot override is not complete",
                &names,
            );
        }
        if let Some(target) = target.filter(|target| !profile.targets.contains(target)) {
            let text = format!("the value {target} is not in the list of acceptable values");
            let names = ["BootSourceOverrideTarget"];
            return BmcAnswer::error(400, "PropertyValueNotInList", &text, &names);
        }
        let mut state = self.bmc.state();
        if state.start_left > 0 {
            state.start_left -= 1;
            let info = json!([{ "MessageId": "iLO.2.8.UnableToModifyDuringSystemPOST" }]);
            return BmcAnswer::json(400, json!({ "error": { "@Message.ExtendedInfo": info } }));
        }
        if self.has_no_effect() {
            return BmcAnswer::empty(204);
        }
        if let Some(target) = target {
            target.clone_into(&mut state.boot.target);
            state.boot.http_uri = text("HttpBootUri").map(str::to_owned);
            if profile.resets_mode {
                "Legacy".clone_into(&mut state.boot.mode);
            }
        }
        if let Some(mode) = mode {
            mode.clone_into(&mut state.boot.mode);
        }
        match enabled {
            Some("Once") if profile.once_is_continuous => {
                "Continuous".clone_into(&mut state.boot.enabled);
            }
            Some(enabled) => enabled.clone_into(&mut state.boot.enabled),
            None => {}
        }
        state.version += 1;
        BmcAnswer::empty(204)
    }

    /// iDRAC's import of configuration: only the boot from the virtual CD is known.
    fn import(&self) -> BmcAnswer {
        let buffer = self.body["ImportBuffer"].as_str().unwrap_or_default();
        let parts = [
            "ServerBoot.1#BootOnce\">Enabled<",
            "ServerBoot.1#FirstBootDevice\">VCD-DVD<",
        ];
        if !parts.iter().all(|part| buffer.contains(part)) {
            return BmcAnswer::error(
                400,
                "PropertyValueFormatError",
                "the configuration is unknown",
                &["ImportBuffer"],
            );
        }
        let mut state = self.bmc.state();
        self.done(&mut state, TaskEffect::BootVirtualCd, true)
    }

    /// Applies an effect at once, or at the end of a task.
    fn done(&self, state: &mut BmcState, effect: TaskEffect, by_task: bool) -> BmcAnswer {
        let slow = self.faults.iter().find_map(|fault| match fault {
            BmcFault::SlowTask(polls) => Some(*polls),
            _ => None,
        });
        let fails = self.faults.contains(&BmcFault::FailedTask);
        let effect = if self.has_no_effect() {
            TaskEffect::Nothing
        } else {
            effect
        };
        let time = self.bmc.pace.task;
        if !by_task && slow.is_none() && !fails && time == Duration::ZERO {
            apply(state, &effect);
            return BmcAnswer::empty(204);
        }
        let id = state.add_task(BmcTask {
            polls_left: slow.unwrap_or(1),
            ends_at: Instant::now() + time,
            fails,
            effect,
        });
        BmcAnswer::json(202, json!({ "@odata.id": format!("/redfish/v1/TaskService/Tasks/{id}"), "TaskState": "New" }))
            .with_header("Location", &format!("{MONITORS}{id}"))
    }
}

/// The answer of a task's monitor.
pub(super) fn monitor(bmc: &SimulatedBmc, id: &str) -> BmcAnswer {
    let mut state = bmc.state();
    let id = id.parse().unwrap_or_default();
    let Some(task) = state.tasks.get_mut(&id) else {
        return BmcAnswer::not_found();
    };
    if task.polls_left > 0 || Instant::now() < task.ends_at {
        task.polls_left = task.polls_left.saturating_sub(1);
        return BmcAnswer::json(202, json!({ "TaskState": "Running" }));
    }
    let (fails, effect) = (task.fails, task.effect.clone());
    state.tasks.remove(&id);
    if fails {
        let message = json!([{ "MessageId": "Base.1.8.InternalError", "Message": "the image cannot be loaded" }]);
        return BmcAnswer::json(
            200,
            json!({ "TaskState": "Exception", "TaskStatus": "Critical", "Messages": message }),
        );
    }
    apply(&mut state, &effect);
    BmcAnswer::json(200, json!({ "TaskState": "Completed", "TaskStatus": "OK" }))
}

fn apply(state: &mut BmcState, effect: &TaskEffect) {
    match effect {
        TaskEffect::Nothing => {}
        TaskEffect::Insert { medium, image } => state.insert(*medium, image),
        TaskEffect::BootVirtualCd => state.boots_virtual_cd = true,
    }
}
