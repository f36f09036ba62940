use model::inventory::SystemVendor;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::InstallationPolicy;
use crate::cluster::refresh;
use crate::explain::validations::host_validations;
use crate::fixtures::{self, now};

fn entry(serial: &str, mac: &str) -> ExpectedHost {
    let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    ExpectedHost {
        serial_number: text(serial).unwrap_or_default(),
        mac_addresses: text(mac).into_iter().collect(),
        ..ExpectedHost::default()
    }
}

fn host(at: usize) -> HostState {
    let mut host = fixtures::host(at, HostRole::AutoAssign, 3);
    let mut inventory = host.inventory.as_deref().unwrap().clone();
    inventory.system_vendor = Some(SystemVendor {
        serial_number: format!("S{at}"),
        ..SystemVendor::default()
    });
    host.record.inventory = serde_json::to_string(&inventory).unwrap().into();
    HostState::new(host.record)
}

#[test]
fn lists_are_checked_and_normalised() {
    let good = check(vec![entry("S1", "52-54-00-AA-00-01")]).unwrap();
    assert_eq!(good[0].mac_addresses, ["52:54:00:aa:00:01"]);
    let named = |name: &str| ExpectedHost {
        name: name.to_owned(),
        ..entry("S1", "")
    };
    let role = ExpectedHost {
        role: Some(HostRole::Bootstrap),
        ..entry("S1", "")
    };
    for (list, part) in [
        (vec![entry("", "")], "identifies no machine"),
        (vec![entry("", "52:54")], "is not a MAC address"),
        (
            vec![entry("S1", ""), entry("S1", "")],
            "each machine has its own",
        ),
        (
            vec![
                entry("", "52:54:00:aa:00:01"),
                entry("", "52:54:00:AA:00:01"),
            ],
            "each machine has its own",
        ),
        (vec![named("Not Good")], "Not Good"),
        (vec![role], "is chosen by the installation"),
    ] {
        let error = check(list.clone()).unwrap_err().to_string();
        assert!(error.contains(part), "{list:?}: {error}");
    }
}

// limit: expected hosts of an infra-env
#[test]
fn the_number_of_expected_hosts_is_limited() {
    let list = |count| (0..count).map(|at| entry(&format!("S{at}"), "")).collect();
    assert!(check(list(MAX_HOSTS)).is_ok());
    assert!(check(list(MAX_HOSTS + 1)).is_err());
}

// limit: MAC addresses of an expected host
#[test]
fn the_number_of_mac_addresses_is_limited() {
    let list = |count| {
        vec![ExpectedHost {
            mac_addresses: (0..count)
                .map(|at| format!("52:54:00:00:00:{at:02x}"))
                .collect(),
            ..ExpectedHost::default()
        }]
    };
    assert!(check(list(MAX_MAC_ADDRESSES)).is_ok());
    assert!(check(list(MAX_MAC_ADDRESSES + 1)).is_err());
}

// limit: text of an expected host
#[test]
fn texts_of_expected_hosts_are_limited() {
    assert!(check(vec![entry(&"x".repeat(TEXT_BYTES), "")]).is_ok());
    assert!(check(vec![entry(&"x".repeat(TEXT_BYTES + 1), "")]).is_err());
}

#[test]
fn a_matching_host_takes_name_role_and_disk_over_once() {
    let list = [ExpectedHost {
        name: "alpha".to_owned(),
        role: Some(HostRole::Worker),
        installation_disk: Some(DiskHints {
            device_name: "/dev/sda".to_owned(),
            ..DiskHints::default()
        }),
        ..entry("", "52:54:00:00:00:01")
    }];
    let mut host = host(1);
    let event = assign(&mut host, None, Some(&list)).unwrap();
    assert_eq!(event.name, "expected_host_matched");
    assert_eq!(host.record.requested_hostname, "alpha");
    assert_eq!(host.record.role, Some(HostRole::Worker));
    // Changed by the user afterwards: a difference, which the next inventory keeps.
    host.record.requested_hostname = "beta".to_owned();
    assert_eq!(assign(&mut host, None, Some(&list)), None);
    assert_eq!(host.record.requested_hostname, "beta");
    let found = differences(&host, &list[0]);
    let texts: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert!(
        texts.contains(&"name beta, expected name alpha".to_owned()),
        "{texts:?}"
    );
    assert_eq!(assign(&mut host, None, None), None);
    assert_eq!(host.record.expectation, None);
}

#[test]
fn hosts_are_found_by_mac_address_or_serial_number() {
    let list = [entry("S2", ""), entry("", "52:54:00:00:00:01")];
    let index = EntryIndex::new(&list);
    let found = |at: usize| index.find(host(at).inventory.as_ref().unwrap());
    assert_eq!([found(1), found(2), found(3)], [Some(1), Some(0), None]);
}

#[test]
fn missing_present_and_unexpected_hosts_are_compared() {
    let list = [entry("S9", ""), entry("S1", "52:54:00:00:00:77")];
    let compared = compare(&list, &[host(1), host(2)]);
    let states: Vec<_> = compared.iter().map(|one| one.state).collect();
    assert_eq!(
        states,
        [
            ExpectedHostState::Missing,
            ExpectedHostState::Present,
            ExpectedHostState::Unexpected
        ]
    );
    assert_eq!(compared[0].host_id, None);
    assert_eq!(
        compared[1].differences,
        ["no MAC address 52:54:00:00:00:77, expected MAC address 52:54:00:00:00:77"]
    );
    assert_eq!(compared[2].host_id, Some(fixtures::host_id(2)));
}

#[test]
fn disks_fit_all_hints_that_are_set() {
    let disk = Disk {
        path: "/dev/sda".to_owned(),
        model: "SuperDisk 9000".to_owned(),
        size_bytes: 500_000_000_000,
        drive_type: Some(DriveType::HDD.into()),
        ..Disk::default()
    };
    let hints = |json: serde_json::Value| serde_json::from_value::<DiskHints>(json).unwrap();
    for (given, expected) in [
        (json!({}), true),
        (
            json!({"device_name": "/dev/sda", "model": "Disk", "rotational": true}),
            true,
        ),
        (json!({"min_size_gigabytes": 500}), true),
        (json!({"min_size_gigabytes": 501}), false),
        (json!({"device_name": "/dev/sdb"}), false),
        (json!({"rotational": false}), false),
        (json!({"wwn": "0x1"}), false),
    ] {
        assert_eq!(fits(&hints(given.clone()), &disk), expected, "{given}");
    }
}

/// Peers' clients see no further id, unless the list exists.
#[test]
fn hosts_without_a_list_have_no_such_validation() {
    let mut snapshot = fixtures::snapshot(3, 0);
    refresh::cluster(&mut snapshot, &InstallationPolicy::default(), now());
    let ids = [
        "matches-expected-host",
        "host-id-unique",
        "serial-number-unique",
    ];
    for host in &snapshot.hosts {
        for id in ids {
            assert!(!host.record.validations_info.text().contains(id), "{id}");
        }
    }
    for id in ids {
        assert!(host_validations().any(|row| row.id.as_str() == id), "{id}");
    }
}

proptest! {
    #[test]
    fn checked_lists_are_accepted_again(serials in prop::collection::btree_set("[A-Z0-9]{1,8}", 0..6)) {
        let list: Vec<_> = serials.iter().map(|serial| entry(serial, "")).collect();
        let checked = check(list).unwrap();
        prop_assert_eq!(check(checked.clone()).unwrap(), checked);
    }
}
