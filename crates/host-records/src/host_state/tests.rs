use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::json;

use super::ProvisioningState::{
    Available, Created, Deleting, Deprovisioning, ExternallyProvisioned, Inspecting, MatchProfile,
    PoweringOffBeforeDelete, Preparing, Provisioned, Provisioning, Ready, Registering, Unmanaged,
};
use super::*;
use crate::{BareMetalHost, RecordFile};

type Edge = (ProvisioningState, ProvisioningState);

/// Transitions that the documentation of hosts has, in their order there.
const DOCUMENTED: &[Edge] = &[
    (Created, Unmanaged),
    (Created, Registering),
    (Unmanaged, Registering),
    (Registering, ExternallyProvisioned),
    (Registering, Inspecting),
    (Registering, Preparing),
    (ExternallyProvisioned, Inspecting),
    (ExternallyProvisioned, Preparing),
    (Inspecting, Preparing),
    (Preparing, Available),
    (Available, ExternallyProvisioned),
    (Available, Provisioning),
    (Provisioning, Provisioned),
    (Provisioned, Deprovisioning),
    (Deprovisioning, Available),
    // A managed host is switched off, then deleted.
    (Inspecting, PoweringOffBeforeDelete),
    (Preparing, PoweringOffBeforeDelete),
    (Available, PoweringOffBeforeDelete),
    (ExternallyProvisioned, PoweringOffBeforeDelete),
    (Deprovisioning, PoweringOffBeforeDelete),
    (PoweringOffBeforeDelete, Deleting),
    (Unmanaged, Deleting),
    // The operator's diagram only: nothing is there to be switched off, and a failed installation is removed.
    (Registering, Deleting),
    (Provisioning, Deprovisioning),
    // The operator's code only: a record that is deleted at once, legacy names, detached hosts.
    (Created, Deleting),
    (MatchProfile, Preparing),
    (MatchProfile, PoweringOffBeforeDelete),
    (Ready, Available),
    (Ready, ExternallyProvisioned),
    (Ready, PoweringOffBeforeDelete),
    (MatchProfile, Deleting),
    (Inspecting, Deleting),
    (Preparing, Deleting),
    (Ready, Deleting),
    (Available, Deleting),
    (Provisioning, Deleting),
    (Provisioned, Deleting),
    (ExternallyProvisioned, Deleting),
    (Deprovisioning, Deleting),
];

fn edges() -> BTreeSet<Edge> {
    let mut edges = BTreeSet::new();
    for rule in TRANSITIONS {
        if let To::Go(to) = rule.to {
            edges.extend(rule.from.iter().map(|from| (*from, to)));
        }
    }
    edges
}

fn registered() -> HostFacts {
    HostFacts {
        has_bmc: true,
        is_online: true,
        is_inspection_wanted: true,
        credentials: CredentialsReach::Present,
        bmc: BmcReach::Answers,
        ..HostFacts::default()
    }
}

/// All combinations of facts, with few and with many failures.
fn all_facts() -> impl Iterator<Item = HostFacts> {
    let flags = 0..1_u32 << 9;
    flags.flat_map(|bits| {
        let is = move |bit: u32| bits & (1 << bit) != 0;
        each_observation()
            .into_iter()
            .map(move |(deployment, credentials, bmc, step)| HostFacts {
                has_bmc: is(0),
                is_externally_provisioned: is(1),
                is_online: is(2),
                is_power_off_disabled: is(3),
                is_inspection_wanted: is(4),
                is_deleting: is(5),
                is_detached: is(6),
                is_power_failing: is(7),
                failures: if is(8) { 4 } else { 3 },
                deployment,
                credentials,
                bmc,
                step,
            })
    })
}

fn each_observation() -> Vec<(DeploymentDelta, CredentialsReach, BmcReach, HostStepOutcome)> {
    use BmcReach::{Answers, Fails, Unknown};
    use CredentialsReach::{Invalid, Missing, Present};
    use DeploymentDelta::{Changed, None, Removed, Same, Wanted};
    use HostStepOutcome::{Delayed, Done, Failed, Running};
    let mut all = Vec::new();
    for deployment in [None, Wanted, Same, Changed, Removed] {
        for credentials in [Present, Missing, Invalid] {
            for bmc in [Unknown, Answers, Fails] {
                for step in [Running, Done, Failed, Delayed] {
                    all.push((deployment, credentials, bmc, step));
                }
            }
        }
    }
    all
}

#[test]
fn the_table_is_the_documented_one() {
    let documented: BTreeSet<Edge> = DOCUMENTED.iter().copied().collect();
    assert_eq!(edges(), documented);
    assert_eq!(documented.len(), DOCUMENTED.len());
}

/// A state, the change of the facts of a registered host, and the next state.
type Condition = (ProvisioningState, fn(&mut HostFacts), ProvisioningState);

static CONDITIONS: &[Condition] = &[
    (Created, |it| it.has_bmc = false, Unmanaged),
    (Created, |_| (), Registering),
    (Unmanaged, |it| it.has_bmc = false, Unmanaged),
    (Unmanaged, |_| (), Registering),
    (
        Registering,
        |it| it.is_externally_provisioned = true,
        ExternallyProvisioned,
    ),
    (Registering, |_| (), Inspecting),
    (Registering, |it| it.is_inspection_wanted = false, Preparing),
    (
        Registering,
        |it| it.credentials = CredentialsReach::Missing,
        Registering,
    ),
    (
        Registering,
        |it| it.credentials = CredentialsReach::Invalid,
        Registering,
    ),
    (Registering, |it| it.bmc = BmcReach::Fails, Registering),
    (
        ExternallyProvisioned,
        |it| it.is_externally_provisioned = true,
        ExternallyProvisioned,
    ),
    (ExternallyProvisioned, |_| (), Inspecting),
    (
        ExternallyProvisioned,
        |it| it.is_inspection_wanted = false,
        Preparing,
    ),
    (Inspecting, |_| (), Inspecting),
    (Inspecting, |it| it.step = HostStepOutcome::Done, Preparing),
    (Preparing, |it| it.step = HostStepOutcome::Done, Available),
    (
        Available,
        |it| it.is_externally_provisioned = true,
        ExternallyProvisioned,
    ),
    (Available, |_| (), Available),
    (
        Available,
        |it| it.deployment = DeploymentDelta::Wanted,
        Provisioning,
    ),
    (
        Available,
        |it| {
            it.deployment = DeploymentDelta::Wanted;
            it.is_online = false;
        },
        Available,
    ),
    (
        Provisioning,
        |it| {
            it.deployment = DeploymentDelta::Wanted;
            it.step = HostStepOutcome::Done;
        },
        Provisioned,
    ),
    (
        Provisioned,
        |it| it.deployment = DeploymentDelta::Same,
        Provisioned,
    ),
    (
        Provisioned,
        |it| it.deployment = DeploymentDelta::Wanted,
        Provisioned,
    ),
    (
        Provisioned,
        |it| it.deployment = DeploymentDelta::Removed,
        Deprovisioning,
    ),
    (Provisioned, |it| it.is_deleting = true, Deprovisioning),
    (
        Deprovisioning,
        |it| it.step = HostStepOutcome::Done,
        Available,
    ),
    (
        Available,
        |it| it.is_deleting = true,
        PoweringOffBeforeDelete,
    ),
    (
        ExternallyProvisioned,
        |it| it.is_deleting = true,
        PoweringOffBeforeDelete,
    ),
    (
        PoweringOffBeforeDelete,
        |it| it.step = HostStepOutcome::Done,
        Deleting,
    ),
    (Unmanaged, |it| it.is_deleting = true, Deleting),
];

#[test]
fn conditions_are_the_documented_ones() {
    for (state, change, to) in CONDITIONS {
        let mut facts = registered();
        change(&mut facts);
        assert_eq!(next(*state, &facts).state, *to, "{state} {facts:?}");
    }
}

#[test]
fn failed_registrations_are_errors() {
    for change in [
        |it: &mut HostFacts| it.credentials = CredentialsReach::Missing,
        |it: &mut HostFacts| it.credentials = CredentialsReach::Invalid,
        |it: &mut HostFacts| it.bmc = BmcReach::Fails,
    ] {
        let mut facts = registered();
        change(&mut facts);
        let decision = next(Registering, &facts);
        assert_eq!(decision.operational, OperationalStatus::Error);
        assert_eq!(decision.error, Some(HostErrorType::Registration));
        assert_eq!(decision.power, None);
    }
    let waiting = HostFacts {
        bmc: BmcReach::Unknown,
        ..registered()
    };
    let decision = next(Registering, &waiting);
    assert_eq!(
        (decision.operational, decision.error),
        (OperationalStatus::Discovered, None)
    );
    let managed = next(
        Registering,
        &HostFacts {
            is_externally_provisioned: true,
            ..registered()
        },
    );
    assert_eq!(
        (managed.operational, managed.error),
        (OperationalStatus::Ok, None)
    );
}

#[test]
fn each_rule_fires_and_each_state_is_reached() {
    let mut fired: BTreeSet<&str> = BTreeSet::new();
    let mut reached = BTreeSet::from([Created]);
    let mut open = vec![Created];
    let facts: Vec<_> = all_facts().collect();
    let table = [TRANSITIONS];
    // States of old records, which nothing enters.
    for legacy in [MatchProfile, Ready] {
        reached.insert(legacy);
        open.push(legacy);
    }
    while let Some(state) = open.pop() {
        for facts in &facts {
            let rule = find(&table, &Reconcile, &state, facts);
            fired.extend(rule.map(|rule| rule.name));
            let to = next(state, facts).state;
            if reached.insert(to) {
                open.push(to);
            }
        }
    }
    let all: BTreeSet<_> = TRANSITIONS.iter().map(|rule| rule.name).collect();
    assert_eq!(all.len(), TRANSITIONS.len());
    assert_eq!(fired, all);
    assert_eq!(reached, ProvisioningState::ALL.iter().copied().collect());
}

#[test]
fn no_facts_lead_out_of_the_table() {
    let edges = edges();
    for facts in all_facts() {
        for state in ProvisioningState::ALL {
            let decision = next(*state, &facts);
            let to = decision.state;
            assert!(
                to == *state || edges.contains(&(*state, to)),
                "{state} to {to}"
            );
            let has_status = STATUSES
                .iter()
                .any(|rule| rule.states.contains(&to) && (rule.when)(&facts));
            assert!(has_status, "{to}");
            let is_error = decision.operational == OperationalStatus::Error;
            assert_eq!(is_error, decision.error.is_some());
        }
    }
}

#[test]
fn externally_provisioned_hosts_stay_so_and_keep_their_power_state() {
    for facts in all_facts().filter(|it| it.is_externally_provisioned && !it.is_deleting) {
        let decision = next(ExternallyProvisioned, &facts);
        assert_eq!(decision.state, ExternallyProvisioned);
        assert_eq!(decision.effects, []);
        let is_kept = decision.power.is_none_or(|power| power == facts.is_online);
        assert!(is_kept, "{facts:?}");
        if facts.is_registered() && !facts.is_detached && !facts.is_power_off_disabled {
            assert_eq!(decision.power, Some(facts.is_online));
        }
    }
}

#[test]
fn power_is_never_switched_off_where_that_is_forbidden() {
    let forbidden = |it: &HostFacts| it.is_power_off_disabled && !it.is_deleting;
    for facts in all_facts().filter(forbidden) {
        for state in ProvisioningState::ALL {
            let decision = next(*state, &facts);
            let is_deleted = *state == PoweringOffBeforeDelete;
            assert!(
                decision.power != Some(false) || is_deleted,
                "{state} {facts:?}"
            );
        }
    }
}

/// Each step ends or fails again and again, however the BMC responds.
#[test]
fn deletions_end_from_each_state() {
    for facts in all_facts().filter(|it| it.is_deleting) {
        for start in ProvisioningState::ALL {
            let mut state = *start;
            let mut released = false;
            for round in 0..12 {
                let step = match facts.step {
                    HostStepOutcome::Failed => HostStepOutcome::Failed,
                    _ if facts.is_unreachable() => HostStepOutcome::Failed,
                    _ => HostStepOutcome::Done,
                };
                let failures = if step == HostStepOutcome::Failed {
                    2 * round
                } else {
                    0
                };
                let facts = HostFacts {
                    step,
                    failures,
                    ..facts.clone()
                };
                let decision = next(state, &facts);
                state = decision.state;
                released = decision.effects.contains(&HostEffect::ReleaseRecord);
                if released {
                    break;
                }
            }
            assert!(released, "{start} ends in {state}: {facts:?}");
        }
    }
}

#[test]
fn only_deletions_release_records() {
    for facts in all_facts() {
        for state in ProvisioningState::ALL
            .iter()
            .filter(|state| **state != Deleting)
        {
            let decision = next(*state, &facts);
            assert!(!decision.effects.contains(&HostEffect::ReleaseRecord));
            let is_deletion = [Deleting, PoweringOffBeforeDelete].contains(&decision.state);
            assert!(!is_deletion || facts.is_deleting || *state == PoweringOffBeforeDelete);
        }
    }
}

#[test]
fn names_are_read_again() {
    for state in ProvisioningState::ALL {
        assert_eq!(state.name().parse(), Ok(*state));
    }
    assert!("installed".parse::<ProvisioningState>().is_err());
    let long = "x".repeat(1000).parse::<ProvisioningState>().unwrap_err();
    assert!(long.to_string().len() < 200);
}

#[test]
fn the_table_is_drawn() {
    insta::assert_snapshot!(rules::table::markdown(&[TRANSITIONS]));
}

fn host(spec: &str, status: &str) -> BareMetalHost {
    let text = format!(
        "apiVersion: metal3.io/v1alpha1\nkind: BareMetalHost\nmetadata: {{name: a}}\n\
         spec: {{online: true, {spec}}}\nstatus: {status}\n"
    );
    let file = RecordFile::read("f", text.as_bytes());
    file.records().next().unwrap().decode().unwrap()
}

#[test]
fn facts_are_read_from_records() {
    let facts = HostFacts::of_record(&host("", "~"));
    let expected = HostFacts {
        is_online: true,
        is_inspection_wanted: true,
        ..HostFacts::default()
    };
    assert_eq!(facts, expected);
    for (spec, status, deployment) in [
        ("", "{}", DeploymentDelta::None),
        ("image: {url: a}", "{}", DeploymentDelta::Wanted),
        (
            "image: {url: a}",
            "{provisioning: {image: {url: a}}}",
            DeploymentDelta::Same,
        ),
        (
            "image: {url: b}",
            "{provisioning: {image: {url: a}}}",
            DeploymentDelta::Changed,
        ),
        (
            "",
            "{provisioning: {image: {url: a}}}",
            DeploymentDelta::Removed,
        ),
        (
            "",
            "{provisioning: {image: {url: ''}}}",
            DeploymentDelta::None,
        ),
        (
            "customDeploy: {method: m}",
            "{provisioning: {}}",
            DeploymentDelta::Wanted,
        ),
        (
            "customDeploy: {method: m}",
            "{provisioning: {customDeploy: {method: m}}}",
            DeploymentDelta::Same,
        ),
    ] {
        let facts = HostFacts::of_record(&host(spec, status));
        assert_eq!(facts.deployment, deployment, "{spec} {status}");
    }
    let inspected = HostFacts::of_record(&host("", "{hardware: {cpu: {}}, errorCount: 5}"));
    assert!(!inspected.is_inspection_wanted);
    assert_eq!(inspected.failures, 5);
    let disabled = HostFacts::of_record(&host("inspectionMode: disabled, bmc: {address: a}", "~"));
    assert!(!disabled.is_inspection_wanted && disabled.has_bmc);
}

/// The specification's transition: details of the BMC are applied to an unmanaged host.
#[test]
fn an_unmanaged_host_becomes_externally_provisioned() {
    let mut record = host(
        "externallyProvisioned: true, consumerRef: {kind: Machine, name: m}",
        "{}",
    );
    let mut status = record.status.take().unwrap();
    let mut states = Vec::new();
    let mut look = |record: &BareMetalHost, status: &mut HostStatusRecord, reach: BmcReach| {
        let facts = HostFacts {
            credentials: CredentialsReach::Present,
            bmc: reach,
            ..HostFacts::of_record(record)
        };
        let state = status.provisioning.state.parse().unwrap();
        next(state, &facts).write(status);
        states.push((
            status.provisioning.state.clone(),
            status.operational_status.clone(),
        ));
    };
    let before = record.spec.clone();
    look(&record, &mut status, BmcReach::Unknown);
    record.spec.bmc.address = "redfish://10.0.0.1".to_owned();
    record.spec.bmc.credentials_name = "a-bmc-secret".to_owned();
    look(&record, &mut status, BmcReach::Unknown);
    look(&record, &mut status, BmcReach::Fails);
    assert_eq!(status.error_type, "registration error");
    look(&record, &mut status, BmcReach::Answers);
    let expected = [
        ("unmanaged", "discovered"),
        ("registering", "discovered"),
        ("registering", "error"),
        ("externally provisioned", "OK"),
    ];
    assert_eq!(
        states,
        expected.map(|(state, status)| (state.to_owned(), status.to_owned()))
    );
    assert_eq!(status.error_type, "");
    assert_eq!(record.spec.consumer_ref, before.consumer_ref);
    assert_eq!(record.spec.online, before.online);
}

fn any_facts() -> impl Strategy<Value = HostFacts> {
    let observations = prop::sample::select(each_observation());
    (any::<[bool; 8]>(), observations, 0u64..6).prop_map(|(is, observation, failures)| {
        let (deployment, credentials, bmc, step) = observation;
        HostFacts {
            has_bmc: is[0],
            is_externally_provisioned: is[1],
            is_online: is[2],
            is_power_off_disabled: is[3],
            is_inspection_wanted: is[4],
            is_deleting: is[5],
            is_detached: is[6],
            is_power_failing: is[7],
            failures,
            deployment,
            credentials,
            bmc,
            step,
        }
    })
}

proptest! {
    #[test]
    fn other_members_of_the_status_stay(
        state in prop::sample::select(ProvisioningState::ALL),
        facts in any_facts(),
    ) {
        let text = json!({
            "hardware": {"cpu": {}},
            "poweredOn": true,
            "provisioning": {"ID": "i", "state": state.name(), "image": {"url": "a"}},
            "conditions": [],
        });
        let mut status: HostStatusRecord = serde_json::from_value(text.clone()).unwrap();
        let decision = next(state, &facts);
        decision.write(&mut status);
        let written = serde_json::to_value(&status).unwrap();
        for member in ["hardware", "poweredOn", "conditions"] {
            prop_assert_eq!(&written[member], &text[member]);
        }
        prop_assert_eq!(&written["provisioning"]["image"], &text["provisioning"]["image"]);
        prop_assert_eq!(&written["provisioning"]["state"], decision.state.name());
        prop_assert_eq!(
            decision.error.is_some(),
            written.get("errorType").is_some()
        );
    }

    #[test]
    fn decisions_settle(state in prop::sample::select(ProvisioningState::ALL), facts in any_facts()) {
        // A finished step advances once: the next one is under way.
        let mut state = next(state, &facts).state;
        let facts = HostFacts { step: HostStepOutcome::Running, ..facts };
        for _ in 0..6 {
            state = next(state, &facts).state;
        }
        prop_assert_eq!(next(state, &facts).state, state);
    }
}
