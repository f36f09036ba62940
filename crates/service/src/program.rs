//! The command line of every server: serve, `--check-config`, `settings`, `health`.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio_util::sync::CancellationToken;

use crate::http_client::own_client;
use crate::limits::{self, Limit};
use crate::server::Listen;
use crate::settings::{FromValues, Problem, Problems, Values};
use crate::{Error, logs, shutdown};

/// Exit code for settings that cannot be used.
const EXIT_SETTINGS: u8 = 2;
/// Units: open files. More is of no use, and some programs that a server starts close every number up to the limit.
const MAX_FILES: u64 = 65_536;
/// How long work on files may take to finish when all else has ended. What takes longer, as a catalog's cache that is
/// being made, is written so that it may end at any time.
const FILES_TIMEOUT: Duration = Duration::from_secs(2);

/// What the program needs to know of a server's settings.
pub trait ServerSettings: FromValues {
    /// Where the server listens.
    fn listen(&self) -> Vec<Listen>;

    /// What is wrong although each variable parses: combinations, files that must exist.
    fn problems(&self) -> Vec<Problem> {
        Vec::new()
    }

    /// The server's own bounds of what a client may cost; those of every server are known.
    fn limits(&self) -> Vec<Limit> {
        Vec::new()
    }

    /// The variable, in lower case, of a file in a form of the server's own: `--config` may name that file too.
    const OWN_FILE: Option<&'static str> = None;

    /// Takes in what the server's own forms of files and variables say, before the settings are read; what is said
    /// there and changes nothing becomes a remark.
    fn prepare(_values: &mut Values, _problems: &mut Problems, _remarks: &mut Vec<Problem>) {}

    /// How the log is to be, where the server's own settings say it.
    fn log(&self) -> (Option<&str>, logs::Format) {
        (None, logs::Format::default())
    }
}

/// Arguments of a server.
#[derive(Debug, Clone, Parser)]
pub struct Arguments {
    /// File with NAME=value lines, or what the server takes besides; the environment wins over it
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Check the settings, print what is wrong, and end
    #[arg(long)]
    pub check_config: bool,
    /// End when standard input ends: for a supervisor that holds the other side
    #[arg(long, hide = true)]
    pub supervised: bool,
    #[command(subcommand)]
    verb: Option<Verb>,
    /// Variables, in lower case, that win over the environment: of a server with a command line of its own
    #[arg(skip)]
    pub overrides: Vec<(String, String)>,
}

impl Arguments {
    /// No arguments, and `overrides`.
    pub fn overriding(overrides: Vec<(String, String)>) -> Self {
        Self {
            config: None,
            check_config: false,
            supervised: false,
            verb: None,
            overrides,
        }
    }
}

#[derive(Debug, Clone, Subcommand)]
enum Verb {
    /// Serve, as without a verb
    Serve {
        /// As --config
        file: Option<PathBuf>,
    },
    /// Print every setting with its default and meaning
    Settings {
        /// Print every limit as the settings make it: value, scope, and the answer beyond it
        #[arg(long)]
        limits: bool,
    },
    /// Ask the running server whether it works
    Health {
        /// Ask whether it can do its job, its neighbours included
        #[arg(long)]
        ready: bool,
    },
}

crate::settings! {
    /// What every server reads besides its own settings.
    pub struct Common {
        /// Filter of the log, as in `info` or `info,sqlx=warn`.
        log_level: String = "info",
    }
}

/// Parses the command line and runs the server called `name`; the value is the process's exit code.
pub fn main<S, F, Fut>(name: &'static str, run: F) -> ExitCode
where
    S: ServerSettings,
    F: FnOnce(S, CancellationToken) -> Fut,
    Fut: Future<Output = Result<(), Error>>,
{
    let command = <Arguments as clap::CommandFactory>::command()
        .name(name)
        .version(env!("CARGO_PKG_VERSION"));
    let matches = command.get_matches();
    match <Arguments as clap::FromArgMatches>::from_arg_matches(&matches) {
        Ok(arguments) => main_with(name, &arguments, run),
        Err(error) => fail(&error.to_string(), EXIT_SETTINGS),
    }
}

/// Runs the server called `name` with arguments that somebody else has parsed.
pub fn main_with<S, F, Fut>(name: &'static str, arguments: &Arguments, run: F) -> ExitCode
where
    S: ServerSettings,
    F: FnOnce(S, CancellationToken) -> Fut,
    Fut: Future<Output = Result<(), Error>>,
{
    if let Some(Verb::Settings { limits: true }) = arguments.verb {
        return match read::<S>(arguments) {
            Ok(read) => say(&limits::table(&read.settings)),
            Err(problems) => fail(&format!("{name}: {problems}"), EXIT_SETTINGS),
        };
    }
    if let Some(Verb::Settings { .. }) = arguments.verb {
        return say(&crate::settings::reference::<S>());
    }
    let Loaded {
        common,
        settings,
        remarks,
    } = match load::<S>(arguments) {
        Ok(loaded) => loaded,
        Err(problems) => return fail(&format!("{name}: {problems}"), EXIT_SETTINGS),
    };
    if arguments.check_config {
        let remarks = remarks.iter().map(|remark| format!("{remark}\n"));
        return say(&format!(
            "{}the settings can be used\n",
            remarks.collect::<String>()
        ));
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return fail(&format!("{name}: starting the runtime: {error}\n"), 1),
    };
    let result = if let Some(Verb::Health { ready }) = arguments.verb {
        runtime.block_on(ask(&settings, ready))
    } else {
        let (level, format) = settings.log();
        logs::init(level.unwrap_or(&common.log_level), format);
        for Problem { variable, reason } in &remarks {
            tracing::warn!(variable, reason, "a setting without effect");
        }
        runtime.block_on(serve(arguments.supervised, settings, run))
    };
    runtime.shutdown_timeout(FILES_TIMEOUT);
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&format!("{name}: {}\n", model::error::chain(&error)), 1),
    }
}

struct Loaded<S> {
    common: Common,
    settings: S,
    remarks: Vec<Problem>,
}

fn load<S: ServerSettings>(arguments: &Arguments) -> Result<Loaded<S>, Problems> {
    let (loaded, mut problems) = parse::<S>(arguments)?;
    for problem in loaded.settings.problems() {
        // A variable that does not parse has said so already.
        if problems
            .0
            .iter()
            .all(|told| told.variable != problem.variable)
        {
            problems.0.push(problem);
        }
    }
    problems.none()?;
    Ok(loaded)
}

/// The settings, though a combination of them may be of no use: enough to say what they mean.
fn read<S: ServerSettings>(arguments: &Arguments) -> Result<Loaded<S>, Problems> {
    let (loaded, problems) = parse::<S>(arguments)?;
    problems.none()?;
    Ok(loaded)
}

fn parse<S: ServerSettings>(arguments: &Arguments) -> Result<(Loaded<S>, Problems), Problems> {
    let file = match &arguments.verb {
        Some(Verb::Serve { file: Some(file) }) => Some(file),
        _ => arguments.config.as_ref(),
    };
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
    let common = Common::read(&values, &mut problems);
    let settings = S::read(&values, &mut problems);
    let loaded = Loaded {
        common,
        settings,
        remarks,
    };
    Ok((loaded, problems))
}

/// Connections are files, and many systems begin with a limit of 1024: as many as the administrator allows.
fn raise_file_limit() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = maximum.unwrap_or(MAX_FILES).min(MAX_FILES);
    if current.is_none_or(|current| current >= wanted) {
        return;
    }
    let current = Some(wanted);
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current, maximum }) {
        tracing::warn!(%error, "the limit of open files was not raised");
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
    let Some(listen) = settings.listen().into_iter().next() else {
        return Err(Error::new("asking the server", "no address is configured"));
    };
    let mut address = listen.address;
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            std::net::SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
            std::net::SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
        });
    }
    let scheme = if listen.tls.is_some() {
        "https"
    } else {
        "http"
    };
    let path = if ready { "ready" } else { "health" };
    let url = format!("{scheme}://{address}/{path}");
    let doing = || format!("asking {url}");
    let client = own_client(listen.tls.as_ref()).await?;
    let response = client
        .get(&url)
        .send()
        .await
        .map_err(|e| Error::new(doing(), e))?;
    let status = response.status();
    if status.is_success() {
        return Ok(());
    }
    let body = response.text().await.unwrap_or_default();
    Err(Error::new(doing(), format!("answered {status} {body}")))
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
