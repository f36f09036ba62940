//! Settings, under distribution's names.

pub(crate) mod distribution;
mod endpoints;
mod kinds;
mod manifests;
mod problems;
mod storage;
mod upstreams;

use std::path::PathBuf;
use std::time::Duration;

use service::server::HttpSettings;
use service::settings::{CommaList, Secret};
use service::tls;

use crate::size::Size;
pub(crate) use endpoints::Endpoint;
pub use endpoints::Endpoints;
pub use kinds::{Driver, FileChecks, Formatter, Headers, HttpAddr, Level, Net, Prefix};
pub(crate) use kinds::{FileCheck, items, nothing, without_index};
pub use manifests::{Patterns, PlatformChecks, Platforms};
pub use upstreams::{UpstreamConfig, UpstreamList};

/// The setting that names distribution's file.
pub(crate) const OWN_FILE: &str = "registry_configuration_path";

service::settings! {
    /// Settings of the registry.
    pub struct Settings {
        /// Distribution's YAML file; `--config` and `serve` take it, too, if it ends in .yml or .yaml. Variables win
        /// over it: `http: {addr: :5000}` there is `REGISTRY_HTTP_ADDR=:5000`, items of lists have numbers from 0 on.
        registry_configuration_path: Option<PathBuf> = "",
        /// Where to listen: `host:port`, or `:port` for every address.
        registry_http_addr: HttpAddr = ":5000",
        /// Protocol of the listener.
        registry_http_net: Net = "tcp",
        /// Prefix of every path, as in `/registry/`.
        registry_http_prefix: Prefix = "",
        /// Time for in-flight requests to finish at a shutdown.
        registry_http_draintimeout: Duration = "20s",
        /// Headers of every answer, as in `REGISTRY_HTTP_HEADERS_X-Content-Type-Options=nosniff`.
        registry_http_headers: Headers = "",
        /// Whether HTTP/2 is not spoken.
        registry_http_http2_disabled: bool = "false",
        /// Whether HTTP/2 is spoken without TLS, too, to clients that begin with it.
        registry_http_h2c_enabled: bool = "true",
        /// Where to answer `/debug/health`, and `/metrics` if the next setting says so, besides.
        registry_http_debug_addr: Option<HttpAddr> = "",
        /// Whether the metrics are there, too.
        registry_http_debug_prometheus_enabled: bool = "false",
        /// Path of the metrics there.
        registry_http_debug_prometheus_path: String = "/metrics",
        /// PEM certificate chain; together with the key it switches TLS on.
        registry_http_tls_certificate: Option<PathBuf> = "",
        /// PEM private key.
        registry_http_tls_key: Option<PathBuf> = "",
        /// PEM files of the authorities whose certificates clients have to show.
        registry_http_tls_clientcas: CommaList = "",
        /// Client certificates; unset: require-and-verify-client-cert once there are authorities, else nothing.
        registry_http_tls_clientauth: Option<tls::Demand> = "",
        /// The lowest version of TLS that is spoken.
        registry_http_tls_minimumtls: tls::TlsVersion = "tls1.2",
        /// The cipher suites of TLS 1.2 that are spoken, by their IANA names; unset: all that are safe.
        registry_http_tls_ciphersuites: CommaList = "",
        /// URL under which clients reach the registry, for Location headers; unset: as in the request.
        registry_http_host: Option<String> = "",
        /// Whether Location headers are paths instead of URLs.
        registry_http_relativeurls: bool = "false",
        /// Password file of `user:bcrypt` lines, or the folder of one called htpasswd; unset: anybody may do anything.
        registry_auth_htpasswd_path: Option<PathBuf> = "",
        /// Realm that clients show when they ask for a password.
        registry_auth_htpasswd_realm: String = "Registry",
        /// Whether anonymous clients may pull; users of the password file may do anything.
        registry_auth_anonymouspull: bool = "false",
        /// File of access rules, YAML or JSON: actions of users in repositories; access that no rule grants is
        /// refused. Read again when it changes. `rules: [{users: [ci, "*", anonymous], repositories: ["team/**"],
        /// actions: [pull, push, delete]}]`: `*` is every user, `anonymous` every client; in repositories `*` is any
        /// text without a slash, `**` any text; push implies pull.
        registry_auth_policy_path: Option<PathBuf> = "",
        /// URL of the server that gives tokens; with it, or with autoredirect, tokens take the place of passwords.
        registry_auth_token_realm: Option<String> = "",
        /// Audience of tokens: their `aud`.
        registry_auth_token_service: Option<String> = "",
        /// Issuer of tokens: their `iss`.
        registry_auth_token_issuer: Option<String> = "",
        /// PEM certificates whose keys, or those that they vouch for, sign tokens. Read again when it changes.
        registry_auth_token_rootcertbundle: Option<PathBuf> = "",
        /// JSON Web Key Set of the keys that sign tokens. Read again when it changes.
        registry_auth_token_jwks: Option<PathBuf> = "",
        /// How tokens may be signed, as in `ES256,RS256`; unset: any way that is safe.
        registry_auth_token_signingalgorithms: CommaList = "",
        /// Whether tokens are given on the host that the client reached.
        registry_auth_token_autoredirect: bool = "false",
        /// At which path there.
        registry_auth_token_autoredirectpath: String = "/auth/token",
        /// Storage driver; unset: s3 if `REGISTRY_STORAGE_S3_BUCKET` is set, else filesystem.
        registry_storage: Option<Driver> = "",
        /// Folder of the content, in distribution's layout.
        registry_storage_filesystem_rootdirectory: PathBuf = "/var/lib/registry",
        /// Room on the disk that only deletions and garbage collection may use, so that a full disk can be emptied; at
        /// most a sixteenth of the disk; 0 for none.
        registry_storage_filesystem_reserve: Size = "64MiB",
        /// Bucket of the content, in distribution's layout. Any number of registries may serve one bucket.
        registry_storage_s3_bucket: String = "",
        /// Where the bucket is.
        registry_storage_s3_region: String = "us-east-1",
        /// Host or URL of a server other than Amazon's.
        registry_storage_s3_regionendpoint: Option<String> = "",
        /// Access key id; unset: credentials of the instance metadata service.
        registry_storage_s3_accesskey: Option<Secret> = "",
        /// Goes with the access key.
        registry_storage_s3_secretkey: Option<Secret> = "",
        /// Goes with keys that are valid for a while.
        registry_storage_s3_sessiontoken: Option<Secret> = "",
        /// Folder in the bucket.
        registry_storage_s3_rootdirectory: String = "",
        /// Whether an endpoint without a scheme is asked by HTTPS.
        registry_storage_s3_secure: bool = "true",
        /// Whether every certificate of the endpoint is trusted.
        registry_storage_s3_skipverify: bool = "false",
        /// PEM file of certificates that are trusted beside the system's.
        registry_storage_s3_cafile: Option<PathBuf> = "",
        /// Whether the bucket stands in the path of URLs, instead of in their host; unset: if there is an endpoint.
        registry_storage_s3_forcepathstyle: Option<bool> = "",
        /// Units: bytes. In parts of this length uploads are sent on; each takes up to four times as much memory.
        registry_storage_s3_chunksize: u64 = "5242880",
        /// Server-side encryption of objects.
        registry_storage_s3_encrypt: bool = "false",
        /// The key for that in the server's key service.
        registry_storage_s3_keyid: Option<String> = "",
        /// Whether nothing can be pushed or deleted, and nothing is cleaned up.
        registry_storage_maintenance_readonly_enabled: bool = "false",
        /// File of rules, YAML or JSON, that say which tags are kept, how much repositories may hold, and which tags
        /// never move. Read again when it changes.
        registry_storage_policy_path: Option<PathBuf> = "",
        /// Whether abandoned uploads are dropped.
        registry_storage_maintenance_uploadpurging_enabled: bool = "true",
        /// How long an upload may stay without a byte.
        registry_storage_maintenance_uploadpurging_age: Duration = "168h",
        /// How often abandoned uploads are looked for.
        registry_storage_maintenance_uploadpurging_interval: Duration = "24h",
        /// Whether abandoned uploads stay all the same.
        registry_storage_maintenance_uploadpurging_dryrun: bool = "false",
        /// Whether unretained tags and unreferenced content are removed, while the registry serves.
        registry_storage_maintenance_gc_enabled: bool = "true",
        /// How often such tags and content are looked for.
        registry_storage_maintenance_gc_interval: Duration = "24h",
        /// How long content stays after it was pushed: its manifest may still come.
        registry_storage_maintenance_gc_grace: Duration = "1h",
        /// Whether manifests of schema 1, as Docker made them until 2016, are taken; those that are there are served.
        registry_compatibility_schema1_enabled: bool = "true",
        /// Whether all content is read from time to time and compared with its digest.
        registry_storage_maintenance_scrub_enabled: bool = "true",
        /// How long after one such scrub the next one begins.
        registry_storage_maintenance_scrub_interval: Duration = "168h",
        /// How much a scrub reads in a second; 0: as much as it can.
        registry_storage_maintenance_scrub_rate: Size = "50MiB",
        /// Whether manifests with missing content are accepted.
        registry_validation_disabled: bool = "false",
        /// Upstream of a pull-through cache: `https://HOST[:PORT]`. Nothing can be
        /// pushed then.
        registry_proxy_remoteurl: Option<String> = "",
        /// User of the upstream.
        registry_proxy_username: Option<String> = "",
        /// The password or token.
        registry_proxy_password: Option<Secret> = "",
        /// PEM file of authorities that are trusted there besides the system's.
        registry_proxy_cafile: Option<PathBuf> = "",
        /// Several such registries, each for the repositories below its prefix; elsewhere can be pushed as always.
        /// `REGISTRY_PROXY_UPSTREAMS_0_PREFIX=docker.io`, `…_0_URL=https://registry-1.docker.io`, and where they are
        /// needed `…_0_USERNAME`, `_PASSWORD` or `_PASSWORDFILE`, `_CAFILE`.
        registry_proxy_upstreams: UpstreamList = "",
        /// Time to live of fetched content after its last use; for ever when zero.
        registry_proxy_ttl: Duration = "168h",
        /// How long a tag is served without asking its registry again.
        registry_proxy_tagttl: Duration = "0s",
        /// Patterns of the URLs that layers may have which lie elsewhere; unset: any, unless denied.
        registry_validation_manifests_urls_allow: Patterns = "",
        /// Patterns of the URLs that such layers may not have.
        registry_validation_manifests_urls_deny: Patterns = "",
        /// Images that an index needs to be there: any, as mirrors of single platforms push it, all, none, or those of a list.
        registry_validation_manifests_indexes_platforms: PlatformChecks = "any",
        /// These platforms, if `list` is said there: `REGISTRY_VALIDATION_MANIFESTS_INDEXES_PLATFORMLIST_0_OS=linux`
        /// and `…_0_ARCHITECTURE=amd64`.
        registry_validation_manifests_indexes_platformlist: Platforms = "",
        /// Most entries of a page of the catalog.
        registry_catalog_maxentries: usize = "1000",
        /// Most entries of a page of tags.
        registry_tags_maxtags: usize = "1000",
        /// Whether the storage is tried from time to time.
        registry_health_storagedriver_enabled: bool = "true",
        /// How often.
        registry_health_storagedriver_interval: Duration = "10s",
        /// After how many failures in a row the registry is not ready.
        registry_health_storagedriver_threshold: u32 = "3",
        /// Files that say by being there that the registry is not ready: `REGISTRY_HEALTH_FILE_0_FILE=/run/away`.
        registry_health_file: FileChecks = "",
        /// Endpoints of notifications: `REGISTRY_NOTIFICATIONS_ENDPOINTS_0_URL=http://…`, and beside it
        /// NAME, HEADERS_<name>, TIMEOUT (1s), THRESHOLD (10), BACKOFF (1s), DISABLED, IGNOREDMEDIATYPES,
        /// IGNORE_MEDIATYPES and IGNORE_ACTIONS. Undelivered events are stored, also over a restart.
        registry_notifications_endpoints: Endpoints = "",
        /// Whether events list the content of manifests.
        registry_notifications_events_includereferences: bool = "false",
        /// Log level; unset: `LOG_LEVEL`.
        registry_log_level: Option<Level> = "",
        /// How the log looks; unset: text on a terminal, JSON elsewhere.
        registry_log_formatter: Option<Formatter> = "",
        /// Whether requests are not written to standard output, one a line.
        registry_log_accesslog_disabled: bool = "false",
        /// Whether manifests, tags and blobs can be deleted.
        registry_storage_delete_enabled: bool = "true",
    } with {
        /// Bounds of clients, trusted proxies, and where the metrics are. Clients that compress a layer while they push it
        /// pause for as long as that takes.
        http: HttpSettings { body_idle_timeout = "5m" },
    }
}

impl Settings {
    pub(crate) fn tls(&self) -> Option<tls::TlsConfig> {
        let cert = self.registry_http_tls_certificate.clone()?;
        let key = self.registry_http_tls_key.clone()?;
        let authorities = &self.registry_http_tls_clientcas;
        let demand = self
            .registry_http_tls_clientauth
            .or_else(|| (!authorities.is_empty()).then(tls::Demand::default));
        Some(tls::TlsConfig {
            clients: demand.map(|demand| tls::Clients {
                authorities: authorities.iter().map(PathBuf::from).collect(),
                demand,
            }),
            minimum: self.registry_http_tls_minimumtls,
            suites: self.registry_http_tls_ciphersuites.to_vec(),
            ..tls::TlsConfig::from(tls::CertificateFiles { cert, key })
        })
    }

    /// Where the passwords are. The folder that the sample of Debian's package names stands for the file in it.
    pub(crate) fn password_file(&self) -> Option<PathBuf> {
        let path = self.registry_auth_htpasswd_path.as_ref()?;
        Some(if path.is_dir() {
            path.join("htpasswd")
        } else {
            path.clone()
        })
    }

    /// The registries that content is fetched from.
    pub(crate) fn upstreams(&self) -> Vec<UpstreamConfig> {
        let one = self.registry_proxy_remoteurl.clone();
        let one = one.map(|url| UpstreamConfig {
            prefix: None,
            url,
            username: self.registry_proxy_username.clone(),
            password: self.registry_proxy_password.clone(),
            passwordfile: None,
            cafile: self.registry_proxy_cafile.clone(),
        });
        let several = self.registry_proxy_upstreams.0.iter().cloned();
        one.into_iter().chain(several).collect()
    }
}
