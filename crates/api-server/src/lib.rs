//! The installer API: clusters, infra-envs and hosts over HTTP, on Postgres.
//!
//! `rules` decides; this crate loads snapshots, saves changes and records events. Invariant: a change of a cluster is
//! one transaction under the cluster's lock.

mod app;
mod auth;
mod blocking;
mod carry_in;
mod db;
pub mod discovery;
mod file_storage;
mod http;
mod limits;
mod measurements;
mod openapi;
pub mod operations;
mod rehearse;
mod routes;
mod server_settings;
pub mod settings;
mod tasks;

use std::path::Path;
use std::process::ExitCode;

use preparation::{Confinement, RegistryAccess, Signers, SiteCatalogs, SiteMirrors};
use sandbox::{Launcher, SandboxLimits};
use service::health::Health;
use service::program::{self, ServerArgs, ServerSettings as _};
use service::server::Running;
use service::{CancellationToken, Error, ResultExt as _};
use uuid::Uuid;

use app::App;
use app::offer::CurrentOffer;
pub use db::database_probe;
use settings::SandboxMode;
pub use settings::{AuthType, Settings};

/// Starts the server; the database may become available later.
///
/// Errors: an unusable address, folder or file in the settings.
pub async fn start(settings: Settings, shutdown: CancellationToken) -> Result<Running, Error> {
    measurements::declare();
    let listens = settings.listen();
    let app = build(settings).await?;
    let health = Health::new();
    let router = routes::router(app.clone(), health.clone());
    health.starting(tasks::DATABASE);
    let mut running = service::server::start(listens, router, shutdown.clone()).await?;
    tracing::info!(address = %running.address(), "installer API listening");
    running.also(tasks::run(app, health, shutdown));
    Ok(running)
}

/// Runs the command line of this server; returns the exit code of the process.
pub fn main(arguments: &ServerArgs) -> ExitCode {
    program::main_with("api-server", arguments, run)
}

/// Serves until `shutdown`.
async fn run(settings: Settings, shutdown: CancellationToken) -> Result<(), Error> {
    start(settings, shutdown).await?.wait().await
}

/// A token of the administrator under that name, for AUTH_TYPE=local, valid `days` from now.
///
/// Errors: missing or invalid keys in the settings.
pub fn user_token(settings: &Settings, name: &str, days: u32) -> Result<String, Error> {
    let expires = service::clock::now() + chrono::TimeDelta::days(days.into());
    auth::user_token(settings, name, expires.timestamp()).doing("issuing a token")
}

/// The code of a link that logs the user of that name in once, for AUTH_TYPE=local, within `hours` from now.
///
/// Errors: missing or invalid keys in the settings.
pub fn log_in_code(settings: &Settings, name: &str, hours: u32) -> Result<String, Error> {
    let expires = service::clock::now() + chrono::TimeDelta::hours(hours.into());
    auth::log_in_code(settings, name, Uuid::new_v4(), expires.timestamp()).doing("issuing a code")
}

async fn build(settings: Settings) -> Result<App, Error> {
    let auth = auth::Authentication::open(&settings)
        .await
        .doing("reading the keys of AUTH_TYPE")?;
    let keyring = sealing::Keyring::open(settings.secrets_key_file.as_deref()).await?;
    let store = file_storage::open(&settings).await?.sealing_with(keyring);
    let service_ca = settings
        .service_ca_cert_path
        .as_deref()
        .map(read)
        .transpose()?;
    let mirror_ca = if settings.mirror_ca_path.exists() {
        Some(read(&settings.mirror_ca_path)?)
    } else {
        None
    };
    let bundles = [
        settings.mirror_ca_path.as_path(),
        Path::new(preparation::SYSTEM_CA_BUNDLE),
    ];
    let mirrors = SiteMirrors::load(&settings.registries_conf_path, &bundles)
        .doing("reading REGISTRIES_CONF_PATH")?;
    let discovery = discovery::DiscoveryOptions {
        service_base_url: settings.callback_url(),
        insecure: settings.skip_cert_verification,
        service_ca: service_ca.clone(),
        mirrors: mirrors.clone(),
        agent_start_timeout: settings.agent_timeout_start,
        insecure_policy: settings.force_insecure_policy_json,
        nmstate_service_from: settings.min_version_for_nmstate_service.0.clone(),
    };
    let confinement = confinement(&settings);
    if !settings.dummy_ignition {
        check_sandbox(&confinement, &settings.work_dir).await?;
    }
    let signers = settings.release_keyring.as_deref().map(|keyring| {
        let stores = settings.release_signature_stores.stores();
        Signers::load(keyring, stores, mirror_ca.as_deref())
    });
    let signers = signers.transpose().doing("reading RELEASE_KEYRING")?;
    let catalogs = SiteCatalogs::default();
    let install = preparation::InstallContext::new(preparation::InstallOptions {
        store: store.clone(),
        dummy_ignition: settings.dummy_ignition,
        invoker: settings.install_invoker.clone(),
        policy: settings.policy(),
        catalogs: catalogs.clone(),
        registry: RegistryAccess {
            ca_pem: mirror_ca.map(String::into_bytes),
            insecure: settings.skip_cert_verification,
            mirrors: mirrors.clone(),
        },
        confinement,
        service_ca,
        concurrency: settings.install_concurrency,
        cache_capacity_bytes: settings.installer_cache_capacity,
        time_limit: settings.prepare_for_installation_timeout,
        release_timeout: settings.release_image_timeout,
        signers,
        on_cache_event: measurements::count_cache_event,
    });
    let offer = CurrentOffer::new(settings.offer(), mirrors, catalogs);
    Ok(App::new(settings, auth, store, discovery, install, offer))
}

/// The confinement of the settings.
fn confinement(settings: &Settings) -> Confinement {
    Confinement {
        launcher: Launcher::own(),
        limits: SandboxLimits {
            memory_bytes: settings.installer_memory_limit,
            processes: settings.installer_process_limit,
            disk_bytes: settings.installer_disk_limit,
            time: settings.installer_time_limit,
        },
        strict: settings.installer_sandbox == SandboxMode::Strict,
    }
}

/// Logs the missing mechanisms of the sandbox; in strict mode a missing one is an error.
async fn check_sandbox(confinement: &Confinement, folder: &Path) -> Result<(), Error> {
    let doing = "checking the sandbox of installers";
    let report = match confinement.probe(folder.to_owned()).await {
        Ok(report) => report,
        Err(failure) if confinement.strict => return Err(Error::new(doing, failure)),
        Err(failure) => {
            tracing::warn!(
                reason = failure.reason,
                "sandbox of installers not available"
            );
            return Ok(());
        }
    };
    for missing in &report.missing {
        let mechanism = missing.mechanism;
        tracing::warn!(
            mechanism = mechanism.name(),
            reason = missing.reason,
            consequence = mechanism.without(),
            remedy = mechanism.remedy(),
            "sandbox of installers lacks a mechanism"
        );
    }
    match report.missing.first() {
        Some(missing) if confinement.strict => {
            let (name, remedy) = (missing.mechanism.name(), missing.mechanism.remedy());
            let reason = format!("{name} is missing and INSTALLER_SANDBOX is strict: {remedy}");
            Err(Error::new(
                doing,
                preparation::PreparationFailure::new(reason),
            ))
        }
        _ => Ok(()),
    }
}

fn read(path: &Path) -> Result<String, Error> {
    std::fs::read_to_string(path).doing(|| format!("reading {}", path.display()))
}
