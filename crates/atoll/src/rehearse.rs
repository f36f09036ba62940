//! `atoll rehearse`: plays the installation of a site with simulated hosts, and names the mistakes of its files.
//!
//! Without `--server` it has an API server of its own, with a temporary database, and time runs fast.

mod output;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use rehearsal::{
    FAULTS, InstallationProfile, InstallerApi, PROFILES, Pace, PlayOptions, RehearsalProgress,
    RehearsalReport, RehearsalRequest, Script, SiteFinding,
};
use service::{Error, ResultExt as _};
use supervisor::RehearsalServer;

use crate::catalog::table::table;
use crate::failure;
use crate::output_format::FormatArgs;
use crate::terminal::{notice, print};
use crate::web_address::web_text;

const DOING: &str = "rehearsing the installation";
/// Exit code when nothing could be rehearsed.
const NOT_REHEARSED: u8 = 2;
/// Speed-up with a server of its own. At a hundred times real time an installation takes about 15 seconds, of which most
/// is work of the server.
const OWN_SPEEDUP: f64 = 100.0;
/// Shortest real time without any change after which a state counts as final: a server of its own judges every half second.
const OWN_QUIET: Duration = Duration::from_secs(5);

/// Plays the installation of a site with simulated hosts, and names the mistakes of its files.
///
/// The site file has install-config.yaml and agent-config.yaml as documents of one YAML file; documents of kind
/// HardwareData and BareMetalHost describe the machines, others get hardware that suits their role.
///
/// Exit codes: 0 the cluster was installed and no mistake was found; 1 mistakes; 2 nothing could be rehearsed.
#[derive(Debug, Clone, Args)]
pub(crate) struct RehearseArgs {
    /// Site file; without one, the machines of the profile are played
    #[arg(value_name = "SITE.YAML", required_unless_present_any = ["profile", "list"])]
    site: Option<PathBuf>,
    /// List the profiles and faults
    #[arg(long)]
    list: bool,
    /// Check the data of the site only: no host is simulated
    #[arg(long)]
    check: bool,
    /// Kind of installation, with its machines and faults
    #[arg(long, value_name = "NAME", value_parser = InstallationProfile::parse)]
    profile: Option<&'static InstallationProfile>,
    /// Fault of a host, or of one that the seed chooses; may be repeated
    #[arg(long = "fault", value_name = "NAME[@HOST]")]
    faults: Vec<String>,
    /// Seed of serial numbers, chosen hosts and lost requests
    #[arg(long, default_value = "1")]
    seed: String,
    /// Installer API that speaks the protocol. Default: a server of its own
    #[arg(long, value_name = "URL", value_parser = web_text)]
    server: Option<String>,
    /// File with a token of the API, sent as bearer token
    #[arg(long, value_name = "FILE", requires = "server")]
    token_file: Option<PathBuf>,
    /// CA certificates of the API (PEM) to trust in addition to the system's
    #[arg(long, value_name = "FILE", requires = "server")]
    ca: Option<PathBuf>,
    /// Version of the release. Default: the default release of the server
    #[arg(long, value_name = "VERSION")]
    release: Option<String>,
    /// Speed-up over real time. Default: 100 with a server of its own, else 1
    #[arg(long)]
    speedup: Option<f64>,
    /// Seconds without any change after which the state counts as final; a busy server has longer
    #[arg(long, value_name = "SECONDS")]
    quiet: Option<f64>,
    /// Install the site as often as this, each with hosts of its own
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    clusters: u32,
    /// Clusters that are installed at once
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
    at_once: u32,
    /// Keep the clusters on the server
    #[arg(long, requires = "server")]
    keep: bool,
    /// Accept the files of a server with DUMMY_IGNITION
    #[arg(long, requires = "server")]
    dummy_ignition: bool,
    #[command(flatten)]
    format: FormatArgs,
}

/// Rehearses; the value is the exit code.
pub(crate) fn run(arguments: &RehearseArgs) -> ExitCode {
    if arguments.list {
        list();
        return ExitCode::SUCCESS;
    }
    match rehearse(arguments) {
        Ok(report) => {
            output::print_report(&report, arguments.format.is_json());
            ExitCode::from(u8::from(!report.is_good()))
        }
        Err(error) => {
            notice(&failure::text(&error));
            ExitCode::from(NOT_REHEARSED)
        }
    }
}

fn list() {
    let profiles = PROFILES.iter().map(|profile| {
        let [masters, arbiters, workers] = profile.machines;
        let machines = format!("{masters}+{arbiters}+{workers}");
        [
            profile.name.to_owned(),
            machines,
            profile.purpose.to_owned(),
        ]
    });
    let profiles = profiles.collect::<Vec<_>>();
    print(&table(["PROFILE", "MACHINES", "PURPOSE"], &profiles));
    let faults: Vec<_> = FAULTS
        .iter()
        .map(|kind| [kind.name, kind.when, kind.effect].map(str::to_owned))
        .collect();
    print(&table(["FAULT", "WHEN", "EFFECT"], &faults));
}

fn rehearse(arguments: &RehearseArgs) -> Result<RehearsalReport, Error> {
    let script = match Script::unbounded(&request(arguments)?).map_err(failure)? {
        Ok(script) => script,
        Err(finding) => return Ok(RehearsalReport::of_data(vec![finding])),
    };
    let found = script.check();
    if arguments.check {
        return Ok(RehearsalReport::of_data(found));
    }
    if !arguments.format.is_json() {
        output::print_findings("Mistakes in the data of the site", &found);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .doing(DOING)?;
    runtime.block_on(async {
        tokio::select! {
            report = play_on_server(arguments, &script, found) => report,
            _ = tokio::signal::ctrl_c() => Err(Error::new(DOING, "interrupted")),
        }
    })
}

/// The request of the arguments.
///
/// Errors: an unreadable file.
fn request(arguments: &RehearseArgs) -> Result<RehearsalRequest, Error> {
    Ok(RehearsalRequest {
        site: arguments.site.as_deref().map(read).transpose()?,
        profile: arguments.profile.map(|profile| profile.name.to_owned()),
        faults: arguments.faults.clone(),
        seed: arguments.seed.clone(),
        release: arguments.release.clone(),
    })
}

async fn play_on_server(
    arguments: &RehearseArgs,
    script: &Script,
    found: Vec<SiteFinding>,
) -> Result<RehearsalReport, Error> {
    let own = match &arguments.server {
        Some(_) => None,
        None => Some(RehearsalServer::start(arguments.release.as_deref()).await?),
    };
    let api = match &own {
        Some(own) => InstallerApi::new(own.url(), None, None).map_err(failure)?,
        None => api(arguments)?,
    };
    let options = options(arguments, own.is_some());
    let progress = if arguments.format.is_json() || arguments.clusters > 1 {
        RehearsalProgress::default()
    } else {
        RehearsalProgress::observed(output::print_event)
    };
    let outcomes = rehearsal::play(&api, script, &options, &progress).await;
    let report = RehearsalReport::new(found, outcomes.map_err(failure)?);
    if let Some(own) = own {
        own.stop().await;
    }
    Ok(report)
}

/// The API of the arguments.
///
/// Errors: an unreadable file.
fn api(arguments: &RehearseArgs) -> Result<InstallerApi, Error> {
    let url = arguments.server.as_deref().unwrap_or_default();
    let token = arguments.token_file.as_deref().map(read).transpose()?;
    let ca = arguments.ca.as_deref().map(read).transpose()?;
    let token = token.map(|token| token.trim().into());
    InstallerApi::new(url, token, ca.as_deref()).map_err(failure)
}

fn options(arguments: &RehearseArgs, is_own: bool) -> PlayOptions {
    let speedup = if is_own { OWN_SPEEDUP } else { 1.0 };
    let mut options = PlayOptions::at(Pace::new(arguments.speedup.unwrap_or(speedup)));
    if is_own {
        options.quiet = PlayOptions::quiet(options.pace, OWN_QUIET);
    }
    if let Some(seconds) = arguments.quiet {
        options.quiet = Duration::from_secs_f64(seconds.clamp(0.1, 86_400.0));
    }
    PlayOptions {
        has_dummy_files: is_own || arguments.dummy_ignition,
        removes: !is_own && !arguments.keep,
        copies: usize::try_from(arguments.clusters).unwrap_or(1),
        at_once: usize::try_from(arguments.at_once).unwrap_or(1),
        ..options
    }
}

fn read(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path).doing(|| format!("reading {}", path.display()))
}

/// The error as this command prints it: members of the request are arguments here.
fn failure(error: rehearsal::Error) -> Error {
    match error {
        rehearsal::Error::Invalid {
            field: "faults",
            reason,
        } => Error::new("--fault", reason),
        rehearsal::Error::Invalid { reason, .. } => Error::new(DOING, reason),
        rehearsal::Error::Server { doing, source }
        | rehearsal::Error::Internal { doing, source } => Error::new(doing, source),
    }
}
