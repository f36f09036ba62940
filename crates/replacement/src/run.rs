//! A run: the steps in their order, each between two entries of the journal.
//!
//! A run may be killed at any point. The next one replays the journal, observes the world and continues: a step whose
//! effect is seen is finished, any other one begins again with its gates.

use std::ops::ControlFlow;

use etcd::quorum::{MemberId, MemberRole, MembershipChange, decide_change};
use etcd::{EtcdError, EtcdView};
use futures_util::future;
use model::node_replacement::ReplacementState;

use super::case::ReplacementCase;
use super::csr;
use super::effects::{self, EffectError};
use super::error::{ReplacementError, join};
use super::gate::{self, GateContext, GateId, GateRefusal};
use super::observer::{ReplacementObserver, RunEvent};
use super::progress::{
    ReplaceStepOutcome, ReplacementEntry, ReplacementEvent, ReplacementProgress, StepIntent,
};
use super::step::{self, CompletionContext, StepRule, StepUndo};
use super::step_id::StepId;
use super::store::{OpenReplacement, ReplacementStore};
use super::view::{NodePlace, PowerState, ReplacementView};
use super::wait::{StepWait, waiting_for};
use super::world::{MachineSide, ReplacementWorld};

/// Most decisions about certificate requests in a journal.
const MAX_CSR_ENTRIES: usize = 500;

/// Observes the world of a replacement.
///
/// Errors: of etcd; the other parts may be missing in a view.
pub async fn observe(
    world: &ReplacementWorld<'_>,
    case: Option<&ReplacementCase>,
) -> Result<ReplacementView, EtcdError> {
    observe_with(world.etcd.observe(), world, case).await
}

/// Observes the world of a replacement, with this observation of etcd.
///
/// Errors: of the observation of etcd.
pub async fn observe_with(
    etcd: impl Future<Output = Result<EtcdView, EtcdError>>,
    world: &ReplacementWorld<'_>,
    case: Option<&ReplacementCase>,
) -> Result<ReplacementView, EtcdError> {
    let power = async |side, place: Option<&NodePlace>| match place {
        Some(place) => world.hardware.power(side, place).await.ok().flatten(),
        None => None,
    };
    let (etcd, kubernetes, old_power, new_power) = future::join4(
        etcd,
        world.kubernetes.observe(),
        power(MachineSide::Old, case.map(|it| &it.old)),
        power(MachineSide::New, case.map(|it| &it.new)),
    )
    .await;
    let (kubernetes, kubernetes_failure) = match kubernetes {
        Ok(kubernetes) => (Some(kubernetes), None),
        Err(error) => (None, Some(error.to_string())),
    };
    Ok(ReplacementView {
        etcd: etcd?,
        kubernetes,
        kubernetes_failure,
        old_power,
        new_power,
    })
}

/// Runs a replacement to its end.
///
/// Errors: as [`ReplacementError`]; the next run continues.
pub async fn run(
    replacement: &mut OpenReplacement,
    store: &ReplacementStore,
    world: ReplacementWorld<'_>,
    observer: &mut dyn ReplacementObserver,
) -> Result<(), ReplacementError> {
    let mut run = Run::new(replacement, store, world, observer)?;
    for step in step::sequence(run.case()) {
        if !run.progress().has_finished(step) {
            run.perform(step).await?;
        }
    }
    run.append(ReplacementEvent::Completed)
}

/// Ends a replacement early: undoes its reversible steps, last first.
///
/// Errors: as of [`run`].
pub async fn abort(
    replacement: &mut OpenReplacement,
    store: &ReplacementStore,
    world: ReplacementWorld<'_>,
    observer: &mut dyn ReplacementObserver,
) -> Result<(), ReplacementError> {
    let mut run = Run::new(replacement, store, world, observer)?;
    for step in step::sequence(run.case()).into_iter().rev() {
        if let StepUndo::By(undo) = step::rule(step).undo
            && run.progress().has_started(step)
            && !run.progress().has_finished(undo)
        {
            run.perform(undo).await?;
        }
    }
    run.append(ReplacementEvent::Aborted)
}

/// Removes the new member while it is a learner that does not catch up. The next run adds it again.
///
/// Errors: as of [`run`]; Failed – the decision refuses, or there is no learner.
pub async fn drop_learner(
    replacement: &mut OpenReplacement,
    store: &ReplacementStore,
    world: ReplacementWorld<'_>,
    observer: &mut dyn ReplacementObserver,
) -> Result<MemberId, ReplacementError> {
    let step = StepId::PromoteMember;
    let mut run = Run::new(replacement, store, world, observer)?;
    let failed = |reason: String| ReplacementError::Failed { step, reason };
    let view = observe(&world, Some(run.case())).await;
    let view = view.map_err(|error| failed(error.to_string()))?;
    let learner = run.case().new_member(&view).map(|it| &it.member);
    let learner = learner.filter(|it| it.role == MemberRole::Learner);
    let member = learner.map(|it| it.id);
    let member = member.ok_or_else(|| failed("there is no learner".to_owned()))?;
    let change = MembershipChange::Remove(member);
    decide_change(&view.etcd.quorum_members(), change, &run.case().goal())
        .map_err(|refusal| failed(refusal.to_string()))?;
    run.append(ReplacementEvent::LearnerDropped { member })?;
    let removed = effects::change_membership(&world, &view, change, run.case()).await;
    removed.map_err(|error| failed(error.to_string()))?;
    Ok(member)
}

struct Run<'a> {
    replacement: &'a mut OpenReplacement,
    world: ReplacementWorld<'a>,
    observer: &'a mut dyn ReplacementObserver,
    /// Ids of other replacements that are unfinished.
    others: Vec<String>,
}

impl<'a> Run<'a> {
    fn new(
        replacement: &'a mut OpenReplacement,
        store: &ReplacementStore,
        world: ReplacementWorld<'a>,
        observer: &'a mut dyn ReplacementObserver,
    ) -> Result<Self, ReplacementError> {
        let state = replacement.progress().state;
        if state != ReplacementState::Unfinished {
            return Err(ReplacementError::Ended(state));
        }
        let others = store.unfinished(&replacement.id)?;
        Ok(Self {
            replacement,
            world,
            observer,
            others,
        })
    }

    fn progress(&self) -> &ReplacementProgress {
        self.replacement.progress()
    }

    fn case(&self) -> &ReplacementCase {
        &self.progress().case
    }

    /// Makes an event durable.
    fn append(&mut self, event: ReplacementEvent) -> Result<(), ReplacementError> {
        let at = (self.world.now)();
        let entry = ReplacementEntry { at, event };
        self.replacement.append(&entry)?;
        self.notify(RunEvent::Entry(&entry))
    }

    fn notify(&mut self, event: RunEvent<'_>) -> Result<(), ReplacementError> {
        match self.observer.on_event(event, (self.world.now)()) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(ReplacementError::Interrupted),
        }
    }

    /// Performs a step to its end.
    async fn perform(&mut self, step: StepId) -> Result<(), ReplacementError> {
        let ended = self.advance(step).await;
        if let Err(error) = &ended
            && !matches!(
                error,
                ReplacementError::Journal(_) | ReplacementError::Interrupted
            )
        {
            let reason = error.to_string();
            self.append(ReplacementEvent::Stopped { step, reason })?;
        }
        ended
    }

    async fn advance(&mut self, step: StepId) -> Result<(), ReplacementError> {
        let rule = step::rule(step);
        let wait = StepWait::new(step, self.world.patience);
        let mut caused: Option<Option<MembershipChange>> = None;
        loop {
            let view = match observe(&self.world, Some(self.case())).await {
                Ok(view) => view,
                Err(error) => {
                    self.pause(&wait, &error.to_string()).await?;
                    continue;
                }
            };
            self.decide_csrs(&view).await?;
            if self.is_done(rule, &view) {
                let was_done = !self.progress().has_started(step);
                return self.finish(step, was_done, ReplaceStepOutcome::default());
            }
            let change = gate::membership_change(step, self.case(), &view);
            if step::only_waits(step, self.case()) {
                self.start(step, &view)?;
                let reason = waiting_for(rule, self.case(), &view);
                self.pause(&wait, &reason).await?;
            } else if caused == Some(change) {
                self.pause(&wait, "its effect is not seen yet").await?;
            } else if let Some(reason) = self.closed(rule, &view).await? {
                self.pause(&wait, &reason).await?;
            } else {
                self.start(step, &view)?;
                match effects::cause(step, &self.world, &view, self.replacement).await {
                    Ok(outcome) => {
                        self.notify(RunEvent::Effect(step))?;
                        if step::ends_with_effect(rule) {
                            return self.finish(step, false, outcome);
                        }
                        caused = Some(change);
                    }
                    // Perhaps it was done: the next observation shows it.
                    Err(EffectError::Transient(reason)) => self.pause(&wait, &reason).await?,
                    Err(EffectError::Final(reason)) => {
                        return Err(ReplacementError::Failed { step, reason });
                    }
                    Err(EffectError::Journal(error)) => return Err(error.into()),
                }
            }
        }
    }

    fn is_done(&self, rule: &StepRule, view: &ReplacementView) -> bool {
        let context = CompletionContext {
            case: self.case(),
            view,
            progress: self.progress(),
        };
        rule.is_done.is_some_and(|is_done| is_done(&context))
    }

    /// The reason that keeps the gates closed.
    ///
    /// Errors: Refused – they do not open by themselves.
    async fn closed(
        &self,
        rule: &StepRule,
        view: &ReplacementView,
    ) -> Result<Option<String>, ReplacementError> {
        let refusals = self.refusals(rule, view);
        if refusals.iter().any(|it| !it.may_open) {
            let step = rule.id;
            return Err(ReplacementError::Refused { step, refusals });
        }
        if !refusals.is_empty() {
            return Ok(Some(join(&refusals)));
        }
        if !rule.gates.contains(&GateId::Write) {
            return Ok(None);
        }
        let value = format!("{} {:?}", self.replacement.id, rule.id);
        let written = self.world.etcd.check_write(&view.etcd, value.as_bytes());
        if let Err(error) = written.await {
            return Ok(Some(error.to_string()));
        }
        // The write took its time: all others are read again.
        match observe(&self.world, Some(self.case())).await {
            Ok(again) => {
                let refusals = self.refusals(rule, &again);
                Ok((!refusals.is_empty()).then(|| join(&refusals)))
            }
            Err(error) => Ok(Some(error.to_string())),
        }
    }

    fn refusals(&self, rule: &StepRule, view: &ReplacementView) -> Vec<GateRefusal> {
        let context = GateContext {
            case: self.case(),
            view,
            progress: self.progress(),
            step: rule.id,
            others: &self.others,
        };
        gate::closed(rule.gates, &context)
    }

    /// Notes that a step begins, with the state before it. Repeated in later runs without effect.
    fn start(&mut self, step: StepId, view: &ReplacementView) -> Result<(), ReplacementError> {
        if self.progress().has_started(step) {
            return Ok(());
        }
        let kubernetes = view.kubernetes.as_ref();
        let intent = match (step, kubernetes) {
            (StepId::AllowRollout, Some(kubernetes)) => StepIntent {
                previous_override: kubernetes.rollout_override.clone(),
                ..StepIntent::default()
            },
            (StepId::PausePool, Some(kubernetes)) => StepIntent {
                was_pool_paused: Some(kubernetes.is_pool_paused),
                ..StepIntent::default()
            },
            (StepId::BootNode, Some(kubernetes)) => StepIntent {
                earlier_csrs: kubernetes
                    .pending_csrs
                    .iter()
                    .map(|it| it.name.clone())
                    .collect(),
                was_on: view.new_power == Some(PowerState::On),
                ..StepIntent::default()
            },
            // Its state before is not known: it is not changed.
            (StepId::AllowRollout | StepId::PausePool | StepId::BootNode, None) => {
                let reason = "the Kubernetes API does not answer".to_owned();
                return Err(ReplacementError::Failed { step, reason });
            }
            _ => StepIntent::default(),
        };
        self.append(ReplacementEvent::Started { step, intent })
    }

    fn finish(
        &mut self,
        step: StepId,
        was_done: bool,
        outcome: ReplaceStepOutcome,
    ) -> Result<(), ReplacementError> {
        self.append(ReplacementEvent::Finished {
            step,
            was_done,
            outcome,
        })
    }

    async fn pause(&mut self, wait: &StepWait, reason: &str) -> Result<(), ReplacementError> {
        self.notify(RunEvent::Waiting(wait.step, reason))?;
        wait.pause(reason).await
    }

    /// Approves the certificate requests of the node that booted, and notes those that it refuses.
    async fn decide_csrs(&mut self, view: &ReplacementView) -> Result<(), ReplacementError> {
        let Some(kubernetes) = &view.kubernetes else {
            return Ok(());
        };
        if !self.progress().has_started(StepId::BootNode) {
            return Ok(());
        }
        let expected = self.progress().expected_node(self.case());
        let decisions = csr::decide_csrs(&kubernetes.pending_csrs, &expected);
        for request in &kubernetes.pending_csrs {
            let name = request.name.clone();
            let Some(decision) = decisions.get(&name).cloned() else {
                continue;
            };
            let known = self.progress().csrs.get(&name).copied();
            if self.progress().csrs.len() >= MAX_CSR_ENTRIES && known.is_none() {
                break;
            }
            match decision {
                Ok(approval) => {
                    let (kind, key_sha256) = (approval.kind, approval.key_sha256);
                    let reason = format!(
                        "{kind:?} certificate of the node {} with the key {key_sha256}",
                        expected.name
                    );
                    if known != Some(true) {
                        self.append(ReplacementEvent::CsrApproved {
                            name,
                            kind,
                            key_sha256,
                        })?;
                    }
                    // A failed approval is repeated: the request is still pending then.
                    drop(self.world.kubernetes.approve_csr(request, &reason).await);
                }
                Err(refusal) if known.is_none() => {
                    let reason = refusal.to_string();
                    self.append(ReplacementEvent::CsrRefused { name, reason })?;
                }
                Err(_) => {}
            }
        }
        Ok(())
    }
}
