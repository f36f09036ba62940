//! The installation of `atoll up`.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use service::Error;

use super::index::{DATABASE, Heading, InstallationKind};
use super::reader::Verified;
use super::swap::{StagedFolder, is_vacant};
use super::writer::{BackupWriter, Owner, private, rewound, temporary};
use super::{content, walk};
use crate::file::set_mode;
use crate::secrets::SecretFiles;
use crate::terminal;
use crate::up::UpState;
use crate::up::data_directory::{DataDirectory, Lock, is_root};
use crate::up::postgres::{Cluster, free_port};
use crate::up::service::ServiceName;

/// Saves the installation on `data` in `file`; length and number of members.
///
/// Errors: no installation there, no space.
pub(super) fn save(file: &Path, data: Option<PathBuf>) -> Result<(u64, usize), Error> {
    let directory = DataDirectory::new(data)?;
    if !directory.postgres().join("data/PG_VERSION").exists() {
        let doing = format!("saving {}", directory.root().display());
        return Err(Error::new(
            doing,
            "no installation of `atoll up` is there: name it with --data DIR",
        ));
    }
    let mut writer = BackupWriter::create(file, Heading::new(InstallationKind::Up))?;
    save_database(&mut writer, &directory, file)?;
    content::clusters(
        &mut writer,
        &directory.of(ServiceName::ApiServer),
        ServiceName::ApiServer.as_str(),
    )?;
    content::folder(&mut writer, &directory.secrets(), "secrets")?;
    let beside = |path: &str| path == "registry-ca.pem" || path == "env" || path == "env/user.env";
    walk::files(directory.root(), &beside, &mut |path, file| {
        writer.add_file(path, file)
    })?;
    let registry = directory.of(ServiceName::Registry);
    let dangling = content::registry(&mut writer, &registry, ServiceName::Registry.as_str())?;
    let members = writer.members();
    Ok((writer.finish(&dangling)?, members))
}

/// One snapshot, of the server that runs or of one for this purpose.
fn save_database(
    writer: &mut BackupWriter,
    directory: &DataDirectory,
    file: &Path,
) -> Result<(), Error> {
    let doing = || format!("saving the database of {}", directory.root().display());
    let path = temporary(file, "database");
    let dump = private(&path).map_err(|e| Error::new(doing(), e))?;
    // Nobody else needs its name, and so it goes with this process.
    fs::remove_file(&path).map_err(|e| Error::new(doing(), e))?;
    let secrets = SecretFiles::within(&directory.secrets(), directory.registry_certificate());
    let password = secrets.database_password;
    match Lock::take(directory) {
        Err(held) => {
            let state = fs::read(directory.state()).map_err(|_| held)?;
            let state: UpState =
                serde_json::from_slice(&state).map_err(|e| Error::new(doing(), e))?;
            Cluster::at(directory, state.postgres_port)?.dump(&password, &dump)?;
        }
        Ok(lock) => {
            Cluster::end_stale(directory)?;
            let (cluster, _) = Cluster::prepare(directory, free_port()?, &password)?;
            let serving = cluster.serve()?;
            cluster.dump(&password, &dump)?;
            drop(serving);
            // Otherwise the next start has to know that there may be children of a killed run.
            if !lock.was_killed {
                lock.release();
            }
        }
    }
    let dump = rewound(dump).map_err(|e| Error::new(doing(), e))?;
    let size = dump.metadata().map_err(|e| Error::new(doing(), e))?.len();
    writer.add(DATABASE, Owner::PRIVATE, size, dump)
}

/// Makes `data` the installation of `backup`.
///
/// Errors: something is there, or runs on it.
pub(super) fn restore(
    backup: &Verified,
    data: Option<PathBuf>,
    replace: bool,
) -> Result<(), Error> {
    let directory = DataDirectory::new(data)?;
    let root = directory.root();
    let is_new = is_vacant(root);
    if !is_new && !replace {
        let doing = format!("restoring to {}", root.display());
        return Err(Error::new(
            doing,
            "something is there: choose another --data, or --replace it",
        ));
    }
    // Held until the end, so that nothing is started there meanwhile. It goes with the folder that is replaced.
    let lock = if is_new {
        None
    } else {
        Some(Lock::take(&directory)?)
    };
    if lock.is_some() {
        Cluster::end_stale(&directory)?;
    }
    let beside = StagedFolder::new(root)?;
    fill(backup, &DataDirectory::new(Some(beside.path().to_owned()))?)?;
    let kept = beside.take_place()?;
    if let Some(lock) = lock {
        lock.release();
    }
    if let Some(kept) = kept {
        terminal::print(&format!(
            "What was there is now {}: remove it when it is not needed.",
            kept.display()
        ));
    }
    let variables = directory.user_variables();
    let with = if variables.exists() {
        format!(" --env-file {}", variables.display())
    } else {
        String::new()
    };
    terminal::print(&format!(
        "Restored. Next: atoll up --data {}{with}\nThe registry's certificate names the host that was saved: on another one, replace {} and {} (`atoll registry cert`).",
        root.display(),
        directory.registry_certificate().display(),
        directory.secrets().join("registry.key").display(),
    ));
    Ok(())
}

fn fill(backup: &Verified, directory: &DataDirectory) -> Result<(), Error> {
    directory.create()?;
    // The folder was made closed, and Postgres may be another user.
    set_mode(directory.root(), if is_root()? { 0o755 } else { 0o700 })?;
    let dump = directory.root().join(DATABASE);
    backup.extract(false, |path| Some(directory.root().join(path)))?;
    let secrets = SecretFiles::within(&directory.secrets(), directory.registry_certificate());
    let password = secrets.database_password;
    let (cluster, _) = Cluster::prepare(directory, free_port()?, &password)?;
    let serving = cluster.serve()?;
    let file = File::open(&dump).map_err(|e| Error::new("loading the database", e))?;
    cluster.load(&password, file)?;
    // Its shutdown writes everything out.
    drop(serving);
    fs::remove_file(&dump).map_err(|e| Error::new("loading the database", e))
}
