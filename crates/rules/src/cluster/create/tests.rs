use model::cluster::{Cluster, ClusterCreateParams, HighAvailabilityMode, PlatformType};
use model::infra_env::{ImageType, InfraEnv, InfraEnvCreateParams};
use model::network::MachineNetwork;
use model::versions::CpuArchitecture;
use serde_json::{Value, json};

use super::*;
use crate::InstallationPolicy;
use crate::samples;

fn with(change: impl FnOnce(&mut ClusterCreateParams)) -> Result<Cluster, model::Error> {
    let mut params = samples::params();
    change(&mut params);
    samples::create(params)
}

#[test]
fn the_shortest_request_gets_the_defaults() {
    insta::assert_json_snapshot!("cluster_defaults", with(|_| {}).unwrap());
}

#[test]
fn the_defaults_list_forbidden_names_in_the_order_of_the_peer() {
    assert_eq!(
        default_config(&samples::offer()).forbidden_hostnames,
        [
            "localhost",
            "localhost.localdomain",
            "localhost4",
            "localhost4.localdomain4",
            "localhost6",
            "localhost6.localdomain6",
        ]
    );
}

#[test]
fn a_single_node_manages_its_own_network() {
    let cluster = with(|params| params.control_plane_count = Some(1)).unwrap();
    assert_eq!(cluster.user_managed_networking, Some(true));
    assert_eq!(
        cluster.high_availability_mode,
        Some(HighAvailabilityMode::None)
    );
    assert_eq!(
        cluster.platform.map(|platform| platform.r#type),
        Some(PlatformType::None)
    );
}

#[test]
fn versions_become_full_versions() {
    for (version, architecture, full, expected) in [
        ("4.16", None, "4.16.3", CpuArchitecture::X86_64),
        ("4.16.3", None, "4.16.3", CpuArchitecture::X86_64),
        ("4.16-multi", None, "4.16.3-multi", CpuArchitecture::Multi),
        (
            "4.16",
            Some(CpuArchitecture::Aarch64),
            "4.16.3",
            CpuArchitecture::Arm64,
        ),
    ] {
        let cluster = with(|params| {
            params.openshift_version = version.to_owned();
            params.cpu_architecture = architecture;
        })
        .unwrap();
        assert_eq!(cluster.openshift_version, full);
        assert_eq!(cluster.cpu_architecture, Some(expected));
        assert_eq!(
            cluster.ocp_release_image,
            format!("registry.example.com:5000/openshift/release:4.16.3-{expected}")
        );
    }
}

/// The sample request with `body` laid over it.
fn asking(body: &Value) -> Result<Cluster, model::Error> {
    let mut request = serde_json::to_value(samples::params()).unwrap();
    for (name, value) in body.as_object().unwrap() {
        request[name] = value.clone();
    }
    samples::create(serde_json::from_value(request).unwrap())
}

fn check_refusals(table: &[(&str, Value)]) {
    for (field, body) in table {
        let error = asking(body).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{field}:")), "{field}: {error}");
    }
}

#[test]
fn bad_texts_name_their_field() {
    check_refusals(&[
        ("name", json!({ "name": "No_Good" })),
        ("base_dns_domain", json!({ "base_dns_domain": "a..b" })),
        ("openshift_version", json!({ "openshift_version": "4.2" })),
        (
            "openshift_version",
            json!({ "openshift_version": "latest" }),
        ),
        ("openshift_version", json!({ "cpu_architecture": "s390x" })),
        ("pull_secret", json!({ "pull_secret": "{}" })),
        ("ssh_public_key", json!({ "ssh_public_key": "x" })),
        ("http_proxy", json!({ "http_proxy": "ftp://x" })),
        ("no_proxy", json!({ "no_proxy": "a,a" })),
        (
            "additional_ntp_source",
            json!({ "additional_ntp_source": "A" }),
        ),
        (
            "ntp_sources",
            json!({ "additional_ntp_source": "a1", "ntp_sources": "b1" }),
        ),
        ("tags", json!({ "tags": "a-b" })),
        (
            "olm_operators",
            json!({ "olm_operators": [{ "name": "unknown" }] }),
        ),
        (
            "ignition_endpoint.url",
            json!({ "ignition_endpoint": { "url": "x" } }),
        ),
    ]);
}

#[test]
fn release_images_come_from_known_registries() {
    let image = "registry.example.com:5000/other/release@sha256:1";
    let named = asking(&json!({ "ocp_release_image": image })).unwrap();
    assert_eq!(named.ocp_release_image, image);
    let mut offer = samples::offer();
    assert!(offer.check_release_image(image).is_ok());
    for image in [
        "evil.example.com/openshift/release:4.16.3",
        "registry.example.com/openshift/release:4.16.3",
        "registry.example.com:5000@evil.example.com/release:4.16.3",
        "release:4.16.3",
    ] {
        let error = offer.check_release_image(image).unwrap_err().to_string();
        assert!(error.starts_with("ocp_release_image: "), "{error}");
        for remedy in ["RELEASE_IMAGE_REGISTRIES", "RELEASE_KEYRING"] {
            assert!(error.contains(remedy), "{error}");
        }
    }
    offer.release_registries = vec!["trusted.example.com".to_owned()];
    let check = |image: &str| offer.check_release_image(image);
    assert!(check("trusted.example.com/a:1").is_ok());
    assert!(check("registry.example.com:5000/other/release:1").is_err());
    // A listed release image needs no other permission.
    assert!(check(&offer.releases[0].url).is_ok());
}

#[test]
fn bad_topologies_name_their_field() {
    check_refusals(&[
        ("control_plane_count", json!({ "control_plane_count": 4 })),
        (
            "platform.type",
            json!({ "control_plane_count": 1, "platform": { "type": "baremetal" } }),
        ),
        (
            "user_managed_networking",
            json!({ "platform": { "type": "baremetal" }, "user_managed_networking": true }),
        ),
        ("network_type", json!({ "network_type": "OpenShiftSDN" })),
        (
            "vip_dhcp_allocation",
            json!({ "vip_dhcp_allocation": true, "control_plane_count": 1 }),
        ),
        (
            "load_balancer.type",
            json!({ "platform": { "type": "none" }, "load_balancer": { "type": "user-managed" } }),
        ),
        (
            "disk_encryption.tang_servers",
            json!({ "disk_encryption": { "enable_on": "all", "mode": "tang" } }),
        ),
    ]);
}

#[test]
fn the_network_plug_in_does_not_exclude_dhcp() {
    let cluster = asking(&json!({ "vip_dhcp_allocation": true, "network_type": "OVNKubernetes" }));
    assert_eq!(cluster.unwrap().vip_dhcp_allocation, Some(true));
}

#[test]
fn dual_stack_vips_need_no_machine_networks_yet() {
    let offer = samples::offer();
    let policy = InstallationPolicy {
        ipv6_support: true,
        ..InstallationPolicy::default()
    };
    let ctx = CreateContext {
        id: samples::id(1),
        offer: &offer,
        policy: &policy,
        cluster: None,
    };
    let params = ClusterCreateParams {
        api_vips: Some(
            serde_json::from_value(json!([{ "ip": "192.168.10.100" }, { "ip": "fd10::100" }]))
                .unwrap(),
        ),
        ingress_vips: Some(
            serde_json::from_value(json!([{ "ip": "192.168.10.101" }, { "ip": "fd10::101" }]))
                .unwrap(),
        ),
        ..samples::params()
    };
    let cluster = super::cluster(params, &ctx, samples::now()).unwrap();
    assert_eq!(cluster.api_vips.len(), 2);
    assert!(cluster.machine_networks.is_empty());
    assert_eq!(cluster.cluster_networks.len(), 2);
}

#[test]
fn bad_networks_name_their_field() {
    let vips = |api: &str, ingress: &str| json!({ "api_vips": [{ "ip": api }], "ingress_vips": [{ "ip": ingress }] });
    let mut outside = vips("192.168.11.1", "192.168.10.2");
    outside["machine_networks"] = json!([{ "cidr": "192.168.10.0/24" }]);
    check_refusals(&[
        (
            "cluster_networks[0].host_prefix",
            json!({ "cluster_networks": [{ "cidr": "10.128.0.0/14" }] }),
        ),
        (
            "cluster_networks[0].cidr",
            json!({ "cluster_network_cidr": "x" }),
        ),
        (
            "cluster_networks[0].cidr",
            json!({ "cluster_networks": [{ "cidr": "0.0.0.0/0", "host_prefix": 23 }] }),
        ),
        (
            "service_networks[0].cidr",
            json!({ "service_network_cidr": "172.30.0.0/30" }),
        ),
        (
            "machine_networks[0].cidr",
            json!({ "machine_networks": [{ "cidr": "192.168.10.0/31" }] }),
        ),
        (
            "cluster_networks",
            json!({ "machine_networks": [{ "cidr": "10.0.0.0/8" }] }),
        ),
        (
            "machine_networks",
            json!({ "machine_networks": [{ "cidr": "192.168.10.0/24" }, { "cidr": "192.168.11.0/24" }] }),
        ),
        (
            "machine_networks",
            json!({ "machine_networks": [{ "cidr": "fd00::/64" }] }),
        ),
        (
            "api_vips and ingress_vips",
            json!({ "api_vips": [{ "ip": "192.168.10.1" }] }),
        ),
        ("api_vips[0].ip", vips("x", "192.168.10.2")),
        ("api_vips", outside),
    ]);
}

#[test]
fn host_addresses_are_cut_to_their_network() {
    let cluster = asking(&json!({
        "machine_networks": [{ "cidr": "192.168.10.7/24" }],
        "service_network_cidr": "172.30.1.1/16",
    }))
    .unwrap();
    assert_eq!(cluster.machine_networks[0].cidr, "192.168.10.0/24");
    assert_eq!(cluster.service_networks[0].cidr, "172.30.0.0/16");
}

#[test]
fn dual_stack_gets_networks_of_both_families() {
    let offer = samples::offer();
    let policy = InstallationPolicy {
        ipv6_support: true,
        ..InstallationPolicy::default()
    };
    let ctx = CreateContext {
        id: samples::id(1),
        offer: &offer,
        policy: &policy,
        cluster: None,
    };
    let mut params = samples::params();
    params.machine_networks = Some(
        ["192.168.10.0/24", "fd10::/64"]
            .map(|cidr| MachineNetwork {
                cluster_id: None,
                cidr: cidr.to_owned(),
            })
            .to_vec(),
    );
    let created = cluster(params, &ctx, samples::now()).unwrap();
    let cidrs: Vec<&str> = created
        .cluster_networks
        .iter()
        .map(|net| net.cidr.as_str())
        .collect();
    assert_eq!(cidrs, ["10.128.0.0/14", "fd01::/48"]);
    let cidrs: Vec<&str> = created
        .service_networks
        .iter()
        .map(|net| net.cidr.as_str())
        .collect();
    assert_eq!(cidrs, ["172.30.0.0/16", "fd02::/112"]);
}

fn infra(
    bound: Option<&Cluster>,
    change: impl FnOnce(&mut InfraEnvCreateParams),
) -> Result<InfraEnv, model::Error> {
    let (offer, policy) = (samples::offer(), InstallationPolicy::default());
    let ctx = CreateContext {
        id: samples::id(2),
        offer: &offer,
        policy: &policy,
        cluster: bound,
    };
    let mut params = InfraEnvCreateParams {
        name: "demo_infra-env".to_owned(),
        pull_secret: samples::PULL_SECRET.to_owned(),
        cluster_id: bound.map(|cluster| cluster.id),
        ..InfraEnvCreateParams::default()
    };
    change(&mut params);
    infra_env(params, &ctx, samples::now())
}

#[test]
fn streams_are_chosen_by_name_and_the_default_one_is_none() {
    let (offer, policy) = (samples::offer_of_streams(), InstallationPolicy::default());
    let ctx = CreateContext {
        id: samples::id(2),
        offer: &offer,
        policy: &policy,
        cluster: None,
    };
    let stream = |version: &str, architecture, name: &str| {
        let params = ClusterCreateParams {
            openshift_version: version.to_owned(),
            cpu_architecture: Some(architecture),
            os_stream: Some(name.to_owned()),
            ..samples::params()
        };
        cluster(params, &ctx, samples::now()).map_err(|error| error.to_string())
    };
    let x86 = CpuArchitecture::X86_64;
    for (architecture, name, expected) in [
        (x86, "", ""),
        (x86, "rhel-9", ""),
        (x86, "rhel-10", "rhel-10"),
        (CpuArchitecture::Multi, "rhel-10", "rhel-10"),
    ] {
        let found = stream("4.16", architecture, name).unwrap();
        assert_eq!(found.os_stream, expected, "{architecture} {name}");
    }
    for (version, architecture) in [("4.16", CpuArchitecture::Arm64), ("4.19", x86)] {
        let refused = stream(version, architecture, "rhel-10").unwrap_err();
        assert!(refused.starts_with("os_stream: "), "{refused}");
    }
    let refused = stream("4.16", CpuArchitecture::Multi, "rhel-11").unwrap_err();
    assert!(refused.contains("[rhel-9, rhel-10]"), "{refused}");

    // An infra-env takes that of its cluster, unless it has its own, or an image of another version.
    let bound = stream("4.16", x86, "rhel-10").unwrap();
    let ctx = CreateContext {
        cluster: Some(&bound),
        ..ctx
    };
    for (version, own, expected) in [
        ("", None, ("rhel-10", "/10.0/x86_64/full.iso")),
        ("", Some("rhel-10"), ("rhel-10", "/10.0/x86_64/full.iso")),
        ("", Some(""), ("", "/4.16/x86_64/full.iso")),
        ("", Some("rhel-9"), ("", "/4.16/x86_64/full.iso")),
        ("4.19", None, ("", "/4.19/x86_64/full.iso")),
    ] {
        let params = InfraEnvCreateParams {
            name: "demo".to_owned(),
            pull_secret: samples::PULL_SECRET.to_owned(),
            openshift_version: version.to_owned(),
            os_stream: own.map(str::to_owned),
            image_type: Some(ImageType::FullIso),
            ..InfraEnvCreateParams::default()
        };
        let made = infra_env(params, &ctx, samples::now()).unwrap();
        assert_eq!(made.os_stream, expected.0, "{version} {own:?}");
        assert!(
            made.download_url.ends_with(expected.1),
            "{}",
            made.download_url
        );
    }
}

#[test]
fn an_infra_env_gets_the_newest_image() {
    insta::assert_json_snapshot!("infra_env_defaults", infra(None, |_| {}).unwrap());
}

#[test]
fn an_infra_env_follows_its_cluster() {
    let cluster = with(|params| params.cpu_architecture = Some(CpuArchitecture::Arm64)).unwrap();
    let bound = infra(Some(&cluster), |params| {
        params.image_type = Some(ImageType::MinimalIso);
    })
    .unwrap();
    assert_eq!(
        bound.download_url,
        "http://images.example.com:8888/byid/00000000-0000-0000-0000-000000000002/4.16/arm64/minimal.iso"
    );
    for (field, result) in [
        (
            "cpu_architecture",
            infra(Some(&cluster), |p| {
                p.cpu_architecture = Some(CpuArchitecture::X86_64);
            }),
        ),
        (
            "cpu_architecture",
            infra(Some(&cluster), |p| {
                p.cpu_architecture = Some(CpuArchitecture::Multi);
            }),
        ),
        (
            "openshift_version",
            infra(Some(&cluster), |p| p.openshift_version = "4.19".to_owned()),
        ),
        ("name", infra(None, |p| p.name.clear())),
        (
            "openshift_version",
            infra(None, |p| p.openshift_version = "4.12".to_owned()),
        ),
        (
            "cpu_architecture",
            infra(None, |p| p.cpu_architecture = Some(CpuArchitecture::S390x)),
        ),
        (
            "rendezvous_ip",
            infra(None, |p| p.rendezvous_ip = Some("10.0.0.1".to_owned())),
        ),
        (
            "ignition_config_override",
            infra(None, |p| p.ignition_config_override = "{}".to_owned()),
        ),
        (
            "additional_trust_bundle",
            infra(None, |p| p.additional_trust_bundle = "x".to_owned()),
        ),
        (
            "network_discovery_delay_seconds",
            infra(None, |p| p.network_discovery_delay_seconds = Some(-1)),
        ),
        (
            "ssh_authorized_key",
            infra(None, |p| p.ssh_authorized_key = Some("x".to_owned())),
        ),
        (
            "ignition_config_override",
            infra(None, |p| p.ignition_config_override = "[".to_owned()),
        ),
        (
            "additional_ntp_sources",
            infra(None, |p| p.additional_ntp_sources = Some(",".to_owned())),
        ),
    ] {
        let error = result.unwrap_err().to_string();
        assert!(error.starts_with(&format!("{field}:")), "{field}: {error}");
    }
    let missing = infra(None, |params| params.cluster_id = Some(cluster.id));
    assert!(matches!(missing, Err(model::Error::NotFound { .. })));
}

proptest::proptest! {
    #[test]
    fn no_request_panics(
        name in "[a-z.-]{0,8}|\\PC*",
        version in "4\\.(16|11|19)(\\.[0-9])?(-multi)?|\\PC*",
        domain in "[a-z.]{0,12}",
        cidr in "[0-9]{1,3}\\.[0-9]{1,3}\\.0\\.0/[0-9]{1,2}|[0-9a-f:/]{0,12}",
        prefix: i64,
        count: i64,
        vip in "[0-9]{1,3}\\.[0-9]{1,3}\\.0\\.[0-9]",
    ) {
        let _ = asking(&json!({
            "name": name,
            "openshift_version": version,
            "base_dns_domain": domain,
            "cluster_networks": [{ "cidr": cidr, "host_prefix": prefix }],
            "machine_networks": [{ "cidr": cidr }],
            "control_plane_count": count,
            "api_vips": [{ "ip": vip }],
            "ingress_vips": [{ "ip": vip }],
        }));
    }
}
