//! The user that Postgres runs as: it refuses root.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, chown};
use std::path::Path;

use service::Error;

use crate::up::layout::is_root;

/// Users that may be taken, best first.
const NAMES: [&str; 2] = ["postgres", "nobody"];
const EXECUTE: [u32; 3] = [0o100, 0o010, 0o001];

/// An unprivileged user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Account {
    /// Its name.
    pub(crate) name: String,
    /// Its number.
    pub(crate) uid: u32,
    /// Number of its group.
    pub(crate) gid: u32,
}

impl Account {
    /// Whom Postgres has to run as; `None` when this process is unprivileged itself.
    ///
    /// Errors: no such user exists.
    pub(crate) fn needed() -> Result<Option<Self>, Error> {
        if !is_root()? {
            return Ok(None);
        }
        let doing = "choosing the user that Postgres runs as";
        let passwd = fs::read_to_string("/etc/passwd").map_err(|e| Error::new(doing, e))?;
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

    fn in_passwd(passwd: &str, name: &str) -> Option<Self> {
        passwd.lines().find_map(|line| {
            let mut fields = line.split(':');
            let is_it = fields.next()? == name;
            let uid = fields.nth(1)?.parse().ok()?;
            let gid = fields.next()?.parse().ok()?;
            is_it.then(|| Self {
                name: name.to_owned(),
                uid,
                gid,
            })
        })
    }

    /// Gives a folder or file to this user.
    ///
    /// Errors: when that is not allowed.
    pub(crate) fn own(&self, path: &Path) -> Result<(), Error> {
        chown(path, Some(self.uid), Some(self.gid)).map_err(|e| {
            Error::new(
                format!("giving {} to user {}", path.display(), self.name),
                e,
            )
        })
    }

    /// Whether this user gets to `path` through every folder above it.
    ///
    /// Errors: the folder that it cannot enter.
    pub(crate) fn check_reach(&self, path: &Path) -> Result<(), Error> {
        for folder in path.ancestors().skip(1) {
            let doing = || {
                format!(
                    "looking whether user {} reaches {}",
                    self.name,
                    path.display()
                )
            };
            let metadata = fs::metadata(folder).map_err(|e| Error::new(doing(), e))?;
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
                        "it cannot enter {folder} (mode {mode:04o}), and Postgres has to run as an unprivileged user: choose another --data, or chmod o+x {folder}"
                    ),
                ));
            }
        }
        Ok(())
    }
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
    fn a_closed_folder_above_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let closed = dir.path().join("closed");
        fs::create_dir_all(closed.join("data")).unwrap();
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let somebody = Account {
            name: "somebody".to_owned(),
            uid: 4_000_000,
            gid: 4_000_000,
        };
        let text = somebody
            .check_reach(&closed.join("data"))
            .unwrap_err()
            .to_string();
        assert!(text.contains("closed (mode 0700)"), "{text}");
    }
}
