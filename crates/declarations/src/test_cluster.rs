//! A stored cluster for tests.

use model::cluster::{Cluster, ClusterPlatform, ClusterStatus, HighAvailabilityMode};
use model::ids::ClusterId;
use model::network::{
    ApiVip, ClusterNetwork, IngressVip, NetworkType, ServiceNetwork, VipVerification,
};
use uuid::Uuid;

/// A cluster without failed validations.
pub(crate) fn cluster(control_plane: i64) -> Cluster {
    let id = ClusterId(Uuid::from_u128(1));
    let single = control_plane == 1;
    let verification = Some(VipVerification::Succeeded);
    let api = ApiVip {
        cluster_id: Some(id),
        ip: "10.0.255.1".to_owned(),
        verification,
    };
    let ingress = IngressVip {
        cluster_id: Some(id),
        ip: "10.0.255.2".to_owned(),
        verification,
    };
    let mode = if single {
        HighAvailabilityMode::None
    } else {
        HighAvailabilityMode::Full
    };
    Cluster {
        id,
        name: "demo".to_owned(),
        base_dns_domain: "example.com".to_owned(),
        openshift_version: "4.19.3".to_owned(),
        status: ClusterStatus::Insufficient,
        control_plane_count: control_plane,
        high_availability_mode: Some(mode),
        user_managed_networking: Some(single),
        platform: Some(ClusterPlatform::default()),
        network_type: Some(NetworkType::OVNKubernetes),
        cluster_networks: vec![ClusterNetwork {
            cluster_id: Some(id),
            cidr: "172.20.0.0/14".to_owned(),
            host_prefix: 23,
        }],
        service_networks: vec![ServiceNetwork {
            cluster_id: Some(id),
            cidr: "172.30.0.0/16".to_owned(),
        }],
        api_vips: if single { Vec::new() } else { vec![api] },
        ingress_vips: if single { Vec::new() } else { vec![ingress] },
        pull_secret_set: true,
        ..Cluster::default()
    }
}
