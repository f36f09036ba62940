//! Changed settings are taken over while the proxy runs: all of them, or none when one cannot be used.

use std::net::SocketAddr;

use service::clock;
use service::forward;
use service::health::Health;
use service::program::{ReloadedSettings, SettingsWatch};
use service::server::ConnectionCount;
use service::settings::{FromValues as _, Problem};
use service::tls::{CertificateControl, Passthrough};
use service::{AccessLog, CancellationToken};

use crate::routes::{RouteTable, Routes};
use crate::settings::Settings;
use crate::site::{HostPort, SiteSettings};
use crate::status_page::{ReloadLog, ReloadOutcome, StatusSources};
use crate::upstreams::Upstreams;

/// Component of `/ready`.
pub(crate) const UPSTREAMS: &str = "upstreams";

/// Variables that take effect without a restart.
pub const RELOADED: [&str; 14] = [
    "FORWARDS",
    "NETWORK_DOMAIN",
    "API_HOST",
    "WEB_HOST",
    "SERVICE_HOST",
    "REDIRECT_HTTPS_PORT",
    "CERTIFICATE_LIST",
    "API_URL",
    "WEB_URL",
    "REGISTRY_ADDRESS",
    "ACME_URL",
    "HSTS",
    "ERROR_PAGES",
    "ACCESS_LOG",
];

/// The parts of a running proxy that settings can change.
pub(crate) struct LiveProxy {
    /// In force.
    pub(crate) settings: Settings,
    pub(crate) upstreams: Upstreams,
    pub(crate) routes: RouteTable,
    pub(crate) access_log: AccessLog,
    pub(crate) registry: Passthrough,
    pub(crate) certificates: CertificateControl,
    pub(crate) readiness: Readiness,
    pub(crate) reloads: ReloadLog,
}

impl LiveProxy {
    /// Sources of the status page: of forwarded ports at `addresses`, and all `connections`.
    pub(crate) fn status_sources(
        &self,
        addresses: &[SocketAddr],
        connections: ConnectionCount,
    ) -> StatusSources {
        StatusSources {
            started: clock::now(),
            ports: addresses.iter().map(SocketAddr::port).collect(),
            routes: self.routes.clone(),
            registry: self.registry.clone(),
            certificates: self.certificates.clone(),
            connections,
            reloads: self.reloads.clone(),
        }
    }

    /// Takes over settings whenever `watch` has read them again.
    pub(crate) async fn follow(mut self, mut watch: SettingsWatch<Settings>) {
        loop {
            let applied = match watch.next().await {
                Ok(reloaded) => self.apply(reloaded).await,
                Err(problems) => Err(problems.0),
            };
            let (needs_restart, problems) = match applied {
                Ok(needs_restart) => (needs_restart, Vec::new()),
                Err(problems) => (Vec::new(), problems),
            };
            for Problem { variable, reason } in &problems {
                tracing::error!(
                    variable,
                    reason,
                    "settings not reloaded, the old ones stay in force"
                );
            }
            let problems = problems.into_iter().map(|it| (it.variable, it.reason));
            self.reloads.record(ReloadOutcome {
                at: clock::now(),
                problems: problems.collect(),
                needs_restart,
            });
        }
    }

    /// Takes over settings; returns the names of those that need a restart.
    ///
    /// Errors: a setting that cannot be used; nothing has changed then.
    async fn apply(
        &mut self,
        reloaded: ReloadedSettings<Settings>,
    ) -> Result<Vec<String>, Vec<Problem>> {
        let ReloadedSettings {
            mut settings,
            changed,
        } = reloaded;
        let restart = self.keep_fixed(&mut settings, &changed);
        let list = &settings.site.certificate_list;
        // First, because it alone may fail.
        if settings.site.is_on() && *list != self.settings.site.certificate_list {
            let used = self.certificates.use_list(list.clone()).await;
            used.map_err(|reason| vec![Problem::new("CERTIFICATE_LIST", reason)])?;
        }
        let HostPort { host, port } = &settings.site.registry_address;
        let registry = settings.site.registry_name();
        self.registry.replace(&registry, (host, *port));
        let routes = Routes::new(&settings, &mut self.upstreams);
        self.routes.replace(routes);
        self.access_log.set(settings.access_log);
        self.readiness.report(&self.upstreams);
        self.settings = settings;
        let hosts = self.routes.current();
        let hosts = hosts.site.as_ref().map(|site| site.hosts().to_string());
        tracing::info!(hosts, "settings reloaded");
        if !restart.is_empty() {
            let variables = restart.join(", ");
            tracing::warn!(variables, "changed settings need a restart to take effect");
        }
        Ok(restart)
    }

    /// Undoes changes of ports in `settings`; the names of `changed` that take no effect.
    fn keep_fixed(&self, settings: &mut Settings, changed: &[String]) -> Vec<String> {
        let mut fixed: Vec<_> = changed
            .iter()
            .filter(|name| !is_reloaded(name))
            .cloned()
            .collect();
        let ports = |settings: &Settings| -> Vec<u16> {
            settings.forwards.iter().map(|it| it.port).collect()
        };
        if ports(settings) != ports(&self.settings) {
            settings.forwards = self.settings.forwards.clone();
            fixed.push("FORWARDS".to_owned());
        }
        if settings.site.is_on() != self.settings.site.is_on() {
            // Its ports are open, or not: none of its settings is taken over.
            settings.site = self.settings.site.clone();
            let of_site = changed.iter().filter(|name| is_of_site(name));
            fixed.extend(of_site.cloned());
            fixed.sort();
            fixed.dedup();
        }
        fixed
    }
}

fn is_reloaded(name: &str) -> bool {
    RELOADED.contains(&name)
}

fn is_of_site(name: &str) -> bool {
    let mut variables = SiteSettings::VARIABLES.iter();
    variables.any(|variable| variable.field.eq_ignore_ascii_case(name))
}

/// Reports the readiness of the upstreams in force.
pub(crate) struct Readiness {
    health: Health,
    shutdown: CancellationToken,
    /// Ends the report on the upstreams before.
    current: CancellationToken,
}

impl Readiness {
    /// Reports to `health`, until `shutdown`.
    pub(crate) fn new(health: Health, shutdown: &CancellationToken) -> Self {
        Self {
            health,
            shutdown: shutdown.clone(),
            current: shutdown.child_token(),
        }
    }

    /// Reports on `upstreams` from now on.
    pub(crate) fn report(&mut self, upstreams: &Upstreams) {
        self.current.cancel();
        self.current = self.shutdown.child_token();
        let upstreams = upstreams.active();
        let upstreams = upstreams.iter().map(|active| (***active).clone());
        let report = forward::report_readiness(self.health.clone(), UPSTREAMS, upstreams.collect());
        tokio::spawn(self.current.clone().run_until_cancelled_owned(report));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_variables_of_the_site_but_its_ports_are_reloaded() {
        let all = Settings::VARIABLES.iter().chain(SiteSettings::VARIABLES);
        let all: Vec<_> = all.map(|variable| variable.field.to_uppercase()).collect();
        for name in RELOADED {
            assert!(all.iter().any(|known| known == name), "{name}");
        }
        let of_site = SiteSettings::VARIABLES.iter();
        let fixed = of_site.map(|variable| variable.field.to_uppercase());
        let fixed: Vec<_> = fixed.filter(|name| !is_reloaded(name)).collect();
        assert_eq!(fixed, ["PROXY_HTTP_PORT", "PROXY_HTTPS_PORT"]);
    }
}
