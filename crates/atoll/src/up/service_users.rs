//! The system users of the services, when `atoll up` runs as root: each service is one of its own.
//!
//! What breaks into one service reads neither the database's password nor the registry's key. Nothing has to be created:
//! a user is a number, or one called `atoll-SERVICE` where such a one exists. As another user than root everything
//! runs as that user.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, lchown};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use service::Error;

use super::account::{Account, passwd};
use super::data_directory::{DataDirectory, is_root};
use super::service::ServiceName;
use super::settings::Settings;
use crate::file::set_mode;
use crate::secrets::SecretFiles;

/// Root owns it, the group of one service reads it.
const FOR_GROUP: u32 = 0o640;
/// Names in it can be opened, not listed.
const PASS_THROUGH: u32 = 0o711;
/// Where systems say which ports need no privilege.
const UNPRIVILEGED_PORTS: &str = "/proc/sys/net/ipv4/ip_unprivileged_port_start";

/// Which user each service is; nobody in particular when this process is not root.
#[derive(Debug, Clone, Default)]
pub(crate) struct ServiceUsers(BTreeMap<ServiceName, Account>);

impl ServiceUsers {
    /// The users of this machine.
    ///
    /// Errors: a number that belongs to somebody else, with the setting that names others.
    pub(crate) fn choose() -> Result<Self, Error> {
        if !is_root()? {
            return Ok(Self::default());
        }
        let doing = "choosing the users of the services";
        let settings = Settings::load(None).map_err(|e| Error::new(doing, e))?;
        Self::in_passwd(&passwd()?, settings.atoll_uid_base)
            .map_err(|reason| Error::new(doing, reason))
    }

    fn in_passwd(passwd: &str, base: u32) -> Result<Self, String> {
        if base == 0 {
            return Err("ATOLL_UID_BASE=0 would be root: choose five unused numbers".to_owned());
        }
        let mut users = BTreeMap::new();
        for (uid, service) in (base..).zip(ServiceName::ALL) {
            let name = format!("atoll-{service}");
            let account = match Account::in_passwd(passwd, &name) {
                Some(account) if account.uid == 0 => {
                    return Err(format!("user {name} is root: give it another number"));
                }
                Some(account) => account,
                None => {
                    if let Some(other) = Account::with_uid(passwd, uid) {
                        return Err(format!(
                            "number {uid} of {service} is user {}: name the first of five unused numbers in ATOLL_UID_BASE, or create the user {name}",
                            other.name
                        ));
                    }
                    let gid = uid;
                    Account { name, uid, gid }
                }
            };
            users.insert(service, account);
        }
        Ok(Self(users))
    }

    /// Lets `command` become the user of `service`, without supplementary groups and capabilities.
    pub(crate) fn apply(
        &self,
        service: ServiceName,
        directory: &DataDirectory,
        command: &mut Command,
    ) {
        if let Some(account) = self.0.get(&service) {
            // The standard library drops the supplementary groups of root, and the kernel its capabilities.
            command.uid(account.uid).gid(account.gid);
            // Root's own configuration is closed to them.
            command.env("HOME", directory.of(service));
            command.env_remove("XDG_RUNTIME_DIR");
        }
    }

    /// Whether these ports may be taken without being root.
    ///
    /// Errors: the one that may not.
    pub(crate) fn check_ports(&self, ports: &[u16]) -> Result<(), Error> {
        if self.0.is_empty() {
            return Ok(());
        }
        let first = fs::read_to_string(UNPRIVILEGED_PORTS)
            .ok()
            .and_then(|text| text.trim().parse().ok())
            .unwrap_or(1024);
        match ports.iter().find(|port| **port < first) {
            None => Ok(()),
            Some(port) => Err(Error::new(
                "choosing the ports",
                format!(
                    "port {port} needs root, which no service is: choose others from {first} on with --ports-from N"
                ),
            )),
        }
    }

    /// Gives each service its folder and what it needs of the secrets, also those of an earlier version, which root
    /// owned.
    ///
    /// Errors: a folder above that is closed to them, what cannot be given.
    pub(crate) fn hand_over(
        &self,
        directory: &DataDirectory,
        secrets: &SecretFiles,
    ) -> Result<(), Error> {
        if self.0.is_empty() {
            return Ok(());
        }
        for (service, account) in &self.0 {
            let folder = directory.of(*service);
            account.check_reach(&folder)?;
            give(&folder, account)?;
        }
        for folder in [directory.secrets(), directory.variables_folder()] {
            set_mode(&folder, PASS_THROUGH)?;
        }
        self.share(ServiceName::ApiServer, &secrets.database_password)?;
        for path in [&secrets.htpasswd, &secrets.tls.key] {
            self.share(ServiceName::Registry, path)?;
        }
        Ok(())
    }

    /// Lets `service` read a file of root's.
    ///
    /// Errors: what cannot be given.
    pub(crate) fn share(&self, service: ServiceName, path: &Path) -> Result<(), Error> {
        let Some(account) = self.0.get(&service) else {
            return Ok(());
        };
        let doing = || format!("letting {} read {}", account.name, path.display());
        // The group first: the mode must not open the file to another group.
        lchown(path, Some(0), Some(account.gid)).map_err(|e| Error::new(doing(), e))?;
        set_mode(path, FOR_GROUP)
    }

    /// Whether `service` may enter and read `folder`.
    ///
    /// Errors: what is closed to it.
    pub(crate) fn check_readable(&self, service: ServiceName, folder: &Path) -> Result<(), Error> {
        match self.0.get(&service) {
            Some(account) if folder.exists() => account.check_reach(&folder.join("any")),
            _ => Ok(()),
        }
    }
}

/// Changes the owner of a tree, the top last: whoever finds the top changed finds everything changed. Only what belonged
/// to the top's owner is changed, so that nothing else that got in comes to the new one.
fn give(top: &Path, account: &Account) -> Result<(), Error> {
    let doing = || format!("giving {} to {}", top.display(), account.name);
    let metadata = fs::symlink_metadata(top).map_err(|e| Error::new(doing(), e))?;
    if metadata.uid() == account.uid {
        return Ok(());
    }
    // Closed while its owners change: nothing that runs can put a link where a folder was.
    fs::set_permissions(top, fs::Permissions::from_mode(0o700))
        .map_err(|e| Error::new(doing(), e))?;
    give_below(top, metadata.uid(), account)
        .and_then(|()| lchown(top, Some(account.uid), Some(account.gid)))
        .map_err(|e| Error::new(doing(), e))
}

fn give_below(folder: &Path, former: u32, account: &Account) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            give_below(&entry.path(), former, account)?;
        }
        if entry.metadata()?.uid() == former {
            lchown(entry.path(), Some(account.uid), Some(account.gid))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_service_has_a_number_or_its_named_user() {
        let passwd = "root:x:0:0::/:/bin/sh\natoll-webui:x:300:301::/:/bin/false\n";
        let users = ServiceUsers::in_passwd(passwd, 61_000).unwrap();
        let uid = |name| (users.0[&name].uid, users.0[&name].gid);
        assert_eq!(uid(ServiceName::Registry), (61_000, 61_000));
        assert_eq!(uid(ServiceName::ApiServer), (61_001, 61_001));
        assert_eq!(uid(ServiceName::Webui), (300, 301));
    }

    #[test]
    fn numbers_of_others_are_not_taken() {
        let passwd = "somebody:x:61001:61001::/:/bin/sh\n";
        let reason = ServiceUsers::in_passwd(passwd, 61_000).unwrap_err();
        assert!(
            reason.contains("somebody") && reason.contains("ATOLL_UID_BASE"),
            "{reason}"
        );
        ServiceUsers::in_passwd(passwd, 0).unwrap_err();
        ServiceUsers::in_passwd("atoll-registry:x:0:0::/:/bin/sh\n", 61_000).unwrap_err();
    }
}
