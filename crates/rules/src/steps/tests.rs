use std::collections::BTreeMap;
use std::sync::Arc;

use model::cluster::{ClusterKind, DiskEncryption, DiskEncryptionMode, DiskEncryptionTarget};
use model::host::{HostKind, HostRole, HostStatus};
use model::inventory::DriveType;
use model::release_payload::ComponentImages;
use model::steps::PostStepAction;
use serde_json::Value;

use super::*;
use crate::InstallationPolicy;
use crate::Snapshot;
use crate::samples;
use crate::urls::BootArtifacts;

mod releases;

struct Fixture {
    policy: InstallationPolicy,
    settings: Settings,
    components: ComponentImages,
    infra_env: model::infra_env::InfraEnv,
    release: ReleaseImages,
    ignition: IgnitionAccess,
    artifacts: BootArtifacts,
}

impl Fixture {
    fn new() -> Self {
        Self {
            policy: InstallationPolicy::default(),
            settings: Settings::default(),
            components: ComponentImages {
                agent: "registry.example.com:5000/edge/agent:v1".to_owned(),
                installer: "registry.example.com:5000/edge/installer:v1".to_owned(),
                controller: "registry.example.com:5000/edge/controller:v1".to_owned(),
            },
            infra_env: samples::infra_env(),
            release: ReleaseImages {
                release: "registry.example.com:5000/openshift/release@sha256:aa".to_owned(),
                machine_config_operator: "registry.example.com:5000/openshift/release@sha256:bb"
                    .to_owned(),
                must_gather: "registry.example.com:5000/openshift/release@sha256:cc".to_owned(),
                operating_system: String::new(),
            },
            ignition: IgnitionAccess::default(),
            artifacts: BootArtifacts {
                kernel: "http://i/kernel".to_owned(),
                rootfs: "http://i/rootfs".to_owned(),
                initrd: "http://i/initrd".to_owned(),
            },
        }
    }

    fn ask(&self, snapshot: Option<&Snapshot>, host: &HostState) -> Steps {
        let ctx = StepContext {
            policy: &self.policy,
            settings: &self.settings,
            components: &self.components,
            infra_env: &self.infra_env,
            release: &self.release,
            ignition: &self.ignition,
            boot_artifacts: Some(&self.artifacts),
        };
        instructions(snapshot, host, &ctx, samples::now())
    }
}

fn in_status(mut snapshot: Snapshot, status: HostStatus) -> Snapshot {
    for host in &mut snapshot.hosts {
        host.record.status = status;
    }
    snapshot
}

/// Steps by name, each argument parsed where it is JSON.
fn shown(steps: &Steps) -> BTreeMap<String, Vec<Value>> {
    steps
        .instructions
        .iter()
        .map(|step| {
            let args = step
                .args
                .iter()
                .map(|text| serde_json::from_str(text).unwrap_or_else(|_| text.clone().into()));
            (step.step_type.unwrap().to_string(), args.collect())
        })
        .collect()
}

fn names(steps: &Steps) -> Vec<&'static str> {
    steps
        .instructions
        .iter()
        .map(|step| step.step_type.unwrap().as_str())
        .collect()
}

#[test]
fn every_status_has_its_steps() {
    let fixture = Fixture::new();
    let mut table = String::new();
    for status in HostStatus::ALL {
        let snapshot = in_status(samples::snapshot(), *status);
        let steps = fixture.ask(Some(&snapshot), &snapshot.hosts[1]);
        let line = format!(
            "{status}: {} {} {}\n",
            steps.next_instruction_seconds,
            steps.post_step_action.unwrap(),
            names(&steps).join(" ")
        );
        table.push_str(&line);
    }
    insta::assert_snapshot!("day1", table);
}

#[test]
fn every_status_of_a_day2_host_has_its_steps() {
    let fixture = Fixture::new();
    let mut table = String::new();
    for status in [
        HostStatus::Discovering,
        HostStatus::Insufficient,
        HostStatus::PendingForInput,
        HostStatus::Known,
        HostStatus::PreparingForInstallation,
        HostStatus::Installing,
        HostStatus::InstallingInProgress,
    ] {
        let mut snapshot = in_status(samples::snapshot(), status);
        snapshot.cluster.kind = ClusterKind::AddHostsCluster;
        snapshot.hosts[4].record.kind = HostKind::AddToExistingClusterHost;
        let steps = fixture.ask(Some(&snapshot), &snapshot.hosts[4]);
        let line = format!("{status}: {}\n", names(&steps).join(" "));
        table.push_str(&line);
    }
    insta::assert_snapshot!("day2", table);
}

#[test]
fn arguments_have_the_form_of_the_agent() {
    let mut fixture = Fixture::new();
    fixture.infra_env.additional_ntp_sources = "10.0.0.1".to_owned();
    let mut snapshot = in_status(samples::snapshot(), HostStatus::Known);
    snapshot.hosts.truncate(2);
    snapshot.cluster.disk_encryption = Some(DiskEncryption {
        enable_on: Some(DiskEncryptionTarget::All),
        mode: Some(DiskEncryptionMode::Tang),
        tang_servers: r#"[{"url":"http://t","thumbprint":"x"}]"#.to_owned(),
    });
    let known = fixture.ask(Some(&snapshot), &snapshot.hosts[1]);
    insta::assert_json_snapshot!("known_arguments", shown(&known));

    let snapshot = in_status(samples::snapshot(), HostStatus::PreparingForInstallation);
    let preparing = fixture.ask(Some(&snapshot), &snapshot.hosts[1]);
    insta::assert_json_snapshot!("preparing_arguments", shown(&preparing));

    let snapshot = in_status(samples::snapshot(), HostStatus::Error);
    let error = fixture.ask(Some(&snapshot), &snapshot.hosts[0]);
    insta::assert_json_snapshot!("error_arguments", shown(&error));

    let snapshot = in_status(samples::snapshot(), HostStatus::Reclaiming);
    let reclaiming = fixture.ask(Some(&snapshot), &snapshot.hosts[0]);
    insta::assert_json_snapshot!("reclaiming_arguments", shown(&reclaiming));
}

#[test]
fn the_install_request_is_complete() {
    let fixture = Fixture::new();
    let mut snapshot = in_status(samples::snapshot(), HostStatus::Installing);
    snapshot.cluster.http_proxy = "http://proxy:3128".to_owned();
    snapshot.cluster.no_proxy = "a.example.com".to_owned();
    let bootstrap = fixture.ask(Some(&snapshot), &snapshot.hosts[0]);
    insta::assert_json_snapshot!("install_bootstrap", shown(&bootstrap));
    let worker = fixture.ask(Some(&snapshot), &snapshot.hosts[4]);
    let request = &shown(&worker)["install"][0];
    assert_eq!(request["role"], "worker");
    assert_eq!(request["service_ips"], Value::Null);

    snapshot.cluster.kind = ClusterKind::AddHostsCluster;
    let later = fixture.ask(Some(&snapshot), &snapshot.hosts[4]);
    let request = &shown(&later)["install"][0];
    for member in ["mco_image", "must_gather_image", "openshift_version"] {
        assert!(request.get(member).is_none(), "{member}");
    }
}

#[test]
fn installer_arguments_follow_network_and_disk() {
    let args = |fixture: &Fixture, snapshot: &Snapshot| -> Vec<String> {
        let steps = fixture.ask(Some(snapshot), &snapshot.hosts[1]);
        let request = shown(&steps)["install"][0].clone();
        let text = request["installer_args"].as_str().unwrap_or("[]");
        serde_json::from_str(text).unwrap()
    };
    let mut fixture = Fixture::new();
    let mut snapshot = in_status(samples::snapshot(), HostStatus::Installing);
    assert_eq!(
        args(&fixture, &snapshot),
        ["--append-karg", "ip=52-54-00-aa-00-02:dhcp"]
    );

    let disk = |snapshot: &mut Snapshot, kind: DriveType| {
        let inventory = snapshot.hosts[1].inventory.as_mut().unwrap();
        Arc::make_mut(inventory).disks[0].drive_type = Some(kind.into());
    };
    disk(&mut snapshot, DriveType::Multipath);
    assert_eq!(
        args(&fixture, &snapshot)[2..],
        [
            "--append-karg",
            "rw",
            "--append-karg",
            "rd.multipath=default"
        ]
    );
    disk(&mut snapshot, DriveType::SSD);
    snapshot.hosts[1].record.installer_args = r#"["--append-karg","ip=eth7:dhcp"]"#.to_owned();
    assert_eq!(args(&fixture, &snapshot), ["--append-karg", "ip=eth7:dhcp"]);
    snapshot.hosts[1].record.installer_args.clear();
    fixture.infra_env.static_network_config = "[]".to_owned();
    assert_eq!(args(&fixture, &snapshot), ["--copy-network"]);
    fixture.infra_env.static_network_config.clear();
    snapshot.cluster.user_managed_networking = Some(true);
    assert!(args(&fixture, &snapshot).is_empty());
}

#[test]
fn completed_checks_are_not_repeated() {
    let fixture = Fixture::new();
    let mut snapshot = in_status(samples::snapshot(), HostStatus::PreparingForInstallation);
    let path = snapshot.hosts[1].record.installation_disk_id.clone();
    snapshot.hosts[1].record.disks_info =
        serde_json::json!({ path.clone(): { "path": path, "disk_speed": { "tested": true, "speed_ms": 2 } } })
            .to_string();
    let done = |name: &str| serde_json::json!({ "name": name, "result": "success" });
    let release = &fixture.release;
    snapshot.hosts[1].record.images_status = serde_json::json!({
        &release.release: done(&release.release),
        &release.machine_config_operator: done(&release.machine_config_operator),
        &release.must_gather: done(&release.must_gather),
    })
    .to_string();
    let steps = fixture.ask(Some(&snapshot), &snapshot.hosts[1]);
    assert_eq!(names(&steps), ["container-image-availability"]);
    assert_eq!(
        shown(&steps)["container-image-availability"][0]["images"],
        serde_json::json!(["registry.example.com:5000/edge/installer:v1"])
    );
    snapshot.hosts[1].record.disks_info = "not json".to_owned();
    let steps = fixture.ask(Some(&snapshot), &snapshot.hosts[1]);
    assert_eq!(names(&steps).len(), 2);
}

#[test]
fn another_agent_is_replaced_first() {
    let mut fixture = Fixture::new();
    let mut snapshot = in_status(samples::snapshot(), HostStatus::Known);
    snapshot.hosts[1].record.discovery_agent_version = "agent:v0".to_owned();
    let steps = fixture.ask(Some(&snapshot), &snapshot.hosts[1]);
    assert_eq!(names(&steps), ["upgrade-agent"]);
    snapshot.hosts[1].record.status = HostStatus::Binding;
    let steps = fixture.ask(Some(&snapshot), &snapshot.hosts[1]);
    assert_eq!(names(&steps), ["upgrade-agent"]);
    assert_eq!(steps.next_instruction_seconds, 60);
    assert_eq!(steps.post_step_action, Some(PostStepAction::Continue));
    snapshot.hosts[1].record.status = HostStatus::Installing;
    let steps = fixture.ask(Some(&snapshot), &snapshot.hosts[1]);
    assert_eq!(names(&steps), ["install"]);
    fixture.settings.disabled.insert(StepType::UpgradeAgent);
    snapshot.hosts[1].record.status = HostStatus::Known;
    let steps = fixture.ask(Some(&snapshot), &snapshot.hosts[1]);
    assert!(names(&steps).len() > 1, "the usual steps");
}

#[test]
fn disabled_steps_are_left_out() {
    let mut fixture = Fixture::new();
    fixture.settings.disabled.insert(StepType::DomainResolution);
    let snapshot = in_status(samples::snapshot(), HostStatus::Known);
    let steps = fixture.ask(Some(&snapshot), &snapshot.hosts[1]);
    assert!(!names(&steps).contains(&"domain-resolution"));
}

#[test]
fn an_unbound_host_sends_its_inventory() {
    let fixture = Fixture::new();
    let mut host = samples::host(1, HostRole::AutoAssign);
    host.record.cluster_id = None;
    host.record.status = HostStatus::KnownUnbound;
    let steps = fixture.ask(None, &host);
    assert_eq!(names(&steps), ["inventory", "ntp-synchronizer"]);
    host.record.status = HostStatus::Unbinding;
    let steps = fixture.ask(None, &host);
    assert_eq!(steps.post_step_action, Some(PostStepAction::Exit));
    assert_eq!(
        serde_json::to_string(&steps).unwrap(),
        r#"{"post_step_action":"exit","instructions":null}"#
    );
}

#[test]
fn step_ids_are_eight_hex_digits_and_repeatable() {
    let fixture = Fixture::new();
    let snapshot = in_status(samples::snapshot(), HostStatus::Known);
    let first = fixture.ask(Some(&snapshot), &snapshot.hosts[1]);
    assert_eq!(first, fixture.ask(Some(&snapshot), &snapshot.hosts[1]));
    for step in &first.instructions {
        let (kind, hex) = step.step_id.rsplit_once('-').unwrap();
        assert_eq!(kind, step.step_type.unwrap().as_str());
        assert!(hex.len() == 8 && hex.bytes().all(|byte| byte.is_ascii_hexdigit()));
    }
}

#[test]
fn the_runner_receives_its_infra_env_and_host() {
    let command = runner_command(
        model::ids::InfraEnvId(samples::id(2)),
        model::ids::HostId(samples::id(3)),
        "registry.example.com:5000/edge/agent:v1",
    );
    insta::assert_json_snapshot!(command, @r#"
    {
      "args": [
        "{\"infra_env_id\":\"00000000-0000-0000-0000-000000000002\",\"host_id\":\"00000000-0000-0000-0000-000000000003\",\"agent_version\":\"registry.example.com:5000/edge/agent:v1\"}"
      ]
    }
    "#);
}

#[test]
fn every_status_has_one_plan_at_most() {
    for plan in PLANS {
        let same = PLANS.iter().filter(|other| other.status == plan.status);
        assert_eq!(same.count(), 1, "{}", plan.status);
    }
}

#[test]
fn a_day2_host_checks_its_ignition_endpoint() {
    let mut fixture = Fixture::new();
    let mut snapshot = in_status(samples::snapshot(), HostStatus::Known);
    snapshot.cluster.kind = ClusterKind::AddHostsCluster;
    let request = |fixture: &Fixture, snapshot: &Snapshot| {
        let steps = fixture.ask(Some(snapshot), &snapshot.hosts[4]);
        shown(&steps)["api-vip-connectivity-check"][0].clone()
    };
    snapshot.cluster.api_vip_dns_name = Some("api.demo.example.com".to_owned());
    assert_eq!(
        request(&fixture, &snapshot),
        serde_json::json!({ "url": "http://api.demo.example.com:22624/config/worker" })
    );
    snapshot.cluster.api_vip_dns_name = None;
    snapshot.cluster.ignition_endpoint = Some(model::cluster::IgnitionEndpoint {
        url: Some("https://hypershift.example.com/ignition/".to_owned()),
        ca_certificate: Some("Q0E=".to_owned()),
    });
    snapshot.hosts[4].record.machine_config_pool_name = "infra".to_owned();
    fixture.ignition.token = Some("token".to_owned());
    fixture.ignition.certificates = Some("Q0E=".to_owned());
    assert_eq!(
        request(&fixture, &snapshot),
        serde_json::json!({
            "url": "https://hypershift.example.com/ignition/infra",
            "ca_certificate": "Q0E=",
            "ignition_endpoint_token": "token",
            "request_headers": [{ "key": "Authorization", "value": "Bearer token" }],
        })
    );
}

#[test]
fn a_day2_host_checks_the_tang_servers_of_its_cluster() {
    let fixture = Fixture::new();
    let mut snapshot = in_status(samples::snapshot(), HostStatus::Known);
    snapshot.cluster.kind = ClusterKind::AddHostsCluster;
    let steps = fixture.ask(Some(&snapshot), &snapshot.hosts[4]);
    assert!(!shown(&steps).contains_key("tang-connectivity-check"));
    let servers = serde_json::json!([{ "url": "http://tang", "thumbprint": "x" }]);
    let ignition =
        serde_json::json!({ "storage": { "luks": [{ "clevis": { "tang": servers } }] } });
    let report = serde_json::json!({ "is_success": true, "ignition": ignition.to_string() });
    snapshot.hosts[4].record.api_vip_connectivity = report.to_string();
    let steps = fixture.ask(Some(&snapshot), &snapshot.hosts[4]);
    let request = shown(&steps)["tang-connectivity-check"][0].clone();
    let asked: serde_json::Value =
        serde_json::from_str(request["tang_servers"].as_str().unwrap()).unwrap();
    assert_eq!(asked, servers);
}

#[test]
fn dhcp_leases_are_requested_by_the_interface_of_the_machine_network() {
    let fixture = Fixture::new();
    let mut snapshot = in_status(samples::snapshot(), HostStatus::InstallingInProgress);
    snapshot.cluster.vip_dhcp_allocation = Some(true);
    snapshot.vip_leases.ingress = "lease { x 1; }".to_owned();
    let steps = fixture.ask(Some(&snapshot), &snapshot.hosts[1]);
    let request = shown(&steps)["dhcp-lease-allocate"][0].clone();
    assert_eq!(request["interface"], "eth0");
    let mac = crate::vip_mac(snapshot.cluster.id, model::steps::VipType::Api);
    assert_eq!(request["api_vip_mac"], mac);
    assert_ne!(request["api_vip_mac"], request["ingress_vip_mac"]);
    assert!(request.get("api_vip_lease").is_none(), "{request}");
    assert_eq!(request["ingress_vip_lease"], "lease { x 1; }");
    let other = fixture.ask(Some(&snapshot), &snapshot.hosts[2]);
    let other = shown(&other)["dhcp-lease-allocate"][0].clone();
    assert_eq!(request["api_vip_mac"], other["api_vip_mac"]);
}

#[test]
fn large_clusters_spread_their_connectivity_checks() {
    let fixture = Fixture::new();
    let mut snapshot = in_status(samples::snapshot(), HostStatus::Known);
    let sample = snapshot.hosts[1].clone();
    snapshot.hosts = (0..301_u128)
        .map(|number| {
            let mut host = sample.clone();
            host.record.id = model::ids::HostId(samples::id(number));
            host
        })
        .collect();
    let checking = snapshot
        .hosts
        .iter()
        .filter(|host| {
            let steps = fixture.ask(Some(&snapshot), host);
            names(&steps).contains(&"connectivity-check")
        })
        .count();
    assert!((100..=150).contains(&checking), "{checking}");
}

#[test]
fn connectivity_checks_follow_new_inventories() {
    let fixture = Fixture::new();
    let mut snapshot = in_status(samples::snapshot(), HostStatus::Known);
    let checked = |snapshot: &Snapshot| {
        let steps = fixture.ask(Some(snapshot), &snapshot.hosts[0]);
        shown(&steps)["connectivity-check"][0].clone()
    };
    let before = checked(&snapshot);
    assert_eq!(before.as_array().unwrap().len(), 4);
    let mut inventory = snapshot.hosts[1].inventory.as_deref().unwrap().clone();
    inventory.interfaces[0].ipv4_addresses = vec!["192.168.10.77/24".to_owned()];
    let text = serde_json::to_string(&inventory).unwrap();
    let policy = &fixture.policy;
    let host = &mut snapshot.hosts[1];
    let mut sent = crate::host::inventory::SentInventory::parse(&text).unwrap();
    crate::host::inventory::accept(host, None, &mut sent, policy, samples::now()).unwrap();
    let after = checked(&snapshot);
    assert_eq!(after[0]["nics"][0]["ip_addresses"][0], "192.168.10.77");
    assert_eq!(after[0]["host_id"], before[0]["host_id"]);
    assert_eq!(after[1], before[1]);
    snapshot.hosts[1].inventory = None;
    assert_eq!(checked(&snapshot).as_array().unwrap().len(), 3);
}
