//! The command line of every server: serve, `--check-config`, `settings`, `health`.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio_util::sync::CancellationToken;

use crate::settings::{FromValues, Problem, Problems, Values};
use crate::{Error, limit_table, logs, open_files, privileges, probe, shutdown, tls};

pub use crate::server_settings::ServerSettings;
pub use crate::settings_source::{ReloadedSettings, SettingsSource, SettingsWatch};

/// Exit code for settings and arguments that cannot be used.
const EXIT_SETTINGS: u8 = 2;
/// How long blocking work on files may take to finish at shutdown. Longer work, as building a catalog's cache, may be
/// interrupted at any time.
const FILES_TIMEOUT: Duration = Duration::from_secs(2);

/// Arguments of a server.
#[derive(Debug, Clone, Parser)]
pub struct ServerArgs {
    /// File with NAME=value lines, or in another format of this server; the environment overrides it
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Check the settings, print all problems, and exit
    #[arg(long)]
    pub check_config: bool,
    /// Exit when standard input ends: for a supervisor that holds the other end of the pipe
    #[arg(long, hide = true)]
    pub supervised: bool,
    #[command(subcommand)]
    command: Option<ServerCommand>,
    /// Variables, in lower case, that override the environment: of a server with a command line of its own
    #[arg(skip)]
    pub overrides: Vec<(String, String)>,
}

impl ServerArgs {
    /// No arguments, and `overrides`.
    pub fn overriding(overrides: Vec<(String, String)>) -> Self {
        Self {
            config: None,
            check_config: false,
            supervised: false,
            command: None,
            overrides,
        }
    }
}

impl ServerArgs {
    /// File of the settings.
    pub(crate) fn file(&self) -> Option<&PathBuf> {
        match &self.command {
            Some(ServerCommand::Serve { file: Some(file) }) => Some(file),
            _ => self.config.as_ref(),
        }
    }

    fn is_serving(&self) -> bool {
        matches!(self.command, None | Some(ServerCommand::Serve { .. }))
    }
}

#[derive(Debug, Clone, Subcommand)]
enum ServerCommand {
    /// Serve, as without a command
    Serve {
        /// As --config
        file: Option<PathBuf>,
    },
    /// Print every setting with its default and meaning
    Settings {
        /// Print every limit under these settings: value, scope, and the answer beyond it
        #[arg(long)]
        limits: bool,
    },
    /// Check the health of the running server
    Health {
        /// Check its readiness, including the services it depends on
        #[arg(long)]
        ready: bool,
    },
}

crate::settings! {
    /// Settings of the log of every server.
    pub struct LogSettings {
        /// Filter of the log, as in `info` or `info,sqlx=warn`.
        log_level: String = "info",
    }
}

crate::settings! {
    /// Settings of the process of every server.
    pub struct ProcessSettings {
        /// User and group id that a server becomes when its container starts it as root.
        run_as_user: Option<u32> = "",
    }
}

/// Parses the command line of the server called `name` and runs it by `run`; the value is the process's exit code.
pub fn main(name: &'static str, run: fn(&ServerArgs) -> ExitCode) -> ExitCode {
    match parsed(command(name), std::env::args_os()) {
        Ok(arguments) => run(&arguments),
        Err(code) => code,
    }
}

/// The command line of the server called `name`.
pub fn command(name: &'static str) -> clap::Command {
    <ServerArgs as clap::CommandFactory>::command()
        .name(name)
        .version(env!("CARGO_PKG_VERSION"))
}

/// The arguments of a server with this command line; `arguments` begin with the name of the program.
///
/// Errors: the exit code, after messages, the help or the version are printed.
pub fn parsed(
    command: clap::Command,
    arguments: impl IntoIterator<Item = OsString>,
) -> Result<ServerArgs, ExitCode> {
    let matches = command.try_get_matches_from(arguments);
    let arguments =
        matches.and_then(|it| <ServerArgs as clap::FromArgMatches>::from_arg_matches(&it));
    arguments.map_err(|message| print(&message))
}

/// Prints an error of the command line, its help or its version; returns the exit code.
pub fn print(message: &clap::Error) -> ExitCode {
    message.print().ok();
    if message.use_stderr() {
        ExitCode::from(EXIT_SETTINGS)
    } else {
        ExitCode::SUCCESS
    }
}

/// Runs the server called `name` with parsed arguments.
pub fn main_with<S, F, Fut>(name: &'static str, arguments: &ServerArgs, run: F) -> ExitCode
where
    S: ServerSettings,
    F: FnOnce(S, CancellationToken) -> Fut,
    Fut: Future<Output = Result<(), Error>>,
{
    main_reloading_with(name, arguments, |settings, _, shutdown| {
        run(settings, shutdown)
    })
}

/// [`main_with`] for a server that takes over changed settings while it runs.
pub fn main_reloading_with<S, F, Fut>(
    name: &'static str,
    arguments: &ServerArgs,
    run: F,
) -> ExitCode
where
    S: ServerSettings,
    F: FnOnce(S, SettingsSource<S>, CancellationToken) -> Fut,
    Fut: Future<Output = Result<(), Error>>,
{
    if let Some(ServerCommand::Settings { limits: true }) = arguments.command {
        return match read::<S>(arguments) {
            Ok(read) => say(&limit_table::table(&read.settings)),
            Err(problems) => fail(&format!("{name}: {problems}"), EXIT_SETTINGS),
        };
    }
    if let Some(ServerCommand::Settings { .. }) = arguments.command {
        return say(&crate::settings::reference::<S>());
    }
    // Before they are read, so that a change meanwhile is seen.
    let text = arguments.file().map(std::fs::read);
    let LoadedSettings {
        log,
        process,
        settings,
        remarks,
        values,
    } = match load::<S>(arguments) {
        Ok(loaded) => loaded,
        Err(problems) => return fail(&format!("{name}: {problems}"), EXIT_SETTINGS),
    };
    if arguments.is_serving()
        && let Some(user) = process.run_as_user
    {
        // A check reads the files with the rights of that user, and changes nothing.
        let folders = if arguments.check_config {
            Vec::new()
        } else {
            settings.data_folders()
        };
        if let Err(error) = privileges::become_user(user, &folders) {
            return fail(&format!("{name}: {}\n", model::error::chain(&error)), 1);
        }
    }
    if arguments.check_config {
        let remarks = remarks.iter().map(|remark| format!("warning: {remark}\n"));
        let remarks = remarks.collect::<String>();
        return say(&format!("{remarks}the settings can be used\n"));
    }
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    #[cfg(target_env = "musl")]
    runtime.on_thread_park(crate::allocator::collect);
    let runtime = match runtime.enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(&format!("{name}: starting the runtime: {error}\n"), 1),
    };
    #[cfg(target_env = "musl")]
    runtime.spawn(crate::allocator::collect_in_rounds());
    let result = if let Some(ServerCommand::Health { ready }) = arguments.command {
        runtime.block_on(ask(&settings, ready))
    } else {
        let (level, format) = settings.log();
        logs::init(level.unwrap_or(&log.log_level), format);
        for Problem { variable, reason } in &remarks {
            tracing::warn!(variable, reason, "setting has no effect");
        }
        privileges::warn_of_unwritable(&settings.data_folders());
        let source = SettingsSource::new(arguments, values, text.and_then(Result::ok));
        let run = |settings, shutdown| run(settings, source, shutdown);
        runtime.block_on(serve(arguments.supervised, settings, run))
    };
    runtime.shutdown_timeout(FILES_TIMEOUT);
    logs::finish();
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&format!("{name}: {}\n", model::error::chain(&error)), 1),
    }
}

/// Settings, and the texts that they come from.
pub(crate) struct LoadedSettings<S> {
    log: LogSettings,
    process: ProcessSettings,
    pub(crate) settings: S,
    remarks: Vec<Problem>,
    pub(crate) values: Values,
}

/// Reads and checks the settings; with `--check-config` their certificates, too.
///
/// Errors: all problems.
pub(crate) fn load<S: ServerSettings>(
    arguments: &ServerArgs,
) -> Result<LoadedSettings<S>, Problems> {
    let (mut loaded, mut problems) = parse::<S>(arguments)?;
    problems.add(loaded.settings.problems());
    if arguments.check_config {
        let found = tls::check(&loaded.settings.certificates());
        problems.add(found.problems);
        loaded.remarks.extend(found.remarks);
    }
    problems.none()?;
    Ok(loaded)
}

/// The settings without a check of their combinations: enough to print their limits.
fn read<S: ServerSettings>(arguments: &ServerArgs) -> Result<LoadedSettings<S>, Problems> {
    let (loaded, problems) = parse::<S>(arguments)?;
    problems.none()?;
    Ok(loaded)
}

fn parse<S: ServerSettings>(
    arguments: &ServerArgs,
) -> Result<(LoadedSettings<S>, Problems), Problems> {
    let file = arguments.file();
    let is_own = |file: &&PathBuf| {
        let extension = file.extension().unwrap_or_default();
        S::OWN_FILE.is_some() && (extension == "yml" || extension == "yaml")
    };
    let (own, lines) = match file {
        Some(file) if is_own(&file) => (Some(file), None),
        file => (None, file.map(PathBuf::as_path)),
    };
    let mut values = Values::read(lines)?;
    if let (Some(path), Some(variable)) = (own, S::OWN_FILE) {
        values.set(variable, &path.to_string_lossy());
    }
    for (name, text) in &arguments.overrides {
        values.set(name, text);
    }
    let (mut problems, mut remarks) = (Problems::default(), Vec::new());
    S::prepare(&mut values, &mut problems, &mut remarks);
    let log = LogSettings::read(&values, &mut problems);
    let process = ProcessSettings::read(&values, &mut problems);
    let settings = S::read(&values, &mut problems);
    let loaded = LoadedSettings {
        log,
        process,
        settings,
        remarks,
        values,
    };
    Ok((loaded, problems))
}

/// Raises the limit of open files to the hard limit: connections are files, and many systems start with 1024.
fn raise_file_limit() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = open_files::limit();
    if current.is_none_or(|current| current >= wanted) {
        return;
    }
    let current = Some(wanted);
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current, maximum }) {
        tracing::warn!(%error, "limit of open files not raised");
    }
}

async fn serve<S, F, Fut>(supervised: bool, settings: S, run: F) -> Result<(), Error>
where
    F: FnOnce(S, CancellationToken) -> Fut,
    Fut: Future<Output = Result<(), Error>>,
{
    raise_file_limit();
    let token = shutdown::on_signals()?;
    if supervised {
        shutdown::on_stdin_end(token.clone());
    }
    run(settings, token).await
}

async fn ask<S: ServerSettings>(settings: &S, ready: bool) -> Result<(), Error> {
    match settings.listen().first() {
        Some(listen) => probe::ask(listen, ready).await,
        None => Err(Error::new("asking the server", "no address is configured")),
    }
}

fn say(text: &str) -> ExitCode {
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn fail(text: &str, code: u8) -> ExitCode {
    std::io::stderr().write_all(text.as_bytes()).ok();
    ExitCode::from(code)
}
