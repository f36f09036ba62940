//! The simulated installer as a program; it goes into the release images that the demo and the tests make.

use std::io::{Write, stderr, stdout};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use testkit::installer::{Target, create};

#[derive(Parser)]
#[command(about = "Simulated platform installer")]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Creates part of a cluster's assets.
    #[command(subcommand)]
    Create(Create),
    /// Prints the version and the release image.
    Version(Release),
}

#[derive(Subcommand)]
enum Create {
    /// Consumes install-config.yaml.
    Manifests(Options),
    /// Consumes manifests.
    IgnitionConfigs(Options),
    /// Consumes manifests of a cluster of one node.
    SingleNodeIgnitionConfig(Options),
}

#[derive(Args)]
struct Options {
    /// Folder of inputs and outputs.
    #[arg(long, default_value = ".")]
    dir: PathBuf,
    #[command(flatten)]
    release: Release,
}

#[derive(Args)]
struct Release {
    /// Release image to install.
    #[arg(
        long = "release-image",
        env = "OPENSHIFT_INSTALL_RELEASE_IMAGE_OVERRIDE",
        default_value = ""
    )]
    image: String,
}

fn main() -> ExitCode {
    let (target, options) = match Arguments::parse().verb {
        Verb::Version(release) => {
            let text = format!(
                "openshift-install v{}\nrelease image {}",
                env!("CARGO_PKG_VERSION"),
                release.image
            );
            return exit(writeln!(stdout(), "{text}").is_ok());
        }
        Verb::Create(Create::Manifests(options)) => (Target::Manifests, options),
        Verb::Create(Create::IgnitionConfigs(options)) => (Target::IgnitionConfigs, options),
        Verb::Create(Create::SingleNodeIgnitionConfig(options)) => {
            (Target::SingleNodeIgnitionConfig, options)
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
