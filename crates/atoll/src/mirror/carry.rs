//! `atoll mirror --config FILE TARGET` and `atoll mirror --from ARCHIVES TARGET`: the run itself.

use std::convert::Infallible;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use ::mirror::archive::Set;
use ::mirror::config::{self, Configuration};
use ::mirror::content::Wanted;
use ::mirror::history::{Former, Store};
use ::mirror::progress::{Amount, Phase, Progress};
use ::mirror::publish::{Limits, Target};
use ::mirror::results::{self, Forms};
use ::mirror::run::{self, Archives, Outcome, Planned, Prepared, Setup, Unpacked};
use clap::Args;
use model::image_set::{ImageSet, Storage};
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
    /// file://FOLDER for archives, or docker://HOST[:PORT][/NAMESPACE]
    target: Option<Destination>,
    /// An archive, or the folder with the archives of a run, instead of registries
    #[arg(long, value_name = "PATH")]
    from: Option<PathBuf>,
    /// The ImageSetConfiguration
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Folder for what is temporary, and for results
    #[arg(long, value_name = "DIR", default_value = "oc-mirror-workspace")]
    dir: PathBuf,
    /// Publish archives whatever the target has
    #[arg(long)]
    skip_metadata_check: bool,
    /// Carry everything again that former runs have carried
    #[arg(long)]
    ignore_history: bool,
    /// Tell what would be carried, and write mapping.txt
    #[arg(long)]
    dry_run: bool,
    /// Tell why the bundles and images of that name are carried; a part of the name will do
    #[arg(long, value_name = "NAME")]
    why: Option<String>,
    /// Write results for later clusters, too: ImageDigestMirrorSet, ImageTagMirrorSet, ClusterCatalog, registries.conf
    #[arg(long)]
    all_results: bool,
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
    Folder(PathBuf),
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
        match scheme {
            "docker" => {}
            "file" if rest.is_empty() => return Err(format!("{text:?} names no folder")),
            "file" => return Ok(Self::Folder(rest.into())),
            _ => {
                return Err(format!(
                    "unknown destination scheme {scheme:?}: it is file or docker"
                ));
            }
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
/// Errors: a configuration or an archive that is wrong, registries that do not answer, an image that cannot be carried.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Error> {
    let doing = "mirroring";
    let Some(target) = &arguments.target else {
        let usage = "say where it goes: atoll mirror --config FILE file://FOLDER, then atoll mirror --from FOLDER docker://HOST[:PORT][/NAMESPACE]";
        return Err(Error::new(doing, usage));
    };
    std::fs::create_dir_all(&arguments.dir)
        .map_err(|e| Error::new(format!("making {}", arguments.dir.display()), e))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|e| Error::new(doing, e))?;
    let progress = Progress::default();
    let work = async {
        tokio::select! {
            done = arguments.carry(target, &progress) => done,
            never = watch(&progress) => match never {},
        }
    };
    let done = runtime.block_on(work);
    terminal::progress("");
    done.map_err(|e| Error::new(doing, e.chain()))
}

impl Arguments {
    async fn carry(
        &self,
        destination: &Destination,
        progress: &Progress,
    ) -> Result<(), model::Error> {
        let source = self.client(self.source_use_http || self.source_skip_tls)?;
        let set = match (&self.config, &self.from) {
            (Some(config), None) => configuration(config)?,
            (None, Some(_)) => ImageSet::default(),
            _ => {
                let reason = "name a configuration with --config, or archives with --from";
                return Err(model::Error::invalid("arguments", reason));
            }
        };
        let setup = Setup {
            client: &source,
            set: &set,
            limits: Limits {
                parallel: self.max_per_registry.get(),
                goes_on: self.continue_on_error,
            },
            skip_missing: self.skip_missing,
            workspace: &self.dir,
            now: service::clock::now().timestamp(),
            progress,
        };
        match (destination, &self.from) {
            (Destination::Folder(folder), None) => self.pack(setup, folder).await,
            (Destination::Folder(_), Some(_)) => {
                let reason =
                    "archives are published in a registry: docker://HOST[:PORT][/NAMESPACE]";
                Err(model::Error::invalid("--from", reason))
            }
            (
                Destination::Registry {
                    registry,
                    namespace,
                },
                from,
            ) => {
                let target = Target {
                    client: self.client(self.dest_use_http || self.dest_skip_tls)?,
                    registry: registry.clone(),
                    namespace: namespace.clone(),
                    max_components: self.max_nested_paths,
                };
                match from {
                    Some(from) => self.unpack(setup, from, &target).await,
                    None => self.direct(setup, &target).await,
                }
            }
        }
    }

    async fn pack(&self, setup: Setup<'_>, folder: &Path) -> Result<(), model::Error> {
        let store = match &setup.set.storage {
            Some(storage @ Storage::Registry { skip_tls: true, .. }) => {
                Some(Store::new(storage, &self.client(true)?)?)
            }
            Some(storage) => Some(Store::new(storage, setup.client)?),
            None => None,
        };
        let stored = match &store {
            Some(store) => store.read().await?,
            None => None,
        };
        let former = Former::new(stored);
        let former = if self.ignore_history {
            former.forgotten()
        } else {
            former
        };
        let prepared = run::prepare(setup, &former).await?;
        self.explain(&prepared);
        let archives = match run::plan(setup, &prepared, &former, None)? {
            Planned::Nothing(reason) => {
                terminal::say(reason);
                return not_carried(&prepared.failed);
            }
            Planned::Archives(archives) => *archives,
        };
        tell_plan(&prepared, &archives);
        if self.dry_run {
            let mapping = results::archive_mapping(&prepared.content);
            self.write_mapping(&mapping)?;
        } else {
            for path in run::pack(setup, archives, store.as_ref(), folder).await? {
                terminal::say(&path.display().to_string());
            }
        }
        not_carried(&prepared.failed)
    }

    async fn unpack(
        &self,
        setup: Setup<'_>,
        from: &Path,
        target: &Target,
    ) -> Result<(), model::Error> {
        let from = from.to_owned();
        let opened = tokio::task::spawn_blocking(move || Set::open(&from)).await;
        let set = opened.map_err(|e| model::Error::internal("opening the archives", e))??;
        match run::unpack(setup, set, target, !self.skip_metadata_check).await? {
            Unpacked::Nothing(reason) => {
                terminal::say(reason);
                Ok(())
            }
            Unpacked::Published(outcome) => self.tell(setup, &outcome),
        }
    }

    async fn direct(&self, setup: Setup<'_>, target: &Target) -> Result<(), model::Error> {
        if setup.set.storage.is_some() {
            terminal::problem("storageConfig is for archives: the target itself shows what it has");
        }
        let prepared = run::prepare(setup, &Former::default()).await?;
        self.explain(&prepared);
        if self.dry_run {
            let mapping = run::mapping(&prepared, target)?;
            self.write_mapping(&mapping)?;
            return not_carried(&prepared.failed);
        }
        let outcome = run::direct(setup, prepared, target).await?;
        self.tell(setup, &outcome)
    }

    /// Tells why what was asked about is carried, and what else people should know.
    fn explain(&self, prepared: &Prepared) {
        prepared
            .notes
            .iter()
            .for_each(|note| terminal::problem(note));
        if let Some(name) = &self.why {
            let reasons = run::reasons(prepared, name);
            if reasons.is_empty() {
                terminal::say(&format!("nothing that is carried is called {name}"));
                return;
            }
            terminal::say(&reasons.join("\n"));
        }
    }

    fn write_mapping(&self, mapping: &str) -> Result<(), model::Error> {
        let path = self.dir.join("mapping.txt");
        std::fs::write(&path, mapping)
            .map_err(|e| model::Error::internal(format!("writing {}", path.display()), e))?;
        terminal::say(&format!(
            "nothing was carried; {} has the names",
            path.display()
        ));
        Ok(())
    }

    fn tell(&self, setup: Setup<'_>, outcome: &Outcome) -> Result<(), model::Error> {
        let forms = Forms {
            mirror_sets: self.all_results,
            cluster_catalogs: self.all_results,
            registries_conf: self.all_results,
        };
        let files = results::files(&outcome.results, forms)?;
        let time = u64::try_from(setup.now).unwrap_or_default();
        let folder = results::write(&self.dir, time, &files)?;
        let Amount { items, bytes } = outcome.sent;
        terminal::say(&format!(
            "{} images and {} catalogs are there; {items} blobs with {} were sent; what clusters need is in {}",
            outcome.results.images.len(),
            outcome.results.catalogs.len(),
            terminal::mib(bytes),
            folder.display()
        ));
        not_carried(&outcome.failed)
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

fn configuration(path: &Path) -> Result<ImageSet, model::Error> {
    match config::load(path) {
        Ok(Configuration::Mirror(set)) => Ok(set),
        Ok(Configuration::Delete(_)) => {
            let reason = "it says what is deleted, not what is mirrored";
            Err(model::Error::invalid(path.display().to_string(), reason))
        }
        Err(error) => Err(model::Error::invalid(
            "configuration",
            model::error::chain(&error),
        )),
    }
}

fn tell_plan(prepared: &Prepared, archives: &Archives) {
    let plan = &archives.plan;
    let Amount { items, bytes } = archives.fetched();
    let (fetched, size) = (terminal::mib(bytes), terminal::mib(plan.size()));
    terminal::say(&format!(
        "sequence {}: {} images; {items} blobs with {fetched} are fetched, {} files take {size}",
        plan.sequence,
        prepared.content.images.len(),
        plan.files.len()
    ));
}

/// Tells what was not carried, which is a failure of the run.
fn not_carried(failed: &[(Wanted, model::Error)]) -> Result<(), model::Error> {
    for (wanted, error) in failed {
        terminal::problem(&format!("{}: {}", wanted.source, error.chain()));
    }
    if failed.is_empty() {
        return Ok(());
    }
    let reason = format!("{} were not carried", failed.len());
    Err(model::Error::invalid("images", reason))
}
