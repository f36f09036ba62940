//! Presence of members: those that the real service sends with every record, and no others, are sent when unset.
//!
//! Source: presence rules of the installer API's records, in openshift/assisted-service, `models`.

use std::collections::BTreeSet;

use model::cluster::{
    Cluster, ClusterCredentials, ClusterDefaultConfig, ClusterPlatform, ClusterProgressInfo,
    DiskEncryption, IgnitionEndpoint, ImageInfo, LastInstallationPreparation, LoadBalancer,
    PlatformExternal,
};
use model::hardware::ClusterHostRequirementsDetails;
use model::host::{Host, HostIgnitionParams, HostProgressInfo};
use model::infra_env::{InfraEnv, PresignedUrl};
use model::manifests::ClusterManifest;
use model::network::{
    ApiVip, ClusterNetwork, HostNetwork, IngressVip, MachineNetwork, Proxy, ServiceNetwork,
};
use model::operators::{BundleCreateParams, MonitoredOperator};
use model::steps::{AgentStep, Steps};
use model::versions::{ListVersions, OpenshiftVersion};
use serde::Serialize;

fn check<T: Default + Serialize>(always: &[&str]) {
    let record = serde_json::to_value(T::default()).ok();
    let members = record.as_ref().and_then(serde_json::Value::as_object);
    let sent: BTreeSet<&str> = members
        .into_iter()
        .flatten()
        .map(|(name, _)| name.as_str())
        .collect();
    let expected: BTreeSet<&str> = always.iter().copied().collect();
    assert_eq!(sent, expected, "{}", std::any::type_name::<T>());
}

#[test]
fn unset_clusters_send_the_members_that_are_never_absent() {
    check::<ApiVip>(&[]);
    check::<BundleCreateParams>(&["id", "optional_operators"]);
    check::<Cluster>(&[
        "kind",
        "id",
        "href",
        "image_info",
        "api_vips",
        "ingress_vips",
        "status",
        "status_info",
        "status_updated_at",
        "hosts",
        "updated_at",
        "created_at",
        "install_started_at",
        "install_completed_at",
        "host_networks",
        "controller_logs_collected_at",
        "controller_logs_started_at",
        "monitored_operators",
        "operator_bundles",
        "cluster_networks",
        "service_networks",
        "machine_networks",
        "deleted_at",
        "last-installation-preparation",
    ]);
    check::<ClusterHostRequirementsDetails>(&[]);
    check::<ClusterProgressInfo>(&["finalizing_stage_started_at"]);
    check::<ClusterDefaultConfig>(&[
        "ntp_source",
        "cluster_networks_ipv4",
        "cluster_networks_dualstack",
        "service_networks_ipv4",
        "service_networks_dualstack",
        "forbidden_hostnames",
    ]);
    check::<ClusterNetwork>(&[]);
    check::<ClusterCredentials>(&[]);
    check::<DiskEncryption>(&[]);
}

#[test]
fn unset_hosts_and_infra_envs_send_the_members_that_are_never_absent() {
    check::<Host>(&[
        "kind",
        "id",
        "href",
        "status",
        "status_info",
        "status_updated_at",
        "stage_started_at",
        "stage_updated_at",
        "progress_stages",
        "logs_collected_at",
        "logs_started_at",
        "updated_at",
        "created_at",
        "checked_in_at",
        "registered_at",
        "deleted_at",
        "infra_env_id",
    ]);
    check::<HostIgnitionParams>(&[]);
    check::<HostProgressInfo>(&["stage_started_at", "stage_updated_at"]);
    check::<HostNetwork>(&["host_ids"]);
    check::<IgnitionEndpoint>(&[]);
    check::<ImageInfo>(&["created_at", "expires_at"]);
    check::<InfraEnv>(&[
        "kind",
        "id",
        "href",
        "name",
        "type",
        "updated_at",
        "created_at",
        "expires_at",
    ]);
    check::<IngressVip>(&[]);
    check::<LastInstallationPreparation>(&[]);
    check::<ListVersions>(&["versions"]);
    check::<LoadBalancer>(&[]);
    check::<MachineNetwork>(&[]);
    check::<ClusterManifest>(&[]);
    check::<MonitoredOperator>(&["status_updated_at", "bundles", "source_bundles"]);
    check::<OpenshiftVersion>(&["display_name", "support_level", "cpu_architectures"]);
    check::<ClusterPlatform>(&["type"]);
    check::<PlatformExternal>(&[]);
    check::<PresignedUrl>(&["url", "expires_at"]);
    check::<Proxy>(&[]);
    check::<ServiceNetwork>(&[]);
    check::<AgentStep>(&["args"]);
    check::<Steps>(&["instructions"]);
}
