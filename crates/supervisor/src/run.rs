//! Start, supervision and shutdown of `atoll up`.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use api_server::{AuthType, Settings};
use credentials::secrets::{REGISTRY_USER, SecretFiles, password, registry_names};
use rustix::process::Signal;
use service::runtime;
use service::{CancellationToken, Error, ResultExt as _};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::child::{self, ChildProgram, DesiredState, StopTokens};
use crate::child_output::{OutputKind, OutputSink};
use crate::control::Control;
use crate::data_directory::{DataDirectory, Lock};
use crate::environment::{Environment, LogIn, reachable};
use crate::event::{ReadyReport, SupervisorEvent, SupervisorObserver};
use crate::log_file::LogFile;
use crate::ports::ServicePorts;
use crate::postgres::Cluster;
use crate::ready;
use crate::service_name::ServiceName;
use crate::service_users::ServiceUsers;
use crate::state_file::StateFile;
use crate::up_state::UpState;

/// The running program, also after its file was replaced.
const THIS_PROGRAM: &str = "/proc/self/exe";
const POSTGRES: &str = "postgres";
/// Mode of secrets; services get access to theirs by group.
const PRIVATE: u32 = 0o600;
/// Time for children of a killed run to drain before their ports count as in use.
const ORPHAN_GRACE: Duration = Duration::from_secs(30);
/// Slightly longer than the services' own grace period for in-flight requests.
const SERVICE_GRACE: Duration = Duration::from_secs(25);
/// Time for a shutdown checkpoint on a slow disk.
const POSTGRES_GRACE: Duration = Duration::from_mins(1);

/// Options of a run.
#[derive(Debug, Clone)]
pub struct UpOptions {
    /// Data directory; none for the default of this user.
    pub data: Option<PathBuf>,
    /// First of seven ports; none for the usual ones.
    pub ports_from: Option<u16>,
    /// File with variables of the services, which is watched.
    pub env_file: Option<PathBuf>,
    /// Operator catalogs, as in CATALOGS of the catalog server.
    pub catalogs: Vec<String>,
    /// Listen address of the services.
    pub listen: IpAddr,
    /// Whether callers are authenticated from now on.
    pub login: bool,
    /// Whether the end of standard input ends the run.
    pub is_supervised: bool,
}

/// Runs all services until SIGINT or SIGTERM.
///
/// Errors: a failed start, with its remedy.
pub fn run(options: &UpOptions, observer: &SupervisorObserver) -> Result<(), Error> {
    let directory = DataDirectory::new(options.data.clone())?;
    directory.create()?;
    let lock = Lock::take(&directory)?;
    let result = run_on(directory, options, lock.was_killed, observer);
    // Also after a failure: no child of this run is left that would hold a port at the next start.
    lock.release();
    result
}

fn run_on(
    directory: DataDirectory,
    options: &UpOptions,
    was_killed: bool,
    observer: &SupervisorObserver,
) -> Result<(), Error> {
    std::fs::remove_file(directory.state()).ok();
    if Cluster::stop_stale(&directory)? {
        observer(SupervisorEvent::StaleDatabaseStopped);
    }
    let grace = if was_killed {
        ORPHAN_GRACE
    } else {
        Duration::ZERO
    };
    let ports = ServicePorts::choose(
        options.listen,
        options.ports_from,
        !options.catalogs.is_empty(),
        Instant::now() + grace,
    )?;
    let users = ServiceUsers::choose()?;
    users.check_ports(&ports.of_services())?;
    let secrets = SecretFiles::in_folder(&directory.secrets(), directory.registry_certificate());
    let own = reachable(options.listen);
    secrets.ensure(&registry_names(&[own.to_string()]), PRIVATE, None)?;
    let registry = SocketAddr::new(own, ports.registry).to_string();
    for logins in [
        directory.registry_logins(),
        directory.image_service_logins(),
    ] {
        secrets.write_logins(&logins, std::slice::from_ref(&registry), PRIVATE)?;
    }
    users.grant_access(&directory, &secrets)?;
    for catalog in options.catalogs.iter().map(PathBuf::from) {
        users.check_readable(ServiceName::CatalogServer, &catalog)?;
    }
    let env_file = options
        .env_file
        .as_deref()
        .map(std::path::absolute)
        .transpose();
    let log_in = LogIn::of(&directory, &users, options.login)?;
    let environment = Environment {
        log_in,
        env_file: env_file.doing("reading --env-file")?,
        directory,
        ports,
        listen: options.listen,
        secrets,
        catalogs: options.catalogs.join(","),
        users,
        proxy_secret: password(),
    };
    check_settings(&environment)?;
    let (cluster, is_new) = Cluster::prepare(
        &environment.directory,
        ports.postgres,
        &environment.secrets.database_password,
    )?;
    observer(SupervisorEvent::DataPrepared {
        is_new,
        root: environment.directory.root(),
        postgres: cluster.major(),
        user: cluster.user(),
    });
    let is_supervised = options.is_supervised;
    runtime::block_on(supervise(environment, cluster, is_supervised, observer))?
}

/// Command of a service, with its variables.
fn command(environment: &Environment, name: ServiceName) -> Result<Command, Error> {
    let variables = environment.write_variables(name)?;
    let mut command = Command::new(THIS_PROGRAM);
    command
        .arg0("atoll")
        .args(["serve", name.as_str(), "--config"])
        .arg(variables)
        .envs(environment.fixed(name))
        // Ctrl-C at the terminal must reach only the supervisor, which shuts down gracefully.
        .process_group(0);
    environment
        .users
        .apply(name, &environment.directory, &mut command);
    Ok(command)
}

/// Checks the settings of all services before any of them is started.
fn check_settings(environment: &Environment) -> Result<(), Error> {
    let mut problems = String::new();
    for name in environment.services() {
        let output = command(environment, name)?
            .arg("--check-config")
            .stdin(Stdio::null())
            .output()
            .doing(|| format!("checking the settings of {name}"))?;
        if !output.status.success() {
            problems.push_str(&String::from_utf8_lossy(&output.stderr));
        }
    }
    if problems.is_empty() {
        Ok(())
    } else {
        Err(Error::new("checking the settings", problems))
    }
}

async fn supervise(
    environment: Environment,
    cluster: Cluster,
    is_supervised: bool,
    observer: &SupervisorObserver,
) -> Result<(), Error> {
    let (path, state) = (environment.directory.state(), state_of(&environment));
    let state_file = StateFile::new(path, state.clone(), observer.clone());
    let stop = on_signals()?;
    if is_supervised {
        service::shutdown::on_stdin_end(stop.graceful.clone());
    }
    let control = Control::new(environment.clone(), observer.clone());
    let mut database = JoinSet::new();
    let database_ending = ending(&stop);
    let mut is_database_ready = start_database(
        &environment,
        cluster,
        &state_file,
        database_ending.clone(),
        observer,
        &mut database,
    )?;
    let mut services = JoinSet::new();
    let services_ending = ending(&stop);
    let began = Instant::now();
    let result = stop
        .graceful
        .run_until_cancelled(async {
            is_database_ready
                .wait_for(|is_ready| *is_ready)
                .await
                .doing("waiting for the database")?;
            for name in environment.services() {
                let program = service_program(&environment, name, observer)?;
                let wanted = control.of(name);
                services.spawn(child::supervise(
                    program,
                    wanted,
                    services_ending.clone(),
                    state_file.clone(),
                ));
            }
            let urls: BTreeMap<_, _> = control
                .running()
                .map(|name| (name.as_str(), environment.ready_url(name)))
                .collect();
            ready::wait(urls).await?;
            state_file.publish();
            report_ready(&environment, &state, began.elapsed(), observer)?;
            control.watch().await
        })
        .await
        .unwrap_or(Ok(()));
    observer(SupervisorEvent::Stopping);
    state_file.withdraw();
    // Services before the database: their in-flight requests still need it.
    services_ending.graceful.cancel();
    services.join_all().await;
    database_ending.graceful.cancel();
    database.join_all().await;
    observer(SupervisorEvent::Stopped);
    result
}

/// Tokens for a graceful shutdown of its own, and the common immediate one.
fn ending(stop: &StopTokens) -> StopTokens {
    StopTokens {
        graceful: CancellationToken::new(),
        immediate: stop.immediate.clone(),
    }
}

fn start_database(
    environment: &Environment,
    cluster: Cluster,
    state_file: &StateFile,
    ending: StopTokens,
    observer: &SupervisorObserver,
    tasks: &mut JoinSet<()>,
) -> Result<watch::Receiver<bool>, Error> {
    let (ready, is_ready) = watch::channel(false);
    let log = LogFile::open(environment.directory.log(POSTGRES))?;
    let program = ChildProgram {
        name: POSTGRES,
        command: Box::new(move || Ok(cluster.server())),
        end: Signal::INT,
        end_now: Signal::QUIT,
        grace: POSTGRES_GRACE,
        sink: OutputSink::new(POSTGRES, OutputKind::Postgres(ready), log, observer.clone()),
        observer: observer.clone(),
    };
    let state_file = state_file.clone();
    tasks.spawn(async move {
        let (_always, wanted) = watch::channel(DesiredState {
            run: true,
            generation: 0,
        });
        child::supervise(program, wanted, ending, state_file).await;
    });
    Ok(is_ready)
}

fn service_program(
    environment: &Environment,
    name: ServiceName,
    observer: &SupervisorObserver,
) -> Result<ChildProgram, Error> {
    let log = LogFile::open(environment.directory.log(name.as_str()))?;
    let environment = environment.clone();
    Ok(ChildProgram {
        name: name.as_str(),
        command: Box::new(move || {
            let mut command = command(&environment, name)?;
            command.arg("--supervised");
            Ok(command)
        }),
        end: Signal::TERM,
        end_now: Signal::KILL,
        grace: SERVICE_GRACE,
        sink: OutputSink::new(name.as_str(), OutputKind::Service, log, observer.clone()),
        observer: observer.clone(),
    })
}

fn state_of(environment: &Environment) -> UpState {
    UpState {
        api_url: environment.api_url(),
        image_service_url: environment.image_service_url(),
        ui_url: environment.ui_url(),
        registry: environment.registry(),
        registry_user: REGISTRY_USER.to_owned(),
        registry_password_file: environment.secrets.registry_password.clone(),
        registry_ca: environment.secrets.tls.cert.clone(),
        control: environment.directory.root().join("control"),
        postgres_port: environment.ports.postgres,
        catalog_server: if environment.catalogs.is_empty() {
            String::new()
        } else {
            environment.catalog_server()
        },
        catalogs: environment.catalogs.clone(),
        pids: BTreeMap::new(),
    }
}

fn report_ready(
    environment: &Environment,
    state: &UpState,
    after: Duration,
    observer: &SupervisorObserver,
) -> Result<(), Error> {
    let variables = environment.write_variables(ServiceName::ApiServer)?;
    let settings = Settings::load(Some(&variables));
    let settings = settings.doing("reading the settings")?;
    let log_in = environment.log_in.as_ref();
    let log_in = log_in.filter(|_| settings.auth_type == AuthType::Local);
    let link = log_in.map(|log_in| log_in.link(&environment.ui_url()));
    observer(SupervisorEvent::Ready(ReadyReport {
        after,
        state,
        logs: environment.directory.root().join("logs"),
        access: settings.auth_type.access(),
        log_in_link: link.transpose()?,
    }));
    Ok(())
}

/// The first SIGINT or SIGTERM shuts down gracefully, the second immediately.
fn on_signals() -> Result<StopTokens, Error> {
    let install = |kind| signal(kind).doing("installing signal handlers");
    let mut interrupt = install(SignalKind::interrupt())?;
    let mut terminate = install(SignalKind::terminate())?;
    let ending = StopTokens {
        graceful: CancellationToken::new(),
        immediate: CancellationToken::new(),
    };
    let tokens = ending.clone();
    tokio::spawn(async move {
        for token in [&tokens.graceful, &tokens.immediate] {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            token.cancel();
        }
    });
    Ok(ending)
}
