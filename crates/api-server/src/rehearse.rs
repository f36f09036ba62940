//! Rehearsals on a server of their own, which has the releases of this one: in this process, on one thread, in a schema of its
//! own of the same database. Nothing of it is in the metrics, the logs and the records of this server.

use std::net::Ipv4Addr;
use std::time::Duration;

use model::Error;
use model::jobs::{
    JobCreateParams, RehearsalFault, RehearsalOptions, RehearsalParams, RehearsalProfile,
};
use rehearsal::{
    FAULTS, InstallerApi, PROFILES, Pace, PlayOptions, RehearsalProgress, RehearsalReport,
    RehearsalRequest, Script, SiteFinding,
};
use rules::Offer;
use service::CancellationToken;
use service::server::HttpSettings;
use tokio::sync::oneshot;

use crate::blocking;
use crate::settings::{AuthType, BaseUrl, FileBackend, OsImages, ReleaseImages, Settings};

/// Speed-up over real time. At a hundred times real time an installation takes about 15 seconds, of which most is work of
/// the server.
const SPEEDUP: f64 = 100.0;
/// Time without any change after which a state counts as final, at least: the server judges every half second.
const QUIET: Duration = Duration::from_secs(5);
const JUDGING: Duration = Duration::from_millis(500);
const READING: &str = "reading a site";
/// Connections to the database.
const CONNECTIONS: u32 = 4;

/// A site that was read.
pub(crate) enum ReadSite {
    Script(Box<Script>),
    /// It cannot be read as one.
    Mistake(SiteFinding),
}

/// The parameters of a rehearsal as they are stored: without secrets, which it does not need.
///
/// Errors: Invalid.
pub(crate) async fn checked(params: JobCreateParams) -> Result<JobCreateParams, Error> {
    let JobCreateParams {
        kind, rehearsal, ..
    } = params;
    let mut rehearsal = rehearsal
        .ok_or_else(|| Error::invalid("rehearsal", "is required for a job of this kind"))?;
    blocking::run(READING, move || {
        if let ReadSite::Mistake(finding) = read_site(&rehearsal)? {
            return Err(Error::invalid("site", finding.observed));
        }
        if !rehearsal.site.is_empty() {
            let redacted = rehearsal::redacted(&rehearsal.site);
            rehearsal.site = redacted.map_err(into_domain)?;
        }
        Ok(JobCreateParams {
            kind,
            rehearsal: Some(rehearsal),
            ..JobCreateParams::default()
        })
    })
    .await
}

/// Reads the site of `params`.
///
/// Errors: Invalid – another member; TooLarge.
pub(crate) async fn read(params: RehearsalParams) -> Result<ReadSite, Error> {
    blocking::run(READING, move || read_site(&params)).await
}

/// Blocking: a site may have megabytes.
fn read_site(params: &RehearsalParams) -> Result<ReadSite, Error> {
    let given = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
    let request = RehearsalRequest {
        site: given(&params.site),
        profile: given(&params.profile),
        faults: params.faults.clone(),
        seed: given(&params.seed).unwrap_or(RehearsalRequest::default().seed),
        release: given(&params.release),
    };
    match Script::new(&request) {
        Ok(Ok(script)) => Ok(ReadSite::Script(Box::new(script))),
        Ok(Err(finding)) => Ok(ReadSite::Mistake(finding)),
        Err(error) => Err(into_domain(error)),
    }
}

/// Plays the installation on a server with these settings; `folder` is its own. It ends when the future is dropped.
///
/// Errors: Internal – the server cannot be started, or broke off.
pub(crate) async fn play(
    script: Script,
    settings: Settings,
    progress: RehearsalProgress,
) -> Result<RehearsalReport, Error> {
    let dropped = CancellationToken::new();
    let _on_drop = dropped.clone().drop_guard();
    let (sender, receiver) = oneshot::channel();
    let work = move || {
        let played =
            isolated(dropped.run_until_cancelled(play_on_server(script, settings, progress)));
        // Without a receiver, nothing needs it.
        sender.send(played).ok();
    };
    let thread = std::thread::Builder::new().name("rehearsal".to_owned());
    let started = thread.spawn(work);
    started.map_err(|error| Error::internal("starting the rehearsal", error))?;
    let broke_off = || Error::conflict("the rehearsal broke off");
    match receiver.await {
        Ok(Ok(Some(played))) => played,
        Ok(Err(error)) => Err(Error::internal("starting the rehearsal", error)),
        Ok(Ok(None)) | Err(_) => Err(broke_off()),
    }
}

/// Drives a future on this thread alone, without metrics and logs.
fn isolated<T>(future: impl Future<Output = T>) -> std::io::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let quiet = tracing::subscriber::NoSubscriber::default();
    let driven = || tracing::subscriber::with_default(quiet, || runtime.block_on(future));
    Ok(metrics::with_local_recorder(&metrics::NoopRecorder, driven))
}

async fn play_on_server(
    script: Script,
    settings: Settings,
    progress: RehearsalProgress,
) -> Result<RehearsalReport, Error> {
    let found = script.check();
    let shutdown = CancellationToken::new();
    let _on_drop = shutdown.clone().drop_guard();
    let doing = "starting the server of the rehearsal";
    let port = free_port().map_err(|error| Error::internal(doing, error))?;
    // Simulated hosts take the server's address from its URL, as others do.
    let url = format!("http://{}:{port}", Ipv4Addr::LOCALHOST);
    let settings = Settings {
        api_listen_port: port,
        service_base_url: Some(BaseUrl(url.clone())),
        ..settings
    };
    let running = crate::start(settings, shutdown.clone()).await;
    let running = running.map_err(|error| Error::internal(doing, error))?;
    let api = InstallerApi::new(&url, None, None).map_err(into_domain)?;
    let pace = Pace::new(SPEEDUP);
    let options = PlayOptions {
        quiet: PlayOptions::quiet(pace, QUIET),
        has_dummy_files: true,
        // Its schema is dropped.
        removes: false,
        ..PlayOptions::at(pace)
    };
    let outcomes = rehearsal::play(&api, &script, &options, &progress).await;
    shutdown.cancel();
    // A failure of its last tasks changes nothing: the data is temporary.
    running.wait().await.ok();
    Ok(RehearsalReport::new(found, outcomes.map_err(into_domain)?))
}

fn free_port() -> std::io::Result<u16> {
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    Ok(listener.local_addr()?.port())
}

/// The settings of the rehearsal's server, by those of this one, which has `offer`.
pub(crate) fn settings(
    own: &Settings,
    offer: &Offer,
    schema: String,
    folder: std::path::PathBuf,
) -> Settings {
    // Simulated hosts run no images: none has to be found in a release, which needs the pull secret. The one of the
    // release is in the same registry.
    let default = offer.releases.iter().find(|release| release.default);
    let release = default.or(offer.releases.first());
    let release = release.map_or("", |release| release.url.as_str());
    let component = |image: &String| {
        let image = if image.is_empty() { release } else { image };
        image.to_owned()
    };
    Settings {
        api_listen_address: Ipv4Addr::LOCALHOST.into(),
        service_fqdn: String::new(),
        serve_https: false,
        auth_type: AuthType::None,
        db_schema: schema,
        db_max_open_connections: CONNECTIONS,
        secrets_key_file: None,
        storage: FileBackend::Filesystem,
        work_dir: folder,
        dummy_ignition: true,
        release_keyring: None,
        archives_dir: None,
        archives_registry: None,
        content_registry: None,
        release_images: ReleaseImages(offer.releases.clone()),
        os_images: OsImages(offer.os_images.clone()),
        os_images_file: None,
        agent_docker_image: component(&own.agent_docker_image),
        installer_image: component(&own.installer_image),
        controller_image: component(&own.controller_image),
        cluster_monitor_interval: JUDGING,
        http: HttpSettings::default(),
        ..own.clone()
    }
}

/// The same for the site of a profile, whose pull secret knows no registry.
pub(crate) fn settings_of_profile(mut settings: Settings) -> Settings {
    let releases = settings.release_images.0.iter();
    let mut images: Vec<&str> = releases.map(|release| release.url.as_str()).collect();
    let components = settings.components();
    images.extend(components.known());
    let parsed = images.into_iter().filter_map(|image| image.parse().ok());
    let registries = parsed.map(|image: oci::Reference| image.registry.to_string());
    let registries: Vec<_> = registries.collect();
    settings.public_container_registries.0.extend(registries);
    settings
}

/// Profiles and faults.
pub(crate) fn options() -> RehearsalOptions {
    let profiles = PROFILES.iter().map(|profile| {
        let [control_plane, arbiters, workers] = profile.machines.map(|count| count as u64);
        RehearsalProfile {
            name: profile.name.to_owned(),
            purpose: profile.purpose.to_owned(),
            control_plane,
            arbiters,
            workers,
        }
    });
    let faults = FAULTS.iter().map(|kind| RehearsalFault {
        name: kind.name.to_owned(),
        when: kind.when.to_owned(),
        effect: kind.effect.to_owned(),
    });
    RehearsalOptions {
        profiles: profiles.collect(),
        faults: faults.collect(),
    }
}

pub(crate) fn into_domain(error: rehearsal::Error) -> Error {
    match error {
        rehearsal::Error::Invalid { field, reason } => Error::invalid(field, reason),
        error => Error::internal("rehearsing the installation", error),
    }
}
