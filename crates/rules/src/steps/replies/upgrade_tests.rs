//! Results of agent upgrades.

use model::events::EventSeverity;
use model::host::HostRole;
use model::steps::{StepReply, StepType};

use super::{AcceptedReply, CheckedReply, accept};
use crate::InstallationPolicy;
use crate::NewEvent;
use crate::event::rate_limit;
use crate::fixtures::{self, now};

fn reply(output: &str) -> Result<AcceptedReply, model::Error> {
    let mut host = fixtures::host(0, HostRole::Worker, 1);
    let reply = StepReply {
        step_type: Some(StepType::UpgradeAgent),
        output: output.to_owned(),
        ..StepReply::default()
    };
    let mut reply = CheckedReply::new(reply)?;
    accept(
        &mut host,
        None,
        &mut reply,
        &InstallationPolicy::default(),
        now(),
    )
}

fn only_event(result: &str) -> NewEvent {
    let output = format!(r#"{{"agent_image":"quay.io/a/agent:v2","result":"{result}"}}"#);
    let accepted = reply(&output).unwrap();
    assert!(!accepted.refresh);
    let [event] = accepted.events.as_slice() else {
        panic!("{accepted:?}");
    };
    assert_eq!(event.props["agent_image"], "quay.io/a/agent:v2");
    assert!(rate_limit(event.name).is_some(), "{}", event.name);
    event.clone()
}

#[test]
fn results_of_upgrades_are_events() {
    let event = only_event("success");
    assert_eq!(
        (event.name, event.severity),
        ("upgrade_agent_finished", EventSeverity::Info)
    );
    let event = only_event("failure");
    assert_eq!(
        (event.name, event.severity),
        ("upgrade_agent_failed", EventSeverity::Error)
    );
    assert!(
        event.message.contains("quay.io/a/agent:v2"),
        "{}",
        event.message
    );
}

#[test]
fn replies_without_result_change_nothing() {
    for output in ["{}", r#"{"agent_image":"a","result":""}"#] {
        assert_eq!(reply(output).unwrap(), AcceptedReply::default());
    }
    let long = format!(
        r#"{{"agent_image":"{}","result":"failure"}}"#,
        "a".repeat(10_000)
    );
    for output in ["", "[]", long.as_str()] {
        assert!(reply(output).is_err(), "{output:.20}");
    }
    assert_eq!(rate_limit("host_status_updated"), None);
}
