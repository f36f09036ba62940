//! Records serialise as the peers' clients expect: golden files, and round trips of every closed set.

mod wire;

use model::cluster::{Cluster, ClusterCreateParams, ClusterStatus, ClusterUpdateParams};
use model::host::{Host, HostCreateParams, HostStage, HostStatus};
use model::infra_env::InfraEnv;
use model::steps::{StepReply, StepType, Steps};
use model::validations::{ClusterValidationId, HostValidationId};

#[test]
fn an_empty_cluster_sends_what_clients_always_read() {
    insta::assert_json_snapshot!(Cluster::default());
}

#[test]
fn an_empty_host_sends_what_clients_always_read() {
    insta::assert_json_snapshot!(Host::default());
}

#[test]
fn an_empty_infra_env_sends_what_clients_always_read() {
    insta::assert_json_snapshot!(InfraEnv::default());
}

#[test]
fn no_instruction_is_null() {
    let steps = Steps {
        next_instruction_seconds: 60,
        ..Steps::default()
    };
    let json = serde_json::to_value(steps).unwrap();
    assert_eq!(json["instructions"], serde_json::Value::Null);
}

#[test]
fn an_unknown_member_of_a_request_is_refused_by_name() {
    let error =
        serde_json::from_str::<ClusterUpdateParams>(r#"{"name":"a","nmae":"b"}"#).unwrap_err();
    assert!(error.to_string().contains("nmae"), "{error}");
}

#[test]
fn a_missing_member_of_a_request_is_named() {
    let error =
        serde_json::from_str::<ClusterCreateParams>(r#"{"openshift_version":"4.18"}"#).unwrap_err();
    assert!(error.to_string().contains("name"), "{error}");
    assert!(serde_json::from_str::<HostCreateParams>("{}").is_err());
}

#[test]
fn a_value_outside_a_closed_set_lists_the_set() {
    let error = serde_json::from_str::<StepReply>(r#"{"step_type":"dance"}"#)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("dance") && error.contains("inventory"),
        "{error}"
    );
}

#[test]
fn closed_sets_round_trip() {
    fn check<T: std::str::FromStr + std::fmt::Display + PartialEq + Copy + std::fmt::Debug>(
        all: &[T],
    ) {
        for value in all {
            assert_eq!(value.to_string().parse().ok(), Some(*value));
        }
    }
    check(ClusterStatus::ALL);
    check(HostStatus::ALL);
    check(HostStage::ALL);
    check(StepType::ALL);
    check(HostValidationId::ALL);
    check(ClusterValidationId::ALL);
}

#[test]
fn null_lists_read_as_empty() {
    let cluster: Cluster = serde_json::from_str(r#"{"hosts":null,"api_vips":null}"#).unwrap();
    assert_eq!(cluster, Cluster::default());
}
