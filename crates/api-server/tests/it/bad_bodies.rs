//! Bodies with one member that breaks a rule: the status, and the member that the text names.
//!
//! Wrong types, unknown members and missing ones are cases of `contract`. Each row is a JSON object that is merged over
//! a valid body, the expected status, and a part of the text. `N×x` in a row is a text of `N` times `x`.
//!
//! Source: openshift/assisted-service, observed over HTTP; where its checks come late (networks of new clusters), they
//! come at once here.

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{PULL_SECRET, Server, cluster_params, host_id, inventory, merged};

/// Members of new and of existing clusters.
const CLUSTER: &str = r#"
{"name":""} 400 name
{"name":"Upper"} 400 name
{"name":"a_b"} 400 name
{"name":"-a"} 400 name
{"name":"a-"} 400 name
{"name":"a.b"} 400 name
{"name":"a b"} 400 name
{"name":"é"} 400 name
{"name":"55×a"} 400 name
{"base_dns_domain":"-bad-"} 400 base_dns_domain
{"base_dns_domain":"a.b"} 400 base_dns_domain
{"base_dns_domain":"t"} 400 base_dns_domain
{"base_dns_domain":"example.com."} 400 base_dns_domain
{"base_dns_domain":".example.com"} 400 base_dns_domain
{"base_dns_domain":"192.0.2.1"} 400 base_dns_domain
{"base_dns_domain":"a_b.com"} 400 base_dns_domain
{"base_dns_domain":"64×a.com"} 400 base_dns_domain
{"base_dns_domain":"exa mple.com"} 400 base_dns_domain
{"pull_secret":"x"} 400 pull_secret
{"pull_secret":"[]"} 400 pull_secret
{"pull_secret":"{}"} 400 pull_secret
{"pull_secret":"{\"auths\":{}}"} 400 pull_secret
{"pull_secret":"{\"auths\":[]}"} 400 pull_secret
{"pull_secret":"{\"auths\":{\"r\":{\"auth\":\"?\"}}}"} 400 pull_secret
{"pull_secret":"{\"auths\":{\"r\":{\"auth\":\"eA==\"}}}"} 400 pull_secret
{"ssh_public_key":"nonsense"} 400 ssh_public_key
{"ssh_public_key":"ssh-rsa"} 400 ssh_public_key
{"ssh_public_key":"ssh-rsa AAAA"} 400 ssh_public_key
{"ssh_public_key":"ssh-none AAAA"} 400 ssh_public_key
{"tags":"a,,b"} 400 tags
{"tags":"a-b"} 400 tags
{"tags":","} 400 tags
{"http_proxy":"proxy"} 400 http_proxy
{"http_proxy":"ftp://proxy"} 400 http_proxy
{"http_proxy":"https://proxy"} 400 http_proxy
{"http_proxy":"http://"} 400 http_proxy
{"https_proxy":"ftp://proxy"} 400 https_proxy
{"https_proxy":"proxy:3128"} 400 https_proxy
{"http_proxy":"http://proxy","no_proxy":"a b"} 400 no_proxy
{"http_proxy":"http://proxy","no_proxy":"a.example,,b.example"} 400 no_proxy
{"http_proxy":"http://proxy","no_proxy":"a.example,a.example"} 400 no_proxy
{"http_proxy":"http://proxy","no_proxy":"192.0.2.0/33"} 400 no_proxy
{"additional_ntp_source":"a"} 400 additional_ntp_source
{"additional_ntp_source":"Time.example"} 400 additional_ntp_source
{"additional_ntp_source":"a.example,,b.example"} 400 additional_ntp_source
{"additional_ntp_source":"a.example b.example"} 400 additional_ntp_source
{"additional_ntp_source":"-a.example"} 400 additional_ntp_source
{"cluster_networks":[{"cidr":"x","host_prefix":23}]} 400 cluster_networks
{"cluster_networks":[{"cidr":"10.128.0.0/33","host_prefix":23}]} 400 cluster_networks
{"cluster_networks":[{"cidr":"10.128.0.0","host_prefix":23}]} 400 cluster_networks
{"cluster_networks":[{"cidr":"10.128.0.0/26","host_prefix":27}]} 400 cluster_networks
{"cluster_networks":[{"cidr":"10.128.0.0/14","host_prefix":0}]} 400 cluster_networks
{"cluster_networks":[{"cidr":"10.128.0.0/14","host_prefix":26}]} 400 cluster_networks
{"cluster_networks":[{"cidr":"10.128.0.0/14","host_prefix":-1}]} 400 cluster_networks
{"cluster_networks":[{"cidr":"10.128.0.0/23","host_prefix":23}]} 400 cluster_networks
{"cluster_networks":[{"cidr":"0.0.0.0/0","host_prefix":23}]} 400 cluster_networks
{"service_networks":[{"cidr":"x"}]} 400 service_networks
{"service_networks":[{"cidr":"172.30.0.0/26"}]} 400 service_networks
{"service_networks":[{"cidr":"10.128.0.0/16"}]} 400 10.128.0.0
{"service_networks":[{"cidr":"fd02::/112"}]} 400 networks
{"machine_networks":[{"cidr":"x"}]} 400 machine_networks
{"machine_networks":[{"cidr":"192.0.2.0/40"}]} 400 machine_networks
{"api_vips":[{"ip":"x"}],"ingress_vips":[{"ip":"192.0.2.2"}]} 400 api_vips
{"api_vips":[{"ip":"192.0.2.1"}],"ingress_vips":[{"ip":"x"}]} 400 ingress_vips
{"api_vips":[{"ip":"192.0.2.1"}]} 400 ingress_vips
{"ingress_vips":[{"ip":"192.0.2.1"}]} 400 api_vips
{"api_vips":[{"ip":"192.0.2.1"}],"ingress_vips":[{"ip":"192.0.2.1"}]} 400 vips
{"api_vips":[{"ip":"192.0.2.1"},{"ip":"192.0.2.3"}],"ingress_vips":[{"ip":"192.0.2.2"},{"ip":"192.0.2.4"}]} 400 vips
{"api_vips":[{"ip":"192.0.2.1"},{"ip":"192.0.2.3"},{"ip":"192.0.2.5"}],"ingress_vips":[{"ip":"192.0.2.2"}]} 400 api_vips
{"vip_dhcp_allocation":true,"api_vips":[{"ip":"192.0.2.1"}],"ingress_vips":[{"ip":"192.0.2.2"}]} 400 vip
{"vip_dhcp_allocation":true,"user_managed_networking":true} 400 vip_dhcp_allocation
{"control_plane_count":0} 400 control_plane_count
{"control_plane_count":-1} 400 control_plane_count
{"control_plane_count":2} 400 control_plane_count
{"control_plane_count":6} 400 control_plane_count
{"disk_encryption":{"enable_on":"all","mode":"tang"}} 400 tang_servers
{"disk_encryption":{"enable_on":"all","mode":"tang","tang_servers":"x"}} 400 tang_servers
{"disk_encryption":{"enable_on":"all","mode":"tang","tang_servers":"[]"}} 400 tang_servers
{"disk_encryption":{"enable_on":"all","mode":"tang","tang_servers":"[{\"url\":\"x\"}]"}} 400 tang_servers
{"platform":{"type":"external"}} 400 platform
{"platform":{"type":"external","external":{"platform_name":""}}} 400 platform_name
{"platform":{"type":"external","external":{"platform_name":"oci"}}} 400 cloud_controller_manager
{"platform":{"type":"baremetal","external":{"platform_name":"x"}}} 400 platform
{"platform":{"type":"none"},"user_managed_networking":false} 400 user_managed_networking
{"olm_operators":[{"name":"nothing"}]} 400 nothing
{"olm_operators":[{"name":""}]} 400 operator
{"olm_operators":[{"name":"lso"},{"name":"nothing"}]} 400 nothing
{"olm_operators":[{"name":"lvm"},{"name":"odf"}]} 400 operators
{"operator_bundles":[{"id":"nothing"}]} 400 nothing
{"operator_bundles":[{"id":""}]} 400 bundle
{"operator_bundles":[{"id":"openshift-ai","optional_operators":["nothing"]}]} 400 nothing
"#;

/// Members of new clusters alone.
const NEW_CLUSTER: &str = r#"
{"pull_secret":""} 400 pull_secret
{"openshift_version":""} 400 openshift_version
{"openshift_version":"4"} 400 openshift_version
{"openshift_version":"4.1"} 400 openshift_version
{"openshift_version":"4.18.999"} 400 openshift_version
{"openshift_version":"four"} 400 openshift_version
{"cpu_architecture":"s390x"} 400 s390x
{"high_availability_mode":"None","control_plane_count":3} 400 control_plane_count
{"high_availability_mode":"Full","control_plane_count":1} 400 control_plane_count
{"high_availability_mode":"None","vip_dhcp_allocation":true} 400 vip_dhcp_allocation
{"load_balancer":{"type":"user-managed"},"vip_dhcp_allocation":true} 400 load_balancer
{"cluster_network_cidr":"x"} 400 cluster_network
{"cluster_network_host_prefix":0} 400 host_prefix
{"cluster_network_host_prefix":129} 400 host_prefix
{"service_network_cidr":"x"} 400 service_network
{"name":"54×a"} 201 -
{"name":"a"} 201 -
{"ssh_public_key":""} 201 -
{"base_dns_domain":""} 201 -
{"tags":"a b,c_d"} 201 -
{"cluster_networks":[{"cidr":"10.128.0.0/14","host_prefix":25}]} 201 -
{"service_networks":[{"cidr":"172.30.0.0/25"}]} 201 -
"#;

/// Members of existing clusters alone.
const OLD_CLUSTER: &str = r#"
{"ignition_endpoint":{"url":"x"}} 400 ignition_endpoint
{"ignition_endpoint":{"url":"ftp://example.com"}} 400 ignition_endpoint
{"ignition_endpoint":{"url":"https://example.com","ca_certificate":"x"}} 400 ignition_endpoint
{"machine_network_cidr":"x"} 400 machine_network
{"machine_networks":[{"cidr":"192.0.2.0/24"}]} 400 machine_networks
{"openshift_version":"4.18"} 400 openshift_version
{"cpu_architecture":"x86_64"} 400 cpu_architecture
"#;

/// Members of new and of existing infra-envs.
const INFRA_ENV: &str = r#"
{"pull_secret":"x"} 400 pull_secret
{"pull_secret":"{\"auths\":{}}"} 400 pull_secret
{"ssh_authorized_key":"nonsense"} 400 ssh_authorized_key
{"ssh_authorized_key":"ssh-ed25519 ?"} 400 ssh_authorized_key
{"additional_ntp_sources":"a"} 400 additional_ntp_sources
{"additional_ntp_sources":"a.example,,b.example"} 400 additional_ntp_sources
{"proxy":{"http_proxy":"ftp://proxy"}} 400 http_proxy
{"proxy":{"http_proxy":"x"}} 400 http_proxy
{"proxy":{"https_proxy":"ftp://proxy"}} 400 https_proxy
{"proxy":{"http_proxy":"http://proxy","no_proxy":"a b"}} 400 no_proxy
{"ignition_config_override":"x"} 400 ignition_config_override
{"ignition_config_override":"{}"} 400 ignition_config_override
{"ignition_config_override":"{\"ignition\":{\"version\":\"2.2.0\"}}"} 400 ignition_config_override
{"kernel_arguments":[{"operation":"replace","value":"a"}]} 400 kernel_arguments
{"kernel_arguments":[{"operation":"append","value":"a b"}]} 400 kernel_arguments
{"kernel_arguments":[{"operation":"append","value":""}]} 400 kernel_arguments
{"kernel_arguments":[{"value":"a"}]} 400 kernel_arguments
{"additional_trust_bundle":"x"} 400 additional_trust_bundle
{"additional_trust_bundle":"65536×x"} 400 additional_trust_bundle
{"network_discovery_delay_seconds":-1} 400 network_discovery_delay_seconds
{"rendezvous_ip":"x"} 400 rendezvous_ip
{"rendezvous_ip":"192.0.2.1"} 400 rendezvous_ip
{"openshift_version":"9.9"} 400 openshift_version
{"static_network_config":[{"network_yaml":"interfaces: []","mac_interface_map":[]}]} 400 mac_interface_map
{"static_network_config":[{"network_yaml":"a: [","mac_interface_map":[{"mac_address":"52:54:00:00:00:01","logical_nic_name":"eth0"}]}]} 400 network_yaml
{"static_network_config":[{"network_yaml":"a: b","mac_interface_map":[{"mac_address":"52:54:00:00:00:01","logical_nic_name":"eth0"}]}]} 400 network_yaml
{"static_network_config":[{"network_yaml":"interfaces:\n- name: eth0","mac_interface_map":[{"mac_address":"52:54","logical_nic_name":"eth0"}]}]} 400 MAC
{"static_network_config":[{"network_yaml":"interfaces:\n- name: eth0","mac_interface_map":[{"mac_address":"52:54:00:00:00:01","logical_nic_name":"eth0"},{"mac_address":"52:54:00:00:00:01","logical_nic_name":"eth1"}]}]} 400 mac_interface_map
"#;

const NEW_INFRA_ENV: &str = r#"
{"name":""} 400 name
{"pull_secret":""} 400 pull_secret
{"cpu_architecture":"s390x"} 400 cpu_architecture
{"cluster_id":"0badc0de-0000-4000-8000-000000000000"} 404 0badc0de
{"kernel_arguments":[{"operation":"append","value":"a=\"b c\""}]} 201 -
{"network_discovery_delay_seconds":0} 201 -
"#;

/// Of a host with an inventory.
const HOST: &str = r#"
{"host_name":""} 400 host_name
{"host_name":"localhost"} 400 host_name
{"host_name":"-a"} 400 host_name
{"host_name":"a_b"} 400 host_name
{"host_name":"a b"} 400 host_name
{"host_name":"64×a"} 400 host_name
{"host_name":"a..b"} 400 host_name
{"host_role":"bootstrap"} 400 host_role
{"host_role":"arbiter"} 400 host_role
{"disks_selected_config":[{"id":"nothing","role":"install"}]} 409 nothing
{"disks_selected_config":[{"id":"/dev/disk/by-id/wwn-1","role":"install"},{"id":"nothing","role":"install"}]} 409 disk
{"disks_skip_formatting":[{"disk_id":"nothing","skip_formatting":true}]} 400 nothing
{"node_labels":[{"key":"","value":"a"}]} 400 node_labels
{"node_labels":[{"key":"a b","value":"a"}]} 400 node_labels
{"node_labels":[{"key":"a","value":"b c"}]} 400 node_labels
{"node_labels":[{"key":"64×a","value":"a"}]} 400 node_labels
{"node_labels":[{"key":"a","value":"64×a"}]} 400 node_labels
{"node_labels":[{"key":"a","value":"b"},{"key":"a","value":"c"}]} 400 node_labels
{"ignition_endpoint_http_headers":[{"key":"","value":"a"}]} 400 ignition_endpoint_http_headers
{"ignition_endpoint_http_headers":[{"key":"a b","value":"a"}]} 400 ignition_endpoint_http_headers
{"ignition_endpoint_http_headers":[{"key":"a","value":"b\nc: d"}]} 400 ignition_endpoint_http_headers
{"ignition_endpoint_token":"a\nb"} 400 ignition_endpoint_token
{"fencing_credentials":{"address":"redfish://192.0.2.9","username":"a","password":"b"}} 400 fencing_credentials
{"host_name":"63×a"} 201 -
{"node_labels":[{"key":"63×a","value":"63×b"}]} 201 -
"#;

const INSTALLER_ARGS: &str = r#"
{"args":["--unknown"]} 400 --unknown
{"args":["--append-karg"]} 400 --append-karg
{"args":["value"]} 400 value
{"args":["--append-karg","a\nb"]} 400 args
{"args":["--append-karg","$(reboot)`"]} 400 args
{"args":[""]} 400 args
"#;

const HOST_IGNITION: &str = r#"
{"config":"x"} 400 config
{"config":"{}"} 400 config
{"config":"{\"ignition\":{\"version\":\"1.0.0\"}}"} 400 config
{"config":"[]"} 400 config
"#;

const NEW_MANIFEST: &str = r#"
{"file_name":""} 400 file_name
{"file_name":"a"} 400 file_name
{"file_name":"a.txt"} 400 file_name
{"file_name":"a/b.yaml"} 400 file_name
{"file_name":"../a.yaml"} 400 file_name
{"file_name":"a b.yaml"} 422 a b.yaml
{"file_name":".a.yaml"} 422 .a.yaml
{"file_name":"a\u0000.yaml"} 422 control
{"file_name":"a\t.yaml"} 422 yaml
{"file_name":"201×a.yaml"} 422 200 bytes
{"content":""} 400 content
{"content":"***"} 400 content
{"content":"ew=="} 400 content
{"content":"1500000×A"} 400 content
"#;

const OLD_MANIFEST: &str = r#"
{"file_name":"b.yaml"} 404 b.yaml
{"updated_file_name":"a.txt"} 400 updated_file_name
{"updated_file_name":"a/b.yaml"} 400 updated_file_name
{"updated_file_name":"a b.yaml"} 422 a b.yaml
{"updated_content":"***"} 400 content
{"updated_content":""} 400 content
"#;

const OPERATOR: &str = r#"
{"name":""} 400 name
{"name":"nothing"} 404 nothing
{"status_info":"65537×a"} 413 status_info
{"version":"65537×a"} 413 version
{"status_info":"65536×a"} 200 -
"#;

const EVENT: &str = r#"
{"message":""} 400 message
{"message":"17000×a"} 413 event
{"name":"17000×a"} 413 event
{"props":"17000×a"} 413 event
{"event_time":"yesterday"} 400 event_time
{"category":null} 201 -
"#;

const REPLY: &str = r#"
{"step_type":null} 400 step_type
{"output":"x"} 400 output
{"output":"[]"} 400 output
{"output":""} 400 output
{"step_type":"connectivity-check","output":"x"} 400 output
{"step_type":"ntp-synchronizer","output":"7"} 400 output
{"step_type":"domain-resolution","output":"{"} 400 output
{"step_type":"installation-disk-speed-check","output":"x"} 400 output
{"step_type":"container-image-availability","output":"x"} 400 output
"#;

const PROGRESS: &str = r#"
{"current_stage":null} 400 current_stage
{"progress_info":"4097×a"} 413 progress_info
"#;

const BIND: &str = r#"
{"cluster_id":"0badc0de-0000-4000-8000-000000000000"} 400 0badc0de
"#;

const IMPORT: &str = r#"
{"name":"No_Name","api_vip_dnsname":"192.0.2.1"} 400 name
{"name":"","api_vip_dnsname":"192.0.2.1"} 400 name
{"api_vip_dnsname":""} 400 api_vip_dnsname
{"openshift_cluster_id":"x"} 400 openshift_cluster_id
"#;

const DISCONNECTED: &str = r#"
{"name":""} 400 name
{"name":"55×a"} 400 name
{"openshift_version":""} 400 openshift_version
"#;

const IGNORED: &str = r#"
{"cluster-validation-ids":"x"} 400 cluster-validation-ids
{"cluster-validation-ids":"[1]"} 400 cluster-validation-ids
{"cluster-validation-ids":"[\"nothing\"]"} 400 nothing
{"cluster-validation-ids":"[\"api-vips-defined\"]"} 400 api-vips-defined
{"host-validation-ids":"x"} 400 host-validation-ids
{"host-validation-ids":"{}"} 400 host-validation-ids
{"host-validation-ids":"[\"nothing\"]"} 400 nothing
{"host-validation-ids":"[\"connected\"]"} 400 connected
"#;

/// An operation, a valid body, and the rows of its table.
struct BodyTarget {
    method: Method,
    path: String,
    valid: Value,
    tables: Vec<&'static str>,
}

impl BodyTarget {
    fn new(method: Method, path: &str, valid: Value, tables: &[&'static str]) -> Self {
        Self {
            method,
            path: path.to_owned(),
            valid,
            tables: tables.to_vec(),
        }
    }
}

/// The member, expected status and mention of a row.
fn row(line: &str) -> (Value, u16, &str) {
    let end = line.rfind("} ").unwrap() + 1;
    let (patch, rest) = line.split_at(end);
    let (status, mention) = rest.trim().split_once(' ').unwrap();
    let mut patch: Value = serde_json::from_str(patch).unwrap();
    repeat(&mut patch);
    (patch, status.parse().unwrap(), mention)
}

/// Replaces `N×x…` by `N` times `x`, and the rest.
fn repeat(value: &mut Value) {
    match value {
        Value::Object(members) => members.values_mut().for_each(repeat),
        Value::Array(items) => items.iter_mut().for_each(repeat),
        Value::String(text) => {
            let Some((count, rest)) = text.split_once('×') else {
                return;
            };
            let (one, rest) = rest.split_at(1);
            *text = format!("{}{rest}", one.repeat(count.parse().unwrap()));
        }
        _ => {}
    }
}

/// Sends each row, and reports those with another answer.
async fn send_rows(server: &Server, targets: &[BodyTarget]) -> usize {
    let mut problems = Vec::new();
    let mut count = 0;
    for target in targets {
        let lines = target.tables.iter().flat_map(|table| table.lines());
        for line in lines.filter(|line| !line.is_empty()) {
            count += 1;
            let (patch, status, mention) = row(line);
            let body = merged(target.valid.clone(), patch);
            let request = server.request(target.method.clone(), &target.path);
            let answer = Server::send(request.json(&body)).await;
            let text = &answer.body["reason"];
            let text = text.as_str().or_else(|| answer.body["message"].as_str());
            let is_named = status < 300 || text.is_some_and(|text| text.contains(mention));
            if answer.status.as_u16() != status || !is_named {
                let text: String = answer.text.chars().take(300).collect();
                let (method, path) = (&target.method, &target.path);
                problems.push(format!("{method} {path} {line}: {} {text}", answer.status));
            }
        }
    }
    assert!(
        problems.is_empty(),
        "{}:\n{}",
        problems.len(),
        problems.join("\n")
    );
    count
}

#[tokio::test(flavor = "multi_thread")]
async fn members_of_clusters_and_infra_envs() {
    let server = Server::start().await;
    let cluster = format!("/v2/clusters/{}", server.cluster(json!({})).await);
    let infra_env = format!("/v2/infra-envs/{}", server.infra_env(None).await);
    let before = [
        server.get(&cluster).await.expect(200),
        server.get(&infra_env).await.expect(200),
    ];
    let new = json!({ "name": "rack-2", "pull_secret": PULL_SECRET, "openshift_version": "4.18" });
    let imported = json!({
        "name": "old", "api_vip_dnsname": "api.old.example.com", "openshift_cluster_id": host_id(5),
    });
    let edge = json!({ "name": "edge", "openshift_version": "4.19" });
    let (post, patch) = (Method::POST, Method::PATCH);
    let targets = [
        BodyTarget::new(
            post.clone(),
            "/v2/clusters",
            cluster_params(),
            &[CLUSTER, NEW_CLUSTER],
        ),
        BodyTarget::new(patch.clone(), &cluster, json!({}), &[CLUSTER, OLD_CLUSTER]),
        BodyTarget::new(
            post.clone(),
            "/v2/infra-envs",
            new,
            &[INFRA_ENV, NEW_INFRA_ENV],
        ),
        BodyTarget::new(patch, &infra_env, json!({}), &[INFRA_ENV]),
        BodyTarget::new(post.clone(), "/v2/clusters/import", imported, &[IMPORT]),
        BodyTarget::new(post, "/v2/clusters/disconnected", edge, &[DISCONNECTED]),
    ];
    let count = send_rows(&server, &targets).await;
    assert!(count >= 270, "{count}");
    let after = [
        server.get(&cluster).await.expect(200),
        server.get(&infra_env).await.expect(200),
    ];
    assert_eq!(after, before, "a refused change changes nothing");
}

// limit: text of an operator's report
#[tokio::test(flavor = "multi_thread")]
async fn members_of_hosts_manifests_and_reports() {
    let server = Server::start().await;
    let more = json!({ "olm_operators": [{ "name": "lso" }] });
    let cluster = format!("/v2/clusters/{}", server.cluster(more).await);
    let id = cluster.rsplit('/').next().unwrap();
    let infra_env = server.infra_env(Some(id)).await;
    let host = server.host(&infra_env, 1).await;
    server
        .reply(&host, "inventory", &inventory(1))
        .await
        .expect(204);
    let pool = server.infra_env(None).await;
    let free = crate::binding::pool_host(&server, &pool, 2).await;
    let manifests = format!("{cluster}/manifests");
    // `kind: ConfigMap` in base64.
    let manifest = json!({ "file_name": "a.yaml", "content": "a2luZDogQ29uZmlnTWFwCg==" });
    server.post(&manifests, &manifest).await.expect(201);

    let event = json!({
        "name": "note", "cluster_id": id, "severity": "info", "category": "user", "message": "noted",
        "event_time": "2026-01-02T03:04:05.000Z",
    });
    let reply = json!({ "step_type": "inventory", "step_id": "inventory-1", "exit_code": 0, "output": "{}" });
    let operator = json!({ "name": "lso", "status": "available" });
    let known = json!({ "folder": "manifests", "file_name": "a.yaml" });
    let config = json!({ "config": "" });
    let stage = json!({ "current_stage": "Installing" });
    let (post, patch, put) = (Method::POST, Method::PATCH, Method::PUT);
    let of = |suffix: &str| format!("{host}/{suffix}");
    let targets = [
        BodyTarget::new(patch.clone(), &host, json!({}), &[HOST]),
        BodyTarget::new(
            patch.clone(),
            &of("installer-args"),
            json!({}),
            &[INSTALLER_ARGS],
        ),
        BodyTarget::new(patch.clone(), &of("ignition"), config, &[HOST_IGNITION]),
        BodyTarget::new(post.clone(), &of("instructions"), reply, &[REPLY]),
        BodyTarget::new(put.clone(), &of("progress"), stage, &[PROGRESS]),
        BodyTarget::new(
            post.clone(),
            &format!("{free}/actions/bind"),
            json!({}),
            &[BIND],
        ),
        BodyTarget::new(post.clone(), &manifests, manifest, &[NEW_MANIFEST]),
        BodyTarget::new(patch, &manifests, known, &[OLD_MANIFEST]),
        BodyTarget::new(
            put.clone(),
            &format!("{cluster}/monitored-operators"),
            operator,
            &[OPERATOR],
        ),
        BodyTarget::new(
            put,
            &format!("{cluster}/ignored-validations"),
            json!({}),
            &[IGNORED],
        ),
        BodyTarget::new(post, "/v2/events", event, &[EVENT]),
    ];
    let count = send_rows(&server, &targets).await;
    assert!(count >= 80, "{count}");
}
