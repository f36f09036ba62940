//! Unprivileged system users for child processes.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, chown};
use std::path::Path;

use service::file::is_root;
use service::{Error, ResultExt as _};

/// Users to choose from, in order of preference.
const NAMES: [&str; 2] = ["postgres", "nobody"];
const EXECUTE: [u32; 3] = [0o100, 0o010, 0o001];

/// An unprivileged user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// User name.
    pub name: String,
    /// User id.
    pub uid: u32,
    /// Id of its primary group.
    pub gid: u32,
}

impl Account {
    /// The user for Postgres; `None` if this process is unprivileged.
    ///
    /// Errors: no suitable user exists.
    pub fn needed() -> Result<Option<Self>, Error> {
        if !is_root()? {
            return Ok(None);
        }
        let doing = "choosing the user that Postgres runs as";
        let passwd = passwd()?;
        NAMES
            .iter()
            .find_map(|name| Self::in_passwd(&passwd, name))
            .map(Some)
            .ok_or_else(|| {
                Error::new(
                    doing,
                    "Postgres refuses to run as root, and neither postgres nor nobody is in /etc/passwd: add one",
                )
            })
    }

    /// The user `name` in the text of /etc/passwd.
    pub fn in_passwd(passwd: &str, name: &str) -> Option<Self> {
        all(passwd).find(|account| account.name == name)
    }

    /// The user with the id `uid`.
    pub fn with_uid(passwd: &str, uid: u32) -> Option<Self> {
        all(passwd).find(|account| account.uid == uid)
    }

    /// Changes the owner of a file or folder to this user.
    ///
    /// Errors: no permission.
    pub fn own(&self, path: &Path) -> Result<(), Error> {
        chown(path, Some(self.uid), Some(self.gid))
            .doing(|| format!("changing the owner of {} to {}", path.display(), self.name))
    }

    /// Checks that this user can enter every folder above `path`.
    ///
    /// Errors: a folder that it cannot enter.
    pub fn check_reach(&self, path: &Path) -> Result<(), Error> {
        for folder in path.ancestors().skip(1) {
            let doing = || {
                format!(
                    "checking that user {} can access {}",
                    self.name,
                    path.display()
                )
            };
            let metadata = fs::metadata(folder).doing(doing)?;
            let class = if metadata.uid() == self.uid {
                0
            } else if metadata.gid() == self.gid {
                1
            } else {
                2
            };
            if metadata.mode() & EXECUTE[class] == 0 {
                let mode = metadata.mode() & 0o7777;
                let folder = folder.display();
                return Err(Error::new(
                    doing(),
                    format!(
                        "no permission to enter {folder} (mode {mode:04o}); only the supervisor runs as root: choose another folder, or chmod o+x {folder}"
                    ),
                ));
            }
        }
        Ok(())
    }
}

/// The text of /etc/passwd; empty if it does not exist.
///
/// Errors: unreadable file.
pub fn passwd() -> Result<String, Error> {
    const PASSWD: &str = "/etc/passwd";
    match fs::read_to_string(PASSWD) {
        Ok(text) => Ok(text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(Error::new(format!("reading {PASSWD}"), error)),
    }
}

fn all(passwd: &str) -> impl Iterator<Item = Account> {
    passwd.lines().filter_map(|line| {
        let mut fields = line.split(':');
        Some(Account {
            name: fields.next()?.to_owned(),
            uid: fields.nth(1)?.parse().ok()?,
            gid: fields.next()?.parse().ok()?,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    const PASSWD: &str =
        "root:x:0:0::/root:/bin/sh\nbroken\npostgres:x:101:104:,,,:/var:/bin/bash\n";

    #[test]
    fn users_are_read_from_passwd() {
        let account = Account::in_passwd(PASSWD, "postgres").unwrap();
        assert_eq!((account.uid, account.gid), (101, 104));
        assert_eq!(Account::in_passwd(PASSWD, "nobody"), None);
    }

    #[test]
    fn an_inaccessible_parent_folder_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let closed = dir.path().join("closed");
        fs::create_dir_all(closed.join("data")).unwrap();
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let account = Account {
            name: "other".to_owned(),
            uid: 4_000_000,
            gid: 4_000_000,
        };
        let text = account
            .check_reach(&closed.join("data"))
            .unwrap_err()
            .to_string();
        assert!(text.contains("closed (mode 0700)"), "{text}");
    }
}
