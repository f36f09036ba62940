//! The agent's loop: register, ask for steps, run them, reply.
//!
//! Source: assisted-installer-agent, src/commands.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use model::steps::{AgentStep, PostStepAction, StepReply, StepType};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::api::ServiceClient;
use crate::media;
use crate::steps;
use crate::steps::context::{StepContext, StepOutcome};
use crate::{Error, HostFiles};

/// How long an unchanged output of a step is not sent again.
const REPLY_CACHE_TIME: Duration = Duration::from_hours(1);
/// Backoff of failed requests for steps: doubles from the first to the second value.
const BACKOFF: (Duration, Duration) = (Duration::from_secs(1), Duration::from_mins(1));
/// Exit code of a step when the boot medium cannot be read.
const MEDIUM_LOST: i64 = 256;
/// Pause between polls unless the service sets one.
const DEFAULT_PAUSE: Duration = Duration::from_mins(1);
/// Longest pause between polls: with a longer one, a host is out of reach until its next start.
const MAX_PAUSE: Duration = Duration::from_hours(1);
/// Responses after which only an operator can help; registering again later costs nothing, and finds it mended.
const REFUSED: [u16; 4] = [401, 403, 404, 409];
const REFUSED_PAUSE: Duration = Duration::from_mins(5);

/// The loop of one host.
pub(crate) struct Runner {
    api: ServiceClient,
    files: HostFiles,
    host_id: Uuid,
    context: Arc<StepContext>,
    interval: Duration,
    replies: Mutex<HashMap<StepType, (String, Instant)>>,
    running: Mutex<HashSet<StepType>>,
    /// Cancelled by a step after which the host has to register again.
    restart: Mutex<CancellationToken>,
}

impl Runner {
    pub(crate) fn new(context: Arc<StepContext>, interval: Duration) -> Arc<Self> {
        Arc::new(Self {
            api: context.api.clone(),
            files: context.files.clone(),
            host_id: context.host_id,
            context,
            interval,
            replies: Mutex::default(),
            running: Mutex::default(),
            restart: Mutex::default(),
        })
    }

    /// Runs until the program ends.
    pub(crate) async fn run(self: &Arc<Self>) {
        loop {
            self.register().await;
            let restart = CancellationToken::new();
            self.restart
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .clone_from(&restart);
            tokio::select! {
                () = self.poll() => {}
                () = restart.cancelled() => {}
            }
            tracing::info!("the service asked for a new registration");
        }
    }

    async fn register(&self) {
        loop {
            let error = match self.api.register(self.host_id).await {
                Ok(image) => {
                    *self
                        .context
                        .agent_image
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner) = image;
                    tracing::info!(host_id = %self.host_id, "registered");
                    self.context.status.change(|status| {
                        status.is_registered = true;
                        status.failure = None;
                    });
                    return;
                }
                Err(error) => error,
            };
            let is_refused = error
                .status()
                .is_some_and(|status| REFUSED.contains(&status));
            let pause = if is_refused {
                REFUSED_PAUSE
            } else {
                self.interval
            };
            self.failed(&error);
            tokio::time::sleep(pause).await;
        }
    }

    fn failed(&self, error: &Error) {
        let text = error.chain();
        tracing::warn!(error = text, "the service cannot be used");
        self.context
            .status
            .change(|status| status.failure = Some(text));
    }

    /// Polls for steps until the service asks for a new registration.
    async fn poll(self: &Arc<Self>) {
        let mut backoff = BACKOFF.0;
        loop {
            let steps = match self.api.steps(self.host_id).await {
                Ok(steps) => steps,
                Err(error) => {
                    self.failed(&error);
                    self.replies
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .clear();
                    // The infra-env or the host was deleted.
                    if error.status() == Some(404) {
                        self.context
                            .status
                            .change(|status| status.is_registered = false);
                        tokio::time::sleep(self.interval).await;
                        return;
                    }
                    tokio::time::sleep(backoff).await;
                    backoff = (backoff * 2).min(BACKOFF.1);
                    continue;
                }
            };
            backoff = BACKOFF.0;
            self.context.status.change(|status| status.failure = None);
            for step in steps.instructions {
                self.start(step);
            }
            let pause = match u64::try_from(steps.next_instruction_seconds) {
                Ok(seconds) if seconds > 0 => Duration::from_secs(seconds).min(MAX_PAUSE),
                _ if steps.post_step_action == Some(PostStepAction::Exit) => Duration::ZERO,
                _ => DEFAULT_PAUSE,
            };
            tokio::time::sleep(pause).await;
            if steps.post_step_action == Some(PostStepAction::Exit) {
                return;
            }
        }
    }

    /// Starts a step beside the others, unless an earlier one of its type is not finished.
    fn start(self: &Arc<Self>, step: AgentStep) {
        let Some(kind) = step.step_type else {
            return;
        };
        if !self
            .running
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(kind)
        {
            tracing::info!(step = %kind, "the last step of this type is still running");
            return;
        }
        let runner = Arc::clone(self);
        tokio::spawn(async move {
            runner.run_step(kind, step).await;
            runner
                .running
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .remove(&kind);
        });
    }

    async fn run_step(&self, kind: StepType, step: AgentStep) {
        let mut reply = StepReply {
            step_type: Some(kind),
            step_id: step.step_id,
            ..StepReply::default()
        };
        let mut registers_again = false;
        if let Err(error) = media::check(&self.files) {
            (reply.exit_code, reply.error) = (MEDIUM_LOST, error);
        } else {
            let context = Arc::clone(&self.context);
            let step = async move { steps::run(&context, kind, &step.args).await };
            // A step that panics is a failed one: the next of its type can run.
            let outcome = tokio::spawn(step).await.unwrap_or_else(|_| StepOutcome {
                exit_code: -1,
                error: "the step failed by an error of the agent, which is in its log".to_owned(),
                ..StepOutcome::default()
            });
            reply.exit_code = outcome.exit_code;
            reply.output = outcome.output;
            reply.error = outcome.error;
            registers_again = outcome.registers_again;
            if reply.exit_code != 0 && media::check(&self.files).is_err() {
                reply.exit_code = MEDIUM_LOST;
            }
        }
        self.send(kind, &reply).await;
        if registers_again {
            self.restart
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .cancel();
        }
    }

    /// Sends a reply unless the service has the same output.
    async fn send(&self, kind: StepType, reply: &StepReply) {
        let is_known = |replies: &HashMap<StepType, (String, Instant)>| {
            replies.get(&kind).is_some_and(|(output, sent)| {
                *output == reply.output && sent.elapsed() < REPLY_CACHE_TIME
            })
        };
        let is_good = reply.exit_code == 0;
        if is_good && is_known(&self.replies.lock().unwrap_or_else(PoisonError::into_inner)) {
            return;
        }
        if is_good {
            tracing::info!(step = %kind, "step done");
        } else {
            tracing::warn!(step = %kind, code = reply.exit_code, error = reply.error, "step failed");
        }
        match self.api.reply(self.host_id, reply).await {
            Ok(()) if is_good => {
                let sent = (reply.output.clone(), Instant::now());
                self.replies
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .insert(kind, sent);
            }
            Ok(()) => {}
            Err(error) => tracing::warn!(error = error.chain(), "reply not taken"),
        }
    }
}
