//! Archives of the mirroring tool that a medium brought into the site: listed, verified, and published to the registry.
//!
//! The work itself is `mirror`'s. Nothing here knows the database: jobs (`app::jobs`) run it. The invariant: a request
//! names a set by its name in the list, never by a path.

mod archives;
mod publish;
mod target;
mod verify;

use std::path::PathBuf;

use cluster_files::make_folder;
use model::api_group_map::ApiGroupMap;
use preparation::RegistryAccess;

pub(crate) use self::publish::PublishedArchives;
pub(crate) use self::target::PublicationTarget;

use crate::settings::Settings;

/// The folder of archives, and the registry that they are published to.
#[derive(Debug)]
pub(crate) struct CarryIn {
    /// None: no archives are carried in through this server.
    folder: Option<PathBuf>,
    target: Option<PublicationTarget>,
    /// Folder for temporary files of publications.
    workspace: PathBuf,
    /// Groups of the resources for clusters.
    api_group_map: ApiGroupMap,
    summaries: archives::Summaries,
}

impl CarryIn {
    /// By the settings; the registry's certificates are those of `access`.
    pub(crate) fn new(settings: &Settings, access: &RegistryAccess) -> Self {
        let target = settings.archives_registry.clone();
        Self {
            folder: settings.archives_dir.clone(),
            target: target.map(|name| {
                PublicationTarget::new(name.0, settings.archives_registry_auth_file.clone(), access)
            }),
            workspace: settings.work_dir.join("carry-in"),
            api_group_map: settings.api_group_map.0.clone(),
            summaries: archives::Summaries::default(),
        }
    }

    /// Errors: Conflict – none is set.
    fn folder(&self) -> Result<&PathBuf, model::Error> {
        self.folder.as_ref().ok_or_else(|| {
            model::Error::conflict(
                "this server has no folder of archives: set ARCHIVES_DIR, and restart it",
            )
        })
    }

    /// Errors: Conflict – none is set.
    fn target(&self) -> Result<&PublicationTarget, model::Error> {
        self.target.as_ref().ok_or_else(|| {
            model::Error::conflict(
                "this server has no registry to publish to: set ARCHIVES_REGISTRY, and restart it",
            )
        })
    }

    async fn workspace(&self) -> Result<PathBuf, model::Error> {
        let path = self.workspace.clone();
        blocking(move || {
            let made = make_folder(&path);
            made.map_err(|e| model::Error::internal(format!("making {}", path.display()), e))?;
            Ok(path)
        })
        .await
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, model::Error> + Send + 'static,
) -> Result<T, model::Error> {
    crate::blocking::run("working with archives", work).await
}
