use model::cluster::{
    Cluster, ClusterCreateParams, HighAvailabilityMode, LoadBalancer, LoadBalancerType, Platform,
    PlatformType,
};
use model::infra_env::{ImageType, InfraEnv, InfraEnvCreateParams};
use model::network::{ApiVip, ClusterNetwork, IngressVip, MachineNetwork, NetworkType};
use model::versions::CpuArchitecture;

use super::*;
use crate::samples;

fn with(change: impl FnOnce(&mut ClusterCreateParams)) -> Result<Cluster, model::Error> {
    let mut params = samples::params();
    change(&mut params);
    samples::create(params)
}

fn machine(list: &[&str]) -> Option<Vec<MachineNetwork>> {
    Some(
        list.iter()
            .map(|cidr| MachineNetwork {
                cluster_id: None,
                cidr: (*cidr).to_owned(),
            })
            .collect(),
    )
}

fn api(ip: &str) -> Option<Vec<ApiVip>> {
    Some(vec![ApiVip {
        ip: ip.to_owned(),
        ..ApiVip::default()
    }])
}

fn ingress(ip: &str) -> Option<Vec<IngressVip>> {
    Some(vec![IngressVip {
        ip: ip.to_owned(),
        ..IngressVip::default()
    }])
}

#[test]
fn the_shortest_request_gets_the_defaults() {
    insta::assert_json_snapshot!("cluster_defaults", with(|_| {}).unwrap());
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
        ("4.16-multi", None, "4.16.3", CpuArchitecture::Multi),
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

#[test]
fn bad_requests_name_their_field() {
    type Change = fn(&mut ClusterCreateParams);
    let table: &[(&str, Change)] = &[
        ("name", |p| p.name = "No_Good".to_owned()),
        ("base_dns_domain", |p| p.base_dns_domain = "a..b".to_owned()),
        ("openshift_version", |p| {
            p.openshift_version = "4.2".to_owned()
        }),
        ("openshift_version", |p| {
            p.openshift_version = "latest".to_owned()
        }),
        ("openshift_version", |p| {
            p.cpu_architecture = Some(CpuArchitecture::S390x)
        }),
        ("pull_secret", |p| p.pull_secret = "{}".to_owned()),
        ("ssh_public_key", |p| p.ssh_public_key = "x".to_owned()),
        ("http_proxy", |p| p.http_proxy = Some("ftp://x".to_owned())),
        ("no_proxy", |p| p.no_proxy = Some("a,a".to_owned())),
        ("additional_ntp_source", |p| {
            p.additional_ntp_source = Some("A".to_owned())
        }),
        ("ntp_sources", |p| {
            p.additional_ntp_source = Some("a1".to_owned());
            p.ntp_sources = Some("b1".to_owned());
        }),
        ("tags", |p| p.tags = Some("a-b".to_owned())),
        ("control_plane_count", |p| p.control_plane_count = Some(4)),
        ("platform.type", |p| {
            p.control_plane_count = Some(1);
            p.platform = Some(Platform::default());
        }),
        ("user_managed_networking", |p| {
            p.platform = Some(Platform::default());
            p.user_managed_networking = Some(true);
        }),
        ("network_type", |p| {
            p.network_type = Some(NetworkType::OpenShiftSDN)
        }),
        ("vip_dhcp_allocation", |p| {
            p.vip_dhcp_allocation = Some(true)
        }),
        ("load_balancer.type", |p| {
            p.platform = Some(Platform {
                r#type: PlatformType::None,
                external: None,
            });
            p.load_balancer = Some(LoadBalancer {
                r#type: Some(LoadBalancerType::UserManaged),
            });
        }),
        ("cluster_networks[0].host_prefix", |p| {
            p.cluster_networks = Some(vec![ClusterNetwork {
                cidr: "10.128.0.0/14".to_owned(),
                ..ClusterNetwork::default()
            }]);
        }),
        ("cluster_networks[0].cidr", |p| {
            p.cluster_network_cidr = Some("x".to_owned())
        }),
        ("service_networks[0].cidr", |p| {
            p.service_network_cidr = Some("172.30.0.0/30".to_owned())
        }),
        ("machine_networks[0].cidr", |p| {
            p.machine_networks = machine(&["192.168.10.0/31"])
        }),
        ("cluster_networks", |p| {
            p.machine_networks = machine(&["10.0.0.0/8"])
        }),
        ("machine_networks", |p| {
            p.machine_networks = machine(&["fd00::/64"])
        }),
        ("api_vips and ingress_vips", |p| {
            p.api_vips = api("192.168.10.1")
        }),
        ("api_vips[0].ip", |p| {
            p.api_vips = api("x");
            p.ingress_vips = ingress("192.168.10.2");
        }),
        ("api_vips", |p| {
            p.machine_networks = machine(&["192.168.10.0/24"]);
            p.api_vips = api("192.168.11.1");
            p.ingress_vips = ingress("192.168.10.2");
        }),
        ("api_vips and ingress_vips", |p| {
            p.control_plane_count = Some(1);
            p.api_vips = api("192.168.10.1");
            p.ingress_vips = ingress("192.168.10.2");
        }),
        ("olm_operators", |p| {
            p.olm_operators = Some(vec![model::operators::OperatorCreateParams::default()]);
        }),
    ];
    for (field, change) in table {
        let error = with(change).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{field}:")), "{field}: {error}");
    }
}

#[test]
fn host_addresses_are_cut_to_their_network() {
    let cluster = with(|params| {
        params.machine_networks = machine(&["192.168.10.7/24"]);
        params.service_network_cidr = Some("172.30.1.1/16".to_owned());
    })
    .unwrap();
    assert_eq!(cluster.machine_networks[0].cidr, "192.168.10.0/24");
    assert_eq!(cluster.service_networks[0].cidr, "172.30.0.0/16");
}

#[test]
fn dual_stack_gets_networks_of_both_families() {
    let offer = samples::offer();
    let policy = Policy {
        ipv6_support: true,
        ..Policy::default()
    };
    let ctx = Context {
        id: samples::id(1),
        offer: &offer,
        policy: &policy,
        cluster: None,
    };
    let mut params = samples::params();
    params.machine_networks = machine(&["192.168.10.0/24", "fd10::/64"]);
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
    let (offer, policy) = (samples::offer(), Policy::default());
    let ctx = Context {
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
                p.cpu_architecture = Some(CpuArchitecture::X86_64)
            }),
        ),
        (
            "cpu_architecture",
            infra(Some(&cluster), |p| {
                p.cpu_architecture = Some(CpuArchitecture::Multi)
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
