//! Use case of the checks of the site: those of `atoll doctor` that are possible from the API server's place.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use doctor::{BootImage, DataFolder, DoctorReport, RemoteCheck, RemoteService, SiteFacts};
use oci_client::{Credentials, registry_logins};
use preparation::RegistryAccess;
use tokio::sync::Mutex;
use tokio::time::Instant;
use url::Url;

use super::offer::CurrentOffer;
use super::registry_content::SiteContent;
use crate::db::database_probe;
use crate::settings::Settings;

/// Age up to which a report is sent again.
const SITE_REPORT_AGE: Duration = Duration::from_secs(30);
/// Units: bytes. Free space that the file store needs.
const REQUIRED_DISK: u64 = 1024 * 1024 * 1024;
/// Units: bytes. Of this server with an installer.
const REQUIRED_MEMORY: u64 = 1024 * 1024 * 1024;

/// Settings of the services that are checked.
const SERVICES: &str = "DOCTOR_SERVICES";
const PUBLISHED: &str = "DOCTOR_PUBLISHED";

/// Checks of the site.
#[derive(Debug)]
pub(crate) struct SiteChecks {
    settings: Arc<Settings>,
    offer: Arc<CurrentOffer>,
    registry: RegistryAccess,
    content: Arc<SiteContent>,
    reports: SiteReports,
}

/// The last report. The lock is held during a run: callers that arrive meanwhile get its report.
#[derive(Debug, Default)]
struct SiteReports(Mutex<Option<(Instant, Arc<DoctorReport>)>>);

impl SiteReports {
    /// The last report, or that of `run` when it is too old.
    async fn get(&self, run: impl Future<Output = DoctorReport>) -> Arc<DoctorReport> {
        let mut last = self.0.lock().await;
        if let Some((made, report)) = &*last
            && made.elapsed() < SITE_REPORT_AGE
        {
            return Arc::clone(report);
        }
        let report = Arc::new(run.await);
        *last = Some((Instant::now(), Arc::clone(&report)));
        report
    }
}

impl SiteChecks {
    /// Checks of a site with these settings, whose registries are reached by `registry`.
    pub(super) fn new(
        settings: Arc<Settings>,
        offer: Arc<CurrentOffer>,
        registry: RegistryAccess,
        content: Arc<SiteContent>,
    ) -> Self {
        Self {
            settings,
            offer,
            registry,
            content,
            reports: SiteReports::default(),
        }
    }

    /// Results of the checks, at most 30 seconds old.
    pub(crate) async fn report(self: &Arc<Self>) -> Arc<DoctorReport> {
        let checks = Arc::clone(self);
        // A task of its own: a client that leaves does not end the run of the others, and of its next request.
        let run = tokio::spawn(async move {
            let run = async { doctor::run(checks.facts().await).await };
            checks.reports.get(run).await
        });
        run.await.unwrap_or_default()
    }

    async fn facts(&self) -> SiteFacts {
        let settings = &self.settings;
        let offer = self.offer.get();
        let access = &self.registry;
        let mut ca = access.ca_pem.clone().unwrap_or_default();
        let mut mirrors = oci_client::Mirrors::default();
        if let Some(found) = access.mirrors.get() {
            ca.push(b'\n');
            ca.extend_from_slice(found.ca_bundle.as_deref().unwrap_or_default().as_bytes());
            mirrors = found.mirrors.clone();
        }
        let servers = settings.ntp_default_server.split(',').map(str::trim);
        SiteFacts {
            access: Some(settings.auth_type.access().to_owned()),
            time_servers: servers
                .filter(|one| !one.is_empty())
                .map(str::to_owned)
                .collect(),
            folders: vec![DataFolder {
                path: settings.work_dir.clone(),
                required_bytes: REQUIRED_DISK,
            }],
            memory_bytes: Some(REQUIRED_MEMORY),
            ca_pem: Some(ca).filter(|ca| !ca.trim_ascii().is_empty()),
            mirrors,
            is_insecure: access.insecure,
            logins: logins(settings),
            database: Some(database_probe(settings, "DB_PASS")),
            boot_images: Some(offer.os_images.iter().filter_map(boot_image).collect()),
            releases: Some(offer.releases.clone()),
            // Without the database, its own check fails.
            content: self.content.report().await.ok().flatten(),
            components: Some(settings.components()),
            remote: remote_services(settings).unwrap_or_default(),
            service_base_url: settings.service_base_url.as_ref().map(|url| url.0.clone()),
            username_warning: settings.username_warning(),
            image_service_base_url: Some(settings.image_service_base_url.0.clone()),
            ..SiteFacts::default()
        }
    }
}

/// The logins of archives; without them, checks ask as anybody.
fn logins(settings: &Settings) -> Credentials {
    let file = settings.archives_registry_auth_file.as_deref();
    let logins = file.and_then(|file| registry_logins(Some(file)).ok());
    logins.unwrap_or_default()
}

/// Services that are checked by their names, and published ports.
///
/// Errors: the malformed setting, and the reason.
pub(crate) fn remote_services(
    settings: &Settings,
) -> Result<Vec<RemoteService>, (&'static str, String)> {
    let mut services = Vec::new();
    for text in settings.doctor_services.iter() {
        let service = RemoteService::parse(text, SERVICES);
        services.push(service.map_err(|reason| (SERVICES, reason))?);
    }
    let url = settings.service_base_url.as_ref();
    let url = url.and_then(|url| Url::parse(&url.0).ok());
    let host = url.as_ref().and_then(Url::host_str);
    for text in settings.doctor_published.iter() {
        let port = published(text).map_err(|reason| (PUBLISHED, reason))?;
        if let (Some(host), Some(port)) = (host, port) {
            services.push(RemoteService {
                check: RemoteCheck::Connection,
                host: host.trim_matches(['[', ']']).to_owned(),
                port,
                setting: PUBLISHED,
            });
        }
    }
    Ok(services)
}

/// The port of `[ADDRESS:]PORT`, unless this machine alone reaches it.
fn published(text: &str) -> Result<Option<u16>, String> {
    let expected = || format!("{text:?}: expected [ADDRESS:]PORT");
    let (address, port) = text.rsplit_once(':').unwrap_or(("", text));
    let port = port.parse().map_err(|_| expected())?;
    let is_local = match address.trim_matches(['[', ']']) {
        "" => false,
        address => address
            .parse::<IpAddr>()
            .map_err(|_| expected())?
            .is_loopback(),
    };
    Ok((!is_local).then_some(port))
}

/// A boot image that can be seen from here: the image service may have folders of its own.
fn boot_image(image: &model::versions::OsImage) -> Option<BootImage> {
    let path = image.url.strip_prefix("file://").map(PathBuf::from);
    let is_elsewhere = |path: &PathBuf| !path.parent().is_some_and(std::path::Path::is_dir);
    if path.as_ref().is_some_and(is_elsewhere) {
        return None;
    }
    Some(BootImage {
        openshift_version: image.openshift_version.clone(),
        cpu_architecture: image.cpu_architecture.as_str().to_owned(),
        os_stream: image.os_stream.clone(),
        url: image.url.clone(),
        path,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn published_ports_are_those_of_the_host() {
        let settings = |services: &str, published: &str| {
            let list = |text: &str| service::settings::Setting::parse(text).unwrap();
            Settings {
                service_base_url: Some(
                    service::settings::Setting::parse("http://[fd00::1]:8090").unwrap(),
                ),
                doctor_services: list(services),
                doctor_published: list(published),
                ..Settings::default()
            }
        };
        let found = remote_services(&settings(
            "tls://proxy:8443",
            "80,127.0.0.1:5432,[::1]:1,0.0.0.0:443",
        ));
        let shown: Vec<_> = found.unwrap().iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["proxy:8443", "[fd00::1]:80", "[fd00::1]:443"]);
        let wrong = |services, published| {
            remote_services(&settings(services, published))
                .unwrap_err()
                .0
        };
        assert_eq!(wrong("proxy:1", ""), "DOCTOR_SERVICES");
        assert_eq!(wrong("", "a:b"), "DOCTOR_PUBLISHED");
        assert_eq!(wrong("", "host:80"), "DOCTOR_PUBLISHED");
    }

    #[tokio::test(start_paused = true)]
    async fn many_callers_cost_one_run() {
        let reports = SiteReports::default();
        let runs = AtomicUsize::new(0);
        let get = || {
            reports.get(async {
                runs.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(Duration::from_secs(5)).await;
                DoctorReport::default()
            })
        };
        tokio::join!(get(), get(), get());
        assert_eq!(runs.load(Ordering::Relaxed), 1);
        tokio::time::advance(Duration::from_millis(29_999)).await;
        get().await;
        assert_eq!(runs.load(Ordering::Relaxed), 1);
        tokio::time::advance(Duration::from_millis(1)).await;
        get().await;
        assert_eq!(runs.load(Ordering::Relaxed), 2);
    }
}
