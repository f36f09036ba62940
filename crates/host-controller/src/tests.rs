use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::access::NoAccess;
use super::action::{BmcAction, REBOOT};
use super::bmc_job::SeenHost;
use super::hardware_details::hardware_details;
use super::intake::{FINALIZER, HostIntake};
use super::status_document::{document, surplus};
use super::timing::ControllerTiming;
use super::verdict::{BmcOutcome, HostNext, HostObservation, HostVerdict, verdict};
use host_records::HostStatusRecord;
use host_records::host_state::{CredentialsReach, ProvisioningState};
use redfish::{BmcDisk, BmcInventory, BmcNic, BootOverride, PowerState};

/// A managed host in a state, that is to run.
fn record(state: &str) -> Value {
    json!({
        "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost",
        "metadata": {
            "name": "host-1", "namespace": "openshift-machine-api", "resourceVersion": "7",
            "finalizers": ["other.example", FINALIZER],
        },
        "spec": {
            "online": true, "bootMACAddress": "52:54:00:00:00:01",
            "bmc": { "address": "redfish://10.0.0.1", "credentialsName": "host-1-bmc" },
        },
        "status": { "poweredOn": true, "operationalStatus": "OK", "provisioning": { "ID": "", "state": state } },
    })
}

/// With other members, as of a merge patch.
fn with(mut record: Value, patch: &Value) -> Value {
    merge(&mut record, patch);
    record
}

fn merge(target: &mut Value, patch: &Value) {
    let Some(members) = patch.as_object() else {
        *target = patch.clone();
        return;
    };
    for (name, value) in members {
        merge(&mut target[name], value);
    }
}

fn intake(record: &Value) -> HostIntake {
    HostIntake::of(record).unwrap()
}

fn answered(power: PowerState) -> BmcOutcome {
    BmcOutcome::Answered(SeenHost::new(power))
}

fn failing(power: PowerState) -> BmcOutcome {
    BmcOutcome::Answered(SeenHost {
        failure: Some("the BMC refused it".to_owned()),
        ..SeenHost::new(power)
    })
}

fn failed() -> BmcOutcome {
    BmcOutcome::Failed {
        reason: "the BMC cannot be reached".to_owned(),
    }
}

fn refused(is_new: bool) -> BmcOutcome {
    BmcOutcome::Refused {
        reason: "the BMC refused the password".to_owned(),
        is_new,
    }
}

fn no_access() -> BmcOutcome {
    BmcOutcome::NoAccess(NoAccess {
        credentials: CredentialsReach::Missing,
        reason: "the secret host-1-bmc does not exist".to_owned(),
    })
}

fn seen(record: &Value, outcome: &BmcOutcome) -> HostVerdict {
    let intake = intake(record);
    let observation = HostObservation {
        action: intake.action(),
        outcome: outcome.clone(),
        secret_version: Some("3".to_owned()),
    };
    verdict(&intake, &observation, &ControllerTiming::default(), 0.0)
}

/// The record with the status of a verdict, as the cluster stores it.
fn stored(record: &Value, verdict: &HostVerdict) -> Value {
    let mut record = record.clone();
    let now = "2026-01-02T03:04:05Z".parse().unwrap();
    merge(&mut record["status"], &document(&verdict.status, now));
    for pointer in surplus(&verdict.status) {
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        let parent = record["status"].pointer_mut(parent).unwrap();
        parent.as_object_mut().unwrap().remove(name);
    }
    record
}

fn inventory() -> BmcInventory {
    BmcInventory {
        endpoint: "https://10.0.0.1/redfish/v1/Systems/1".to_owned(),
        family: "standard",
        manufacturer: Some("Example".to_owned()),
        model: Some("Server\u{1b} 1".to_owned()),
        serial: None,
        uuid: None,
        power: PowerState::On,
        boot: BootOverride {
            target: None,
            enabled: None,
            mode: None,
            http_uri: None,
            targets: Vec::new(),
        },
        nics: vec![BmcNic {
            id: "1".to_owned(),
            mac: "52:54:00:00:00:01".to_owned(),
            speed_mbps: Some(25_000),
            link: None,
        }],
        disks: vec![BmcDisk {
            id: "Disk.Bay.0".to_owned(),
            size_bytes: Some(1 << 40),
            media: Some("SSD".to_owned()),
            protocol: Some("NVMe".to_owned()),
            vendor: None,
            model: Some("M 1".to_owned()),
            serial: Some("S1".to_owned()),
            wwn: None,
        }],
        memory_gib: Some(64),
        processors: Some(2),
        processor_model: None,
        bios_version: Some("1.2".to_owned()),
        bmc_model: None,
        bmc_firmware: None,
        secure_boot: None,
        has_virtual_media: true,
        has_uefi_http: false,
    }
}

/// State, wish of the record, observation; then the expected state, operational status, error type and next look.
const VERDICTS: &str = "\
created                    |              | not asked  | registering                | discovered |                        | again
created                    | no BMC       | not asked  | unmanaged                  | discovered |                        | again
unmanaged                  | no BMC       | not asked  | unmanaged                  | discovered |                        | on change
registering                |              | on         | inspecting                 | OK         |                        | again
registering                | external     | off        | externally provisioned     | OK         |                        | again
registering                |              | silent     | registering                | error      | registration error     | back-off
registering                |              | refused    | registering                | error      | registration error     | secret
registering                |              | no secret  | registering                | error      | registration error     | secret
registering                | deleted      | not asked  | deleting                   | OK         |                        | again
inspecting                 |              | on         | preparing                  | OK         |                        | again
inspecting                 |              | fails      | inspecting                 | error      | inspection error       | back-off
preparing                  |              | on         | available                  | OK         |                        | again
preparing                  | RAID         | on         | preparing                  | error      | preparation error      | poll
match profile              |              | not asked  | preparing                  | OK         |                        | again
ready                      |              | not asked  | available                  | OK         |                        | again
available                  |              | on         | available                  | OK         |                        | poll
available                  |              | fails      | available                  | error      | power management error | back-off
available                  | external     | not asked  | externally provisioned     | OK         |                        | again
available                  | image        | on         | available                  | error      | provisioning error     | poll
available                  | detached     | not asked  | available                  | detached   |                        | on change
provisioning               | image        | on         | provisioning               | error      | provisioning error     | poll
provisioned                | image        | on         | provisioned                | OK         |                        | poll
provisioned                |              | on         | provisioned                | error      | provisioning error     | poll
provisioned                | kept disks   | not asked  | deprovisioning             | OK         |                        | again
deprovisioning             | kept disks   | off        | available                  | OK         |                        | again
deprovisioning             |              | not asked  | deprovisioning             | error      | provisioning error     | back-off
externally provisioned     | external     | on         | externally provisioned     | OK         |                        | poll
externally provisioned     | external     | fails      | externally provisioned     | error      | power management error | back-off
externally provisioned     | external     | silent     | externally provisioned     | error      | registration error     | back-off
externally provisioned     |              | on         | inspecting                 | OK         |                        | again
externally provisioned     | deleted      | not asked  | powering off before delete | OK         |                        | again
powering off before delete | deleted      | off        | deleting                   | OK         |                        | again
powering off before delete | deleted      | fails      | powering off before delete | error      | power management error | back-off
powering off before delete | always on    | not asked  | deleting                   | OK         |                        | again
deleting                   | deleted      | not asked  | deleting                   | OK         |                        | release";

struct VerdictRow {
    text: &'static str,
    record: Value,
    outcome: BmcOutcome,
    expected: [&'static str; 3],
    next: HostNext,
}

fn rows() -> impl Iterator<Item = VerdictRow> {
    VERDICTS.lines().map(|text| {
        let cells: Vec<&str> = text.split('|').map(str::trim).collect();
        let [state, wish_name, outcome_name, expected @ .., next_name] = cells.as_slice() else {
            panic!("{text}");
        };
        let state = if *state == "created" { "" } else { state };
        VerdictRow {
            text,
            record: with(record(state), &wish(wish_name)),
            outcome: outcome(outcome_name),
            expected: expected.try_into().unwrap(),
            next: next(next_name),
        }
    })
}

fn wish(name: &str) -> Value {
    let deleted = json!({ "deletionTimestamp": "2026-01-02T03:04:05Z" });
    match name {
        "" => json!({}),
        "no BMC" => json!({ "spec": { "bmc": { "address": "", "credentialsName": "" } } }),
        "external" => json!({ "spec": { "externallyProvisioned": true } }),
        "image" => json!({ "spec": { "image": { "url": "http://10.0.0.9/image" } } }),
        "kept disks" => json!({ "spec": { "automatedCleaningMode": "disabled" } }),
        "RAID" => json!({ "spec": { "raid": { "hardwareRAIDVolumes": [] } } }),
        "detached" => {
            json!({ "metadata": { "annotations": { "baremetalhost.metal3.io/detached": "" } } })
        }
        "deleted" => json!({ "metadata": deleted }),
        "always on" => json!({ "metadata": deleted, "spec": { "disablePowerOff": true } }),
        _ => panic!("{name}"),
    }
}

fn outcome(name: &str) -> BmcOutcome {
    match name {
        "not asked" => BmcOutcome::NotAsked,
        "on" => answered(PowerState::On),
        "off" => answered(PowerState::Off),
        "fails" => failing(PowerState::On),
        "silent" => failed(),
        "refused" => refused(true),
        "no secret" => no_access(),
        _ => panic!("{name}"),
    }
}

fn next(name: &str) -> HostNext {
    match name {
        "again" => HostNext::Again,
        "release" => HostNext::Release,
        "on change" => HostNext::OnChange,
        "poll" => HostNext::After(Duration::from_mins(1)),
        "secret" => HostNext::After(Duration::from_secs(15)),
        "back-off" => HostNext::After(Duration::from_secs(5)),
        _ => panic!("{name}"),
    }
}

#[test]
fn each_observation_has_its_verdict() {
    for row in rows() {
        let verdict = seen(&row.record, &row.outcome);
        let status = &verdict.status;
        let found = [
            &status.provisioning.state,
            &status.operational_status,
            &status.error_type,
        ];
        assert_eq!(found, row.expected, "{}", row.text);
        assert_eq!(verdict.next, row.next, "{}", row.text);
        // An error has a text and a number; a success has neither.
        let has_error = !status.error_type.is_empty();
        assert_eq!(!status.error_message.is_empty(), has_error, "{}", row.text);
        assert_eq!(status.error_count, u64::from(has_error), "{}", row.text);
        let document = document(status, "2026-01-02T03:04:05Z".parse().unwrap());
        assert_eq!(document.get("errorType").is_some(), has_error);
        assert_eq!(surplus(status).contains(&"/errorType"), !has_error);
    }
}

#[test]
fn a_second_look_changes_nothing() {
    let is_last =
        |verdict: &HostVerdict| !matches!(verdict.next, HostNext::Again | HostNext::Release);
    for row in rows() {
        let first = seen(&row.record, &row.outcome);
        if !is_last(&first) {
            continue;
        }
        let record = stored(&row.record, &first);
        let outcome = match row.outcome {
            BmcOutcome::Refused { .. } => refused(false),
            outcome => outcome,
        };
        let second = seen(&record, &outcome);
        // A further failure counts.
        let is_counted = matches!(&outcome, BmcOutcome::Failed { .. })
            || matches!(&outcome, BmcOutcome::Answered(seen) if seen.failure.is_some());
        assert_eq!(second.is_changed, is_counted, "{}", row.text);
        let expected = HostStatusRecord {
            error_count: first.status.error_count + u64::from(is_counted),
            other: second.status.other.clone(),
            ..first.status
        };
        assert_eq!(second.status, expected, "{}", row.text);
    }
}

#[test]
fn failures_count_until_a_success() {
    let mut record = record("registering");
    for count in 1..5 {
        let verdict = seen(&record, &failed());
        assert_eq!(verdict.status.error_count, count);
        let pause = ControllerTiming::default().backoff(count, 0.0);
        assert_eq!(verdict.next, HostNext::After(pause));
        record = stored(&record, &verdict);
    }
    let verdict = seen(&record, &answered(PowerState::On));
    assert_eq!(verdict.status.error_count, 0);
    let record = stored(&record, &verdict);
    let status = &record["status"];
    assert_eq!(status["errorType"], Value::Null);
    assert_eq!(status["errorMessage"], "");
    let expected = json!({
        "credentials": { "name": "host-1-bmc", "namespace": "openshift-machine-api" },
        "credentialsVersion": "3",
    });
    assert_eq!(status["goodCredentials"], expected);
    assert_eq!(status["triedCredentials"], expected);
}

#[test]
fn a_deletion_does_without_a_bmc_after_a_few_attempts() {
    let deleted = json!({ "metadata": { "deletionTimestamp": "2026-01-02T03:04:05Z" } });
    for outcome in [
        no_access(),
        refused(false),
        failed(),
        failing(PowerState::On),
    ] {
        let mut record = with(record("powering off before delete"), &deleted);
        let mut looks = 0;
        let reached = loop {
            assert_eq!(intake(&record).action(), BmcAction::Fence);
            let verdict = seen(&record, &outcome);
            looks += 1;
            if verdict.next == HostNext::Again {
                break verdict.decision.state;
            }
            assert!(matches!(verdict.next, HostNext::After(_)) && looks < 10);
            record = stored(&record, &verdict);
        };
        assert_eq!(
            (reached, looks),
            (ProvisioningState::Deleting, 5),
            "{outcome:?}"
        );
    }
}

#[test]
fn each_state_needs_its_action() {
    use BmcAction::{Fence, Inspect, LogIn, None, PowerOff, PowerOn, ShutDown};
    let off = json!({ "spec": { "online": false } });
    let external = "externally provisioned";
    let reboot = |key: &str, value: &str| json!({ "metadata": { "annotations": { key: value } } });
    let power_error =
        json!({ "status": { "errorType": "power management error", "errorCount": 1 } });
    let kept_on = json!({ "spec": { "disablePowerOff": true } });
    for (state, patch, expected) in [
        ("", json!({}), None),
        ("registering", json!({}), LogIn),
        ("inspecting", json!({}), Inspect),
        ("preparing", json!({}), LogIn),
        ("available", json!({}), PowerOn),
        ("available", off.clone(), ShutDown),
        ("available", reboot("inspect.metal3.io", ""), Inspect),
        (
            "available",
            reboot("inspect.metal3.io", "disabled"),
            PowerOn,
        ),
        ("available", reboot(REBOOT, ""), PowerOn),
        (
            "provisioning",
            json!({ "spec": { "image": { "url": "x" } } }),
            LogIn,
        ),
        (external, off.clone(), ShutDown),
        (external, with(off.clone(), &power_error), PowerOff),
        (external, with(off, &kept_on), LogIn),
        (external, reboot(REBOOT, ""), ShutDown),
        (external, reboot(REBOOT, "no JSON"), ShutDown),
        (external, reboot(REBOOT, r#"{"mode": "hard"}"#), PowerOff),
        (external, reboot("reboot.metal3.io/drain", ""), ShutDown),
        (external, reboot("reboot.metal3.iox", ""), PowerOn),
        (external, with(reboot(REBOOT, ""), &kept_on), PowerOn),
        (
            external,
            reboot("baremetalhost.metal3.io/detached", ""),
            None,
        ),
        ("powering off before delete", wish("deleted"), Fence),
        ("powering off before delete", wish("always on"), None),
        ("deleting", wish("deleted"), None),
    ] {
        let is_external = json!({ "spec": { "externallyProvisioned": state == external } });
        let patch = with(patch, &is_external);
        let record = with(record(state), &patch);
        assert_eq!(intake(&record).action(), expected, "{state:?} {patch}");
    }
}

#[test]
fn a_restart_is_over_once_the_host_was_off() {
    let annotations = json!({ "reboot.metal3.io": "", "reboot.metal3.io/drain": "" });
    let patch = json!({
        "metadata": { "annotations": annotations }, "spec": { "externallyProvisioned": true },
    });
    let record = with(record("externally provisioned"), &patch);
    for (power, expected) in [(PowerState::On, &[][..]), (PowerState::Off, &[REBOOT][..])] {
        assert_eq!(seen(&record, &answered(power)).fulfilled, expected);
    }
    let kept_on = json!({ "spec": { "disablePowerOff": true } });
    assert!(!intake(&record).has_vain_reboot());
    assert!(intake(&with(record, &kept_on)).has_vain_reboot());
}

#[test]
fn records_are_left_alone_with_a_reason() {
    for (patch, reason) in [
        (
            json!({ "metadata": { "annotations": { "baremetalhost.metal3.io/paused": "" } } }),
            "paused by its annotation",
        ),
        (
            json!({ "status": { "provisioning": { "state": "levitating" } } }),
            "\"levitating\" is not a state of a host",
        ),
        (
            json!({ "metadata": { "deletionTimestamp": "x", "finalizers": ["other.example"] } }),
            "other finalizers",
        ),
        (
            json!({ "status": { "provisioning": { "state": "deleting" } } }),
            "its state is deleting, and it is not deleted",
        ),
        (
            json!({ "spec": { "online": "s3cret" } }),
            "spec.online: has another type",
        ),
    ] {
        let refused = HostIntake::of(&with(record("available"), &patch)).unwrap_err();
        let text = refused.to_string();
        assert!(text.contains(reason), "{text}");
        assert!(!text.contains("s3cret"), "{text}");
    }
}

#[test]
fn finalizers_of_others_stay() {
    let mut record = record("available");
    assert!(!intake(&record).wants_finalizer());
    let without = intake(&record).with_finalizer(false);
    assert_eq!(without, json!({ "finalizers": ["other.example"] }));
    merge(&mut record["metadata"], &without);
    assert!(intake(&record).wants_finalizer());
    let with = intake(&record).with_finalizer(true);
    assert_eq!(with, json!({ "finalizers": ["other.example", FINALIZER] }));
    record["spec"]["bmc"] = json!({});
    assert!(!intake(&record).wants_finalizer());
}

#[test]
fn hardware_is_that_of_the_inventory() {
    let expected = json!({
        "systemVendor": { "manufacturer": "Example", "productName": "Server 1" },
        "firmware": { "bios": { "version": "1.2" } },
        "ramMebibytes": 65536,
        "nics": [{ "name": "1", "mac": "52:54:00:00:00:01", "speedGbps": 25, "pxe": true }],
        "storage": [{
            "name": "Disk.Bay.0", "type": "NVME", "rotational": false, "sizeBytes": 1_u64 << 40,
            "model": "M 1", "serialNumber": "S1",
        }],
        "cpu": { "count": 2 },
    });
    let found = hardware_details(&inventory(), Some("52:54:00:00:00:01"));
    assert_eq!(found, expected);
    let inspected = BmcOutcome::Answered(SeenHost {
        inventory: Some(Box::new(inventory())),
        ..SeenHost::new(PowerState::On)
    });
    let record = record("inspecting");
    let verdict = seen(&record, &inspected);
    let record = stored(&record, &verdict);
    assert_eq!(record["status"]["hardware"], expected);
    // It stays, and is not asked for again.
    let next = intake(&record);
    assert!(!next.facts.is_inspection_wanted);
    let record = stored(&record, &seen(&record, &answered(PowerState::Off)));
    assert_eq!(record["status"]["hardware"], expected);
    assert_eq!(record["status"]["poweredOn"], false);
}

fn any_outcome() -> impl Strategy<Value = BmcOutcome> {
    use PowerState::{Off, On, PoweringOff, PoweringOn, Unknown};
    let power = prop::sample::select(vec![On, Off, PoweringOff, PoweringOn, Unknown]);
    prop_oneof![
        Just(no_access()),
        Just(failed()),
        any::<bool>().prop_map(refused),
        power.clone().prop_map(failing),
        power.prop_map(answered),
    ]
}

proptest! {
    /// Any host that is observed again and again with the same result reaches a state in which only failures count.
    #[test]
    fn hosts_settle(
        state in prop::sample::select(ProvisioningState::ALL.to_vec()),
        flags in any::<[bool; 6]>(),
        outcome in any_outcome(),
    ) {
        let [external, online, has_image, is_deleted, is_kept, is_detached] = flags;
        let mut record = record(state.name());
        record["spec"]["externallyProvisioned"] = json!(external);
        record["spec"]["online"] = json!(online);
        if has_image {
            record["spec"]["image"] = json!({ "url": "http://10.0.0.9/image" });
        }
        if is_kept {
            record["spec"]["automatedCleaningMode"] = json!("disabled");
        }
        if is_deleted {
            record["metadata"]["deletionTimestamp"] = json!("2026-01-02T03:04:05Z");
        }
        if is_detached {
            record["metadata"]["annotations"] = json!({ "baremetalhost.metal3.io/detached": "" });
        }
        prop_assume!(HostIntake::of(&record).is_ok());
        let mut is_settled = false;
        for _ in 0..40 {
            let action = intake(&record).action();
            let outcome = if action == BmcAction::None { &BmcOutcome::NotAsked } else { &outcome };
            let verdict = seen(&record, outcome);
            if let HostNext::After(pause) = verdict.next {
                prop_assert!(pause >= Duration::from_secs(5) && pause <= Duration::from_mins(10));
            }
            let is_same_state = verdict.decision.state == intake(&record).state;
            prop_assert_eq!(verdict.next == HostNext::Again, !is_same_state);
            record = stored(&record, &verdict);
            is_settled = is_same_state && !is_deleted;
            if verdict.next == HostNext::Release {
                is_settled = is_deleted;
                break;
            }
        }
        prop_assert!(is_settled, "{record}");
    }
}
