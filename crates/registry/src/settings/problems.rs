//! Problems of settings that parse, but contradict each other.

use std::collections::HashSet;
use std::path::Path;

use service::settings::Problem;
use service::tls;

use super::Settings;

impl Settings {
    /// All of it.
    pub(crate) fn all_problems(&self) -> Vec<Problem> {
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
            (
                "REGISTRY_STORAGE_POLICY_PATH",
                &self.registry_storage_policy_path,
            ),
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
            let may_be_folder = variable == "REGISTRY_AUTH_HTPASSWD_PATH";
            if let Some(path) = path
                && !path.is_file()
                && !(may_be_folder && path.is_dir())
            {
                problems.push(Problem::new(
                    variable,
                    format!("{} is not a file", path.display()),
                ));
            }
        }
        problems.extend(self.rights_problems());
        if let Some(host) = &self.registry_http_host
            && !host.starts_with("http://")
            && !host.starts_with("https://")
        {
            problems.push(Problem::new(
                "REGISTRY_HTTP_HOST",
                format!("{host:?} does not begin with http:// or https://"),
            ));
        }
        problems.extend(self.debug_problem());
        problems.extend(self.cipher_problems());
        problems.extend(self.client_problems());
        problems.extend(self.token_problems());
        problems.extend(self.upstream_problems());
        problems.extend(self.storage_problems());
        problems
    }

    /// An upstream that cannot be meant, and two for the same names.
    fn upstream_problems(&self) -> Vec<Problem> {
        let (one, several) = ("REGISTRY_PROXY_REMOTEURL", "REGISTRY_PROXY_UPSTREAMS");
        let mut problems = Vec::new();
        let mut prefixes = HashSet::new();
        if self.registry_storage_maintenance_readonly_enabled && !self.upstreams().is_empty() {
            problems.push(Problem::new(
                "REGISTRY_STORAGE_MAINTENANCE_READONLY_ENABLED",
                "contradicts REGISTRY_PROXY_…: fetched content is stored",
            ));
        }
        for (at, config) in self.upstreams().iter().enumerate() {
            let variable = if at == 0 && self.registry_proxy_remoteurl.is_some() {
                one
            } else {
                several
            };
            if let Some(reason) = config.problem() {
                problems.push(Problem::new(variable, reason));
            }
            if !prefixes.insert(config.prefix.clone()) {
                let reason = match &config.prefix {
                    Some(prefix) => format!("two upstreams have the prefix {prefix}"),
                    None => "two upstreams have no prefix".to_owned(),
                };
                problems.push(Problem::new(variable, reason));
            }
        }
        problems
    }

    /// Ciphers of which none is spoken.
    fn cipher_problems(&self) -> Option<Problem> {
        let suites = &self.registry_http_tls_ciphersuites;
        let is_old_spoken = self.registry_http_tls_minimumtls == tls::TlsVersion::Tls12;
        let is_any_spoken = suites.is_empty() || suites.iter().any(|name| tls::speaks(name));
        (is_old_spoken && !is_any_spoken).then(|| {
            Problem::new(
                "REGISTRY_HTTP_TLS_CIPHERSUITES",
                "none of them is spoken here: those left out are not safe",
            )
        })
    }

    fn debug_problem(&self) -> Option<Problem> {
        let path = &self.registry_http_debug_prometheus_path;
        let is_path = path.starts_with('/') && !path.contains(['{', '}', '*']);
        let variable = "REGISTRY_HTTP_DEBUG_PROMETHEUS_PATH";
        (!is_path).then(|| Problem::new(variable, format!("{path:?} is no path")))
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

    /// Rights that no user could have, or that are easily overlooked.
    fn rights_problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
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
                format!("missing although {switch} is set: every login would fail"),
            ));
        }
        if has_policy && is_pull_free {
            problems.push(Problem::new(
                "REGISTRY_AUTH_ANONYMOUSPULL",
                "the rules of REGISTRY_AUTH_POLICY_PATH decide: grant pull to anonymous there",
            ));
        }
        problems
    }
    /// An incomplete token service would refuse or admit every client.
    fn token_problems(&self) -> Vec<Problem> {
        let keys = [
            ("ROOTCERTBUNDLE", &self.registry_auth_token_rootcertbundle),
            ("JWKS", &self.registry_auth_token_jwks),
        ];
        let has_realm =
            self.registry_auth_token_realm.is_some() || self.registry_auth_token_autoredirect;
        let wanted = [
            ("REALM", has_realm),
            ("SERVICE", self.registry_auth_token_service.is_some()),
            ("ISSUER", self.registry_auth_token_issuer.is_some()),
            (
                "ROOTCERTBUNDLE",
                keys.iter().any(|(_, path)| path.is_some()),
            ),
        ];
        let Some((given, _)) = wanted.iter().find(|(_, is_given)| *is_given) else {
            return Vec::new();
        };
        let reported = |name: &str, reason: String| {
            Problem::new(format!("REGISTRY_AUTH_TOKEN_{name}"), reason)
        };
        let missing = wanted.iter().filter(|(_, is_given)| !is_given);
        let mut problems: Vec<_> = missing
            .map(|(name, _)| {
                let reason = format!("missing although REGISTRY_AUTH_TOKEN_{given} is set");
                reported(name, reason)
            })
            .collect();
        for (name, path) in keys {
            if let Some(path) = path.as_ref().filter(|path| !path.is_file()) {
                problems.push(reported(name, format!("{} is not a file", path.display())));
            }
        }
        if keys.iter().all(|(_, path)| path.is_some()) {
            problems.push(reported("JWKS", "one source of keys is enough".to_owned()));
        }
        if self.registry_auth_htpasswd_path.is_some() {
            let reason = "passwords and tokens exclude each other".to_owned();
            problems.push(reported(given, reason));
        }
        problems
    }
}

#[cfg(test)]
mod tests {
    use service::program::ServerSettings as _;
    use service::settings::CommaList;

    use super::*;

    #[test]
    fn rights_without_effect_are_reported() {
        let reported = |policy: Option<&str>, is_pull_free, users: Option<&str>| {
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
        assert_eq!(reported(file, false, None), [users]);
        assert_eq!(reported(None, true, None), [users]);
        assert_eq!(reported(file, true, file), [free]);
        assert_eq!(
            reported(Some("/none"), false, file),
            ["REGISTRY_AUTH_POLICY_PATH"]
        );
        assert!(reported(None, true, file).is_empty() && reported(file, false, file).is_empty());
    }

    #[test]
    fn half_a_pair_and_absent_files_are_reported_together() {
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
    fn impossible_demands_on_clients_are_reported() {
        let problems = |cas: &[&str], auth: Option<tls::Demand>| {
            let settings = Settings {
                registry_http_tls_clientcas: CommaList(
                    cas.iter().map(ToString::to_string).collect(),
                ),
                registry_http_tls_clientauth: auth,
                ..Settings::default()
            };
            let reported = settings
                .problems()
                .into_iter()
                .map(|reported| reported.reason);
            reported.collect::<Vec<_>>().join("; ")
        };
        let no_tls = "without REGISTRY_HTTP_TLS_CERTIFICATE there is no TLS";
        assert_eq!(problems(&["Cargo.toml"], None), no_tls);
        assert_eq!(problems(&[], Some(tls::Demand::Request)), no_tls);
        let reported = problems(&["/none/ca"], Some(tls::Demand::VerifyIfGiven));
        assert_eq!(reported, format!("/none/ca is not a file; {no_tls}"));
        let reported = problems(&[], Some(tls::Demand::RequireAndVerify));
        assert!(reported.contains("missing although"), "{reported}");
    }
}
