//! Every variable that the API server reads, and what they mean together.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use model::hardware::VersionedHostRequirements;
use model::versions::{OpenshiftVersion, OsImage, ReleaseImage};
use oci_client::signature::SignatureStore;
use rules::Policy;
use service::limits::Limit;
use service::program::ServerSettings;
use service::server::{HttpSettings, Listen};
use service::settings::{CommaList, JsonVar, Problem, Secret, Setting, Shape};
use url::Url;

/// Where a live boot image may be mounted.
const LIVE_ISO: &str = "/data/livecd.iso";
/// Where an installer program may be mounted.
const COREOS_INSTALLER: &str = "/data/coreos-installer";
/// Where a live image has its volume descriptor, and what stands there.
const ISO_MAGIC: (u64, &[u8]) = (0x8001, b"CD001");

/// Release images, checked.
#[derive(Debug, Clone, Default)]
pub struct ReleaseImages(pub Vec<ReleaseImage>);
/// OS images, checked.
#[derive(Debug, Clone, Default)]
pub struct OsImages(pub Vec<OsImage>);
/// Platform versions by selector, checked.
#[derive(Debug, Clone, Default)]
pub struct PlatformVersions(pub std::collections::BTreeMap<String, OpenshiftVersion>);

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

/// Where signatures of release images are; those of the public platform where none is named.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SignatureStores(Vec<SignatureStore>);

impl SignatureStores {
    /// In the order in which they are asked.
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

/// A base URL with scheme `http` or `https`, kept as it was written, without a slash at its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseUrl(pub String);

impl Setting for BaseUrl {
    const EXPECTED: &'static str = "http or https URL";

    fn parse(text: &str) -> Result<Self, String> {
        let url = Url::parse(text).map_err(|error| error.to_string())?;
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
            return Err("needs scheme http or https and a host".to_owned());
        }
        if url.query().is_some() || url.fragment().is_some() || !url.username().is_empty() {
            return Err("must not have a user, a query or a fragment".to_owned());
        }
        Ok(Self(text.trim_end_matches('/').to_owned()))
    }
}

/// A choice of which only one can be had in this version.
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
                    other => Err(format!("{other:?} is not offered, only {}", $expected)),
                }
            }
        }
    };
}

only_choice!(
    /// Who may call: everybody.
    AuthType, "none", "none"
);
only_choice!(
    /// Where files are kept: in a folder.
    Storage, "filesystem", "filesystem"
);
only_choice!(
    /// Where the service runs.
    DeployTarget, "onprem" | "k8s" | "ocp", "onprem"
);

/// What happens where a mechanism of the sandbox is missing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SandboxMode {
    /// The others have to do.
    #[default]
    BestEffort,
    /// Nothing starts.
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

/// How far connections to the database are protected, as libpq spells it.
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
            "allow" => Err("does not protect anything: use prefer or require".to_owned()),
            other => Err(format!("{other:?} is no mode")),
        }
    }
}

service::settings! {
    /// What the API server reads.
    pub struct Settings {
        /// Address to listen on.
        api_listen_address: IpAddr = "0.0.0.0",
        /// Port of the API; 0 lets the system choose.
        api_listen_port: u16 = "8090",
        /// Serve the API over TLS, with HTTPS_CERT_FILE and HTTPS_KEY_FILE.
        serve_https: bool = "false",
        /// PEM certificate chain.
        https_cert_file: Option<PathBuf> = "",
        /// PEM private key.
        https_key_file: Option<PathBuf> = "",
        /// URL of this API, as users and hosts reach it. Empty: made of ASSISTED_SERVICE_SCHEME and _HOST.
        service_base_url: Option<BaseUrl> = "",
        /// Name that discovery agents call back, in place of the host of SERVICE_BASE_URL.
        service_fqdn: String = "",
        /// Scheme of the URL of this API when SERVICE_BASE_URL is empty.
        assisted_service_scheme: String = "http",
        /// Host and port of the URL of this API when SERVICE_BASE_URL is empty.
        assisted_service_host: String = "127.0.0.1:8090",
        /// URL of the image service, as users and hosts reach it.
        image_service_base_url: BaseUrl = "http://127.0.0.1:8888",
        /// Who may call.
        auth_type: AuthType = "none",
        /// How the service is deployed.
        deploy_target: DeployTarget = "onprem",
        /// Where files are kept.
        storage: Storage = "filesystem",
        /// Folder of the file store and of the installer cache.
        work_dir: PathBuf = "/data",
        /// Agents and nodes accept any certificate of this API.
        skip_cert_verification: bool = "false",
        /// PEM file of the authority that signed this API's certificate, given to hosts.
        service_ca_cert_path: Option<PathBuf> = "",
        /// Make up ignition files in place of running the installer: a test mode.
        dummy_ignition: bool = "false",
        /// Host of the database.
        db_host: String = "127.0.0.1",
        /// Port of the database.
        db_port: u16 = "5432",
        /// User of the database.
        db_user: String = "admin",
        /// Password of the database user.
        db_pass: Secret = "admin",
        /// Name of the database.
        db_name: String = "installer",
        /// Protection of database connections: disable, prefer, require, verify-ca or verify-full, as in libpq. From require
        /// on, plain text is never used. verify-ca also accepts certificates of public authorities: prefer verify-full.
        db_sslmode: SslMode = "prefer",
        /// PEM file of the authority that signed the database's certificate. With it, require verifies as verify-ca does.
        db_ca_file: Option<PathBuf> = "",
        /// Connections kept open at most.
        db_max_open_connections: u32 = "20",
        /// How long a connection is used before it is replaced.
        db_connections_max_lifetime: Duration = "30m",
        /// Release images that can be installed.
        release_images: ReleaseImages = "",
        /// Registry hosts, with ports, that release images named by callers may come from. Empty: those of RELEASE_IMAGES.
        release_image_registries: CommaList = "",
        /// File of public keys, as gpg --export writes them: release images that callers name by digest may come from
        /// anywhere when one of these keys has signed them. Empty: signatures are not looked for.
        release_keyring: Option<PathBuf> = "",
        /// Where the signatures of release images are: URLs, or folders of this machine. Empty: those of the public
        /// platform.
        release_signature_stores: SignatureStores = "",
        /// OS images that discovery images are made from.
        os_images: OsImages = "",
        /// Versions shown in the listing beside those of RELEASE_IMAGES.
        platform_versions: PlatformVersions = "",
        /// The same as PLATFORM_VERSIONS, under its older name.
        openshift_versions: PlatformVersions = "",
        /// Versions that are not offered although an image is there.
        ignored_openshift_versions: CommaList = "",
        /// What each role asks of the hardware, by version.
        hw_validator_requirements: JsonVar<Vec<VersionedHostRequirements>> = "[]",
        /// Registry hosts that need no entry in a pull secret.
        public_container_registries: CommaList = "",
        /// Image of the agent that discovers hosts.
        agent_docker_image: String = "quay.io/edge-infrastructure/assisted-installer-agent:latest",
        /// Image of the program that installs a host.
        installer_image: String = "quay.io/edge-infrastructure/assisted-installer:latest",
        /// Image of the controller that finishes an installation.
        controller_image: String = "quay.io/edge-infrastructure/assisted-installer-controller:latest",
        /// How this service calls itself in the list of components.
        self_version: String = "quay.io/edge-infrastructure/assisted-service:latest",
        /// Tag of the release this service belongs to.
        release_tag: String = "",
        /// Time sources for clusters that name none.
        ntp_default_server: String = "",
        /// Accept IPv6 networks.
        ipv6_support: bool = "false",
        /// Accept disk encryption.
        disk_encryption_support: bool = "true",
        /// Single-node clusters resolve their own names.
        enable_single_node_dnsmasq: bool = "true",
        /// Accept two control-plane nodes with an arbiter.
        tna_clusters_support: bool = "true",
        /// Accept two control-plane nodes with fencing.
        tnf_clusters_support: bool = "false",
        /// Have agents of another version replaced.
        enable_upgrade_agent: bool = "true",
        /// Report a stage that takes too long instead of failing it.
        enable_soft_timeouts: bool = "false",
        /// Nodes skip the reboot of the machine config operator where they can.
        enable_skip_mco_reboot: bool = "true",
        /// Nodes report how often they rebooted.
        notify_num_reboots: bool = "false",
        /// Watch the cluster version operator at the end of an installation.
        check_cluster_version: bool = "false",
        /// Host validations that always pass.
        disabled_host_validations: CommaList = "",
        /// Cluster validations that always pass.
        disabled_cluster_validations: CommaList = "",
        /// Steps that agents are never asked for.
        disabled_steps: CommaList = "",
        /// Addresses by which hosts reach the services when names do not resolve.
        service_ips: CommaList = "",
        /// Size at which agents cut their inventory; empty: never. In bytes.
        agent_inventory_max_size: Option<u64> = "",
        /// Size below which disks are left out of a cut inventory. In bytes.
        agent_inventory_disk_min_size: Option<u64> = "",
        /// Who installs, as the cluster records it.
        install_invoker: String = "assisted-installer",
        /// First version whose discovery image configures networks on the host.
        min_version_for_nmstate_service: String = "4.18",
        /// Mirror configuration of registries, as in /etc/containers/registries.conf.
        registries_conf_path: PathBuf = "/etc/containers/registries.conf",
        /// Certificates of the mirror's authorities.
        mirror_ca_path: PathBuf = "/etc/pki/ca-trust/extracted/pem/user-registry-ca-bundle.pem",
        /// Installers that run at the same time.
        install_concurrency: usize = "2",
        /// What happens where this machine lacks a mechanism that confines installers: they run with the others
        /// (best-effort), or nothing starts (strict). `atoll doctor` shows them.
        installer_sandbox: SandboxMode = "best-effort",
        /// Memory of an installer and all that it starts. In bytes.
        installer_memory_limit: u64 = "4294967296",
        /// Processes and threads of an installer and all that it starts.
        installer_process_limit: u32 = "1024",
        /// Files of an installer, temporary ones included; they are in memory where the kernel allows it. In bytes.
        installer_disk_limit: u64 = "1073741824",
        /// How long an installer may run each time.
        installer_time_limit: Duration = "5m",
        /// What installers that are kept for later may take on disk; one in use always stays. In bytes, 0: no limit.
        installer_cache_capacity: u64 = "0",
        /// Discovered hosts trust every image signature.
        force_insecure_policy_json: bool = "false",
        /// How long the agent may take to start.
        agent_timeout_start: Duration = "3m",
        /// How often clusters in which a clock runs are looked at.
        cluster_monitor_interval: Duration = "10s",
        /// How often the times of polls are written.
        check_in_flush_interval: Duration = "3s",
        /// A host that was silent for longer is disconnected.
        host_max_disconnection_time: Duration = "3m",
        /// How long the preparation of a cluster may take.
        prepare_for_installation_timeout: Duration = "10m",
        /// How long one registry may take to deliver what a release image says about itself, and the stores together to
        /// deliver its signature.
        release_image_timeout: Duration = "2m",
        /// How long the preparation of a host may take.
        prepare_for_installation_host_timeout: Duration = "8m",
        /// How long the disks' test may take.
        disk_check_timeout: Duration = "8m",
        /// How long the images' test may take.
        image_availability_timeout: Duration = "16m",
        /// How long an installation may take.
        installation_timeout: Duration = "24h",
        /// How long the end of an installation may take.
        finalizing_timeout: Duration = "5h",
        /// How long a host may wait for its user.
        host_installing_pending_user_action_timeout: Duration = "60m",
        /// How long a host may collect logs.
        host_log_collection_timeout: Duration = "10m",
        /// How long the logs of a host may stay away.
        host_log_pending_timeout: Duration = "2m",
        /// How long the controller may collect logs.
        log_collection_timeout: Duration = "60m",
        /// How long the logs of the controller may stay away.
        log_pending_timeout: Duration = "10m",
        /// Hosts that one cluster takes; a registration beyond is answered 400.
        max_hosts_per_cluster: u32 = "5000",
        /// Hosts that register to one infra-env; a registration beyond is answered 400.
        max_hosts_per_infra_env: u32 = "5000",
        /// Clusters; a creation beyond is answered 409.
        max_clusters: u32 = "1000",
        /// Infra-envs; a creation beyond is answered 409.
        max_infra_envs: u32 = "2000",
        /// Events that are kept of one cluster, or of one infra-env without cluster; the oldest go first.
        max_events_per_cluster: u32 = "20000",
        /// Events that are kept in all; the oldest go first.
        max_events: u32 = "1000000",
        /// Size of the logs of one host, or of the controller of one cluster; more is answered 413. In bytes.
        max_log_bytes: u64 = "536870912",
        /// Size of all files of one cluster: an upload of logs or manifests beyond is answered 413. In bytes.
        max_cluster_files_bytes: u64 = "4294967296",
        /// Size of the files of all clusters: an upload of logs or manifests beyond is answered 413. In bytes.
        max_files_bytes: u64 = "34359738368",
        /// Manifests that users add to one cluster; one beyond is answered 400.
        max_manifests_per_cluster: usize = "1000",
        /// Unused clusters are deleted after this; shown to users.
        deleted_inactive_after: Duration = "480h",
    } with {
        /// Bounds of clients, trusted proxies, and where the metrics are.
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

    /// URL of this API for agents and nodes: under `SERVICE_FQDN` when that is set.
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

    /// What decisions are told.
    pub fn policy(&self) -> Policy {
        Policy {
            hardware: self.hw_validator_requirements.0.clone(),
            disabled_host_validations: known(&self.disabled_host_validations),
            disabled_cluster_validations: known(&self.disabled_cluster_validations),
            single_node_dnsmasq: self.enable_single_node_dnsmasq,
            disk_encryption_support: self.disk_encryption_support,
            ipv6_support: self.ipv6_support,
            soft_timeouts: self.enable_soft_timeouts,
            agent_image: self.agent_docker_image.clone(),
            upgrade_agent: self.enable_upgrade_agent,
            host_max_disconnection: self.host_max_disconnection_time,
            prepare_timeout: self.prepare_for_installation_timeout,
            prepare_host_timeout: self.prepare_for_installation_host_timeout,
            installation_timeout: self.installation_timeout,
            finalizing_timeout: self.finalizing_timeout,
            pending_user_action_timeout: self.host_installing_pending_user_action_timeout,
            host_log_collection_timeout: self.host_log_collection_timeout,
            host_log_pending_timeout: self.host_log_pending_timeout,
            log_collection_timeout: self.log_collection_timeout,
            log_pending_timeout: self.log_pending_timeout,
        }
    }
}

impl Settings {
    /// How programs out of images run.
    pub(crate) fn confinement(&self) -> crate::install::Confinement {
        crate::install::Confinement {
            launcher: sandbox::Launcher::own(),
            limits: sandbox::SandboxLimits {
                memory_bytes: self.installer_memory_limit,
                processes: self.installer_process_limit,
                disk_bytes: self.installer_disk_limit,
                time: self.installer_time_limit,
            },
            strict: self.installer_sandbox == SandboxMode::Strict,
        }
    }

    /// What can be created here; locations that are mirrored need no credentials of the user.
    pub(crate) fn offer(&self, mirrors: Option<&crate::install::RegistryMirrors>) -> rules::Offer {
        let mut platform_versions = self.openshift_versions.0.clone();
        platform_versions.extend(self.platform_versions.0.clone());
        let mut public_registries = self.public_container_registries.0.clone();
        for source in mirrors.iter().flat_map(|mirrors| &mirrors.sources) {
            public_registries.push(source.location.clone());
        }
        rules::Offer {
            releases: self.release_images.0.clone(),
            release_registries: self.release_image_registries.0.clone(),
            os_images: self.os_images.0.clone(),
            platform_versions,
            ignored_versions: self.ignored_openshift_versions.0.clone(),
            component_images: [
                &self.agent_docker_image,
                &self.installer_image,
                &self.controller_image,
            ]
            .map(Clone::clone)
            .into(),
            public_registries,
            ntp_default_server: self.ntp_default_server.clone(),
            image_service_url: self.image_service_base_url.0.clone(),
            two_nodes_with_arbiter: self.tna_clusters_support,
            two_nodes_with_fencing: self.tnf_clusters_support,
            check_cluster_version: self.check_cluster_version,
            ..rules::Offer::default()
        }
    }

    /// What steps of agents are made with.
    pub(crate) fn steps(&self) -> rules::steps::Settings {
        rules::steps::Settings {
            agent_image: self.agent_docker_image.clone(),
            installer_image: self.installer_image.clone(),
            controller_image: self.controller_image.clone(),
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

/// The values that parse; the others are told of by [`ServerSettings::problems`].
fn known<T: std::str::FromStr + Ord>(list: &CommaList) -> std::collections::BTreeSet<T> {
    list.iter().filter_map(|text| text.parse().ok()).collect()
}

fn unknown<T>(list: &CommaList) -> Vec<String>
where
    T: std::str::FromStr<Err = model::UnknownValue>,
{
    list.iter()
        .filter_map(|text| text.parse::<T>().err().map(|error| error.to_string()))
        .collect()
}

impl ServerSettings for Settings {
    fn listen(&self) -> Vec<Listen> {
        let tls = match (
            self.serve_https,
            &self.https_cert_file,
            &self.https_key_file,
        ) {
            (true, Some(cert), Some(key)) => {
                let (cert, key) = (cert.clone(), key.clone());
                Some(service::tls::CertificateFiles { cert, key }.into())
            }
            _ => None,
        };
        vec![
            Listen::new(
                SocketAddr::new(self.api_listen_address, self.api_listen_port),
                tls,
            )
            .with(&self.http),
        ]
    }

    fn limits(&self) -> Vec<Limit> {
        crate::limits::limits(self)
    }

    fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut report = |variable: &str, text: String| problems.push(Problem::new(variable, text));
        if self.serve_https {
            for (variable, file) in [
                ("HTTPS_CERT_FILE", &self.https_cert_file),
                ("HTTPS_KEY_FILE", &self.https_key_file),
            ] {
                match file {
                    None => report(
                        variable,
                        "has to name a PEM file while SERVE_HTTPS is true".to_owned(),
                    ),
                    Some(path) => readable(path).unwrap_or_else(|text| report(variable, text)),
                }
            }
        }
        if let Some(path) = &self.service_ca_cert_path {
            readable(path).unwrap_or_else(|text| report("SERVICE_CA_CERT_PATH", text));
        }
        if self.service_base_url.is_none()
            && let Err(text) = BaseUrl::parse(&self.base_url())
        {
            report(
                "ASSISTED_SERVICE_HOST",
                format!("{} is no URL: {text}", self.base_url()),
            );
        }
        if self.service_fqdn.contains([':', '/']) {
            report(
                "SERVICE_FQDN",
                format!(
                    "{:?} is not a plain name, as in installer.example.com",
                    self.service_fqdn
                ),
            );
        }
        for text in unknown::<model::validations::HostValidationId>(&self.disabled_host_validations)
        {
            report("DISABLED_HOST_VALIDATIONS", text);
        }
        for text in
            unknown::<model::validations::ClusterValidationId>(&self.disabled_cluster_validations)
        {
            report("DISABLED_CLUSTER_VALIDATIONS", text);
        }
        for text in unknown::<model::steps::StepType>(&self.disabled_steps) {
            report("DISABLED_STEPS", text);
        }
        if !self.release_images.0.is_empty() && self.os_images.0.is_empty() {
            report(
                "OS_IMAGES",
                "is empty, so no discovery image can be made for RELEASE_IMAGES".to_owned(),
            );
        }
        if let Some(path) = &self.release_keyring
            && let Err(error) = crate::install::keyring(path)
        {
            report("RELEASE_KEYRING", error.chain());
        }
        if let Some(path) = &self.db_ca_file {
            readable(path).unwrap_or_else(|text| report("DB_CA_FILE", text));
        } else if matches!(self.db_sslmode, SslMode::VerifyCa | SslMode::VerifyFull) {
            report(
                "DB_CA_FILE",
                "has to name a PEM file while DB_SSLMODE is verify-ca or verify-full".to_owned(),
            );
        }
        if self.db_max_open_connections < 4 {
            report(
                "DB_MAX_OPEN_CONNECTIONS",
                "needs at least 4 connections".to_owned(),
            );
        }
        if let Err(text) = mounted_iso(Path::new(LIVE_ISO)) {
            report("/data/livecd.iso", text);
        }
        if let Err(text) = mounted_program(Path::new(COREOS_INSTALLER)) {
            report("/data/coreos-installer", text);
        }
        problems
    }
}

fn readable(path: &Path) -> Result<(), String> {
    std::fs::File::open(path)
        .map(drop)
        .map_err(|error| format!("{}: {error}", path.display()))
}

/// A mounted boot image has to be one.
fn mounted_iso(path: &Path) -> Result<(), String> {
    use std::io::{Read as _, Seek as _, SeekFrom};
    if !path.exists() {
        return Ok(());
    }
    let told = |error: std::io::Error| format!("is mounted but cannot be read: {error}");
    let mut file = std::fs::File::open(path).map_err(told)?;
    let mut magic = [0; ISO_MAGIC.1.len()];
    file.seek(SeekFrom::Start(ISO_MAGIC.0)).map_err(told)?;
    match file.read_exact(&mut magic) {
        Ok(()) if magic == ISO_MAGIC.1 => Ok(()),
        _ => Err("is mounted but is not an ISO image: mount the live boot image there".to_owned()),
    }
}

/// A mounted installer program has to be executable.
fn mounted_program(path: &Path) -> Result<(), String> {
    use std::os::unix::fs::PermissionsExt as _;
    match path.metadata() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(format!("is mounted but cannot be read: {error}")),
        Ok(metadata) if metadata.is_file() && metadata.permissions().mode() & 0o111 != 0 => Ok(()),
        Ok(_) => Err("is mounted but is not an executable file".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_call_the_fqdn() {
        let settings = Settings {
            service_base_url: Some(BaseUrl("http://192.0.2.1:8090".to_owned())),
            service_fqdn: "installer.example.com".to_owned(),
            ..Settings::default()
        };
        assert_eq!(settings.callback_url(), "http://installer.example.com:8090");
        assert_eq!(settings.base_url(), "http://192.0.2.1:8090");
    }

    #[test]
    fn without_a_base_url_scheme_and_host_make_one() {
        let settings = Settings {
            assisted_service_host: "api.example.com:8090".to_owned(),
            ..Settings::default()
        };
        assert_eq!(settings.base_url(), "http://api.example.com:8090");
        assert_eq!(settings.callback_url(), settings.base_url());
    }

    #[test]
    fn the_defaults_can_be_used() {
        assert!(Settings::default().problems().is_empty());
    }

    #[test]
    fn problems_are_told_together() {
        let settings = Settings {
            serve_https: true,
            service_fqdn: "http://x".to_owned(),
            disabled_steps: CommaList(vec!["dance".to_owned()]),
            release_keyring: Some("/nowhere/keys".into()),
            ..Settings::default()
        };
        assert_eq!(settings.problems().len(), 5, "{:?}", settings.problems());
    }

    #[test]
    fn signatures_are_at_the_public_stores_or_where_it_is_said() {
        let stores = |text: &str| SignatureStores::parse(text).map(|it| it.stores());
        assert_eq!(stores(""), Ok(SignatureStore::public()));
        let own = stores("/srv/signatures, https://a.example/s").unwrap();
        let own: Vec<String> = own.iter().map(ToString::to_string).collect();
        assert_eq!(own, ["/srv/signatures", "https://a.example/s"]);
        assert!(stores("signatures").is_err());
    }

    #[test]
    fn a_mounted_text_file_is_no_boot_image() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(mounted_iso(file.path()).is_err());
        assert!(mounted_iso(Path::new("/nowhere/livecd.iso")).is_ok());
    }
}
