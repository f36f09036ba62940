//! `atoll mirror --config FILE TARGET`: the run itself.

use std::convert::Infallible;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use ::mirror::config::{self, Configuration};
use ::mirror::progress::{Amount, Phase, Progress};
use ::mirror::publish::{Limits, Target};
use ::mirror::run::{self, Outcome, Setup};
use clap::Args;
use model::image_set::ImageSet;
use oci::{Client, ClientOptions};
use service::Error;

use crate::terminal;

/// How often it is told how far the run is.
const TICK: Duration = Duration::from_millis(500);
/// How many ticks pass between lines where nobody sees the same line change.
const TICKS_A_LINE: u32 = 20;

/// What is carried, from where, and how.
#[derive(Debug, Clone, Args)]
pub(crate) struct Arguments {
    /// docker://HOST[:PORT][/NAMESPACE]
    target: Option<Destination>,
    /// The ImageSetConfiguration
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Folder for what is temporary
    #[arg(long, value_name = "DIR", default_value = "oc-mirror-workspace")]
    dir: PathBuf,
    /// Go on with other images when one cannot be carried
    #[arg(long)]
    continue_on_error: bool,
    /// Pass by images that are named by catalogs and missing in their registries
    #[arg(long)]
    skip_missing: bool,
    /// Transfers at a time
    #[arg(long, value_name = "N", default_value = "8")]
    max_per_registry: NonZeroUsize,
    /// Most components of a repository's name in the target; 0 for no limit
    #[arg(long, value_name = "N", default_value_t = 0)]
    max_nested_paths: usize,
    /// File of logins for registries, as a pull secret has them; else the usual files of podman and docker
    #[arg(long, value_name = "FILE")]
    authfile: Option<PathBuf>,
    /// Certificates (PEM) that are trusted besides the system's
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Accept sources without TLS
    #[arg(long)]
    source_use_http: bool,
    /// Accept any certificate of a source
    #[arg(long)]
    source_skip_tls: bool,
    /// Accept a target without TLS
    #[arg(long)]
    dest_use_http: bool,
    /// Accept any certificate of the target
    #[arg(long)]
    dest_skip_tls: bool,
}

/// Where the set goes.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Destination {
    Registry { registry: String, namespace: String },
}

impl FromStr for Destination {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some((scheme, rest)) = text.split_once("://") else {
            return Err(format!(
                "{text:?} does not say what it is: write docker://HOST[:PORT][/NAMESPACE]"
            ));
        };
        if scheme != "docker" {
            return Err(format!(
                "unknown destination scheme {scheme:?}: it is docker"
            ));
        }
        let rest = rest.trim_end_matches('/');
        let (registry, namespace) = rest.split_once('/').unwrap_or((rest, ""));
        // A name of a repository behind the host finds out whether the host is one.
        let probe = match namespace {
            "" => format!("{registry}/a"),
            namespace => format!("{registry}/{namespace}"),
        };
        match probe.parse::<oci::Reference>() {
            Ok(reference) if reference.tag.is_none() && reference.digest.is_none() => {
                Ok(Self::Registry {
                    registry: registry.to_owned(),
                    namespace: namespace.to_owned(),
                })
            }
            Ok(_) => Err(format!(
                "{text:?}: the target must not include an image tag or digest"
            )),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// Carries the set.
///
/// Errors: a configuration that is wrong, registries that do not answer, an image that cannot be carried.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Error> {
    let doing = "mirroring";
    let (Some(target), Some(config)) = (&arguments.target, &arguments.config) else {
        return Err(Error::new(
            doing,
            "name a configuration and where it goes: atoll mirror --config FILE docker://HOST[:PORT][/NAMESPACE]",
        ));
    };
    let set = match config::load(config) {
        Ok(Configuration::Mirror(set)) => set,
        Ok(Configuration::Delete(_)) => {
            return Err(Error::new(doing, "this configuration says what is deleted"));
        }
        Err(error) => return Err(Error::new(doing, model::error::chain(&error))),
    };
    std::fs::create_dir_all(&arguments.dir)
        .map_err(|e| Error::new(format!("making {}", arguments.dir.display()), e))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|e| Error::new(doing, e))?;
    let outcome = runtime
        .block_on(arguments.mirror(&set, target))
        .map_err(|e| Error::new(doing, e.chain()))?;
    tell(&outcome);
    if outcome.failed.is_empty() {
        return Ok(());
    }
    Err(Error::new(
        doing,
        format!("{} images were not carried", outcome.failed.len()),
    ))
}

impl Arguments {
    async fn mirror(&self, set: &ImageSet, target: &Destination) -> Result<Outcome, model::Error> {
        let source = self.client(self.source_use_http || self.source_skip_tls)?;
        let Destination::Registry {
            registry,
            namespace,
        } = target;
        let target = Target {
            client: self.client(self.dest_use_http || self.dest_skip_tls)?,
            registry: registry.clone(),
            namespace: namespace.clone(),
            max_components: self.max_nested_paths,
        };
        let progress = Progress::default();
        let setup = Setup {
            client: &source,
            set,
            limits: Limits {
                parallel: self.max_per_registry.get(),
                goes_on: self.continue_on_error,
            },
            skip_missing: self.skip_missing,
            workspace: &self.dir,
            now: service::clock::now().timestamp(),
            progress: &progress,
        };
        let work = async {
            let prepared = run::prepare(setup, &[]).await?;
            run::direct(setup, prepared, &target).await
        };
        tokio::select! {
            outcome = work => outcome,
            never = watch(&progress) => match never {},
        }
    }

    fn client(&self, insecure: bool) -> Result<Client, model::Error> {
        let unusable = |e: Error| model::Error::invalid("logins", e.to_string());
        let ca_pem = self.ca.as_ref().map(std::fs::read).transpose();
        let options = ClientOptions {
            credentials: service::registry_logins(self.authfile.as_deref()).map_err(unusable)?,
            ca_pem: ca_pem.map_err(|e| model::Error::invalid("ca", e.to_string()))?,
            insecure,
            ..ClientOptions::default()
        };
        Client::new(options)
    }
}

/// Tells how far the run is until it is dropped.
async fn watch(progress: &Progress) -> Infallible {
    let (mut last, mut ticks) = (None::<Phase>, 0_u32);
    loop {
        tokio::time::sleep(TICK).await;
        let Some((phase, whole, done)) = progress.now() else {
            continue;
        };
        let line = line(phase, whole, done);
        terminal::progress(&line);
        ticks += 1;
        if !terminal::is_watched() && (last != Some(phase) || ticks >= TICKS_A_LINE) {
            terminal::problem(&line);
            ticks = 0;
        }
        last = Some(phase);
    }
}

fn line(phase: Phase, whole: Amount, done: Amount) -> String {
    let items = format!("{}: {} of {}", phase.as_str(), done.items, whole.items);
    if whole.bytes == 0 {
        return items;
    }
    let (done, whole) = (terminal::mib(done.bytes), terminal::mib(whole.bytes));
    format!("{items}, {done} of {whole}")
}

fn tell(outcome: &Outcome) {
    for note in &outcome.notes {
        terminal::problem(note);
    }
    for (wanted, error) in &outcome.failed {
        terminal::problem(&format!("{}: {}", wanted.source, error.chain()));
    }
    let Amount { items, bytes } = outcome.sent;
    terminal::say(&format!(
        "{} images and {} catalogs are there; {items} blobs with {} were sent",
        outcome.images.len(),
        outcome.catalogs.len(),
        terminal::mib(bytes)
    ));
}
