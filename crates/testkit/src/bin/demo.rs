//! The demo driver: makes the content, and walks the main job from a cluster's creation to its kubeconfig.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Args, Parser, Subcommand, ValueEnum};
use testkit::demo::{
    AtollState, Break, Console, ContentOffer, DemoContent, DemoRegistry, Journey, JourneyOptions,
    find_coreos_installer,
};

/// Shows the main job on real input: content, cluster, image, simulated hosts, installation, credentials.
#[derive(Debug, Parser)]
#[command(name = "demo", version, args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(subcommand)]
    phase: Option<Phase>,
    #[command(flatten)]
    run: Option<RunArgs>,
    #[command(flatten)]
    environment: EnvironmentArgs,
}

/// Arguments of all phases; apart from [`RunArgs`], which is absent unless one of its flags is given.
#[derive(Debug, Args)]
struct EnvironmentArgs {
    /// The real coreos-installer [default: the cached one or one on PATH, if any]
    #[arg(long, env = "COREOS_INSTALLER", global = true)]
    coreos_installer: Option<PathBuf>,
    #[arg(long, env = "PATH", hide = true, default_value = "", global = true)]
    search_path: String,
}

#[derive(Debug, Subcommand)]
enum Phase {
    /// Make the live image, push the release and write the settings of the services
    Content(ContentArgs),
    /// Create a cluster and install it
    Run(RunArgs),
}

#[derive(Debug, Args)]
struct ContentArgs {
    /// Data directory of `atoll up`
    #[arg(long)]
    data: PathBuf,
    /// The registry, host:port [default: as atoll.json says]
    #[arg(long, requires_all = ["registry_user", "registry_password_file", "registry_ca"])]
    registry: Option<String>,
    #[arg(long, requires = "registry")]
    registry_user: Option<String>,
    #[arg(long, requires = "registry")]
    registry_password_file: Option<PathBuf>,
    #[arg(long, requires = "registry")]
    registry_ca: Option<PathBuf>,
    /// Installer program in the release [default: openshift-baremetal-install beside this program]
    #[arg(long)]
    installer: Option<PathBuf>,
    #[arg(long)]
    quiet: bool,
}

#[derive(Debug, Args)]
struct RunArgs {
    /// atoll.json of a running `atoll up`
    #[arg(long)]
    state: PathBuf,
    /// Fault to inject
    #[arg(long = "break")]
    broken: Option<Broken>,
    /// Folder of image, logs and credentials [default: demo beside atoll.json]
    #[arg(long)]
    work: Option<PathBuf>,
    /// Speed-up of the machines over real time
    #[arg(long, default_value_t = 60.0)]
    speedup: f64,
    /// The program of the simulated machines [default: host-sim beside this program]
    #[arg(long)]
    host_sim: Option<PathBuf>,
    /// Token of a user, where callers are authenticated
    #[arg(long, env = "AI_TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// Print the numbered lines only
    #[arg(long)]
    quiet: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Broken {
    Ram,
    Registry,
}

#[tokio::main]
async fn main() -> ExitCode {
    let cli = Cli::parse();
    let outcome = match (cli.phase, cli.run) {
        (Some(Phase::Content(make)), _) => content(make).await.map(drop),
        (Some(Phase::Run(run)), _) | (None, Some(run)) => journey(run, cli.environment).await,
        (None, None) => {
            use clap::CommandFactory as _;
            Cli::command()
                .error(
                    clap::error::ErrorKind::MissingRequiredArgument,
                    "--state is needed",
                )
                .exit()
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&error);
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::print_stderr, reason = "the error of a command")]
fn complain(error: &anyhow::Error) {
    eprintln!("demo failed: {error:#}");
}

async fn content(make: ContentArgs) -> Result<()> {
    let registry = match (
        make.registry,
        make.registry_user,
        make.registry_password_file,
        make.registry_ca,
    ) {
        (Some(address), Some(user), Some(password_file), Some(ca)) => DemoRegistry {
            address,
            user,
            password_file,
            ca,
        },
        _ => AtollState::read(&make.data.join("atoll.json"))?.registry(),
    };
    let installer = beside(make.installer, "openshift-baremetal-install")?;
    let (offer, console) = (ContentOffer::Registry, Console::new(make.quiet));
    DemoContent::make(&make.data, &registry, &installer, offer, &console)
        .await
        .map(drop)
}

async fn journey(run: RunArgs, environment: EnvironmentArgs) -> Result<()> {
    let data = run.state.parent().unwrap_or(Path::new("."));
    let console = Console::new(run.quiet);
    let registry = AtollState::read(&run.state)?.registry();
    let content = if let Some(mut content) = DemoContent::read(data)? {
        if matches!(run.broken, Some(Broken::Registry)) {
            // A service that has used a release may have cached it, and would not need the registry.
            content.add_release(&registry, &console).await?;
        }
        content
    } else {
        let installer = beside(None, "openshift-baremetal-install")?;
        DemoContent::make(
            data,
            &registry,
            &installer,
            ContentOffer::Registry,
            &console,
        )
        .await?
    };
    let options = JourneyOptions {
        work: run.work.unwrap_or_else(|| DemoContent::directory(data)),
        host_sim: beside(run.host_sim, "host-sim")?,
        coreos_installer: find_coreos_installer(
            environment.coreos_installer,
            &environment.search_path,
        ),
        broken: run.broken.map(|broken| match broken {
            Broken::Ram => Break::Ram,
            Broken::Registry => Break::Registry,
        }),
        speedup: run.speedup,
        token: run.token,
        state: run.state,
    };
    Journey::new(&options, &console)?.run(&content).await
}

/// A program of the same build.
fn beside(given: Option<PathBuf>, name: &str) -> Result<PathBuf> {
    let path = match given {
        Some(path) => path,
        None => std::env::current_exe()
            .context("this program's path is unknown")?
            .with_file_name(name),
    };
    anyhow::ensure!(
        path.is_file(),
        "{}: is not there; build it with `cargo build --workspace --bins`",
        path.display()
    );
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_the_command_line_is_understood() {
        use clap::CommandFactory as _;
        Cli::command().debug_assert();
        for line in [
            "demo --state a.json",
            "demo run --state a.json --break ram",
            "demo content --data d --quiet",
        ] {
            Cli::try_parse_from(line.split(' ')).unwrap();
        }
        assert!(
            Cli::try_parse_from(["demo", "content", "--data", "d", "--registry", "r:1"]).is_err()
        );
    }
}
