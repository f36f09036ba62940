//! Calls of the installer's web UI, in its spelling, and the members that its pages read.
//!
//! Source: openshift-assisted/assisted-installer-ui, libs/ui-lib/lib, read and driven in a browser.

use serde_json::{Value, json};

use crate::harness::{PULL_SECRET, Server, host_id, inventory};

/// A step of the wizard: it opens when each validation is there once, and all of them and of the groups succeed.
struct WizardStep {
    name: &'static str,
    cluster_group: Option<&'static str>,
    cluster: &'static [&'static str],
    host_group: Option<&'static str>,
    host: &'static [&'static str],
}

/// Validations of operators, which the page expects also when no operator is chosen.
const OPERATORS: &[&str] = &[
    "lso-requirements-satisfied",
    "odf-requirements-satisfied",
    "lvm-requirements-satisfied",
    "cnv-requirements-satisfied",
    "nvidia-gpu-requirements-satisfied",
    "openshift-ai-requirements-satisfied",
    "osc-requirements-satisfied",
    "amd-gpu-requirements-satisfied",
];

/// Source: ocm/components/wizard/utils/wizardTransition.ts.
const WIZARD_STEPS: &[WizardStep] = &[
    WizardStep {
        name: "cluster-details",
        cluster_group: None,
        cluster: &["pull-secret-set", "dns-domain-defined"],
        host_group: None,
        host: &[],
    },
    WizardStep {
        name: "host-discovery",
        cluster_group: None,
        cluster: &["sufficient-masters-count"],
        host_group: Some("hardware"),
        host: &["connected", "hostname-valid", "media-connected"],
    },
    WizardStep {
        name: "operators of host-discovery",
        cluster_group: None,
        cluster: OPERATORS,
        host_group: None,
        host: OPERATORS,
    },
    WizardStep {
        name: "storage",
        cluster_group: None,
        cluster: &["sufficient-masters-count"],
        host_group: Some("hardware"),
        host: &["no-skip-installation-disk", "no-skip-missing-disk"],
    },
    WizardStep {
        name: "networking",
        cluster_group: Some("network"),
        cluster: &[
            "api-vips-defined",
            "machine-cidr-defined",
            "cluster-cidr-defined",
            "service-cidr-defined",
            "all-hosts-are-ready-to-install",
        ],
        host_group: Some("network"),
        host: &["apps-domain-name-resolved-correctly"],
    },
    WizardStep {
        name: "custom-manifests",
        cluster_group: Some("network"),
        cluster: &[
            "platform-requirements-satisfied",
            "custom-manifests-requirements-satisfied",
        ],
        host_group: Some("network"),
        host: &[],
    },
];

/// `validations_info`: a text with groups of validations.
fn validations(record: &Value) -> Value {
    serde_json::from_str(record["validations_info"].as_str().unwrap()).unwrap()
}

fn check_step(step: &WizardStep, found: &Value, group: Option<&str>, ids: &[&str]) {
    let groups = found.as_object().unwrap();
    if let Some(group) = group {
        assert!(groups.contains_key(group), "{}: {group}", step.name);
    }
    let all: Vec<&Value> = groups
        .values()
        .flat_map(|group| group.as_array().unwrap())
        .collect();
    for id in ids {
        let count = all.iter().filter(|one| one["id"] == *id).count();
        assert_eq!(count, 1, "{}: {id}", step.name);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn wizard_steps_find_their_validations() {
    let server = Server::start().await;
    let id = server.cluster(json!({})).await;
    let infra_env = server.infra_env(Some(&id)).await;
    let host = server.host(&infra_env, 1).await;
    let reply = server.reply(&host, "inventory", &inventory(1)).await;
    reply.expect(204);
    let cluster = server.get(&format!("/v2/clusters/{id}")).await.expect(200);
    for step in WIZARD_STEPS {
        check_step(
            step,
            &validations(&cluster),
            step.cluster_group,
            step.cluster,
        );
        let host = validations(&cluster["hosts"][0]);
        check_step(step, &host, step.host_group, step.host);
    }
}

/// The names of failing validations, and the text of another one.
fn failures<'a>(found: &'a Value, id: &str) -> (Vec<&'a str>, &'a str) {
    let all: Vec<&Value> = found
        .as_object()
        .unwrap()
        .values()
        .flat_map(|group| group.as_array().unwrap())
        .collect();
    let failing = all.iter().filter(|one| one["status"] == "failure");
    let failing = failing.map(|one| one["id"].as_str().unwrap()).collect();
    let one = all.iter().find(|one| one["id"] == id).unwrap();
    (failing, one["message"].as_str().unwrap())
}

/// A draft is opened at the step of its first failing validation: without hosts at their discovery, not at networking.
#[tokio::test(flavor = "multi_thread")]
async fn drafts_without_hosts_are_opened_at_host_discovery() {
    let server = Server::start().await;
    let single = json!({ "control_plane_count": 1, "disk_encryption": { "mode": "tpmv2", "enable_on": "none" } });
    let id = server.cluster(single).await;
    let cluster = server.get(&format!("/v2/clusters/{id}")).await.expect(200);
    assert_eq!(cluster["status"], "insufficient");
    let found = validations(&cluster);
    let (failing, advice) = failures(&found, "openshift-ai-gpu-requirements-satisfied");
    assert_eq!(failing, ["sufficient-masters-count"]);
    assert_eq!(
        advice, "",
        "the page shows it beside a bundle that is not chosen"
    );
}

/// The page announces the end of a kubeconfig when the API names one.
#[tokio::test(flavor = "multi_thread")]
async fn kubeconfigs_have_no_announced_end() {
    let server = Server::start().await;
    let defaults = server.get("/v2/clusters//default-config").await.expect(200);
    assert!(
        defaults.get("inactive_deletion_hours").is_none(),
        "{defaults}"
    );
    for list in ["cluster_networks_dualstack", "service_networks_dualstack"] {
        assert_eq!(defaults[list].as_array().unwrap().len(), 2, "{defaults}");
    }
}

/// Configuration that the form view of static networks stores before the user has entered addresses.
const PLACEHOLDER: &str = "#generated by ui form view\n#ipv4MachineNetwork 192.168.126.0/24\ninterfaces:\n  - name: DUMMY4.100\n    type: vlan\n    state: up\n    vlan:\n      base-iface: DUMMY4\n      id: 100\n    ipv4:\n      address:\n        - ip: 0.0.0.0\n          prefix-length: 24\n      enabled: true\n      dhcp: false\ndns-resolver:\n  config:\n    server:\n      - 192.168.126.1\nroutes:\n  config:\n    - destination: 0.0.0.0/0\n      next-hop-address: 192.168.126.1\n      next-hop-interface: DUMMY4.100\n      table-id: 254\n";

#[tokio::test(flavor = "multi_thread")]
async fn placeholders_of_static_networks_are_stored_unchanged() {
    let server = Server::start().await;
    let id = server.cluster(json!({})).await;
    let networks = json!([{
        "network_yaml": PLACEHOLDER,
        "mac_interface_map": [{ "mac_address": "01:23:45:67:89:AB", "logical_nic_name": "DUMMY4" }],
    }]);
    let params = json!({
        "name": "demo_infra-env", "pull_secret": PULL_SECRET, "cluster_id": id,
        "openshift_version": "4.18", "cpu_architecture": "x86_64", "static_network_config": networks,
    });
    let infra_env = server.post("/v2/infra-envs/", &params).await.expect(201);
    let stored = |infra_env: &Value| -> Value {
        serde_json::from_str(infra_env["static_network_config"].as_str().unwrap()).unwrap()
    };
    assert_eq!(stored(&infra_env), networks);
    let path = format!("/v2/infra-envs/{}", infra_env["id"].as_str().unwrap());
    let dhcp = json!({ "static_network_config": [] });
    let changed = server.patch(&path, &dhcp).await.expect(201);
    assert!(changed.get("static_network_config").is_none(), "{changed}");
    let static_again = json!({ "static_network_config": networks });
    let changed = server.patch(&path, &static_again).await.expect(201);
    assert_eq!(stored(&changed), networks);
}

/// The page deletes hosts, infra-envs and the cluster, in this order, by their paths with and without a trailing slash.
#[tokio::test(flavor = "multi_thread")]
async fn clusters_are_deleted_with_their_parts() {
    let server = Server::start().await;
    let id = server.cluster(json!({})).await;
    let infra_env = server.infra_env(Some(&id)).await;
    server.host(&infra_env, 1).await;
    let hosts = format!("/v2/infra-envs/{infra_env}/hosts/");
    let listed = server.get(&hosts).await.expect(200);
    assert_eq!(listed[0]["id"], json!(host_id(1)));
    let of_cluster = format!("/v2/infra-envs/?cluster_id={id}");
    let found = server.get(&of_cluster).await.expect(200);
    assert_eq!(found[0]["id"], json!(infra_env));
    let host = format!("{hosts}{}", host_id(1));
    for path in [
        host,
        format!("/v2/infra-envs/{infra_env}"),
        format!("/v2/clusters/{id}"),
    ] {
        server.delete(&path).await.expect(204);
    }
    assert_eq!(server.get("/v2/clusters/").await.expect(200), json!([]));
}
