//! Table of the shapes of the operations: query parameters, bodies and responses.
//!
//! Source: the installer API description. A record without a type of this workspace is any JSON value.

use std::collections::BTreeMap;

use doctor::DoctorReport;
use model::audit::AuditRecord;
use model::bmc_boot::{BmcBootList, BmcBootParams};
use model::cluster::{
    Cluster, ClusterCreateParams, ClusterCredentials, ClusterDefaultConfig,
    ClusterFinalizingProgress, ClusterUpdateParams, CompletionParams,
    DisconnectedClusterCreateParams, ImportClusterParams,
};
use model::cluster_nodes::NodesReport;
use model::declaration::AppliedDeclaration;
use model::domains::ManagedDomain;
use model::events::Event;
use model::expected_hosts::{ExpectedHostList, ExpectedHostsParams};
use model::explain::{Explanation, ExplanationList};
use model::hardware::PreflightHardwareRequirements;
use model::host::{
    BindHostParams, Host, HostCreateParams, HostIgnitionParams, HostProgress, HostUpdateParams,
    InstallerArgsParams,
};
use model::infra_env::{InfraEnv, InfraEnvCreateParams, InfraEnvUpdateParams, PresignedUrl};
use model::jobs::{ArchiveList, Job, JobCreateParams, RehearsalOptions};
use model::logs::LogsProgressParams;
use model::manifests::{ClusterManifest, CreateManifestParams, UpdateManifestParams};
use model::node_replacement::{NodeReplacement, NodeReplacementPlan, ReplacementPlanParams};
use model::operators::{BundleDescription, MonitoredOperator, OperatorMonitorReport};
use model::schema::RecordSchemas;
use model::steps::{StepReply, Steps};
use model::support::{DetailedSupportedFeatures, SupportedArchitectures, SupportedFeatures};
use model::versions::{
    ListVersions, OfferedCatalog, OfferedOsImage, OfferedRelease, OpenshiftVersion, ReleaseSource,
};
use serde::de::DeserializeOwned;
use serde_json::Value;

use ResponseShape::{Empty, EventStream, File, FileOrNothing, Json, JsonLines};

/// Adds the schema of one type; returns it or a reference to it.
pub(super) type SchemaOf = fn(&mut RecordSchemas) -> Value;

/// Content of a successful response.
#[derive(Debug, Clone, Copy)]
pub(super) enum ResponseShape {
    /// No content.
    Empty,
    /// Bytes.
    File,
    /// Bytes, or status 204 when there are none.
    FileOrNothing,
    /// Server-sent events.
    EventStream,
    /// Lines of JSON.
    JsonLines(SchemaOf),
    /// A JSON value.
    Json(SchemaOf),
}

/// Shape of one operation.
#[derive(Debug, Clone, Copy)]
pub(super) struct OperationShape {
    /// Name in the description.
    pub(super) id: &'static str,
    /// Status of success.
    pub(super) status: u16,
    /// Content of success.
    pub(super) response: ResponseShape,
    /// JSON body of the request.
    pub(super) body: Option<SchemaOf>,
    /// The request's body is YAML.
    pub(super) is_yaml: bool,
    /// Query parameters; the required ones end with `!`.
    pub(super) query: &'static [&'static str],
}

impl OperationShape {
    const fn body(mut self, schema: SchemaOf) -> Self {
        self.body = Some(schema);
        self
    }

    const fn yaml(mut self) -> Self {
        self.is_yaml = true;
        self
    }

    const fn query(mut self, names: &'static [&'static str]) -> Self {
        self.query = names;
        self
    }
}

const fn on(id: &'static str, status: u16, response: ResponseShape) -> OperationShape {
    OperationShape {
        id,
        status,
        response,
        body: None,
        is_yaml: false,
        query: &[],
    }
}

fn of<T: DeserializeOwned>(schemas: &mut RecordSchemas) -> Value {
    schemas.add::<T>()
}

/// Every operation, in the order of the description.
#[rustfmt::skip]
pub(super) static SHAPES: &[OperationShape] = &[
    on("v2RegisterCluster", 201, Json(of::<Cluster>)).body(of::<ClusterCreateParams>),
    on("v2ListClusters", 200, Json(of::<Vec<Cluster>>))
        .query(&["openshift_cluster_id", "ams_subscription_ids", "with_hosts", "owner"]),
    on("v2GetCluster", 200, Json(of::<Cluster>)).query(&["exclude-hosts"]),
    on("v2DeregisterCluster", 204, Empty),
    on("explainCluster", 200, Json(of::<Explanation>)),
    on("listExplanations", 200, Json(of::<ExplanationList>)).query(&["after", "limit"]),
    on("V2UpdateCluster", 201, Json(of::<Cluster>)).body(of::<ClusterUpdateParams>),
    on("v2UpdateClusterFinalizingProgress", 200, Empty).body(of::<ClusterFinalizingProgress>),
    on("ListClusterHosts", 200, Json(of::<Vec<Host>>))
        .query(&["role", "status", "with-inventory", "with-connectivity"]),
    on("GetClusterSupportedPlatforms", 200, Json(of::<Vec<String>>)),
    on("RegisterInfraEnv", 201, Json(of::<InfraEnv>)).body(of::<InfraEnvCreateParams>),
    on("ListInfraEnvs", 200, Json(of::<Vec<InfraEnv>>)).query(&["cluster_id", "owner"]),
    on("GetInfraEnv", 200, Json(of::<InfraEnv>)),
    on("UpdateInfraEnv", 201, Json(of::<InfraEnv>)).body(of::<InfraEnvUpdateParams>),
    on("DeregisterInfraEnv", 204, Empty),
    on("GetInfraEnvDownloadURL", 200, Json(of::<PresignedUrl>)),
    on("v2RegisterHost", 201, Json(of::<Host>)).body(of::<HostCreateParams>),
    on("v2ListHosts", 200, Json(of::<Vec<Host>>)),
    on("v2GetHost", 200, Json(of::<Host>)),
    on("v2UpdateHost", 201, Json(of::<Host>)).body(of::<HostUpdateParams>),
    on("v2DeregisterHost", 204, Empty),
    on("v2GetNextSteps", 200, Json(of::<Steps>)).query(&["timestamp"]),
    on("v2PostStepReply", 204, Empty).body(of::<StepReply>),
    on("v2UpdateHostInstallProgress", 200, Empty).body(of::<HostProgress>),
    on("BindHost", 200, Json(of::<Host>)).body(of::<BindHostParams>),
    on("UnbindHost", 200, Json(of::<Host>)),
    on("v2ResetHostValidation", 200, Empty),
    on("v2ResetHost", 200, Json(of::<Host>)),
    on("v2InstallHost", 202, Json(of::<Host>)),
    on("v2UpdateHostInstallerArgs", 201, Json(of::<Host>)).body(of::<InstallerArgsParams>),
    on("v2GetHostIgnition", 200, Json(of::<HostIgnitionParams>)),
    on("v2UpdateHostIgnition", 201, Empty).body(of::<HostIgnitionParams>),
    on("v2DownloadInfraEnvFiles", 200, File).query(&["file_name!", "mac", "ipxe_script_type", "discovery_iso_type"]),
    on("GetInfraEnvPresignedFileURL", 200, Json(of::<PresignedUrl>)).query(&["file_name!", "ipxe_script_type"]),
    on("v2UpdateHostLogsProgress", 204, Empty).body(of::<LogsProgressParams>),
    on("applyDeclaration", 201, Json(of::<AppliedDeclaration>)).yaml().query(&["openshift_version"]),
    on("applyToInfraEnv", 200, Json(of::<AppliedDeclaration>)).yaml(),
    on("exportDeclaration", 200, File),
    on("getExpectedHosts", 200, Json(of::<ExpectedHostList>)),
    on("setExpectedHosts", 200, Json(of::<ExpectedHostList>)).body(of::<ExpectedHostsParams>),
    on("deleteExpectedHosts", 204, Empty),
    on("startBmcBoots", 202, Json(of::<BmcBootList>)).body(of::<BmcBootParams>),
    on("listBmcBoots", 200, Json(of::<BmcBootList>)),
    on("cancelBmcBoots", 202, Json(of::<BmcBootList>)),
    on("RegenerateInfraEnvSigningKey", 204, Empty),
    on("V2GetClusterDefaultConfig", 200, Json(of::<ClusterDefaultConfig>)),
    on("V2GetPresignedForClusterCredentials", 200, Json(of::<PresignedUrl>)).query(&["file_name!"]),
    on("V2GetCredentials", 200, Json(of::<ClusterCredentials>)),
    on("V2DownloadClusterFiles", 200, File).query(&["file_name!"]),
    on("V2DownloadClusterCredentials", 200, File).query(&["file_name!"]),
    on("V2GetPresignedForClusterFiles", 200, Json(of::<PresignedUrl>))
        .query(&["file_name!", "logs_type", "host_id", "additional_name"]),
    on("DownloadMinimalInitrd", 200, FileOrNothing),
    on("v2GetClusterInstallConfig", 200, Json(of::<String>)),
    on("v2UpdateClusterInstallConfig", 201, Empty).body(of::<String>),
    on("V2ListManagedDomains", 200, Json(of::<Vec<ManagedDomain>>)),
    on("v2InstallCluster", 202, Json(of::<Cluster>)),
    on("V2CancelInstallation", 202, Json(of::<Cluster>)),
    on("v2ResetCluster", 202, Json(of::<Cluster>)),
    on("TransformClusterToDay2", 202, Json(of::<Cluster>)),
    on("TransformClusterToAddingHosts", 202, Json(of::<Cluster>)),
    on("v2GetPreflightRequirements", 200, Json(of::<PreflightHardwareRequirements>)),
    on("V2ListOperatorProperties", 200, Json(of::<Vec<Value>>)),
    on("V2ListSupportedOperators", 200, Json(of::<Vec<String>>)),
    on("V2ListBundles", 200, Json(of::<Vec<BundleDescription>>))
        .query(&["openshift_version", "cpu_architecture", "platform_type", "external_platform_name", "feature_ids"]),
    on("V2GetBundle", 200, Json(of::<BundleDescription>)).query(&["feature_ids"]),
    on("v2UploadClusterIngressCert", 201, Empty).body(of::<String>),
    on("v2CompleteInstallation", 202, Json(of::<Cluster>)).body(of::<CompletionParams>),
    on("v2UpdateClusterLogsProgress", 204, Empty).body(of::<LogsProgressParams>),
    on("V2ListClusterManifests", 200, Json(of::<Vec<ClusterManifest>>)).query(&["include_system_generated"]),
    on("V2CreateClusterManifest", 201, Json(of::<ClusterManifest>)).body(of::<CreateManifestParams>),
    on("V2UpdateClusterManifest", 200, Json(of::<ClusterManifest>)).body(of::<UpdateManifestParams>),
    on("V2DeleteClusterManifest", 200, Empty).query(&["folder", "file_name!"]),
    on("v2ListComponentVersions", 200, Json(of::<ListVersions>)),
    on("v2ListSupportedOpenshiftVersions", 200, Json(of::<BTreeMap<String, OpenshiftVersion>>))
        .query(&["version", "only_latest"]),
    on("v2ListReleaseSources", 200, Json(of::<Vec<ReleaseSource>>)),
    on("v2DownloadClusterManifest", 200, File).query(&["folder", "file_name!"]),
    on("V2DownloadClusterLogs", 200, File).query(&["logs_type", "host_id"]),
    on("V2UploadLogs", 204, Empty).query(&["logs_type!", "infra_env_id", "host_id"]),
    on("V2ListOfClusterOperators", 200, Json(of::<Vec<MonitoredOperator>>)).query(&["operator_name"]),
    on("v2ReportMonitoredOperatorStatus", 200, Empty).body(of::<OperatorMonitorReport>),
    on("v2DownloadHostIgnition", 200, File),
    on("v2ListEvents", 200, Json(of::<Vec<Event>>))
        .query(&[
            "cluster_id", "host_id", "host_ids", "infra_env_id", "limit", "offset", "order", "severities",
            "message", "deleted_hosts", "cluster_level", "categories",
        ]),
    on("v2TriggerEvent", 201, Empty).body(of::<Event>),
    on("streamEvents", 200, EventStream).query(&["cluster_id", "host_id", "host_ids", "infra_env_id", "categories", "severities", "changes"]),
    on("GetSupportedFeatures", 200, Json(of::<SupportedFeatures>))
        .query(&["openshift_version!", "cpu_architecture", "platform_type", "external_platform_name"]),
    on("GetDetailedSupportedFeatures", 200, Json(of::<DetailedSupportedFeatures>))
        .query(&["openshift_version!", "cpu_architecture", "platform_type", "external_platform_name"]),
    on("GetSupportedArchitectures", 200, Json(of::<SupportedArchitectures>)).query(&["openshift_version!"]),
    on("v2ImportCluster", 201, Json(of::<Cluster>)).body(of::<ImportClusterParams>),
    on("v2RegisterDisconnectedCluster", 201, Json(of::<Cluster>)).body(of::<DisconnectedClusterCreateParams>),
    on("v2GetIgnoredValidations", 200, Json(of::<Value>)),
    on("v2SetIgnoredValidations", 201, Json(of::<Value>)).body(of::<Value>),
    on("V2GetClusterUISettings", 200, Json(of::<String>)),
    on("V2UpdateClusterUISettings", 200, Json(of::<String>)).body(of::<String>),
    on("listInstalledNodes", 200, Json(of::<NodesReport>)),
    on("getNodeReplacement", 200, Json(of::<NodeReplacement>)),
    on("planNodeReplacement", 200, Json(of::<NodeReplacementPlan>)).body(of::<ReplacementPlanParams>),
    on("exportAuditRecords", 200, JsonLines(of::<AuditRecord>)).query(&["after"]),
    on("checkSite", 200, Json(of::<DoctorReport>)),
    on("listReleaseImages", 200, Json(of::<Vec<OfferedRelease>>)),
    on("listOsImages", 200, Json(of::<Vec<OfferedOsImage>>)),
    on("listOperatorCatalogs", 200, Json(of::<Vec<OfferedCatalog>>)),
    on("listArchives", 200, Json(of::<ArchiveList>)),
    on("listRehearsalOptions", 200, Json(of::<RehearsalOptions>)),
    on("createJob", 202, Json(of::<Job>)).body(of::<JobCreateParams>),
    on("listJobs", 200, Json(of::<Vec<Job>>)).query(&["kinds", "limit"]),
    on("getJob", 200, Json(of::<Job>)),
    on("deleteJob", 204, Empty),
    on("cancelJob", 202, Json(of::<Job>)),
    on("downloadJobFile", 200, File).query(&["file_name!"]),
];
