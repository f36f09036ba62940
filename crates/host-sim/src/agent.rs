//! The agent: registers, then polls for instructions until the machine restarts.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use futures_util::future::join_all;
use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::api::{ApiCall, RetryPolicy};
use crate::machine::Machine;
use crate::state_file::Runner;
use crate::steps::arguments::is_image;
use crate::steps::{self, AgentStep, StepReply};
use crate::{Error, HostFault, choose};

/// Retry interval of a registration.
const REGISTER_RETRY: Duration = Duration::from_mins(1);
/// Polling interval unless the server sets one.
const DEFAULT_PAUSE: Duration = Duration::from_mins(1);
/// How long an unchanged output of a step is not sent again. Source: assisted-installer-agent.
const REPLY_CACHE_TIME: Duration = Duration::from_hours(1);
/// Backoff of failed instruction requests: doubles from the first to the second value.
const BACKOFF: (Duration, Duration) = (Duration::from_secs(5), Duration::from_mins(5));

/// Difference of wrong clocks. Units: seconds.
const CLOCK_ERROR: u64 = 3600;
/// One of as many requests gets lost with [`HostFault::Replies`].
const LOST_OF: usize = 3;

/// Exit of the agent.
#[derive(Debug)]
pub(crate) enum AgentExit {
    Rebooted,
    Frozen(String),
}

/// Exit of the step runner.
enum RunnerExit {
    RegisterAgain,
    Rebooted,
    Frozen(String),
}

#[derive(Debug, Deserialize)]
struct Instructions {
    #[serde(rename = "instructions")]
    steps: Option<Vec<AgentStep>>,
    #[serde(default)]
    next_instruction_seconds: u64,
    #[serde(default)]
    post_step_action: Option<String>,
}

/// Runs the agent of a machine. A machine that registered before a kill resumes without registering.
pub(crate) async fn run(machine: &Arc<Machine>) -> AgentExit {
    loop {
        let runner = match machine.disk.get().runner {
            Some(runner) => runner,
            None => match register(machine).await {
                Ok(runner) => runner,
                Err(why) => return AgentExit::Frozen(why),
            },
        };
        match (RunnerSession {
            machine,
            runner,
            sent: Mutex::default(),
            requests: AtomicUsize::new(0),
        })
        .run()
        .await
        {
            RunnerExit::RegisterAgain => machine.disk.change(|record| record.runner = None),
            RunnerExit::Rebooted => return AgentExit::Rebooted,
            RunnerExit::Frozen(why) => return AgentExit::Frozen(why),
        }
    }
}

/// Registers until it succeeds. Errors: 401, 403, 404 and 409, after which the real agent hangs until a reboot.
/// Source: assisted-installer-agent, src/commands/register_node.go.
async fn register(machine: &Arc<Machine>) -> Result<Runner, String> {
    let path = format!("/v2/infra-envs/{}/hosts", machine.boot.infra_env_id);
    let version = machine
        .disk
        .get()
        .agent_version
        .unwrap_or_else(|| machine.boot.agent_version.clone());
    let body = json!({ "host_id": machine.hardware.host_id, "discovery_agent_version": version });
    loop {
        let call = ApiCall::new("register", Method::POST, path.clone())
            .header("discovery_agent_version", &version)
            .json(&body);
        let outcome = match machine.api.send(RetryPolicy::Agent, call).await {
            Ok(answer) if answer.status == 201 => answer
                .json("registration")
                .and_then(|body| runner(&body, machine)),
            Ok(answer) => Err(Error::invalid(
                "registration",
                format!("answered {} instead of 201", answer.status),
            )),
            Err(error) => Err(error),
        };
        match outcome {
            Ok(runner) => {
                tracing::info!(host = machine.name(), host_id = %machine.hardware.host_id, "registered");
                machine
                    .disk
                    .change(|record| record.runner = Some(runner.clone()));
                return Ok(runner);
            }
            Err(error) if matches!(error.status(), Some(401 | 403 | 404 | 409)) => {
                return Err(error.chain());
            }
            Err(error) => {
                if let Error::Invalid { .. } = error {
                    machine.world.breach(machine.name(), &error.chain());
                } else {
                    tracing::warn!(
                        host = machine.name(),
                        error = error.chain(),
                        "registration failed, retrying"
                    );
                }
                machine.world.pace.sleep(REGISTER_RETRY).await;
            }
        }
    }
}

/// Reads the command of the runner from the answer: exactly one argument, JSON with three members.
fn runner(body: &Value, machine: &Machine) -> Result<Runner, Error> {
    let what = "registration";
    let command = &body["next_step_runner_command"];
    let args = command["args"]
        .as_array()
        .ok_or_else(|| Error::invalid(what, "the answer has no next_step_runner_command.args"))?;
    let [Value::String(arg)] = args.as_slice() else {
        return Err(Error::invalid(
            what,
            format!(
                "next_step_runner_command has {} arguments instead of one text",
                args.len()
            ),
        ));
    };
    let runner: Runner = serde_json::from_str(arg).map_err(|e| {
        Error::invalid(
            what,
            format!("the runner's argument {arg:?} cannot be used: {e}"),
        )
    })?;
    if runner.host_id != machine.hardware.host_id
        || runner.infra_env_id != machine.boot.infra_env_id
    {
        return Err(Error::invalid(
            what,
            format!("the runner's argument {arg:?} names another host"),
        ));
    }
    if !is_image(&runner.agent_version) {
        return Err(Error::invalid(
            what,
            format!("agent_version {:?} is no image", runner.agent_version),
        ));
    }
    Ok(runner)
}

/// One run of the step runner.
struct RunnerSession<'a> {
    machine: &'a Arc<Machine>,
    runner: Runner,
    /// The last successful output of each step type and when it was sent.
    sent: Mutex<HashMap<String, (String, Instant)>>,
    /// Number of requests, for those that get lost.
    requests: AtomicUsize,
}

impl RunnerSession<'_> {
    async fn run(&self) -> RunnerExit {
        tokio::select! {
            end = self.poll() => end,
            () = self.machine.until_reboot() => RunnerExit::Rebooted,
            () = self.machine.restarting.notified() => RunnerExit::RegisterAgain,
        }
    }

    /// Whether the next request gets lost.
    fn loses_request(&self) -> bool {
        let hardware = &self.machine.hardware;
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        let purpose = format!("{}/requests/{number}", hardware.hostname);
        hardware.has(HostFault::Replies) && choose(&self.machine.world.seed, &purpose, LOST_OF) == 0
    }

    async fn poll(&self) -> RunnerExit {
        let mut backoff = BACKOFF.0;
        let mut is_first = true;
        loop {
            let pause = match self.instructions().await {
                _ if self.loses_request() => DEFAULT_PAUSE,
                Ok(instructions) => {
                    backoff = BACKOFF.0;
                    let wants_restart = self.execute(instructions.steps.unwrap_or_default()).await;
                    if wants_restart || instructions.post_step_action.as_deref() == Some("exit") {
                        return RunnerExit::RegisterAgain;
                    }
                    pause(instructions.next_instruction_seconds)
                }
                Err(error) => {
                    self.sent
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .clear();
                    if matches!(error.status(), Some(401 | 403 | 404)) {
                        return RunnerExit::Frozen(error.chain());
                    }
                    if matches!(error, Error::Invalid { .. }) {
                        self.machine
                            .world
                            .breach(self.machine.name(), &error.chain());
                    }
                    tracing::warn!(
                        host = self.machine.name(),
                        error = error.chain(),
                        "no instructions"
                    );
                    let pause = backoff;
                    backoff = (backoff * 2).min(BACKOFF.1);
                    pause
                }
            };
            match self.machine.interval {
                // Jitter: hosts that were switched on together would poll together for ever.
                Some(interval) if is_first => {
                    tokio::time::sleep(interval.mul_f64(rand::random())).await;
                }
                Some(interval) => tokio::time::sleep(interval).await,
                None => self.machine.world.pace.sleep(pause).await,
            }
            is_first = false;
        }
    }

    async fn instructions(&self) -> Result<Instructions, Error> {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_secs());
        let is_slow = self.machine.hardware.has(HostFault::Clock);
        let now = now.saturating_sub(if is_slow { CLOCK_ERROR } else { 0 });
        let call = ApiCall::new("instructions", Method::GET, self.path())
            .query("timestamp", &now)
            .header("discovery_agent_version", &self.runner.agent_version);
        let answer = self.machine.api.send(RetryPolicy::Agent, call).await?;
        let body = answer.json("instructions")?;
        if !matches!(body["post_step_action"].as_str(), Some("continue" | "exit")) {
            return Err(Error::invalid(
                "instructions",
                "post_step_action is neither continue nor exit",
            ));
        }
        Instructions::deserialize(body).map_err(|e| Error::invalid("instructions", e.to_string()))
    }

    /// Runs all steps concurrently; whether one of them ends this runner.
    async fn execute(&self, steps: Vec<AgentStep>) -> bool {
        let replies = join_all(steps.into_iter().map(|step| async move {
            let reply = steps::answer(self.machine, &step).await;
            let restarts = reply.restarts;
            self.reply(&step, reply).await;
            restarts
        }));
        replies.await.contains(&true)
    }

    async fn reply(&self, step: &AgentStep, reply: StepReply) {
        if reply.exit_code == 0 && self.is_known(&step.kind, &reply.output) {
            return;
        }
        if self.loses_request() {
            tracing::debug!(host = self.machine.name(), step = step.id, "reply lost");
            return;
        }
        let body = json!({ "step_type": step.kind, "step_id": step.id, "exit_code": reply.exit_code,
            "output": reply.output, "error": reply.error });
        let call = ApiCall::new("reply", Method::POST, self.path())
            .header("discovery_agent_version", &self.runner.agent_version)
            .json(&body);
        match self.machine.api.send(RetryPolicy::Agent, call).await {
            Ok(_) if reply.exit_code == 0 => {
                let entry = (reply.output, Instant::now());
                self.sent
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .insert(step.kind.clone(), entry);
            }
            Ok(_) => {}
            Err(error) if error.status() == Some(400) => {
                self.machine.world.breach(
                    self.machine.name(),
                    &format!("reply to {} refused: {}", step.id, error.chain()),
                );
            }
            Err(error) => {
                tracing::warn!(
                    host = self.machine.name(),
                    step = step.id,
                    error = error.chain(),
                    "reply failed"
                );
            }
        }
    }

    fn is_known(&self, step_type: &str, output: &str) -> bool {
        // Counters of a real inventory change, so that each one is sent: two machines alternate.
        if step_type == "inventory" && self.machine.hardware.has(HostFault::Identity) {
            return false;
        }
        let limit = self.machine.world.pace.real(REPLY_CACHE_TIME);
        let sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        sent.get(step_type)
            .is_some_and(|(known, at)| known == output && at.elapsed() < limit)
    }

    fn path(&self) -> String {
        format!(
            "/v2/infra-envs/{}/hosts/{}/instructions",
            self.runner.infra_env_id, self.runner.host_id
        )
    }
}

fn pause(seconds: u64) -> Duration {
    if seconds == 0 {
        DEFAULT_PAUSE
    } else {
        Duration::from_secs(seconds)
    }
}
