//! `atoll mirror --config FILE TARGET` and `atoll mirror --from ARCHIVES TARGET`: a mirroring run.

mod destination;
mod error;
mod flags;
mod progress;
mod prune;
mod report;
mod to_archives;
mod to_registry;
mod unused_flags;

use std::path::Path;

use ::mirror::config::{self, Configuration};
use ::mirror::history::{MetadataStore, PreviousRuns};
use ::mirror::names::Naming;
use ::mirror::progress::RunProgress;
use ::mirror::publish::TransferLimits;
use ::mirror::run::{CatalogForm, RunContext, Sources, V2Archives};
use ::mirror::workspace::Workspace;
use chrono::NaiveTime;
use model::image_set::ImageSet;
use service::{Error, ResultExt as _};

pub(super) use self::destination::Destination;
pub(super) use self::error::RunError;
pub(crate) use self::flags::RunArgs;
pub(crate) use self::progress::ProgressPrinter;
pub(super) use self::progress::{ProgressFormat, with_progress};
pub(crate) use self::prune::{ask_to_prune, pruning_lines};
pub(crate) use self::report::print_outcome;
pub(super) use self::report::report_failures;

/// Folder of the history in a workspace. Source: oc-mirror v2.
const HISTORY: &str = ".history";

/// Mirrors the image set.
///
/// Errors: invalid configuration or archive, unreachable registries, an image that cannot be mirrored.
pub(crate) fn run(arguments: &RunArgs) -> Result<(), Error> {
    // Source of the error texts here and below: oc-mirror v1.
    let doing = "mirroring";
    let Some(target) = &arguments.target else {
        let usage = "requires at least 1 arg(s), the target: atoll mirror --config FILE file://FOLDER, then atoll mirror --from FOLDER docker://HOST[:PORT][/NAMESPACE]";
        return Err(Error::new(doing, usage));
    };
    arguments.refuse_unused_flags(target)?;
    let entered = Workspace::enter(&arguments.dir);
    let _workspace = entered.map_err(|e| e.chain()).doing(doing)?;
    with_progress(doing, arguments.progress, |progress| {
        arguments.mirror(target, progress)
    })
}

impl RunArgs {
    fn catalog_form(&self) -> CatalogForm {
        if self.keep_catalogs {
            CatalogForm::Original
        } else if self.skip_image_pin || self.is_v2 {
            // oc-mirror v2 leaves tags in catalogs: an ImageTagMirrorSet leads to them.
            CatalogForm::Tagged
        } else {
            CatalogForm::Pinned
        }
    }

    /// Metadata store of the image set, if it has one, and its past runs.
    pub(super) async fn history(
        &self,
        set: &ImageSet,
    ) -> Result<(Option<MetadataStore>, PreviousRuns), model::Error> {
        let storage = set.storage.as_ref();
        let store = storage.map(|it| self.registries.store(it)).transpose()?;
        // oc-mirror v2 has its history in the workspace; a copy between registries has none.
        let packs = matches!(self.target, Some(Destination::ArchiveSet(_)));
        let own = (self.is_v2 && packs).then(|| MetadataStore::Runs(self.dir.join(HISTORY)));
        let store = store.or(own);
        let Some(source) = &store else {
            return Ok((store, PreviousRuns::default()));
        };
        let last = source.read().await?;
        let since = self
            .since
            .map(|date| date.and_time(NaiveTime::MIN).and_utc());
        let since = since.map(|time| time.timestamp());
        let previous = match (last, since) {
            (Some(last), Some(time)) => PreviousRuns::since(last, source.read_before(time).await?),
            // A workspace that oc-mirror v2 used has lists of the blobs of its archives.
            (None, time) if matches!(source, MetadataStore::Runs(_)) => {
                let previous = PreviousRuns::of_peer(&self.dir.join(HISTORY), time)?;
                if self.ignore_history {
                    previous.forgotten()
                } else {
                    previous
                }
            }
            (last, _) if self.ignore_history => PreviousRuns::new(last).forgotten(),
            (last, _) => PreviousRuns::new(last),
        };
        Ok((store, previous))
    }

    /// Whether the sequence of the run has to follow the target's metadata.
    pub(super) fn checks_sequence(&self) -> bool {
        // Source: oc-mirror v1, whose --skip-pruning includes the other.
        !(self.skip_metadata_check || self.skip_pruning)
    }

    async fn mirror(
        &self,
        destination: &Destination,
        progress: RunProgress,
    ) -> Result<(), RunError> {
        let source = self.registries.source()?;
        let (set, written) = match (&self.config, &self.from) {
            (Some(config), None) => written_configuration(config)?,
            (None, Some(_)) => <(ImageSet, String)>::default(),
            (given, _) => {
                let reason = match (destination, given) {
                    (_, Some(_)) => {
                        "--config and --from exclude each other: archives contain their configuration"
                    }
                    (Destination::ArchiveSet(_), None) => {
                        "must specify a configuration file with --config"
                    }
                    (Destination::Target(_), None) => {
                        "must specify --config or --from with registry destination"
                    }
                };
                return Err(model::Error::invalid("arguments", reason).into());
            }
        };
        let history = self.dir.join(HISTORY);
        let platform = self
            .releases
            .sources(self.registries.ca_pem()?.as_deref())?;
        let sources = Sources {
            client: &source,
            set: &set,
            platform: &platform,
            skip_missing: self.skip_missing,
            with_attached: !self.remove_signatures,
        };
        let context = RunContext {
            limits: TransferLimits {
                parallel: self.max_per_registry.get(),
                continue_on_error: self.continue_on_error,
            },
            catalogs: self.catalog_form(),
            naming: if self.is_v2 { Naming::V2 } else { Naming::V1 },
            v2_archives: self.is_v2.then_some(V2Archives {
                configuration: &written,
                history: &history,
                is_strict: self.strict_archive,
            }),
            ..RunContext::new(&self.dir, service::clock::now().timestamp(), &progress)
        };
        match (destination, &self.from) {
            (Destination::ArchiveSet(folder), None) => self.pack(sources, context, folder).await,
            (Destination::ArchiveSet(_), Some(_)) => {
                let reason =
                    "must specify a registry destination: docker://HOST[:PORT][/NAMESPACE]";
                Err(model::Error::invalid("--from", reason).into())
            }
            (Destination::Target(name), from) => {
                let target = self.registries.target(name)?;
                match from {
                    Some(from) => self.unpack(context, from, &target).await,
                    None => self.direct(sources, context, &target).await,
                }
            }
        }
    }
}

/// Loads the image set of a configuration file.
///
/// Errors: Invalid – malformed file, or one of another kind.
pub(super) fn configuration(path: &Path) -> Result<ImageSet, model::Error> {
    written_configuration(path).map(|(set, _)| set)
}

/// The image set of a configuration file, and the text of the file.
fn written_configuration(path: &Path) -> Result<(ImageSet, String), model::Error> {
    match config::load_with_text(path) {
        Ok((Configuration::Mirror(set), text)) => Ok((set, text)),
        Ok((Configuration::Delete(_), _)) => {
            let reason = "expected an ImageSetConfiguration, found a DeleteImageSetConfiguration";
            Err(model::Error::invalid(path.display().to_string(), reason))
        }
        Err(error) => Err(model::Error::invalid(
            "configuration",
            model::error::chain(&error),
        )),
    }
}
