//! Tasks: answers with status 202 are followed to their end. Source: DSP0266 "Asynchronous operations", DSP0268 Task.

use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::Value;

use super::error::BmcError;
use super::http::{RedfishReply, RedfishRequest};
use super::link::RedfishPath;
use super::message::reason;
use super::session::RedfishSession;
use super::timing::PollDeadline;

/// The state of a task, by its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TaskProgress<'a> {
    Running,
    Done,
    /// The state that the BMC names.
    Failed(&'a str),
}

/// States of a task that has not ended; all others but `Completed` are failures.
const RUNNING: &[&str] = &[
    "New",
    "Starting",
    "Running",
    "Suspended",
    "Pending",
    "Stopping",
    "Service",
    "Cancelling",
];

impl RedfishSession {
    /// Sends a request, and waits for the task that the BMC makes of it.
    pub(super) async fn act(&mut self, request: &RedfishRequest) -> Result<(), BmcError> {
        let reply = self.send(request).await?;
        if reply.status != StatusCode::ACCEPTED {
            return Ok(());
        }
        // Without a monitor, the state of the resource shows the end.
        let Some(monitor) = self.monitor(&reply) else {
            return Ok(());
        };
        let limit = self.timing.task;
        let deadline = PollDeadline::new(limit, self.timing.poll);
        let mut asked = self.granted(reply.retry_after);
        loop {
            if !deadline.wait(asked).await {
                return Err(BmcError::TaskTimeout {
                    request: request.shown(),
                    seconds: limit.as_secs(),
                });
            }
            let poll = RedfishRequest::new(Method::GET, &monitor, None);
            let reply = match self.send(&poll).await {
                Ok(reply) => reply,
                // Some BMCs remove a monitor at the end of its task.
                Err(BmcError::NotFound { .. }) => return Ok(()),
                Err(BmcError::Refused { status, reason, .. }) => {
                    return Err(BmcError::TaskFailed {
                        request: request.shown(),
                        state: format!("status {status}"),
                        reason,
                    });
                }
                Err(error) => return Err(error),
            };
            match progress(reply.status, &reply.body) {
                TaskProgress::Running => asked = self.granted(reply.retry_after),
                TaskProgress::Done => return Ok(()),
                TaskProgress::Failed(state) => {
                    let found = self.messages(&reply.body);
                    return Err(BmcError::TaskFailed {
                        request: request.shown(),
                        state: state.chars().filter(|c| !c.is_control()).take(40).collect(),
                        reason: reason(&found, 0),
                    });
                }
            }
        }
    }

    /// The path of a task's monitor, or of the task.
    fn monitor(&self, reply: &RedfishReply) -> Option<RedfishPath> {
        let links = ["TaskMonitor", "@odata.id"].map(|name| reply.body[name].as_str());
        let link = reply.location.as_deref().or(links[0]).or(links[1])?;
        RedfishPath::of_location(link, &self.root().origin)
    }

    /// A pause that a BMC asks for, within the bound.
    fn granted(&self, asked: Option<Duration>) -> Option<Duration> {
        asked.map(|asked| asked.min(self.timing.longest_retry_after))
    }
}

fn progress(status: StatusCode, body: &Value) -> TaskProgress<'_> {
    if status == StatusCode::ACCEPTED {
        return TaskProgress::Running;
    }
    // iDRAC answers with a job in place of a task.
    let state = body["TaskState"].as_str().or(body["JobState"].as_str());
    let health = body["TaskStatus"].as_str().unwrap_or("OK");
    match state {
        None => TaskProgress::Done,
        Some(state) if RUNNING.contains(&state) => TaskProgress::Running,
        Some("Completed") if matches!(health, "OK" | "Warning") => TaskProgress::Done,
        Some("Completed") => TaskProgress::Failed(health),
        Some(state) => TaskProgress::Failed(state),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn states_of_tasks_are_read() {
        use TaskProgress::{Done, Failed, Running};
        for (status, body, expected) in [
            (202, json!({}), Running),
            (202, json!({ "TaskState": "Completed" }), Running),
            (200, json!({ "TaskState": "Running" }), Running),
            (200, json!({ "JobState": "Pending" }), Running),
            (200, json!({ "TaskState": "Completed" }), Done),
            (
                200,
                json!({ "TaskState": "Completed", "TaskStatus": "Warning" }),
                Done,
            ),
            (
                200,
                json!({ "TaskState": "Completed", "TaskStatus": "Critical" }),
                Failed("Critical"),
            ),
            (
                200,
                json!({ "TaskState": "Exception" }),
                Failed("Exception"),
            ),
            (200, json!({ "TaskState": "Bogus" }), Failed("Bogus")),
            (200, json!({ "Id": "1" }), Done),
            (204, Value::Null, Done),
        ] {
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!(progress(status, &body), expected, "{status} {body}");
        }
    }
}
