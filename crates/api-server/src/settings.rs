//! Settings of the API server.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use mirror::target_name::TargetName;
use model::api_group_map::ApiGroupMap;
use model::domains::ManagedDomain;
use model::hardware::VersionedHostRequirements;
use model::release_payload::ComponentImages;
use model::versions::{OpenshiftVersion, OsImage, ReleaseImage, ReleaseSource};
use oci_client::signature::SignatureStore;
use rules::InstallationPolicy;
use service::server::{HttpSettings, IpNetworks};
use service::settings::{CommaList, JsonVar, Secret, Setting, Shape};
use url::Url;

/// Release images, validated.
#[derive(Debug, Clone, Default)]
pub struct ReleaseImages(pub Vec<ReleaseImage>);
/// OS images, validated.
#[derive(Debug, Clone, Default)]
pub struct OsImages(pub Vec<OsImage>);
/// Platform versions by selector, validated.
#[derive(Debug, Clone, Default)]
pub struct PlatformVersions(pub BTreeMap<String, OpenshiftVersion>);

/// Release sources, validated.
#[derive(Debug, Clone, Default)]
pub struct ReleaseSources(pub Vec<ReleaseSource>);
/// Managed domains, validated.
#[derive(Debug, Clone, Default)]
pub struct ManagedDomains(pub Vec<ManagedDomain>);

macro_rules! checked_list {
    ($kind:ty, $expected:literal, $load:path) => {
        impl Setting for $kind {
            const EXPECTED: &'static str = $expected;

            fn parse(text: &str) -> Result<Self, String> {
                if text.trim().is_empty() {
                    return Ok(Self::default());
                }
                $load(text).map(Self).map_err(|error| error.to_string())
            }
        }
    };
}

checked_list!(
    ReleaseImages,
    "JSON list of release images",
    rules::versions::load_release_images
);
checked_list!(
    OsImages,
    "JSON list of OS images",
    rules::versions::load_os_images
);
checked_list!(
    PlatformVersions,
    "JSON object of platform versions",
    rules::versions::load_platform_versions
);

checked_list!(
    ReleaseSources,
    "JSON list of release sources",
    rules::versions::load_release_sources
);
checked_list!(
    ManagedDomains,
    "domain:zone-id/provider, separated by commas",
    rules::network::managed_domains::load
);

/// Signature stores of release images; empty: those of the public platform.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SignatureStores(Vec<SignatureStore>);

impl SignatureStores {
    /// The stores, in lookup order.
    pub(crate) fn stores(&self) -> Vec<SignatureStore> {
        if self.0.is_empty() {
            return SignatureStore::public();
        }
        self.0.clone()
    }
}

impl Setting for SignatureStores {
    const EXPECTED: &'static str = "URLs and folders separated by commas";
    const SHAPE: Shape = Shape::List;

    fn parse(text: &str) -> Result<Self, String> {
        let stores = CommaList::parse(text)?;
        let stores = stores.iter().map(|store| SignatureStore::parse(store));
        let stores: Result<_, _> = stores.collect();
        stores.map(Self).map_err(|error| error.to_string())
    }
}

/// A base URL with scheme `http` or `https`, unchanged except for a trailing slash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseUrl(pub String);

impl Setting for BaseUrl {
    const EXPECTED: &'static str = "http or https URL";

    fn parse(text: &str) -> Result<Self, String> {
        let url = Url::parse(text).map_err(|error| error.to_string())?;
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
            return Err("requires scheme http or https and a host".to_owned());
        }
        if url.query().is_some() || url.fragment().is_some() || !url.username().is_empty() {
            return Err("must not have a user, a query or a fragment".to_owned());
        }
        Ok(Self(text.trim_end_matches('/').to_owned()))
    }
}

/// A setting with one supported value.
macro_rules! only_choice {
    ($(#[$meta:meta])* $name:ident, $($text:literal)|+, $expected:literal) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        pub struct $name;

        impl Setting for $name {
            const EXPECTED: &'static str = $expected;

            fn parse(text: &str) -> Result<Self, String> {
                match text {
                    $($text)|+ => Ok(Self),
                    other => Err(format!("{other:?} is not supported, only {}", $expected)),
                }
            }
        }
    };
}

/// Authentication of callers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AuthType {
    /// None: every caller is the administrator.
    #[default]
    None,
    /// Tokens that this installation issues.
    Local,
    /// Tokens that the agent-based installer issues.
    AgentInstallerLocal,
    /// Tokens of users by an issuer of OpenID Connect.
    Oidc,
    /// The same under its older name, for an issuer of any name.
    Rhsso,
}

impl AuthType {
    /// Rights of the users, as a sentence for people.
    pub fn access(self) -> &'static str {
        match self {
            Self::None => {
                "Log-ins are off (AUTH_TYPE=none): every client of the installer API or the web UI administers the site. \
                 `--login` of `atoll up`, `atoll pod init` and `atoll install` requires log-ins."
            }
            Self::Local | Self::AgentInstallerLocal => {
                "Log-ins are required (AUTH_TYPE=local): users with a token of this installation administer the site; \
                 others reach nothing."
            }
            Self::Oidc | Self::Rhsso => {
                "Log-ins are required (AUTH_TYPE=oidc): users of the OpenID provider have their own clusters, those of \
                 ADMIN_USERS administer the site, and those of READ_ONLY_ADMIN_USERS read everything."
            }
        }
    }
}

impl Setting for AuthType {
    const EXPECTED: &'static str = "none, local, agent-installer-local, oidc or rhsso";

    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "none" => Ok(Self::None),
            "local" => Ok(Self::Local),
            "agent-installer-local" => Ok(Self::AgentInstallerLocal),
            "oidc" => Ok(Self::Oidc),
            "rhsso" => Ok(Self::Rhsso),
            other => Err(format!(
                "{other:?} is not supported, only {}",
                Self::EXPECTED
            )),
        }
    }
}

/// Storage backend of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileBackend {
    /// The folder WORK_DIR.
    Filesystem,
    /// A bucket of a server that speaks S3.
    S3,
}

impl Setting for FileBackend {
    const EXPECTED: &'static str = "filesystem or s3";

    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "filesystem" => Ok(Self::Filesystem),
            "s3" => Ok(Self::S3),
            _ => Err("files are kept in a folder or a bucket".to_owned()),
        }
    }
}

only_choice!(
    /// Deployment of the service.
    DeployTarget, "onprem" | "k8s" | "ocp", "onprem"
);

/// Policy for missing mechanisms of the sandbox.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SandboxMode {
    /// Run with the available mechanisms.
    #[default]
    BestEffort,
    /// Refuse to start.
    Strict,
}

impl Setting for SandboxMode {
    const EXPECTED: &'static str = "best-effort or strict";

    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "best-effort" => Ok(Self::BestEffort),
            "strict" => Ok(Self::Strict),
            other => Err(format!("{other:?} is neither best-effort nor strict")),
        }
    }
}

/// A version from which something holds, as in `4.18`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FirstVersion(pub String);

impl Setting for FirstVersion {
    const EXPECTED: &'static str = "a version, as in 4.18";

    fn parse(text: &str) -> Result<Self, String> {
        let parsed: Result<rules::versions::Number, _> = text.parse();
        parsed.map_err(|_| format!("{text:?} is no version"))?;
        Ok(Self(text.to_owned()))
    }
}

/// A registry that archives are published to, as in `registry.example.org:5000/mirror`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicationRegistry(pub TargetName);

impl Setting for PublicationRegistry {
    const EXPECTED: &'static str = "HOST[:PORT][/NAMESPACE]";

    fn parse(text: &str) -> Result<Self, String> {
        text.parse().map(Self)
    }
}

/// TLS mode of database connections, as in libpq.
///
/// Source: PostgreSQL's documentation, "SSL Mode Descriptions". `allow` is missing: it protects nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SslMode {
    /// Plain text.
    Disable,
    /// TLS where the server offers it, unverified.
    #[default]
    Prefer,
    /// TLS; verified as with `verify-ca` when DB_CA_FILE is set.
    Require,
    /// TLS with a certificate that a trusted authority signed.
    VerifyCa,
    /// The same, and the certificate names DB_HOST.
    VerifyFull,
}

impl Setting for SslMode {
    const EXPECTED: &'static str = "disable, prefer, require, verify-ca or verify-full";

    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "disable" => Ok(Self::Disable),
            "prefer" => Ok(Self::Prefer),
            "require" => Ok(Self::Require),
            "verify-ca" => Ok(Self::VerifyCa),
            "verify-full" => Ok(Self::VerifyFull),
            "allow" => Err("has no protection: use prefer or require".to_owned()),
            other => Err(format!("{other:?} is not a mode")),
        }
    }
}

service::settings! {
    /// Settings of the API server.
    pub struct Settings {
        /// Address to listen on.
        api_listen_address: IpAddr = "0.0.0.0",
        /// Port of the API; 0: assigned by the system.
        api_listen_port: u16 = "8090",
        /// Serve the API over TLS, with HTTPS_CERT_FILE and HTTPS_KEY_FILE.
        serve_https: bool = "false",
        /// PEM certificate chain.
        https_cert_file: Option<PathBuf> = "",
        /// PEM private key.
        https_key_file: Option<PathBuf> = "",
        /// External URL of this API, for users and hosts. Default: ASSISTED_SERVICE_SCHEME and ASSISTED_SERVICE_HOST.
        service_base_url: Option<BaseUrl> = "",
        /// Host name of this API for discovery agents, instead of the host of SERVICE_BASE_URL.
        service_fqdn: String = "",
        /// Scheme of this API's URL if SERVICE_BASE_URL is empty.
        assisted_service_scheme: String = "http",
        /// Host and port of this API's URL if SERVICE_BASE_URL is empty.
        assisted_service_host: String = "127.0.0.1:8090",
        /// External URL of the image service, for users and hosts.
        image_service_base_url: BaseUrl = "http://127.0.0.1:8888",
        /// Services that `GET /v2/doctor` checks from here: `tls://HOST:PORT`, whose certificate is valid; `grpc://HOST:PORT`, which serves operator catalogs; `tcp://HOST:PORT`, which accepts connections.
        doctor_services: CommaList = "",
        /// Published ports that `GET /v2/doctor` checks at the host of SERVICE_BASE_URL, each as `[ADDRESS:]PORT`; those of a loopback address are left out.
        doctor_published: CommaList = "",
        /// Authentication of callers: none; local, tokens of users, agents and images by EC_PRIVATE_KEY_PEM;
        /// agent-installer-local, the same with tokens that the agent-based installer issues; oidc, users of an issuer
        /// of OpenID Connect; or rhsso, the same without required issuer and audience.
        auth_type: AuthType = "none",
        /// Public key (P-256) of tokens, as PEM or its base64.
        ec_public_key_pem: String = "",
        /// Private key of tokens, as PEM or its base64; AUTH_TYPE local requires it. With AUTH_TYPE oidc, it signs the
        /// tokens of agents, which otherwise use the one of cloud.openshift.com in their pull secret.
        ec_private_key_pem: Secret = "",
        /// Key set of the token issuer, as JSON (JWKS).
        jwks_cert: String = "",
        /// File with the key set of the token issuer; it is reloaded when it changes.
        jwks_file: Option<PathBuf> = "",
        /// URL of the key set of the token issuer.
        jwks_url: Option<BaseUrl> = "",
        /// PEM file of the certificate authority of JWKS_URL, beside those of the system.
        jwks_ca_file: Option<PathBuf> = "",
        /// Required issuer (iss) of tokens; AUTH_TYPE oidc requires it.
        oidc_issuer: String = "",
        /// Required audience (aud) of tokens; AUTH_TYPE oidc requires it.
        oidc_audience: String = "",
        /// Claim with the unique name of users, such as email or sub; empty: username or preferred_username. An email that
        /// its issuer calls unverified is refused.
        oidc_username_claim: String = "",
        /// Names of users that read and change everything.
        admin_users: CommaList = "",
        /// Names of users that read everything.
        read_only_admin_users: CommaList = "",
        /// Users read the clusters and infra-envs of their organisation (org_id), beside their own.
        enable_org_tenancy: bool = "false",
        /// Validity of the tokens in image URLs with AUTH_TYPE oidc.
        image_expiration_time: Duration = "4h",
        /// Validity of the tokens of agents and image URLs that the local key signs, at least. New images have new ones. As
        /// long as a host may be left discovered.
        agent_token_lifetime: Duration = "8760h",
        /// Deployment target.
        deploy_target: DeployTarget = "onprem",
        /// Storage backend of files: WORK_DIR, which all replicas have to share, or a bucket.
        storage: FileBackend = "filesystem",
        /// Bucket of files; STORAGE s3 requires it.
        s3_bucket: String = "",
        /// Endpoint URL of the bucket's server; empty: Amazon's.
        s3_endpoint_url: String = "",
        /// Region of the bucket.
        s3_region: String = "us-east-1",
        /// Bucket in the path of URLs instead of the host; unset: with S3_ENDPOINT_URL.
        s3_force_path_style: Option<bool> = "",
        /// PEM file of authorities of the bucket's server, beside the system's.
        s3_ca_file: Option<PathBuf> = "",
        /// Access key id of the bucket; empty: credentials of the instance metadata service.
        aws_access_key_id: Secret = "",
        /// Secret access key of the bucket.
        aws_secret_access_key: Secret = "",
        /// Session token of temporary credentials of the bucket.
        aws_session_token: Secret = "",
        /// Folder of the file store and of the installer cache.
        work_dir: PathBuf = "/data",
        /// PEM file of the certificate authorities of BMCs, beside those of the system.
        bmc_ca_file: Option<PathBuf> = "",
        /// Networks in which BMCs are; this API connects to no other address for them. Its services and this machine are left
        /// out, unless a network is their address alone, as in 10.0.0.5/32.
        bmc_networks: IpNetworks = "10.0.0.0/8,172.16.0.0/12,192.168.0.0/16,fc00::/7",
        /// Longest time that credentials of BMCs stay in memory for an ejection after the installation.
        bmc_credentials_lifetime: Duration = "24h",
        /// Skip verification of this API's certificate in agents and nodes.
        skip_cert_verification: bool = "false",
        /// PEM file of the certificate authority of this API, for hosts.
        service_ca_cert_path: Option<PathBuf> = "",
        /// Test mode: dummy ignition files without running the installer.
        dummy_ignition: bool = "false",
        /// Database host.
        db_host: String = "127.0.0.1",
        /// Database port.
        db_port: u16 = "5432",
        /// Database user.
        db_user: String = "admin",
        /// Database password.
        db_pass: Secret = "admin",
        /// Database name.
        db_name: String = "installer",
        /// Schema of the database, which exists; empty: the user's own, or public.
        db_schema: String = "",
        /// TLS mode of database connections: disable, prefer, require, verify-ca or verify-full, as in libpq. From
        /// require on, plain text is never used. verify-ca also accepts public authorities: prefer verify-full.
        db_sslmode: SslMode = "prefer",
        /// PEM file of the database's certificate authority. With it, require verifies like verify-ca.
        db_ca_file: Option<PathBuf> = "",
        /// Maximum size of the connection pool. More are slower where the database has few cores: a burst first opens
        /// them, and each has caches of its own to fill.
        db_max_open_connections: u32 = "8",
        /// Maximum lifetime of a connection.
        db_connections_max_lifetime: Duration = "30m",
        /// File of keys that stored secrets are sealed with: 32 bytes in base64 per line, the newest first. Written by
        /// `atoll secrets rotate-key`. Empty: secrets are stored as they are.
        secrets_key_file: Option<PathBuf> = "",
        /// Installable release images.
        release_images: ReleaseImages = "",
        /// Allowed registries (host and port) of release images in requests. Default: those of RELEASE_IMAGES.
        release_image_registries: CommaList = "",
        /// Keyring of public keys, as written by gpg --export: release images that are pinned by digest and signed by
        /// one of them are allowed from any registry. Empty: signatures are not checked.
        release_keyring: Option<PathBuf> = "",
        /// Signature stores of release images: URLs or local folders. Default: those of the public platform.
        release_signature_stores: SignatureStores = "",
        /// Base images of discovery images.
        os_images: OsImages = "",
        /// Removed: the server does not start with it.
        os_images_file: Option<PathBuf> = "",
        /// Folder of archives that are carried in: people verify and publish them by `POST /v2/jobs`. Empty: none.
        archives_dir: Option<PathBuf> = "",
        /// Registry that archives are published to, as clusters reach it. Its certificate authority is in MIRROR_CA_PATH.
        archives_registry: Option<PublicationRegistry> = "",
        /// Registry whose releases are on offer while RELEASE_IMAGES is empty, with their live images while OS_IMAGES is
        /// empty. Default: ARCHIVES_REGISTRY.
        content_registry: Option<PublicationRegistry> = "",
        /// Authentication file (pull secret) with a login of ARCHIVES_REGISTRY that may push, and of CONTENT_REGISTRY.
        archives_registry_auth_file: Option<PathBuf> = "",
        /// Additional versions in the listing, beside those of RELEASE_IMAGES.
        platform_versions: PlatformVersions = "",
        /// Older name of PLATFORM_VERSIONS.
        openshift_versions: PlatformVersions = "",
        /// Versions to hide although they have an image.
        ignored_openshift_versions: CommaList = "",
        /// Update channels of each minor version, for clients that list them: openshift_version,
        /// multi_cpu_architectures and upgrade_channels. No channel is read: RELEASE_IMAGES has the installable releases.
        release_sources: ReleaseSources = "",
        /// Base domains to offer, each with its zone and provider: lab.example.com:Z0123/route53. Offered only: their
        /// records are the operator's.
        base_dns_domains: ManagedDomains = "",
        /// Hardware requirements of each role, by version.
        hw_validator_requirements: JsonVar<Vec<VersionedHostRequirements>> = "[]",
        /// Registries that need no entry in a pull secret.
        public_container_registries: CommaList = "",
        /// Image of the discovery agent, in place of that of the release: agent-installer-node-agent.
        agent_docker_image: String = "",
        /// Image of the program that installs hosts, in place of that of the release: agent-installer-orchestrator.
        installer_image: String = "",
        /// Image of the controller that finalizes an installation inside the new cluster, in place of that of the
        /// release: agent-installer-csr-approver.
        controller_image: String = "",
        /// Image of this service in the list of components.
        self_version: String = "quay.io/edge-infrastructure/assisted-service:latest",
        /// Release tag of this service.
        release_tag: String = "",
        /// Default NTP sources of clusters.
        ntp_default_server: String = "",
        /// Accept IPv6 networks.
        ipv6_support: bool = "false",
        /// Accept disk encryption.
        disk_encryption_support: bool = "true",
        /// Run dnsmasq on single-node clusters.
        enable_single_node_dnsmasq: bool = "true",
        /// Catalog sources of operators in new clusters by the platform's name: {"redhat-operators":"cs-operators"}.
        /// Without it, the catalogs of CONTENT_REGISTRY.
        operator_catalog_sources: JsonVar<BTreeMap<String, String>> = "{}",
        /// API groups of new clusters by those of the platform: {"config.openshift.io":"config.example.org"}. Resources for
        /// clusters are published with them.
        api_group_map: JsonVar<ApiGroupMap> = "{}",
        /// Accept two control-plane nodes with an arbiter.
        tna_clusters_support: bool = "true",
        /// Accept two control-plane nodes with fencing.
        tnf_clusters_support: bool = "false",
        /// Upgrade agents of other versions.
        enable_upgrade_agent: bool = "true",
        /// Report timeouts of stages instead of failing them.
        enable_soft_timeouts: bool = "false",
        /// Skip the reboot of the machine config operator where possible.
        enable_skip_mco_reboot: bool = "true",
        /// Report the number of reboots of nodes.
        notify_num_reboots: bool = "false",
        /// Monitor the cluster version operator during finalizing.
        check_cluster_version: bool = "false",
        /// Host validations to disable.
        disabled_host_validations: CommaList = "",
        /// Cluster validations to disable.
        disabled_cluster_validations: CommaList = "",
        /// Agent steps to disable.
        disabled_steps: CommaList = "",
        /// Addresses of the services, for hosts without DNS.
        service_ips: CommaList = "",
        /// Size above which agents inside discovery images (`embedded_agent`) truncate their inventory; those of releases
        /// cannot. Empty: no limit. In bytes.
        agent_inventory_max_size: Option<u64> = "",
        /// Smallest disk in a truncated inventory of an agent inside a discovery image. In bytes.
        agent_inventory_disk_min_size: Option<u64> = "",
        /// Invoker of the installer, as the cluster records it.
        install_invoker: String = "assisted-installer",
        /// First version whose discovery image applies nmstate configurations itself. Older ones, and infra-envs without
        /// a version, get keyfiles of NetworkManager.
        min_version_for_nmstate_service: FirstVersion = "4.18",
        /// Registry mirrors, in the format of containers-registries.conf. Releases of CONTENT_REGISTRY need none: the
        /// registry is known as the mirror of the repositories that they name.
        registries_conf_path: PathBuf = "/etc/containers/registries.conf",
        /// PEM file of the mirrors' certificate authorities.
        mirror_ca_path: PathBuf = "/etc/pki/ca-trust/extracted/pem/user-registry-ca-bundle.pem",
        /// Concurrency limit of installers.
        install_concurrency: usize = "2",
        /// Policy for missing sandbox mechanisms: run installers with the available ones (best-effort), or refuse to
        /// start (strict). `atoll doctor` shows them.
        installer_sandbox: SandboxMode = "best-effort",
        /// Memory limit of an installer with its children. In bytes.
        installer_memory_limit: u64 = "4294967296",
        /// Limit of processes and threads of an installer.
        installer_process_limit: u32 = "1024",
        /// Disk limit of an installer with its temporary files, which are in memory if the kernel allows it. In bytes.
        installer_disk_limit: u64 = "1073741824",
        /// Timeout of one installer run.
        installer_time_limit: Duration = "5m",
        /// Capacity of the installer cache; installers in use are not evicted. In bytes, 0: no limit.
        installer_cache_capacity: u64 = "0",
        /// Accept unsigned images on discovered hosts (insecureAcceptAnything).
        force_insecure_policy_json: bool = "false",
        /// Timeout of the agent's start.
        agent_timeout_start: Duration = "3m",
        /// Interval of the cluster monitor.
        cluster_monitor_interval: Duration = "10s",
        /// Flush interval of heartbeats.
        check_in_flush_interval: Duration = "3s",
        /// Heartbeat timeout, after which a host is disconnected.
        host_max_disconnection_time: Duration = "3m",
        /// Timeout of a cluster's preparation.
        prepare_for_installation_timeout: Duration = "10m",
        /// Timeout of reading a release image's metadata from one registry, and of its signature from all stores.
        release_image_timeout: Duration = "2m",
        /// Timeout of a host's preparation.
        prepare_for_installation_host_timeout: Duration = "8m",
        /// Timeout of the disk speed check.
        disk_check_timeout: Duration = "8m",
        /// Timeout of the image availability check.
        image_availability_timeout: Duration = "16m",
        /// Timeout of an installation.
        installation_timeout: Duration = "24h",
        /// Timeout of finalizing.
        finalizing_timeout: Duration = "5h",
        /// Timeout of a pending user action of a host.
        host_installing_pending_user_action_timeout: Duration = "60m",
        /// Time for which a cluster that lacks a failed host waits for its retry (`v2ResetHost`); 0: it fails at once.
        host_retry_timeout: Duration = "0s",
        /// Timeout of a host's log collection.
        host_log_collection_timeout: Duration = "10m",
        /// Timeout of the start of a host's log collection.
        host_log_pending_timeout: Duration = "2m",
        /// Timeout of the controller's log collection.
        log_collection_timeout: Duration = "60m",
        /// Timeout of the start of the controller's log collection.
        log_pending_timeout: Duration = "10m",
        /// Limit of hosts per cluster; exceeded: 400.
        max_hosts_per_cluster: u32 = "5000",
        /// Limit of hosts per infra-env; exceeded: 400.
        max_hosts_per_infra_env: u32 = "5000",
        /// Limit of clusters; exceeded: 409.
        max_clusters: u32 = "1000",
        /// Share of one owner in them: a user, or an organisation with ENABLE_ORG_TENANCY; exceeded: 409. 0: no share. Without an issuer of tokens (AUTH_TYPE none and local), there is one owner, with the whole.
        max_clusters_per_owner: u32 = "250",
        /// Limit of infra-envs; exceeded: 409.
        max_infra_envs: u32 = "2000",
        /// Share of one owner in them; exceeded: 409. 0: no share.
        max_infra_envs_per_owner: u32 = "500",
        /// Limit of events per cluster, or per infra-env without cluster; the oldest are deleted.
        max_events_per_cluster: u32 = "20000",
        /// Limit of all events; the oldest are deleted.
        max_events: u32 = "1000000",
        /// Share of one owner in them; its oldest are deleted. 0: no share.
        max_events_per_owner: u32 = "250000",
        /// Limit of audit records of changes; the oldest of the user with the most are deleted.
        max_audit_records: u32 = "100000",
        /// Limit of audit records of refused changes; the oldest of the user with the most are deleted.
        max_audit_refusals: u32 = "20000",
        /// File that audit records are appended to, as JSON lines, as far as the disk allows; each replica needs its own. Empty: none.
        audit_log_file: Option<PathBuf> = "",
        /// Size at which that file is renamed, with `.1` at its end in place of the one before, and begun again. In bytes.
        audit_log_max_bytes: u64 = "268435456",
        /// Limit of concurrent event streams, a quarter of them for one client address, or user of an issuer of tokens; exceeded: the newest of the client with the most ends, or 503.
        max_event_streams: usize = "256",
        /// Limit of the logs of one host, or of one cluster's controller; exceeded: 413. In bytes.
        max_log_bytes: u64 = "536870912",
        /// Quota of one cluster's files; uploads of logs or manifests beyond: 413. In bytes.
        max_cluster_files_bytes: u64 = "4294967296",
        /// Quota of all clusters' files; uploads of logs or manifests beyond: 413. In bytes.
        max_files_bytes: u64 = "34359738368",
        /// Share of one owner's clusters in them; exceeded: 413. In bytes, 0: no share.
        max_files_bytes_per_owner: u64 = "8589934592",
        /// Limit of custom manifests per cluster; exceeded: 400.
        max_manifests_per_cluster: usize = "1000",
    } with {
        /// Client limits, trusted proxies, and the metrics port.
        http: HttpSettings,
    }
}

impl Settings {
    /// URL of this API for users.
    pub fn base_url(&self) -> String {
        match &self.service_base_url {
            Some(url) => url.0.clone(),
            None => format!(
                "{}://{}",
                self.assisted_service_scheme, self.assisted_service_host
            ),
        }
    }

    /// Reason for which a user could take the name of an administrator; none where no user can.
    pub(crate) fn username_warning(&self) -> Option<String> {
        let has_issuer = matches!(self.auth_type, AuthType::Oidc | AuthType::Rhsso);
        let has_names = !(self.admin_users.is_empty() && self.read_only_admin_users.is_empty());
        let claim = self.oidc_username_claim.as_str();
        let is_changeable =
            ["", "username", "preferred_username", "name", "nickname"].contains(&claim);
        if !(has_issuer && has_names && is_changeable) {
            return None;
        }
        let claim = if claim.is_empty() {
            "username or preferred_username"
        } else {
            claim
        };
        Some(format!(
            "users are named by {claim}, which they may change at some issuers, to a name in ADMIN_USERS or READ_ONLY_ADMIN_USERS"
        ))
    }

    /// URL of this API for agents and nodes, with `SERVICE_FQDN` if set.
    pub fn callback_url(&self) -> String {
        let base = self.base_url();
        if self.service_fqdn.is_empty() {
            return base;
        }
        match Url::parse(&base) {
            Ok(mut url) => match url.set_host(Some(&self.service_fqdn)) {
                Ok(()) => url.as_str().trim_end_matches('/').to_owned(),
                Err(_) => base,
            },
            Err(_) => base,
        }
    }

    /// Parameters of the rules.
    pub fn policy(&self) -> InstallationPolicy {
        InstallationPolicy {
            hardware: self.hw_validator_requirements.0.clone(),
            disabled_host_validations: known(&self.disabled_host_validations),
            disabled_cluster_validations: known(&self.disabled_cluster_validations),
            single_node_dnsmasq: self.enable_single_node_dnsmasq,
            catalog_sources: self.operator_catalog_sources.0.clone(),
            api_group_map: self.api_group_map.0.clone(),
            catalogs: Vec::new(),
            disk_encryption_support: self.disk_encryption_support,
            ipv6_support: self.ipv6_support,
            soft_timeouts: self.enable_soft_timeouts,
            upgrade_agent: self.enable_upgrade_agent,
            host_max_disconnection: self.host_max_disconnection_time,
            prepare_timeout: self.prepare_for_installation_timeout,
            prepare_host_timeout: self.prepare_for_installation_host_timeout,
            installation_timeout: self.installation_timeout,
            finalizing_timeout: self.finalizing_timeout,
            pending_user_action_timeout: self.host_installing_pending_user_action_timeout,
            host_retry_timeout: self.host_retry_timeout,
            host_log_collection_timeout: self.host_log_collection_timeout,
            host_log_pending_timeout: self.host_log_pending_timeout,
            log_collection_timeout: self.log_collection_timeout,
            log_pending_timeout: self.log_pending_timeout,
        }
    }
}

impl Settings {
    /// Installable releases and images. `mirrored` locations need no credentials in pull secrets.
    pub(crate) fn offer(&self) -> rules::Offer {
        let mut platform_versions = self.openshift_versions.0.clone();
        platform_versions.extend(self.platform_versions.0.clone());
        rules::Offer {
            releases: self.release_images.0.clone(),
            release_registries: self.release_image_registries.0.clone(),
            os_images: self.os_images.0.clone(),
            platform_versions,
            ignored_versions: self.ignored_openshift_versions.0.clone(),
            components: self.components(),
            public_registries: self.public_container_registries.0.clone(),
            ntp_default_server: self.ntp_default_server.clone(),
            image_service_url: self.image_service_base_url.0.clone(),
            two_nodes_with_arbiter: self.tna_clusters_support,
            two_nodes_with_fencing: self.tnf_clusters_support,
            check_cluster_version: self.check_cluster_version,
            nmstate_service_from: self.min_version_for_nmstate_service.0.clone(),
            ..rules::Offer::default()
        }
    }

    /// Images that hosts run in place of those of the release.
    pub fn components(&self) -> ComponentImages {
        ComponentImages {
            agent: self.agent_docker_image.clone(),
            installer: self.installer_image.clone(),
            controller: self.controller_image.clone(),
        }
    }

    /// Parameters of agent steps.
    pub(crate) fn steps(&self) -> rules::steps::Settings {
        rules::steps::Settings {
            disabled: known(&self.disabled_steps),
            check_cluster_version: self.check_cluster_version,
            skip_mco_reboot: self.enable_skip_mco_reboot,
            notify_num_reboots: self.notify_num_reboots,
            service_ips: self.service_ips.0.clone(),
            inventory_max_size: self.agent_inventory_max_size,
            inventory_disk_min_size: self.agent_inventory_disk_min_size,
        }
    }
}

/// The values that parse; `ServerSettings::problems` reports the others.
fn known<T: std::str::FromStr + Ord>(list: &CommaList) -> std::collections::BTreeSet<T> {
    list.iter().filter_map(|text| text.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callback_url_has_the_fqdn() {
        let settings = Settings {
            service_base_url: Some(BaseUrl("http://192.0.2.1:8090".to_owned())),
            service_fqdn: "installer.example.com".to_owned(),
            ..Settings::default()
        };
        assert_eq!(settings.callback_url(), "http://installer.example.com:8090");
        assert_eq!(settings.base_url(), "http://192.0.2.1:8090");
    }

    #[test]
    fn base_url_defaults_to_scheme_and_host() {
        let settings = Settings {
            assisted_service_host: "api.example.com:8090".to_owned(),
            ..Settings::default()
        };
        assert_eq!(settings.base_url(), "http://api.example.com:8090");
        assert_eq!(settings.callback_url(), settings.base_url());
    }

    #[test]
    fn signature_stores_default_to_the_public_ones() {
        let stores = |text: &str| SignatureStores::parse(text).map(|it| it.stores());
        assert_eq!(stores(""), Ok(SignatureStore::public()));
        let own = stores("/srv/signatures, https://a.example/s").unwrap();
        let own: Vec<String> = own.iter().map(ToString::to_string).collect();
        assert_eq!(own, ["/srv/signatures", "https://a.example/s"]);
        assert!(stores("signatures").is_err());
    }
}
