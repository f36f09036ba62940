//! Probes of a neighbour: another network namespace behind a pair of virtual links.

use std::process::Command;
use std::sync::{Arc, Mutex};

use clap::Parser as _;
use model::network::VipVerification;
use model::steps::{ConnectivityReport, FreeNetworkAddresses, StepType, VerifiedVip};
use serde_json::json;

use super::context::InstallationTask;
use super::{StepContext, run};
use crate::HostFiles;
use crate::api::ServiceClient;
use crate::args::AgentArgs;
use crate::status::StatusHandle;

/// The neighbour's namespace; removed when dropped.
pub(super) struct Neighbour {
    pub(super) namespace: String,
    pub(super) link: String,
    mac_address: String,
}

impl Neighbour {
    /// None without the right to make one. `number` keeps neighbours of tests apart.
    pub(super) fn new(number: u8) -> Option<Self> {
        let neighbour = Self {
            namespace: format!("atoll-{}-{number}", std::process::id()),
            link: format!("at{}x{number}", std::process::id() % 1_000_000),
            mac_address: format!("02:00:00:00:00:{number:02x}"),
        };
        neighbour.set_up(number).then_some(neighbour)
    }

    fn set_up(&self, number: u8) -> bool {
        let Self {
            namespace,
            link,
            mac_address,
        } = self;
        let inside = format!("-n {namespace}");
        [
            format!("netns add {namespace}"),
            format!("link add {link} mtu 9000 type veth peer name far netns {namespace}"),
            format!("{inside} link set far mtu 9000 address {mac_address} up"),
            format!("link set {link} up"),
            format!("address add 198.18.{number}.1/28 dev {link}"),
            format!("address add 2001:db8:{number}::1/64 dev {link} nodad"),
            format!("{inside} address add 198.18.{number}.2/28 dev far"),
            format!("{inside} address add 2001:db8:{number}::2/64 dev far nodad"),
        ]
        .iter()
        .all(|arguments| ip(arguments))
    }
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        ip(&format!("netns delete {}", self.namespace));
        ip(&format!("link delete {}", self.link));
    }
}

fn ip(arguments: &str) -> bool {
    let status = Command::new("ip").args(arguments.split(' ')).output();
    status.is_ok_and(|output| output.status.success())
}

/// An agent whose links count as hardware: virtual ones are no outgoing links otherwise.
pub(super) fn context(root: &tempfile::TempDir) -> Arc<StepContext> {
    let id = uuid::Uuid::nil().to_string();
    let line = [
        "agent",
        "--url",
        "http://127.0.0.1:1",
        "--infra-env-id",
        &id,
    ];
    Arc::new(StepContext {
        api: ServiceClient::new(&AgentArgs::parse_from(line)).unwrap(),
        files: HostFiles::below(root.path()),
        host_id: uuid::Uuid::nil(),
        status: StatusHandle::default(),
        installation: InstallationTask::default(),
        agent_image: Mutex::default(),
    })
}

macro_rules! neighbour {
    ($number:literal) => {
        match Neighbour::new($number) {
            Some(neighbour) => neighbour,
            None => {
                testkit::skipped("no rights to make network namespaces");
                return;
            }
        }
    };
}

#[tokio::test]
async fn a_neighbour_is_reached() {
    let neighbour = neighbour!(1);
    let root = tempfile::tempdir().unwrap();
    let context = context(&root);
    let other = uuid::Uuid::from_u128(1);
    let hosts = json!([{ "host_id": other, "nics": [{
        "name": "far", "mac": neighbour.mac_address.to_uppercase(),
        "ip_addresses": ["198.18.1.2/28", "2001:db8:1::2/64", "198.18.1.9/28"],
    }] }]);
    let outcome = run(&context, StepType::ConnectivityCheck, &[hosts.to_string()]).await;
    assert_eq!(outcome.exit_code, 0, "{outcome:?}");
    let report: ConnectivityReport = serde_json::from_str(&outcome.output).unwrap();
    let host = &report.remote_hosts[0];
    let links: Vec<_> = host
        .l2_connectivity
        .iter()
        .filter(|found| found.outgoing_nic == neighbour.link)
        .map(|found| {
            (
                found.remote_ip_address.as_str(),
                found.remote_mac.as_str(),
                found.successful,
            )
        })
        .collect();
    let mac = neighbour.mac_address.as_str();
    assert_eq!(
        links,
        [("198.18.1.2", mac, true), ("2001:db8:1::2", mac, true)]
    );
    let networks: Vec<_> = host
        .l3_connectivity
        .iter()
        .map(|found| (found.remote_ip_address.as_str(), found.successful))
        .collect();
    let expected = [
        ("198.18.1.2", true),
        ("198.18.1.9", false),
        ("2001:db8:1::2", true),
    ];
    assert_eq!(networks, expected);
    let mtus: Vec<_> = host
        .mtu_report
        .iter()
        .filter(|found| found.outgoing_nic == neighbour.link)
        .map(|found| (found.remote_ip_address.as_str(), found.mtu_successful))
        .collect();
    assert_eq!(mtus, [("198.18.1.2", true), ("2001:db8:1::2", true)]);
}

#[tokio::test]
async fn another_machine_with_the_address_is_a_conflict() {
    let neighbour = neighbour!(2);
    let root = tempfile::tempdir().unwrap();
    let hosts = json!([{ "host_id": uuid::Uuid::from_u128(1), "nics": [{
        "name": "far", "mac": "02:00:00:00:00:99", "ip_addresses": ["198.18.2.2/28"],
    }] }]);
    let outcome = run(
        &context(&root),
        StepType::ConnectivityCheck,
        &[hosts.to_string()],
    )
    .await;
    let report: ConnectivityReport = serde_json::from_str(&outcome.output).unwrap();
    let found = &report.remote_hosts[0].l2_connectivity[0];
    assert_eq!(
        (found.remote_mac.as_str(), found.successful),
        (neighbour.mac_address.as_str(), false)
    );
}

#[tokio::test]
async fn used_addresses_are_not_free() {
    let _neighbour = neighbour!(3);
    let root = tempfile::tempdir().unwrap();
    let context = context(&root);
    let networks = json!(["198.18.3.0/28"]).to_string();
    let outcome = run(&context, StepType::FreeNetworkAddresses, &[networks]).await;
    let found: Vec<FreeNetworkAddresses> = serde_json::from_str(&outcome.output).unwrap();
    let free = &found[0].free_addresses;
    assert_eq!(free.len(), 14, "{free:?}");
    assert!(
        !free
            .iter()
            .any(|address| address == "198.18.3.1" || address == "198.18.3.2")
    );
    let outcome = run(
        &context,
        StepType::FreeNetworkAddresses,
        &[json!(["203.0.113.0/28"]).to_string()],
    )
    .await;
    assert!(
        outcome.exit_code == -1 && outcome.error.contains("203.0.113.0/28"),
        "{outcome:?}"
    );

    let vips = json!([
        { "vip": "198.18.3.2", "vip_type": "api" }, { "vip": "198.18.3.5", "vip_type": "ingress" },
        { "vip": "2001:db8:3::2", "vip_type": "api" }, { "vip": "2001:db8:3::5", "vip_type": "ingress" },
    ]);
    let outcome = run(&context, StepType::VerifyVips, &[vips.to_string()]).await;
    let verified: Vec<VerifiedVip> = serde_json::from_str(&outcome.output).unwrap();
    let results: Vec<_> = verified.iter().map(|vip| vip.verification).collect();
    let (used, unused) = (
        Some(VipVerification::Failed),
        Some(VipVerification::Succeeded),
    );
    assert_eq!(results, [used, unused, used, unused]);
}

#[tokio::test]
async fn unknown_steps_and_arguments_are_failures() {
    let root = tempfile::tempdir().unwrap();
    let context = context(&root);
    for (kind, arguments) in [
        (StepType::Execute, vec![]),
        (StepType::ConnectivityCheck, vec![]),
        (StepType::VerifyVips, vec!["{".to_owned()]),
        (
            StepType::Inventory,
            vec!["id".to_owned(), "--other=1".to_owned()],
        ),
        (StepType::Install, vec!["{}".to_owned()]),
    ] {
        let outcome = run(&context, kind, &arguments).await;
        assert!(
            outcome.exit_code == -1 && !outcome.error.is_empty(),
            "{kind}: {outcome:?}"
        );
    }
}
