//! The command line of every server: serve, `--check-config`, `settings`, `health`.

use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio_util::sync::CancellationToken;

use crate::arguments::ServerCommand;
use crate::loaded_settings::{LoadedSettings, load, read};
use crate::settings::Problem;
use crate::{Error, limit_table, logs, open_files, privileges, probe, shutdown};

pub use crate::arguments::ServerArgs;
pub use crate::loaded_settings::{LogSettings, ProcessSettings};
pub use crate::server_settings::ServerSettings;
pub use crate::settings_source::{ReloadedSettings, SettingsSource, SettingsWatch};

/// Exit code for settings and arguments that cannot be used.
const EXIT_SETTINGS: u8 = 2;
/// How long blocking work on files may take to finish at shutdown. Longer work, as building a catalog's cache, may be
/// interrupted at any time.
const FILES_TIMEOUT: Duration = Duration::from_secs(2);

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
