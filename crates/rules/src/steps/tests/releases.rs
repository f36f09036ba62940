//! Steps for the agents and installers of each release.

use model::inventory::DeviceType;

use super::*;

const EMBEDDED: &str = "atoll-agent/0.1.0";

/// The samples in a cluster of `version`, with hosts in `status`.
fn of_release(version: &str, status: HostStatus) -> Snapshot {
    let mut snapshot = in_status(samples::snapshot(), status);
    version.clone_into(&mut snapshot.cluster.openshift_version);
    snapshot
}

/// The first argument of a step for the second host; null without the step.
fn argument(fixture: &Fixture, snapshot: &Snapshot, step: &str) -> Value {
    let steps = fixture.ask(Some(snapshot), &snapshot.hosts[1]);
    let shown = shown(&steps);
    shown.get(step).map_or(Value::Null, |args| args[0].clone())
}

#[test]
fn agents_resolve_only_names_that_they_accept() {
    let (plain, digits, label) = ("r.example.com", "r.example.lab1", "registry");
    for (version, agent, registry, has_dotted, has_registry) in [
        ("4.12.3", "", plain, false, true),
        ("4.13.60", "", digits, false, false),
        ("4.13.60", EMBEDDED, digits, true, true),
        ("4.14.0-rc.1", "", label, true, false),
        ("4.14.5", "", "r--x.example.com", true, false),
        ("4.14.5", "", "r-x.example.com", true, true),
        ("4.15.0", "", label, true, true),
        ("4.20.1", "", digits, true, true),
    ] {
        let mut snapshot = of_release(version, HostStatus::Known);
        snapshot.cluster.ocp_release_image = format!("{registry}:5000/openshift/release:x");
        agent.clone_into(&mut snapshot.hosts[1].record.discovery_agent_version);
        let request = argument(&Fixture::new(), &snapshot, "domain-resolution");
        let domains = request["domains"].as_array().unwrap();
        let has = |name: &str| domains.iter().any(|domain| domain["domain_name"] == name);
        let row = format!("{version} {agent} {registry}");
        assert!(has("validateNoWildcardDNS.demo.example.com"), "{row}");
        let dotted = has("validateNoWildcardDNS.demo.example.com.");
        assert_eq!((dotted, has(registry)), (has_dotted, has_registry), "{row}");
    }
}

#[test]
fn virtual_addresses_are_verified_from_4_13_on() {
    for (version, agent, expected) in [
        ("4.12.3", "", false),
        ("4.12.3", EMBEDDED, true),
        ("4.13.0", "", true),
    ] {
        let mut snapshot = of_release(version, HostStatus::Known);
        agent.clone_into(&mut snapshot.hosts[1].record.discovery_agent_version);
        let argument = argument(&Fixture::new(), &snapshot, "verify-vips");
        assert_eq!(argument.is_array(), expected, "{version} {agent}");
    }
}

#[test]
fn installers_are_asked_for_members_that_they_know() {
    for (version, mode, notifies, has_image) in [
        ("4.12.3", "Full", false, false),
        ("4.16.9", "Full", false, false),
        ("4.17.0-rc.2", "Full", true, false),
        ("4.18.21", "Full", true, false),
        ("4.19.0-ec.1", "", true, true),
        ("4.20.1", "", true, true),
        ("", "", true, true),
    ] {
        let mut fixture = Fixture::new();
        fixture.settings.notify_num_reboots = true;
        fixture.infra_env.openshift_version.clear();
        fixture.release.operating_system = "registry.example.com/os@sha256:dd".to_owned();
        let mut snapshot = of_release(version, HostStatus::Installing);
        let inventory = snapshot.hosts[1].inventory.as_mut().unwrap();
        let boot = Arc::make_mut(inventory).boot.as_mut().unwrap();
        boot.device_type = Some(DeviceType::Persistent.into());
        let request = argument(&fixture, &snapshot, "install");
        let text = |name: &str| request[name].as_str().unwrap_or_default().to_owned();
        assert_eq!(text("high_availability_mode"), mode, "{version}");
        assert_eq!(request["notify_num_reboots"] == true, notifies, "{version}");
        assert_eq!(!text("coreos_image").is_empty(), has_image, "{version}");
        assert_eq!(request["control_plane_count"], 3, "{version}");
    }
}

#[test]
fn single_nodes_have_the_mode_of_old_installers() {
    for (version, expected) in [("4.18.21", Value::from("None")), ("4.19.1", Value::Null)] {
        let mut snapshot = in_status(samples::single_node(), HostStatus::Installing);
        version.clone_into(&mut snapshot.cluster.openshift_version);
        let steps = Fixture::new().ask(Some(&snapshot), &snapshot.hosts[0]);
        let request = &shown(&steps)["install"][0];
        assert_eq!(request["high_availability_mode"], expected, "{version}");
        assert_eq!(request["control_plane_count"], 1);
    }
}

#[test]
fn a_cluster_without_version_installs_that_of_its_infra_env() {
    let mut fixture = Fixture::new();
    let snapshot = of_release("", HostStatus::Installing);
    let mode = |fixture: &Fixture| {
        argument(fixture, &snapshot, "install")["high_availability_mode"].clone()
    };
    assert_eq!(mode(&fixture), "Full", "4.16");
    fixture.infra_env.openshift_version = "4.20".to_owned();
    assert_eq!(mode(&fixture), Value::Null);
}

#[test]
fn the_reboot_is_skipped_where_no_flag_is_lost() {
    let (none, proxy, address) = ("", "http://proxy:3128", "192.0.2.9");
    for (version, agent, proxy, address, expected) in [
        ("4.14.9", "", none, none, false),
        ("4.15.3", "", none, none, true),
        ("4.15.3", "", proxy, none, false),
        ("4.15.3", "", none, address, false),
        ("4.15.3", EMBEDDED, proxy, address, true),
        ("4.16.0", "", proxy, address, true),
    ] {
        let mut fixture = Fixture::new();
        fixture.settings.service_ips = Some(address.to_owned())
            .filter(|address| !address.is_empty())
            .into_iter()
            .collect();
        let mut snapshot = of_release(version, HostStatus::Installing);
        proxy.clone_into(&mut snapshot.cluster.https_proxy);
        agent.clone_into(&mut snapshot.hosts[1].record.discovery_agent_version);
        let request = argument(&fixture, &snapshot, "install");
        let skips = request["enable_skip_mco_reboot"] == true;
        assert_eq!(skips, expected, "{version} {agent} {proxy} {address}");
    }
}

#[test]
fn destinations_without_proxy_have_the_form_of_agents() {
    let own = "127.0.0.1,localhost,.svc,.cluster.local,api-int.demo.example.com";
    for (list, expected) in [
        ("*", "*"),
        ("a.com,*", "*"),
        ("*,a.com", "*"),
        ("", own),
        (
            "a.com,.svc",
            "a.com,.svc,127.0.0.1,localhost,.cluster.local,api-int.demo.example.com",
        ),
    ] {
        let mut snapshot = of_release("4.16.3", HostStatus::Installing);
        snapshot.cluster.http_proxy = "http://proxy:3128".to_owned();
        list.clone_into(&mut snapshot.cluster.no_proxy);
        let request = argument(&Fixture::new(), &snapshot, "install");
        assert_eq!(request["proxy"]["no_proxy"], expected, "{list}");
    }
}

#[test]
fn disks_are_tested_under_paths_that_fio_reads() {
    let (by_path, by_id) = (
        "/dev/disk/by-path/pci-0000:04:00.0",
        "/dev/disk/by-id/wwn-0x1",
    );
    for (version, agent, id, expected) in [
        ("4.12.3", "", by_path, "/dev/sda"),
        ("4.12.3", "", by_id, by_id),
        ("4.12.3", EMBEDDED, by_path, by_path),
        ("4.13.1", "", by_path, by_path),
    ] {
        let mut snapshot = of_release(version, HostStatus::PreparingForInstallation);
        let host = &mut snapshot.hosts[1];
        agent.clone_into(&mut host.record.discovery_agent_version);
        id.clone_into(&mut host.record.installation_disk_id);
        let disk = &mut Arc::make_mut(host.inventory.as_mut().unwrap()).disks[0];
        id.clone_into(&mut disk.id);
        disk.by_id.clear();
        let fixture = Fixture::new();
        let step = "installation-disk-speed-check";
        let request = argument(&fixture, &snapshot, step);
        assert_eq!(request["path"], expected, "{version} {agent} {id}");

        let result = serde_json::json!({ "tested": true, "speed_ms": 2 });
        let results = serde_json::json!({ expected: { "path": expected, "disk_speed": result } });
        snapshot.hosts[1].record.disks_info = results.to_string();
        let done = argument(&fixture, &snapshot, step);
        assert_eq!(done, Value::Null, "{version} {agent} {id}");
    }
}

#[test]
fn only_embedded_agents_truncate_their_inventory() {
    let mut fixture = Fixture::new();
    fixture.settings.inventory_max_size = Some(1_000_000);
    fixture.settings.inventory_disk_min_size = Some(2_000_000);
    for (agent, expected) in [
        ("", 1),
        ("registry.example.com:5000/edge/agent:v1", 1),
        (EMBEDDED, 3),
    ] {
        let mut host = samples::host(1, HostRole::AutoAssign);
        agent.clone_into(&mut host.record.discovery_agent_version);
        host.record.status = HostStatus::DiscoveringUnbound;
        let steps = fixture.ask(None, &host);
        assert_eq!(steps.instructions[0].args.len(), expected, "{agent}");
    }
}
