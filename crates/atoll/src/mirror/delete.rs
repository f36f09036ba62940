//! `atoll mirror delete`: lists and deletes images of a registry.

use std::path::{Path, PathBuf};

use ::mirror::config::{self, Configuration};
use ::mirror::deletion::{self, DeletionPlan, List};
use ::mirror::progress::RunProgress;
use ::mirror::publish::{MirrorTarget, TransferLimits};
use ::mirror::run::RunContext;
use ::mirror::target_name::TargetName;
use ::mirror::workspace::Workspace;
use clap::Args;
use model::image_set::MirrorSelection;
use service::Error;

use super::registry_args::RegistryArgs;
use super::release_args::ReleaseArgs;
use super::run::{Destination, ProgressFormat, with_progress};
use crate::terminal;

/// Arguments of `atoll mirror delete`.
#[derive(Debug, Clone, Args)]
pub(crate) struct DeleteArgs {
    /// Target registry: docker://HOST[:PORT][/NAMESPACE]
    target: Destination,
    /// Write the list of images to delete into the workspace, without deleting
    #[arg(long, requires = "config", conflicts_with = "delete_yaml_file")]
    generate: bool,
    /// DeleteImageSetConfiguration file; operators and releases are resolved from images of the target
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Delete the images of this list
    #[arg(long, value_name = "FILE", required_unless_present = "generate")]
    delete_yaml_file: Option<PathBuf>,
    /// Folder for the list and temporary files
    #[arg(
        long = "dir",
        alias = "workspace",
        value_name = "DIR",
        default_value = "oc-mirror-workspace"
    )]
    workspace: PathBuf,
    /// Suffix of the list's file name
    #[arg(long, value_name = "ID")]
    delete_id: Option<String>,
    /// Also list artifacts attached to the images: signatures, attestations, SBOMs
    #[arg(long)]
    delete_signatures: bool,
    #[command(flatten)]
    registries: RegistryArgs,
    #[command(flatten)]
    releases: ReleaseArgs,
}

/// Writes a list, or deletes its images.
///
/// Errors: a malformed file, a target that is no registry; images that could not be deleted.
pub(crate) fn run(arguments: &DeleteArgs) -> Result<(), Error> {
    with_progress("deleting", ProgressFormat::Lines, |progress| {
        arguments.run(progress)
    })
}

impl DeleteArgs {
    async fn run(&self, progress: RunProgress) -> Result<(), model::Error> {
        let target = self.registries.target(registry_of(&self.target)?)?;
        match (&self.config, &self.delete_yaml_file) {
            (Some(config), None) => self.generate(config, &target, &progress).await,
            (_, Some(list)) => delete(list, &target).await,
            (None, None) => {
                let reason = "must specify --config or --delete-yaml-file";
                Err(model::Error::invalid("arguments", reason))
            }
        }
    }

    async fn generate(
        &self,
        config: &Path,
        target: &MirrorTarget,
        progress: &RunProgress,
    ) -> Result<(), model::Error> {
        let mirror = configuration(config)?;
        let workspace = self.workspace.to_string_lossy();
        let workspace = Path::new(workspace.strip_prefix("file://").unwrap_or(&workspace));
        let _entered = Workspace::enter(workspace)?;
        let folder = workspace.join("delete");
        let failed = |e| model::Error::internal(format!("writing to {}", folder.display()), e);
        std::fs::create_dir_all(&folder).map_err(failed)?;
        let client = self.registries.source()?;
        let ca_pem = self.registries.ca_pem()?;
        let platform = self.releases.sources(ca_pem.as_deref())?;
        let context = RunContext::new(workspace, service::clock::now().timestamp(), progress);
        let with_attached = self.delete_signatures;
        let planned = deletion::plan(&client, &platform, context, &mirror, target, with_attached);
        let planned = planned.await?;
        let id = self
            .delete_id
            .as_ref()
            .map_or(String::new(), |id| format!("-{id}"));
        let path = folder.join(format!("delete-images{id}.yaml"));
        std::fs::write(&path, planned.list.to_yaml()?).map_err(failed)?;
        report(&planned, &path);
        Ok(())
    }
}

/// The target; image layouts are refused.
fn registry_of(target: &Destination) -> Result<&TargetName, model::Error> {
    match target {
        Destination::Target(name) if name.registry.host().is_some() => Ok(name),
        Destination::ArchiveSet(_) | Destination::Target(_) => {
            let reason = "images are deleted in a registry: docker://HOST[:PORT][/NAMESPACE]";
            Err(model::Error::invalid("target", reason))
        }
    }
}

fn report(planned: &DeletionPlan, path: &Path) {
    for note in &planned.notes {
        terminal::notice(note);
    }
    for (image, why) in &planned.kept {
        terminal::notice(&format!("{image} is kept: {why}"));
    }
    terminal::print(&format!(
        "{} lists {} images; {} others are kept, {} are missing in the target. Nothing was deleted: use --delete-yaml-file",
        path.display(),
        planned.list.items.len(),
        planned.kept.len(),
        planned.missing
    ));
}

async fn delete(path: &Path, target: &MirrorTarget) -> Result<(), model::Error> {
    let wrong = |reason: String| model::Error::invalid(path.display().to_string(), reason);
    let text = std::fs::read_to_string(path).map_err(|e| wrong(e.to_string()))?;
    let list = List::from_yaml(&text, target)?;
    let (deleted, failed) =
        deletion::delete(&list, target, TransferLimits::default().parallel).await;
    for error in &failed {
        terminal::notice(&error.chain());
    }
    terminal::print(&format!(
        "deleted {deleted} of {} images; garbage collection of the registry frees their space",
        list.items.len()
    ));
    match failed.len() {
        0 => Ok(()),
        count => Err(wrong(format!("{count} images could not be deleted"))),
    }
}

fn configuration(path: &Path) -> Result<MirrorSelection, model::Error> {
    let wrong = |reason: String| model::Error::invalid(path.display().to_string(), reason);
    match config::load(path) {
        Ok(Configuration::Delete(mirror)) => Ok(mirror),
        Ok(Configuration::Mirror(_)) => Err(wrong(
            "expected a DeleteImageSetConfiguration, found an ImageSetConfiguration".into(),
        )),
        Err(error) => Err(model::Error::invalid(
            "configuration",
            model::error::chain(&error),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn image_layouts_are_refused() {
        let target = |text: &str| text.parse::<Destination>().unwrap();
        for other in ["oci:///srv/layout", "file://out"] {
            let target = target(other);
            let refused = registry_of(&target).unwrap_err().to_string();
            assert!(refused.contains("docker://"), "{other}: {refused}");
        }
        let target = target("docker://h:5000/ns");
        let name = registry_of(&target).unwrap();
        assert_eq!(name.registry.host(), Some("h:5000"));
        assert_eq!(name.namespace, "ns");
    }
}
