//! Backup and restore of an `atoll up` installation.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use credentials::secrets::SecretFiles;
use service::file::{is_root, set_mode};
use service::{Error, ResultExt as _};
use supervisor::{Cluster, DataDirectory, Lock, ServiceName, UpState, temporary_port};

use super::index::{DATABASE, Heading, InstallationKind};
use super::reader::Verified;
use super::swap::{StagedFolder, is_vacant, report_previous};
use super::writer::{BackupWriter, Owner, private, rewound, temporary};
use super::{content, walk};
use crate::event::SiteObserver;

/// Folder of secrets, and single files.
const SECRETS: &str = "secrets";
const FILES: [&str; 2] = ["registry-ca.pem", "env/user.env"];

/// Whether [`save`] writes a member of this name. Others would be used at the next start: a database whose settings run
/// programs, variables of a service, an installer.
pub(super) fn is_saved(path: &str) -> bool {
    if path == DATABASE || FILES.contains(&path) {
        return true;
    }
    match path.split_once('/') {
        Some((SECRETS, _)) => true,
        Some((folder, rest)) if folder == ServiceName::ApiServer.as_str() => {
            content::has_clusters_file(rest)
        }
        Some((folder, rest)) if folder == ServiceName::Registry.as_str() => {
            content::has_registry_file(rest)
        }
        _ => false,
    }
}

/// Saves the installation on `data` in `file`; returns its length and number of members.
///
/// Errors: no installation, no space.
pub(super) fn save(file: &Path, data: Option<PathBuf>) -> Result<(u64, usize), Error> {
    let directory = DataDirectory::new(data)?;
    if !directory.postgres().join("data/PG_VERSION").exists() {
        let doing = format!("saving {}", directory.root().display());
        return Err(Error::new(
            doing,
            "no installation of `atoll up` found: specify its folder with --dir DIR",
        ));
    }
    let mut writer = BackupWriter::create(file, Heading::new(InstallationKind::Up))?;
    save_database(&mut writer, &directory, file)?;
    content::clusters(
        &mut writer,
        &directory.of(ServiceName::ApiServer),
        ServiceName::ApiServer.as_str(),
    )?;
    content::folder(&mut writer, &directory.secrets(), SECRETS)?;
    let keeps = |path: &str| path == "env" || FILES.contains(&path);
    walk::files(directory.root(), &keeps, &mut |path, file| {
        writer.add_file(path, file)
    })?;
    let registry = directory.of(ServiceName::Registry);
    let dangling = content::registry(&mut writer, &registry, ServiceName::Registry.as_str())?;
    let members = writer.members();
    Ok((writer.finish(&dangling)?, members))
}

/// Dumps one snapshot, from the running server or a temporary one.
fn save_database(
    writer: &mut BackupWriter,
    directory: &DataDirectory,
    file: &Path,
) -> Result<(), Error> {
    let doing = || format!("saving the database of {}", directory.root().display());
    let path = temporary(file, "database");
    let dump = private(&path).doing(doing)?;
    // Unlinked while open: the kernel removes it with this process.
    fs::remove_file(&path).doing(doing)?;
    let secrets = SecretFiles::in_folder(&directory.secrets(), directory.registry_certificate());
    let password = secrets.database_password;
    match Lock::take(directory) {
        Err(held) => {
            let state = fs::read(directory.state()).map_err(|_| held)?;
            let state: UpState = serde_json::from_slice(&state).doing(doing)?;
            Cluster::at(directory, state.postgres_port)?.dump(&password, &dump)?;
        }
        Ok(lock) => {
            Cluster::stop_stale(directory)?;
            let (cluster, _) = Cluster::prepare(directory, temporary_port()?, &password)?;
            let serving = cluster.serve()?;
            cluster.dump(&password, &dump)?;
            drop(serving);
            // After a killed run the mark stays: the next start has to wait for its children.
            if !lock.was_killed {
                lock.release();
            }
        }
    }
    let dump = rewound(dump).doing(doing)?;
    let size = dump.metadata().doing(doing)?.len();
    writer.add(DATABASE, Owner::PRIVATE, size, dump)
}

/// Restores `backup` to `data`.
///
/// Errors: `data` is not empty, or in use.
pub(super) fn restore(
    backup: &Verified,
    data: Option<PathBuf>,
    replace: bool,
    observe: SiteObserver<'_>,
) -> Result<DataDirectory, Error> {
    let directory = DataDirectory::new(data)?;
    let root = directory.root();
    let is_new = is_vacant(root);
    if !is_new && !replace {
        let doing = format!("restoring to {}", root.display());
        return Err(Error::new(
            doing,
            "the folder is not empty: choose another --dir, or use --replace",
        ));
    }
    // Held until the end, so that nothing is started there meanwhile. The lock file moves with the replaced folder.
    let lock = if is_new {
        None
    } else {
        Some(Lock::take(&directory)?)
    };
    if lock.is_some() {
        Cluster::stop_stale(&directory)?;
    }
    let staged = StagedFolder::new(root)?;
    fill(backup, &DataDirectory::new(Some(staged.path().to_owned()))?)?;
    let kept = staged.swap()?;
    if let Some(lock) = lock {
        lock.release();
    }
    report_previous(kept, observe);
    Ok(directory)
}

fn fill(backup: &Verified, directory: &DataDirectory) -> Result<(), Error> {
    directory.create()?;
    // Staged folders have mode 0700, but Postgres may run as another user.
    set_mode(directory.root(), if is_root()? { 0o755 } else { 0o700 })?;
    let dump = directory.root().join(DATABASE);
    backup.extract(false, |path| Some(directory.root().join(path)))?;
    let secrets = SecretFiles::in_folder(&directory.secrets(), directory.registry_certificate());
    let password = secrets.database_password;
    let (cluster, _) = Cluster::prepare(directory, temporary_port()?, &password)?;
    let serving = cluster.serve()?;
    let file = File::open(&dump).doing("loading the database")?;
    cluster.load(&password, file)?;
    // The shutdown checkpoint makes all data durable before the folder is swapped.
    drop(serving);
    fs::remove_file(&dump).doing("loading the database")
}
