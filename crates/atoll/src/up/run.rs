//! Start, supervision and shutdown of `atoll up`.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use api_server::{AuthType, Settings};
use clap::Args;
use rustix::process::Signal;
use service::{CancellationToken, Error, ResultExt as _};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::child::{self, ChildProgram, DesiredState, StopTokens};
use super::child_output::{OutputKind, OutputSink};
use super::control::Control;
use super::data_directory::{DataDirectory, Lock};
use super::environment::{Environment, LogIn, reachable};
use super::log_file::LogFile;
use super::ports::ServicePorts;
use super::postgres::Cluster;
use super::ready;
use super::service::ServiceName;
use super::service_users::ServiceUsers;
use super::state_file::{StateFile, UpState};
use crate::log_in::LINK_HOURS;
use crate::secrets::{REGISTRY_USER, SecretFiles, password, registry_names};
use crate::{runtime, terminal};

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

/// Arguments of `atoll up`.
#[derive(Debug, Clone, Args)]
pub(crate) struct UpArgs {
    /// Data directory (default: /var/lib/atoll as root, else atoll in the user's data folder)
    #[arg(long = "dir", alias = "data", value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// Use seven ports from N: database, registry, API, images, web UI, web UI, catalogs
    #[arg(long, value_name = "N")]
    pub(crate) ports_from: Option<u16>,
    /// File with NAME=value lines for the services; reloaded when it changes
    #[arg(long, value_name = "FILE")]
    pub(crate) env_file: Option<PathBuf>,
    /// Serve an operator catalog: a folder, or NAME=SOURCE as in CATALOGS of the catalog server; repeatable
    #[arg(long, value_name = "SOURCE")]
    pub(crate) catalog: Vec<String>,
    /// Listen address of the services
    #[arg(long, value_name = "ADDR", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    pub(crate) listen: IpAddr,
    /// Require log-ins: browsers on this machine are logged in by themselves, others by a link that is printed; later starts need no flag
    #[arg(long)]
    pub(crate) login: bool,
    /// Exit at the end of standard input, for supervising programs
    #[arg(long, hide = true)]
    pub(crate) supervised: bool,
}

/// Runs all services until SIGINT or SIGTERM.
///
/// Errors: a failed start, with its remedy.
pub(crate) fn run(arguments: &UpArgs) -> Result<(), Error> {
    let directory = DataDirectory::new(arguments.data.clone())?;
    directory.create()?;
    let lock = Lock::take(&directory)?;
    let result = run_on(directory, arguments, lock.was_killed);
    // Also after a failure: no child of this run is left that would hold a port at the next start.
    lock.release();
    result
}

fn run_on(directory: DataDirectory, arguments: &UpArgs, was_killed: bool) -> Result<(), Error> {
    std::fs::remove_file(directory.state()).ok();
    if Cluster::stop_stale(&directory)? {
        terminal::print("Stopped the database of a killed run.");
    }
    let grace = if was_killed {
        ORPHAN_GRACE
    } else {
        Duration::ZERO
    };
    let ports = ServicePorts::choose(
        arguments.listen,
        arguments.ports_from,
        !arguments.catalog.is_empty(),
        Instant::now() + grace,
    )?;
    let users = ServiceUsers::choose()?;
    users.check_ports(&ports.of_services())?;
    let secrets = SecretFiles::in_folder(&directory.secrets(), directory.registry_certificate());
    let own = reachable(arguments.listen);
    secrets.ensure(&registry_names(&[own.to_string()]), PRIVATE, None)?;
    let registry = SocketAddr::new(own, ports.registry).to_string();
    secrets.write_logins(&directory.registry_logins(), &[registry], PRIVATE)?;
    users.grant_access(&directory, &secrets)?;
    for catalog in arguments.catalog.iter().map(PathBuf::from) {
        users.check_readable(ServiceName::CatalogServer, &catalog)?;
    }
    let env_file = arguments
        .env_file
        .as_deref()
        .map(std::path::absolute)
        .transpose();
    let log_in = LogIn::of(&directory, &users, arguments.login)?;
    let environment = Environment {
        log_in,
        env_file: env_file.doing("reading --env-file")?,
        directory,
        ports,
        listen: arguments.listen,
        secrets,
        catalogs: arguments.catalog.join(","),
        users,
        proxy_secret: password(),
    };
    check_settings(&environment)?;
    let (cluster, is_new) = Cluster::prepare(
        &environment.directory,
        ports.postgres,
        &environment.secrets.database_password,
    )?;
    announce(&environment, &cluster, is_new);
    runtime::block_on(supervise(environment, cluster, arguments.supervised))?
}

fn announce(environment: &Environment, cluster: &Cluster, is_new: bool) {
    let kind = if is_new { "New" } else { "Existing" };
    let user = cluster
        .user()
        .map_or_else(String::new, |user| format!(" as user {user}"));
    terminal::print(&format!(
        "{kind} data in {}; Postgres {}{user}.",
        environment.directory.root().display(),
        cluster.major()
    ));
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
) -> Result<(), Error> {
    let state_file = StateFile::new(environment.directory.state(), state_of(&environment));
    let stop = on_signals()?;
    if is_supervised {
        service::shutdown::on_stdin_end(stop.graceful.clone());
    }
    let control = Control::new(environment.clone());
    let mut database = JoinSet::new();
    let database_ending = ending(&stop);
    let mut is_database_ready = start_database(
        &environment,
        cluster,
        &state_file,
        database_ending.clone(),
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
                let program = service_program(&environment, name)?;
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
            report_ready(&environment, began.elapsed());
            report_access(&environment)?;
            control.watch().await
        })
        .await
        .unwrap_or(Ok(()));
    terminal::print("Stopping: draining in-flight requests; press Ctrl-C again to stop at once.");
    state_file.withdraw();
    // Services before the database: their in-flight requests still need it.
    services_ending.graceful.cancel();
    services.join_all().await;
    database_ending.graceful.cancel();
    database.join_all().await;
    terminal::print("All services stopped; the data is kept.");
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
        sink: OutputSink::new(POSTGRES, OutputKind::Postgres(ready), log),
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

fn service_program(environment: &Environment, name: ServiceName) -> Result<ChildProgram, Error> {
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
        sink: OutputSink::new(name.as_str(), OutputKind::Service, log),
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

fn report_ready(environment: &Environment, after: Duration) {
    let directory = &environment.directory;
    if !environment.catalogs.is_empty() {
        let address = environment.catalog_server();
        terminal::print(&format!("Operator catalogs are served on {address}."));
    }
    terminal::print(&format!(
        "Ready after {:.1} s.\n  Web UI         {}\n  API            {}/api/assisted-install/v2\n  Images         {}\n  Registry       {} (user {REGISTRY_USER}, password in {}, certificate {})\n  Logs           {}\nPress Ctrl-C to stop.",
        after.as_secs_f64(),
        environment.ui_url(),
        environment.api_url(),
        environment.image_service_url(),
        environment.registry(),
        environment.secrets.registry_password.display(),
        environment.secrets.tls.cert.display(),
        directory.root().join("logs").display(),
    ));
}

/// Prints the rights of the users.
fn report_access(environment: &Environment) -> Result<(), Error> {
    let variables = environment.write_variables(ServiceName::ApiServer)?;
    let settings = Settings::load(Some(&variables));
    let settings = settings.doing("reading the settings")?;
    terminal::print(settings.auth_type.access());
    let Some(log_in) = &environment.log_in else {
        return Ok(());
    };
    if settings.auth_type == AuthType::Local {
        let link = log_in.link(&environment.ui_url())?;
        terminal::print(&format!(
            "Browsers on this machine are logged in by themselves; on others, once and within {LINK_HOURS} hours, by\n{link}"
        ));
    }
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
