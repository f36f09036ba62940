//! Steps for the agents and installers of each release.

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
