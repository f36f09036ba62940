//! Paths and permissions in the data directory, and its lock.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use credentials::secrets::LOGINS;
use service::file::{folder, is_root};
use service::{Error, ResultExt as _};

use crate::settings::Settings;

/// File of the logins of the image service.
const IMAGE_SERVICE_LOGINS: &str = "image-service-logins.json";

/// The data directory of one installation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataDirectory {
    root: PathBuf,
}

impl DataDirectory {
    /// The directory `data`, or the default of this user.
    ///
    /// Errors: HOME is not set.
    pub fn new(data: Option<PathBuf>) -> Result<Self, Error> {
        let doing = "choosing the data directory";
        let root = match data {
            Some(data) => data,
            None if is_root()? => PathBuf::from("/var/lib/atoll"),
            None => {
                let settings = Settings::load(None).doing(doing)?;
                settings
                    .xdg_data_home
                    .or_else(|| Some(settings.home?.join(".local/share")))
                    .ok_or_else(|| Error::new(doing, "HOME is not set: specify --dir DIR"))?
                    .join("atoll")
            }
        };
        std::path::absolute(root)
            .map(|root| Self { root })
            .doing(doing)
    }

    /// Creates missing folders.
    ///
    /// Errors: a folder that cannot be created.
    pub fn create(&self) -> Result<(), Error> {
        // Under root, Postgres and the API server run as other users, and have to enter their folders.
        let open = if is_root()? { 0o755 } else { 0o700 };
        folder(&self.root, open)?;
        folder(&self.postgres(), open)?;
        folder(&self.archives(), open)?;
        for name in ["secrets", "control", "env", "logs"] {
            folder(&self.root.join(name), 0o700)?;
        }
        for service in crate::service_name::ServiceName::ALL {
            folder(&self.of(service), 0o700)?;
        }
        Ok(())
    }

    /// Path of the directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// State file of a running installation.
    pub fn state(&self) -> PathBuf {
        self.root.join("atoll.json")
    }

    /// Lock file, locked while `atoll up` uses the directory.
    pub fn lock(&self) -> PathBuf {
        self.root.join("lock")
    }

    /// Parent folder of the database's data.
    pub fn postgres(&self) -> PathBuf {
        self.root.join("postgres")
    }

    /// Public certificate of the registry.
    pub fn registry_certificate(&self) -> PathBuf {
        self.root.join("registry-ca.pem")
    }

    /// Folder of secrets.
    pub fn secrets(&self) -> PathBuf {
        self.root.join("secrets")
    }

    /// Logins at the registry, for the API server.
    pub fn registry_logins(&self) -> PathBuf {
        self.secrets().join(LOGINS)
    }

    /// The same for the image service, which may run as another user.
    pub fn image_service_logins(&self) -> PathBuf {
        self.secrets().join(IMAGE_SERVICE_LOGINS)
    }

    /// Folder of archives that are carried in.
    pub fn archives(&self) -> PathBuf {
        self.root.join("archives")
    }

    /// Data folder of a service.
    pub fn of(&self, service: crate::service_name::ServiceName) -> PathBuf {
        self.root.join(service.as_str())
    }

    /// Folder of environment files.
    pub fn variables_folder(&self) -> PathBuf {
        self.root.join("env")
    }

    /// Environment file of a service, overridden by its environment.
    pub fn variables(&self, service: crate::service_name::ServiceName) -> PathBuf {
        self.root.join("env").join(format!("{service}.env"))
    }

    /// Copy of `--env-file` at the last start of a service, for backups.
    pub fn user_variables(&self) -> PathBuf {
        self.root.join("env").join("user.env")
    }

    /// Stop file: keeps a service stopped while it exists.
    pub fn stop_file(&self, service: crate::service_name::ServiceName) -> PathBuf {
        self.root.join("control").join(format!("{service}.stop"))
    }

    /// Log file of a service or of Postgres.
    pub fn log(&self, name: &str) -> PathBuf {
        self.root.join("logs").join(format!("{name}.log"))
    }
}

/// Lock on a data directory. The kernel releases it with the process.
#[derive(Debug)]
pub struct Lock {
    file: File,
    /// Whether the previous holder was killed.
    pub was_killed: bool,
}

impl Lock {
    /// Takes the lock of `directory`.
    ///
    /// Errors: another `atoll up` holds it.
    pub fn take(directory: &DataDirectory) -> Result<Self, Error> {
        let path = directory.lock();
        let doing = || format!("locking {}", directory.root().display());
        let mut file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .mode(0o600)
            .open(&path)
            .doing(doing)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                file.read_to_string(&mut holder).ok();
                return Err(Error::new(
                    doing(),
                    format!(
                        "process {} uses this data already: stop it, or choose another --dir",
                        holder.trim()
                    ),
                ));
            }
            Err(TryLockError::Error(e)) => return Err(Error::new(doing(), e)),
        }
        let was_killed = file.metadata().is_ok_and(|metadata| metadata.len() > 0);
        let mut lock = Self { file, was_killed };
        lock.write(&format!("{}\n", std::process::id()))
            .doing(doing)?;
        Ok(lock)
    }

    /// Marks a graceful shutdown.
    pub fn release(mut self) {
        self.write("").ok();
    }

    fn write(&mut self, text: &str) -> std::io::Result<()> {
        self.file.set_len(0)?;
        self.file.rewind()?;
        self.file.write_all(text.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory(dir: &tempfile::TempDir) -> DataDirectory {
        let directory = DataDirectory::new(Some(dir.path().join("data"))).unwrap();
        directory.create().unwrap();
        directory
    }

    #[test]
    fn the_lock_is_exclusive() {
        let dir = tempfile::tempdir().unwrap();
        let directory = directory(&dir);
        let first = Lock::take(&directory).unwrap();
        let text = Lock::take(&directory).unwrap_err().to_string();
        assert!(text.contains(&std::process::id().to_string()), "{text}");
        first.release();
        assert!(!Lock::take(&directory).unwrap().was_killed);
    }

    #[test]
    fn a_killed_holder_is_detected() {
        let dir = tempfile::tempdir().unwrap();
        let directory = directory(&dir);
        drop(Lock::take(&directory).unwrap());
        assert!(Lock::take(&directory).unwrap().was_killed);
    }
}
