//! Table of the installer API's operations: source of the routes and of the description.
//!
//! Source: the installer API description. Additions: `/v2/platform-versions`, the specification's spelling,
//! `/v2/offline-openshift-versions`, which newer clients have (every version here is installed offline),
//! `/v2/events/stream`, `/v2/audit`, explanations, expected hosts, boots by BMCs,
//! declarations, added release and OS images, and jobs.

pub mod access;

use access::{
    ADMINISTER, AGENT, Access, CLUSTER_CREDENTIALS, CLUSTER_FILES, CLUSTER_LOGS, EDIT,
    IMAGE_CONTENT, IMAGE_RAMDISK, OVERSEE, OWN, VIEW, VIEW_CLUSTER, VIEW_EVENTS, VIEW_OR_AGENT,
    VIEW_OR_LINK, VIEW_OR_WATCHER,
};

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
    /// Credentials that open it, unless AUTH_TYPE is none.
    pub access: Access,
    /// It accepts `dry_run=true`: the same response, and nothing is written.
    pub accepts_dry_run: bool,
}

impl Operation {
    const fn dry_run(mut self) -> Self {
        self.accepts_dry_run = true;
        self
    }
}

/// Content of a successful response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseContent {
    Json,
    File,
    /// Server-sent events. Source: the HTML standard, "Server-sent events".
    EventStream,
    /// A JSON object per line.
    JsonLines,
}

impl ResponseContent {
    /// Its media type.
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::File => "application/octet-stream",
            Self::EventStream => "text/event-stream",
            Self::JsonLines => "application/x-ndjson",
        }
    }
}

const fn json(
    id: &'static str,
    method: &'static str,
    path: &'static str,
    access: Access,
) -> Operation {
    Operation {
        id,
        method,
        path,
        content: ResponseContent::Json,
        access,
        accepts_dry_run: false,
    }
}

const fn file(
    id: &'static str,
    method: &'static str,
    path: &'static str,
    access: Access,
) -> Operation {
    Operation {
        content: ResponseContent::File,
        ..json(id, method, path, access)
    }
}

const fn stream(id: &'static str, path: &'static str, access: Access) -> Operation {
    Operation {
        content: ResponseContent::EventStream,
        ..json(id, "GET", path, access)
    }
}

const fn lines(id: &'static str, path: &'static str, access: Access) -> Operation {
    Operation {
        content: ResponseContent::JsonLines,
        ..json(id, "GET", path, access)
    }
}

/// Every operation, in the order of the description.
#[rustfmt::skip]
pub static OPERATIONS: &[Operation] = &[
    json("v2RegisterCluster", "POST", "/v2/clusters", EDIT).dry_run(),
    json("v2ListClusters", "GET", "/v2/clusters", VIEW_OR_WATCHER),
    json("v2GetCluster", "GET", "/v2/clusters/{cluster_id}", VIEW_CLUSTER),
    json("v2DeregisterCluster", "DELETE", "/v2/clusters/{cluster_id}", EDIT).dry_run(),
    json("explainCluster", "GET", "/v2/clusters/{cluster_id}/explain", VIEW),
    json("listExplanations", "GET", "/v2/explain", VIEW),
    json("V2UpdateCluster", "PATCH", "/v2/clusters/{cluster_id}", EDIT).dry_run(),
    json("v2UpdateClusterFinalizingProgress", "PUT", "/v2/clusters/{cluster_id}/progress", AGENT),
    json("ListClusterHosts", "GET", "/v2/clusters/{cluster_id}/hosts", VIEW_OR_AGENT),
    json("GetClusterSupportedPlatforms", "GET", "/v2/clusters/{cluster_id}/supported-platforms", VIEW),
    json("RegisterInfraEnv", "POST", "/v2/infra-envs", EDIT).dry_run(),
    json("ListInfraEnvs", "GET", "/v2/infra-envs", VIEW_OR_WATCHER),
    json("GetInfraEnv", "GET", "/v2/infra-envs/{infra_env_id}", IMAGE_CONTENT),
    json("UpdateInfraEnv", "PATCH", "/v2/infra-envs/{infra_env_id}", EDIT).dry_run(),
    json("DeregisterInfraEnv", "DELETE", "/v2/infra-envs/{infra_env_id}", EDIT).dry_run(),
    json("GetInfraEnvDownloadURL", "GET", "/v2/infra-envs/{infra_env_id}/downloads/image-url", EDIT),
    json("v2RegisterHost", "POST", "/v2/infra-envs/{infra_env_id}/hosts", AGENT).dry_run(),
    json("v2ListHosts", "GET", "/v2/infra-envs/{infra_env_id}/hosts", VIEW_OR_AGENT),
    json("v2GetHost", "GET", "/v2/infra-envs/{infra_env_id}/hosts/{host_id}", VIEW),
    json("v2UpdateHost", "PATCH", "/v2/infra-envs/{infra_env_id}/hosts/{host_id}", EDIT).dry_run(),
    json("v2DeregisterHost", "DELETE", "/v2/infra-envs/{infra_env_id}/hosts/{host_id}", EDIT).dry_run(),
    json("v2GetNextSteps", "GET", "/v2/infra-envs/{infra_env_id}/hosts/{host_id}/instructions", AGENT),
    json("v2PostStepReply", "POST", "/v2/infra-envs/{infra_env_id}/hosts/{host_id}/instructions", AGENT),
    json("v2UpdateHostInstallProgress", "PUT", "/v2/infra-envs/{infra_env_id}/hosts/{host_id}/progress", AGENT),
    json("BindHost", "POST", "/v2/infra-envs/{infra_env_id}/hosts/{host_id}/actions/bind", EDIT).dry_run(),
    json("UnbindHost", "POST", "/v2/infra-envs/{infra_env_id}/hosts/{host_id}/actions/unbind", EDIT).dry_run(),
    json("v2ResetHostValidation", "PATCH", "/v2/infra-envs/{infra_env_id}/hosts/{host_id}/actions/reset-validation/{validation_id}", EDIT).dry_run(),
    json("v2ResetHost", "POST", "/v2/infra-envs/{infra_env_id}/hosts/{host_id}/actions/reset", EDIT).dry_run(),
    json("v2InstallHost", "POST", "/v2/infra-envs/{infra_env_id}/hosts/{host_id}/actions/install", EDIT).dry_run(),
    json("v2UpdateHostInstallerArgs", "PATCH", "/v2/infra-envs/{infra_env_id}/hosts/{host_id}/installer-args", EDIT).dry_run(),
    json("v2GetHostIgnition", "GET", "/v2/infra-envs/{infra_env_id}/hosts/{host_id}/ignition", EDIT),
    json("v2UpdateHostIgnition", "PATCH", "/v2/infra-envs/{infra_env_id}/hosts/{host_id}/ignition", EDIT).dry_run(),
    file("v2DownloadInfraEnvFiles", "GET", "/v2/infra-envs/{infra_env_id}/downloads/files", IMAGE_CONTENT),
    json("GetInfraEnvPresignedFileURL", "GET", "/v2/infra-envs/{infra_env_id}/downloads/files-presigned", EDIT),
    json("v2UpdateHostLogsProgress", "PUT", "/v2/infra-envs/{infra_env_id}/hosts/{host_id}/logs-progress", AGENT),
    json("applyDeclaration", "POST", "/v2/infra-envs/apply", EDIT).dry_run(),
    json("applyToInfraEnv", "POST", "/v2/infra-envs/{infra_env_id}/apply", EDIT).dry_run(),
    file("exportDeclaration", "GET", "/v2/infra-envs/{infra_env_id}/export", VIEW),
    json("getExpectedHosts", "GET", "/v2/infra-envs/{infra_env_id}/expected-hosts", VIEW),
    json("setExpectedHosts", "PUT", "/v2/infra-envs/{infra_env_id}/expected-hosts", EDIT),
    json("deleteExpectedHosts", "DELETE", "/v2/infra-envs/{infra_env_id}/expected-hosts", EDIT),
    // Of administrators alone: the server connects to the addresses that they name, inside the network of BMCs, which other
    // users need not reach. Without an issuer of tokens (AUTH_TYPE none and local), every user is one.
    json("startBmcBoots", "POST", "/v2/infra-envs/{infra_env_id}/bmc-boot", ADMINISTER),
    json("listBmcBoots", "GET", "/v2/infra-envs/{infra_env_id}/bmc-boot", OVERSEE),
    json("cancelBmcBoots", "DELETE", "/v2/infra-envs/{infra_env_id}/bmc-boot", ADMINISTER),
    json("RegenerateInfraEnvSigningKey", "POST", "/v2/infra-envs/{infra_env_id}/regenerate-signing-key", EDIT),
    json("V2GetClusterDefaultConfig", "GET", "/v2/clusters/default-config", VIEW),
    json("V2GetPresignedForClusterCredentials", "GET", "/v2/clusters/{cluster_id}/downloads/credentials-presigned", OWN),
    json("V2GetCredentials", "GET", "/v2/clusters/{cluster_id}/credentials", OWN),
    file("V2DownloadClusterFiles", "GET", "/v2/clusters/{cluster_id}/downloads/files", CLUSTER_FILES),
    file("V2DownloadClusterCredentials", "GET", "/v2/clusters/{cluster_id}/downloads/credentials", CLUSTER_CREDENTIALS),
    json("V2GetPresignedForClusterFiles", "GET", "/v2/clusters/{cluster_id}/downloads/files-presigned", VIEW),
    file("DownloadMinimalInitrd", "GET", "/v2/infra-envs/{infra_env_id}/downloads/minimal-initrd", IMAGE_RAMDISK),
    json("v2GetClusterInstallConfig", "GET", "/v2/clusters/{cluster_id}/install-config", VIEW),
    json("v2UpdateClusterInstallConfig", "PATCH", "/v2/clusters/{cluster_id}/install-config", EDIT).dry_run(),
    json("V2ListManagedDomains", "GET", "/v2/domains", VIEW),
    json("v2InstallCluster", "POST", "/v2/clusters/{cluster_id}/actions/install", EDIT).dry_run(),
    json("V2CancelInstallation", "POST", "/v2/clusters/{cluster_id}/actions/cancel", EDIT).dry_run(),
    json("v2ResetCluster", "POST", "/v2/clusters/{cluster_id}/actions/reset", EDIT).dry_run(),
    json("TransformClusterToDay2", "POST", "/v2/clusters/{cluster_id}/actions/allow-add-workers", EDIT).dry_run(),
    json("TransformClusterToAddingHosts", "POST", "/v2/clusters/{cluster_id}/actions/allow-add-hosts", EDIT).dry_run(),
    json("v2GetPreflightRequirements", "GET", "/v2/clusters/{cluster_id}/preflight-requirements", VIEW),
    json("V2ListOperatorProperties", "GET", "/v2/supported-operators/{operator_name}", VIEW),
    json("V2ListSupportedOperators", "GET", "/v2/supported-operators", EDIT),
    json("V2ListBundles", "GET", "/v2/operators/bundles", EDIT),
    json("V2GetBundle", "GET", "/v2/operators/bundles/{id}", EDIT),
    json("v2UploadClusterIngressCert", "POST", "/v2/clusters/{cluster_id}/uploads/ingress-cert", AGENT),
    json("v2CompleteInstallation", "POST", "/v2/clusters/{cluster_id}/actions/complete-installation", AGENT),
    json("v2UpdateClusterLogsProgress", "PUT", "/v2/clusters/{cluster_id}/logs-progress", AGENT),
    json("V2ListClusterManifests", "GET", "/v2/clusters/{cluster_id}/manifests", VIEW),
    json("V2CreateClusterManifest", "POST", "/v2/clusters/{cluster_id}/manifests", EDIT),
    json("V2UpdateClusterManifest", "PATCH", "/v2/clusters/{cluster_id}/manifests", EDIT),
    json("V2DeleteClusterManifest", "DELETE", "/v2/clusters/{cluster_id}/manifests", EDIT),
    json("v2ListComponentVersions", "GET", "/v2/component-versions", VIEW),
    json("v2ListSupportedOpenshiftVersions", "GET", "/v2/openshift-versions", VIEW),
    json("v2ListSupportedOpenshiftVersions", "GET", "/v2/platform-versions", VIEW),
    json("v2ListSupportedOpenshiftVersions", "GET", "/v2/offline-openshift-versions", VIEW),
    json("v2ListReleaseSources", "GET", "/v2/release-sources", VIEW),
    file("v2DownloadClusterManifest", "GET", "/v2/clusters/{cluster_id}/manifests/files", VIEW_OR_LINK),
    file("V2DownloadClusterLogs", "GET", "/v2/clusters/{cluster_id}/logs", CLUSTER_LOGS),
    json("V2UploadLogs", "POST", "/v2/clusters/{cluster_id}/logs", AGENT),
    json("V2ListOfClusterOperators", "GET", "/v2/clusters/{cluster_id}/monitored-operators", AGENT),
    json("v2ReportMonitoredOperatorStatus", "PUT", "/v2/clusters/{cluster_id}/monitored-operators", AGENT),
    file("v2DownloadHostIgnition", "GET", "/v2/infra-env/{infra_env_id}/hosts/{host_id}/downloads/ignition", VIEW_OR_AGENT),
    json("v2ListEvents", "GET", "/v2/events", VIEW_EVENTS),
    json("v2TriggerEvent", "POST", "/v2/events", AGENT),
    stream("streamEvents", "/v2/events/stream", VIEW_EVENTS),
    json("GetSupportedFeatures", "GET", "/v2/support-levels/features", VIEW),
    json("GetDetailedSupportedFeatures", "GET", "/v2/support-levels/features/detailed", VIEW),
    json("GetSupportedArchitectures", "GET", "/v2/support-levels/architectures", VIEW),
    json("v2ImportCluster", "POST", "/v2/clusters/import", EDIT).dry_run(),
    json("v2RegisterDisconnectedCluster", "POST", "/v2/clusters/disconnected", EDIT).dry_run(),
    json("v2GetIgnoredValidations", "GET", "/v2/clusters/{cluster_id}/ignored-validations", EDIT),
    json("v2SetIgnoredValidations", "PUT", "/v2/clusters/{cluster_id}/ignored-validations", EDIT),
    json("V2GetClusterUISettings", "GET", "/v2/clusters/{cluster_id}/ui-settings", EDIT),
    json("V2UpdateClusterUISettings", "PUT", "/v2/clusters/{cluster_id}/ui-settings", EDIT),
    // The owner of a cluster decides where a read of it connects, and a repair is work on the site's machines.
    json("listInstalledNodes", "GET", "/v2/clusters/{cluster_id}/nodes", OVERSEE),
    json("getNodeReplacement", "GET", "/v2/clusters/{cluster_id}/node-replacement", OVERSEE),
    json("planNodeReplacement", "POST", "/v2/clusters/{cluster_id}/node-replacement/plan", ADMINISTER),
    lines("exportAuditRecords", "/v2/audit", OVERSEE),
    json("checkSite", "GET", "/v2/doctor", OVERSEE),
    json("listReleaseImages", "GET", "/v2/release-images", VIEW),
    json("listOsImages", "GET", "/v2/os-images", OVERSEE),
    json("listOperatorCatalogs", "GET", "/v2/operator-catalogs", VIEW),
    json("listArchives", "GET", "/v2/archives", OVERSEE),
    json("listRehearsalOptions", "GET", "/v2/rehearsal-options", OVERSEE),
    json("createJob", "POST", "/v2/jobs", ADMINISTER),
    json("listJobs", "GET", "/v2/jobs", OVERSEE),
    json("getJob", "GET", "/v2/jobs/{job_id}", OVERSEE),
    json("deleteJob", "DELETE", "/v2/jobs/{job_id}", ADMINISTER),
    json("cancelJob", "POST", "/v2/jobs/{job_id}/actions/cancel", ADMINISTER),
    file("downloadJobFile", "GET", "/v2/jobs/{job_id}/downloads/files", OVERSEE),
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

    #[test]
    fn operations_that_read_have_no_dry_run() {
        let mut reading = OPERATIONS.iter().filter(|one| one.method == "GET");
        assert!(reading.all(|one| !one.accepts_dry_run));
    }
}
