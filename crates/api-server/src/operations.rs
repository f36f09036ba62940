//! Table of the installer API's operations: source of the routes and of the description.
//!
//! Source: the installer API description. Additions: `/v2/platform-versions`, the specification's spelling, and
//! `/v2/events/stream`.

/// Base path of the operations.
pub const BASE: &str = rules::urls::API_BASE;

/// An operation of the API description.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operation {
    /// Name in the description.
    pub id: &'static str,
    /// Upper-case HTTP method.
    pub method: &'static str,
    /// Path below [`BASE`], with its parameters in braces.
    pub path: &'static str,
    /// Content of its successful response.
    pub content: ResponseContent,
}

/// Content of a successful response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseContent {
    Json,
    File,
    /// Server-sent events. Source: the HTML standard, "Server-sent events".
    EventStream,
}

impl ResponseContent {
    /// Its media type.
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::File => "application/octet-stream",
            Self::EventStream => "text/event-stream",
        }
    }
}

const fn json(id: &'static str, method: &'static str, path: &'static str) -> Operation {
    Operation {
        id,
        method,
        path,
        content: ResponseContent::Json,
    }
}

const fn file(id: &'static str, method: &'static str, path: &'static str) -> Operation {
    Operation {
        content: ResponseContent::File,
        ..json(id, method, path)
    }
}

const fn stream(id: &'static str, path: &'static str) -> Operation {
    Operation {
        content: ResponseContent::EventStream,
        ..json(id, "GET", path)
    }
}

/// Every operation, in the order of the description.
#[rustfmt::skip]
pub static OPERATIONS: &[Operation] = &[
    json("v2RegisterCluster", "POST", "/v2/clusters"),
    json("v2ListClusters", "GET", "/v2/clusters"),
    json("v2GetCluster", "GET", "/v2/clusters/{cluster_id}"),
    json("v2DeregisterCluster", "DELETE", "/v2/clusters/{cluster_id}"),
    json("V2UpdateCluster", "PATCH", "/v2/clusters/{cluster_id}"),
    json("v2UpdateClusterFinalizingProgress", "PUT", "/v2/clusters/{cluster_id}/progress"),
    json("ListClusterHosts", "GET", "/v2/clusters/{cluster_id}/hosts"),
    json("GetClusterSupportedPlatforms", "GET", "/v2/clusters/{cluster_id}/supported-platforms"),
    json("RegisterInfraEnv", "POST", "/v2/infra-envs"),
    json("ListInfraEnvs", "GET", "/v2/infra-envs"),
    json("GetInfraEnv", "GET", "/v2/infra-envs/{infra_env_id}"),
    json("UpdateInfraEnv", "PATCH", "/v2/infra-envs/{infra_env_id}"),
    json("DeregisterInfraEnv", "DELETE", "/v2/infra-envs/{infra_env_id}"),
    json("GetInfraEnvDownloadURL", "GET", "/v2/infra-envs/{infra_env_id}/downloads/image-url"),
    json("v2RegisterHost", "POST", "/v2/infra-envs/{infra_env_id}/hosts"),
    json("v2ListHosts", "GET", "/v2/infra-envs/{infra_env_id}/hosts"),
    json("v2GetHost", "GET", "/v2/infra-envs/{infra_env_id}/hosts/{host_id}"),
    json("v2UpdateHost", "PATCH", "/v2/infra-envs/{infra_env_id}/hosts/{host_id}"),
    json("v2DeregisterHost", "DELETE", "/v2/infra-envs/{infra_env_id}/hosts/{host_id}"),
    json("v2GetNextSteps", "GET", "/v2/infra-envs/{infra_env_id}/hosts/{host_id}/instructions"),
    json("v2PostStepReply", "POST", "/v2/infra-envs/{infra_env_id}/hosts/{host_id}/instructions"),
    json("v2UpdateHostInstallProgress", "PUT", "/v2/infra-envs/{infra_env_id}/hosts/{host_id}/progress"),
    json("BindHost", "POST", "/v2/infra-envs/{infra_env_id}/hosts/{host_id}/actions/bind"),
    json("UnbindHost", "POST", "/v2/infra-envs/{infra_env_id}/hosts/{host_id}/actions/unbind"),
    json("v2ResetHostValidation", "PATCH", "/v2/infra-envs/{infra_env_id}/hosts/{host_id}/actions/reset-validation/{validation_id}"),
    json("v2ResetHost", "POST", "/v2/infra-envs/{infra_env_id}/hosts/{host_id}/actions/reset"),
    json("v2InstallHost", "POST", "/v2/infra-envs/{infra_env_id}/hosts/{host_id}/actions/install"),
    json("v2UpdateHostInstallerArgs", "PATCH", "/v2/infra-envs/{infra_env_id}/hosts/{host_id}/installer-args"),
    json("v2GetHostIgnition", "GET", "/v2/infra-envs/{infra_env_id}/hosts/{host_id}/ignition"),
    json("v2UpdateHostIgnition", "PATCH", "/v2/infra-envs/{infra_env_id}/hosts/{host_id}/ignition"),
    file("v2DownloadInfraEnvFiles", "GET", "/v2/infra-envs/{infra_env_id}/downloads/files"),
    json("GetInfraEnvPresignedFileURL", "GET", "/v2/infra-envs/{infra_env_id}/downloads/files-presigned"),
    json("v2UpdateHostLogsProgress", "PUT", "/v2/infra-envs/{infra_env_id}/hosts/{host_id}/logs-progress"),
    json("RegenerateInfraEnvSigningKey", "POST", "/v2/infra-envs/{infra_env_id}/regenerate-signing-key"),
    json("V2GetClusterDefaultConfig", "GET", "/v2/clusters/default-config"),
    json("V2GetPresignedForClusterCredentials", "GET", "/v2/clusters/{cluster_id}/downloads/credentials-presigned"),
    json("V2GetCredentials", "GET", "/v2/clusters/{cluster_id}/credentials"),
    file("V2DownloadClusterFiles", "GET", "/v2/clusters/{cluster_id}/downloads/files"),
    file("V2DownloadClusterCredentials", "GET", "/v2/clusters/{cluster_id}/downloads/credentials"),
    json("V2GetPresignedForClusterFiles", "GET", "/v2/clusters/{cluster_id}/downloads/files-presigned"),
    file("DownloadMinimalInitrd", "GET", "/v2/infra-envs/{infra_env_id}/downloads/minimal-initrd"),
    json("v2GetClusterInstallConfig", "GET", "/v2/clusters/{cluster_id}/install-config"),
    json("v2UpdateClusterInstallConfig", "PATCH", "/v2/clusters/{cluster_id}/install-config"),
    json("V2ListManagedDomains", "GET", "/v2/domains"),
    json("v2InstallCluster", "POST", "/v2/clusters/{cluster_id}/actions/install"),
    json("V2CancelInstallation", "POST", "/v2/clusters/{cluster_id}/actions/cancel"),
    json("v2ResetCluster", "POST", "/v2/clusters/{cluster_id}/actions/reset"),
    json("TransformClusterToDay2", "POST", "/v2/clusters/{cluster_id}/actions/allow-add-workers"),
    json("TransformClusterToAddingHosts", "POST", "/v2/clusters/{cluster_id}/actions/allow-add-hosts"),
    json("v2GetPreflightRequirements", "GET", "/v2/clusters/{cluster_id}/preflight-requirements"),
    json("V2ListOperatorProperties", "GET", "/v2/supported-operators/{operator_name}"),
    json("V2ListSupportedOperators", "GET", "/v2/supported-operators"),
    json("V2ListBundles", "GET", "/v2/operators/bundles"),
    json("V2GetBundle", "GET", "/v2/operators/bundles/{id}"),
    json("v2UploadClusterIngressCert", "POST", "/v2/clusters/{cluster_id}/uploads/ingress-cert"),
    json("v2CompleteInstallation", "POST", "/v2/clusters/{cluster_id}/actions/complete-installation"),
    json("v2UpdateClusterLogsProgress", "PUT", "/v2/clusters/{cluster_id}/logs-progress"),
    json("V2ListClusterManifests", "GET", "/v2/clusters/{cluster_id}/manifests"),
    json("V2CreateClusterManifest", "POST", "/v2/clusters/{cluster_id}/manifests"),
    json("V2UpdateClusterManifest", "PATCH", "/v2/clusters/{cluster_id}/manifests"),
    json("V2DeleteClusterManifest", "DELETE", "/v2/clusters/{cluster_id}/manifests"),
    json("v2ListComponentVersions", "GET", "/v2/component-versions"),
    json("v2ListSupportedOpenshiftVersions", "GET", "/v2/openshift-versions"),
    json("v2ListSupportedOpenshiftVersions", "GET", "/v2/platform-versions"),
    json("v2ListReleaseSources", "GET", "/v2/release-sources"),
    file("v2DownloadClusterManifest", "GET", "/v2/clusters/{cluster_id}/manifests/files"),
    file("V2DownloadClusterLogs", "GET", "/v2/clusters/{cluster_id}/logs"),
    json("V2UploadLogs", "POST", "/v2/clusters/{cluster_id}/logs"),
    json("V2ListOfClusterOperators", "GET", "/v2/clusters/{cluster_id}/monitored-operators"),
    json("v2ReportMonitoredOperatorStatus", "PUT", "/v2/clusters/{cluster_id}/monitored-operators"),
    file("v2DownloadHostIgnition", "GET", "/v2/infra-env/{infra_env_id}/hosts/{host_id}/downloads/ignition"),
    json("v2ListEvents", "GET", "/v2/events"),
    json("v2TriggerEvent", "POST", "/v2/events"),
    stream("streamEvents", "/v2/events/stream"),
    json("GetSupportedFeatures", "GET", "/v2/support-levels/features"),
    json("GetDetailedSupportedFeatures", "GET", "/v2/support-levels/features/detailed"),
    json("GetSupportedArchitectures", "GET", "/v2/support-levels/architectures"),
    json("v2ImportCluster", "POST", "/v2/clusters/import"),
    json("v2RegisterDisconnectedCluster", "POST", "/v2/clusters/disconnected"),
    json("v2GetIgnoredValidations", "GET", "/v2/clusters/{cluster_id}/ignored-validations"),
    json("v2SetIgnoredValidations", "PUT", "/v2/clusters/{cluster_id}/ignored-validations"),
    json("V2GetClusterUISettings", "GET", "/v2/clusters/{cluster_id}/ui-settings"),
    json("V2UpdateClusterUISettings", "PUT", "/v2/clusters/{cluster_id}/ui-settings"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn operations_are_unique() {
        let unique: BTreeSet<_> = OPERATIONS
            .iter()
            .map(|one| (one.method, one.path))
            .collect();
        assert_eq!(unique.len(), OPERATIONS.len());
    }
}
