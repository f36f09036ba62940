//! What the registry reads, under the names that distribution gave.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use service::program::ServerSettings;
use service::server::Listen;
use service::settings::{CommaList, Problem, Setting};
use service::tls;

service::settings! {
    /// Settings of the registry.
    pub struct Settings {
        /// Where to listen: `host:port`, or `:port` for every address.
        registry_http_addr: HttpAddr = ":5000",
        /// PEM certificate chain; together with the key it switches TLS on.
        registry_http_tls_certificate: Option<PathBuf> = "",
        /// PEM private key.
        registry_http_tls_key: Option<PathBuf> = "",
        /// PEM files of the authorities whose certificates clients have to show.
        registry_http_tls_clientcas: CommaList = "",
        /// What clients have to show; unset: require-and-verify-client-cert once there are authorities, else nothing.
        registry_http_tls_clientauth: Option<tls::Demand> = "",
        /// The lowest version of TLS that is spoken.
        registry_http_tls_minimumtls: tls::Version = "tls1.2",
        /// URL under which clients reach the registry, for Location headers; unset: what the request says.
        registry_http_host: Option<String> = "",
        /// Whether Location headers are paths instead of URLs.
        registry_http_relativeurls: bool = "false",
        /// Password file of `user:bcrypt` lines; unset: anybody may do anything.
        registry_auth_htpasswd_path: Option<PathBuf> = "",
        /// Realm that clients show when they ask for a password.
        registry_auth_htpasswd_realm: String = "Registry",
        /// Whether everybody may pull; users of the password file may do anything.
        registry_auth_anonymouspull: bool = "false",
        /// File of rules, YAML or JSON, that say which user may do what in which repository; what no rule grants is
        /// refused. Read again when it changes. `rules: [{users: [ci, "*", anonymous], repositories: ["team/**"],
        /// actions: [pull, push, delete]}]`: `*` is every user, `anonymous` everybody; in repositories `*` is any
        /// text without a slash, `**` any text; who may push may pull.
        registry_auth_policy_path: Option<PathBuf> = "",
        /// Folder of the content, in distribution's layout.
        registry_storage_filesystem_rootdirectory: PathBuf = "/var/lib/registry",
        /// Whether uploads that nobody finishes are dropped.
        registry_storage_maintenance_uploadpurging_enabled: bool = "true",
        /// How long an upload may stay without a byte.
        registry_storage_maintenance_uploadpurging_age: Duration = "168h",
        /// How often abandoned uploads are looked for.
        registry_storage_maintenance_uploadpurging_interval: Duration = "24h",
        /// Whether content that nothing needs any more is removed, while everything goes on.
        registry_storage_maintenance_gc_enabled: bool = "true",
        /// How often such content is looked for.
        registry_storage_maintenance_gc_interval: Duration = "24h",
        /// How long content stays after it was pushed: its manifest may still come.
        registry_storage_maintenance_gc_grace: Duration = "1h",
        /// Whether manifests are taken that need what is not there.
        registry_validation_disabled: bool = "false",
        /// Whether manifests, tags and blobs can be deleted.
        registry_storage_delete_enabled: bool = "true",
    }
}

/// An address as Go writes it, where the host may be left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HttpAddr(pub SocketAddr);

impl Setting for HttpAddr {
    const EXPECTED: &'static str = "address and port, as in :5000, 127.0.0.1:5000 or [::1]:5000";

    fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if let Ok(address) = text.parse() {
            return Ok(Self(address));
        }
        let (host, port) = text.rsplit_once(':').ok_or("the port is missing")?;
        let port = port
            .parse()
            .map_err(|_| "the port is no number from 0 to 65535")?;
        let ip: IpAddr = match host {
            "" => every_address(),
            "localhost" => Ipv4Addr::LOCALHOST.into(),
            _ => return Err("the host is no IP address".to_owned()),
        };
        Ok(Self(SocketAddr::new(ip, port)))
    }
}

/// Both families on one socket, where the machine has IPv6 at all.
fn every_address() -> IpAddr {
    if Path::new("/proc/net/if_inet6").exists() {
        Ipv6Addr::UNSPECIFIED.into()
    } else {
        Ipv4Addr::UNSPECIFIED.into()
    }
}

impl Settings {
    pub(crate) fn tls(&self) -> Option<tls::Config> {
        let cert = self.registry_http_tls_certificate.clone()?;
        let key = self.registry_http_tls_key.clone()?;
        let authorities = &self.registry_http_tls_clientcas;
        let demand = self
            .registry_http_tls_clientauth
            .or_else(|| (!authorities.is_empty()).then(tls::Demand::default));
        Some(tls::Config {
            files: tls::Files { cert, key },
            clients: demand.map(|demand| tls::Clients {
                authorities: authorities.iter().map(PathBuf::from).collect(),
                demand,
            }),
            minimum: self.registry_http_tls_minimumtls,
        })
    }

    /// A demand on clients that would silently not be made is one.
    fn client_problems(&self) -> Vec<Problem> {
        let (authorities, auth) = (
            "REGISTRY_HTTP_TLS_CLIENTCAS",
            "REGISTRY_HTTP_TLS_CLIENTAUTH",
        );
        let given = &self.registry_http_tls_clientcas;
        let demand = self.registry_http_tls_clientauth;
        let mut problems: Vec<_> = given
            .iter()
            .filter(|path| !Path::new(path).is_file())
            .map(|path| Problem::new(authorities, format!("{path} is not a file")))
            .collect();
        if given.is_empty() && demand.is_some_and(tls::Demand::verifies) {
            let reason = format!("missing although {auth} has certificates verified");
            problems.push(Problem::new(authorities, reason));
        }
        let is_plain =
            self.registry_http_tls_certificate.is_none() && self.registry_http_tls_key.is_none();
        let asking = [(authorities, !given.is_empty()), (auth, demand.is_some())];
        if let Some((variable, _)) = asking.iter().find(|(_, is_set)| is_plain && *is_set) {
            let reason = "without REGISTRY_HTTP_TLS_CERTIFICATE there is no TLS";
            problems.push(Problem::new(*variable, reason));
        }
        problems
    }
}

impl ServerSettings for Settings {
    fn listen(&self) -> Vec<Listen> {
        vec![Listen {
            address: self.registry_http_addr.0,
            tls: self.tls(),
        }]
    }

    fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let (cert, key) = ("REGISTRY_HTTP_TLS_CERTIFICATE", "REGISTRY_HTTP_TLS_KEY");
        let files = [
            (cert, &self.registry_http_tls_certificate),
            (key, &self.registry_http_tls_key),
            (
                "REGISTRY_AUTH_HTPASSWD_PATH",
                &self.registry_auth_htpasswd_path,
            ),
            ("REGISTRY_AUTH_POLICY_PATH", &self.registry_auth_policy_path),
        ];
        match (files[0].1, files[1].1) {
            (Some(_), None) => {
                problems.push(Problem::new(key, format!("missing although {cert} is set")));
            }
            (None, Some(_)) => {
                problems.push(Problem::new(cert, format!("missing although {key} is set")));
            }
            _ => {}
        }
        for (variable, path) in files {
            if let Some(path) = path
                && !path.is_file()
            {
                problems.push(Problem::new(
                    variable,
                    format!("{} is not a file", path.display()),
                ));
            }
        }
        let (has_policy, is_pull_free) = (
            self.registry_auth_policy_path.is_some(),
            self.registry_auth_anonymouspull,
        );
        if self.registry_auth_htpasswd_path.is_none() && (has_policy || is_pull_free) {
            let switch = if has_policy {
                "REGISTRY_AUTH_POLICY_PATH"
            } else {
                "REGISTRY_AUTH_ANONYMOUSPULL"
            };
            problems.push(Problem::new(
                "REGISTRY_AUTH_HTPASSWD_PATH",
                format!("missing although {switch} is set: nobody could log in"),
            ));
        }
        if has_policy && is_pull_free {
            problems.push(Problem::new(
                "REGISTRY_AUTH_ANONYMOUSPULL",
                "the rules of REGISTRY_AUTH_POLICY_PATH decide: grant pull to anonymous there",
            ));
        }
        if let Some(host) = &self.registry_http_host
            && !host.starts_with("http://")
            && !host.starts_with("https://")
        {
            problems.push(Problem::new(
                "REGISTRY_HTTP_HOST",
                format!("{host:?} does not begin with http:// or https://"),
            ));
        }
        problems.extend(self.client_problems());
        problems
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_as_go_writes_them() {
        let address = |text: &str| HttpAddr::parse(text).map(|address| address.0.to_string());
        assert_eq!(address("127.0.0.1:5000").unwrap(), "127.0.0.1:5000");
        assert_eq!(address("localhost:1").unwrap(), "127.0.0.1:1");
        assert_eq!(address("[::1]:5000").unwrap(), "[::1]:5000");
        assert!(HttpAddr::parse(":5000").unwrap().0.ip().is_unspecified());
        for wrong in ["", "5000", ":", ":70000", "example.org:5000"] {
            assert!(address(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn rights_that_mean_nothing_are_told() {
        let told = |policy: Option<&str>, is_pull_free, users: Option<&str>| {
            let settings = Settings {
                registry_auth_policy_path: policy.map(Into::into),
                registry_auth_anonymouspull: is_pull_free,
                registry_auth_htpasswd_path: users.map(Into::into),
                ..Settings::default()
            };
            let problems = settings.problems().into_iter();
            problems.map(|problem| problem.variable).collect::<Vec<_>>()
        };
        // Any file will do.
        let file = Some("Cargo.toml");
        let (users, free) = ("REGISTRY_AUTH_HTPASSWD_PATH", "REGISTRY_AUTH_ANONYMOUSPULL");
        assert_eq!(told(file, false, None), [users]);
        assert_eq!(told(None, true, None), [users]);
        assert_eq!(told(file, true, file), [free]);
        assert_eq!(
            told(Some("/none"), false, file),
            ["REGISTRY_AUTH_POLICY_PATH"]
        );
        assert!(told(None, true, file).is_empty() && told(file, false, file).is_empty());
    }

    #[test]
    fn half_a_pair_and_absent_files_are_told_together() {
        let settings = Settings {
            registry_http_tls_key: Some("/none/key".into()),
            registry_auth_htpasswd_path: Some("/none/htpasswd".into()),
            registry_http_host: Some("registry.example".to_owned()),
            ..Settings::default()
        };
        let variables: Vec<_> = settings
            .problems()
            .into_iter()
            .map(|problem| problem.variable)
            .collect();
        assert_eq!(
            variables,
            [
                "REGISTRY_HTTP_TLS_CERTIFICATE",
                "REGISTRY_HTTP_TLS_KEY",
                "REGISTRY_AUTH_HTPASSWD_PATH",
                "REGISTRY_HTTP_HOST"
            ]
        );
        assert!(Settings::default().problems().is_empty());
    }

    #[test]
    fn demands_on_clients_that_cannot_be_made_are_told() {
        let problems = |cas: &[&str], auth: Option<tls::Demand>| {
            let settings = Settings {
                registry_http_tls_clientcas: CommaList(
                    cas.iter().map(ToString::to_string).collect(),
                ),
                registry_http_tls_clientauth: auth,
                ..Settings::default()
            };
            let told = settings.problems().into_iter().map(|told| told.reason);
            told.collect::<Vec<_>>().join("; ")
        };
        let no_tls = "without REGISTRY_HTTP_TLS_CERTIFICATE there is no TLS";
        assert_eq!(problems(&["Cargo.toml"], None), no_tls);
        assert_eq!(problems(&[], Some(tls::Demand::Request)), no_tls);
        let told = problems(&["/none/ca"], Some(tls::Demand::VerifyIfGiven));
        assert_eq!(told, format!("/none/ca is not a file; {no_tls}"));
        let told = problems(&[], Some(tls::Demand::RequireAndVerify));
        assert!(told.contains("missing although"), "{told}");
    }
}
