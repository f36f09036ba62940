//! The simulated installer as a program; it goes into the release images that the demo and the tests make.

use std::io::{Write, stderr, stdout};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use testkit::installer::{CreateTarget, create};

#[derive(Parser)]
#[command(about = "Simulated platform installer")]
struct InstallerArgs {
    #[command(subcommand)]
    command: InstallerCommand,
}

#[derive(Subcommand)]
enum InstallerCommand {
    /// Creates part of a cluster's assets.
    #[command(subcommand)]
    Create(CreateCommand),
    /// Prints the version and the release image.
    Version(ReleaseArgs),
}

#[derive(Subcommand)]
enum CreateCommand {
    /// Consumes install-config.yaml.
    Manifests(CreateArgs),
    /// Consumes manifests.
    IgnitionConfigs(CreateArgs),
    /// Consumes manifests of a cluster of one node.
    SingleNodeIgnitionConfig(CreateArgs),
}

#[derive(Args)]
struct CreateArgs {
    /// Folder of inputs and outputs.
    #[arg(long, default_value = ".")]
    dir: PathBuf,
    #[command(flatten)]
    release: ReleaseArgs,
}

#[derive(Args)]
struct ReleaseArgs {
    /// ReleaseArgs image to install.
    #[arg(
        long = "release-image",
        env = "OPENSHIFT_INSTALL_RELEASE_IMAGE_OVERRIDE",
        default_value = ""
    )]
    image: String,
}

fn main() -> ExitCode {
    let (target, options) = match InstallerArgs::parse().command {
        InstallerCommand::Version(release) => {
            let text = format!(
                "openshift-install v{}\nrelease image {}",
                env!("CARGO_PKG_VERSION"),
                release.image
            );
            return exit(writeln!(stdout(), "{text}").is_ok());
        }
        InstallerCommand::Create(CreateCommand::Manifests(options)) => {
            (CreateTarget::Manifests, options)
        }
        InstallerCommand::Create(CreateCommand::IgnitionConfigs(options)) => {
            (CreateTarget::IgnitionConfigs, options)
        }
        InstallerCommand::Create(CreateCommand::SingleNodeIgnitionConfig(options)) => {
            (CreateTarget::SingleNodeIgnitionConfig, options)
        }
    };
    match create(target, &options.dir, &options.release.image, &mut stderr()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            let _ = writeln!(stderr(), "level=fatal msg={}", failure.0);
            ExitCode::FAILURE
        }
    }
}

fn exit(is_good: bool) -> ExitCode {
    if is_good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
