//! System users of the services under root: each service has its own.
//!
//! A compromised service reads neither the database password nor the registry key of others. No user has to be created:
//! a bare uid is used unless a user `atoll-SERVICE` exists. Without root, all services run as the user of the
//! supervisor.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, lchown};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use credentials::secrets::SecretFiles;
use service::file::is_root;
use service::file::set_mode;
use service::{Error, ResultExt as _};

use crate::account::{Account, passwd};
use crate::data_directory::DataDirectory;
use crate::service_name::ServiceName;
use crate::settings::Settings;

/// Owner root, readable for the group of one service.
const FOR_GROUP: u32 = 0o640;
/// Entries can be opened, but not listed.
const PASS_THROUGH: u32 = 0o711;
/// First port that needs no privilege.
const UNPRIVILEGED_PORTS: &str = "/proc/sys/net/ipv4/ip_unprivileged_port_start";

/// System user of each service; empty if this process is not root.
#[derive(Debug, Clone, Default)]
pub(crate) struct ServiceUsers(BTreeMap<ServiceName, Account>);

impl ServiceUsers {
    /// Chooses the users on this machine.
    ///
    /// Errors: a uid of another user, with the setting for other uids.
    pub(crate) fn choose() -> Result<Self, Error> {
        if !is_root()? {
            return Ok(Self::default());
        }
        let doing = "choosing the users of the services";
        let settings = Settings::load(None).doing(doing)?;
        Self::in_passwd(&passwd()?, settings.atoll_uid_base).doing(doing)
    }

    fn in_passwd(passwd: &str, base: u32) -> Result<Self, String> {
        if base == 0 {
            return Err("ATOLL_UID_BASE=0 is root: choose five unused uids".to_owned());
        }
        let mut users = BTreeMap::new();
        for (uid, service) in (base..).zip(ServiceName::ALL) {
            let name = format!("atoll-{service}");
            let account = match Account::in_passwd(passwd, &name) {
                Some(account) if account.uid == 0 => {
                    return Err(format!("user {name} is root: change its uid"));
                }
                Some(account) => account,
                None => {
                    if let Some(other) = Account::with_uid(passwd, uid) {
                        return Err(format!(
                            "uid {uid} of {service} belongs to user {}: set ATOLL_UID_BASE to the first of five unused uids, or create the user {name}",
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

    /// Makes `command` run as the user of `service`, without supplementary groups and capabilities.
    pub(crate) fn apply(
        &self,
        service: ServiceName,
        directory: &DataDirectory,
        command: &mut Command,
    ) {
        if let Some(account) = self.0.get(&service) {
            // The standard library drops the supplementary groups of root, and the kernel its capabilities.
            command.uid(account.uid).gid(account.gid);
            // Root's home is not accessible for them.
            command.env("HOME", directory.of(service));
            command.env_remove("XDG_RUNTIME_DIR");
        }
    }

    /// Checks that these ports need no privilege.
    ///
    /// Errors: a privileged port.
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
                    "port {port} is privileged, and services do not run as root: choose ports from {first} on with --ports-from N"
                ),
            )),
        }
    }

    /// Gives each service access to its folder and secrets, also to those of an older version, which root owned.
    ///
    /// Errors: an inaccessible parent folder, a failed change of owner.
    pub(crate) fn grant_access(
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
            chown_tree(&folder, account)?;
        }
        for folder in [directory.secrets(), directory.variables_folder()] {
            set_mode(&folder, PASS_THROUGH)?;
        }
        self.share(ServiceName::ApiServer, &secrets.database_password)?;
        self.share(ServiceName::ApiServer, &directory.registry_logins())?;
        let logins = directory.image_service_logins();
        self.share(ServiceName::ImageService, &logins)?;
        for path in [&secrets.htpasswd, &secrets.tls.key] {
            self.share(ServiceName::Registry, path)?;
        }
        Ok(())
    }

    /// Lets `service` read a file owned by root.
    ///
    /// Errors: a failed change of owner or mode.
    pub(crate) fn share(&self, service: ServiceName, path: &Path) -> Result<(), Error> {
        let Some(account) = self.0.get(&service) else {
            return Ok(());
        };
        // Group before mode: the mode must not open the file to the old group.
        lchown(path, Some(0), Some(account.gid))
            .doing(|| format!("letting {} read {}", account.name, path.display()))?;
        set_mode(path, FOR_GROUP)
    }

    /// Checks that `service` can read `folder`.
    ///
    /// Errors: an inaccessible folder.
    pub(crate) fn check_readable(&self, service: ServiceName, folder: &Path) -> Result<(), Error> {
        match self.0.get(&service) {
            Some(account) if folder.exists() => account.check_reach(&folder.join("any")),
            _ => Ok(()),
        }
    }
}

/// Changes the owner of a tree, the top last: after a crash a changed top proves that the whole tree is changed. Only
/// entries of the top's owner are changed, so that no foreign file is handed over.
fn chown_tree(top: &Path, account: &Account) -> Result<(), Error> {
    let doing = || {
        format!(
            "changing the owner of {} to {}",
            top.display(),
            account.name
        )
    };
    let metadata = fs::symlink_metadata(top).doing(doing)?;
    if metadata.uid() == account.uid {
        return Ok(());
    }
    // Mode 0700 while owners change: no running process can replace a folder by a link.
    fs::set_permissions(top, fs::Permissions::from_mode(0o700)).doing(doing)?;
    chown_entries(top, metadata.uid(), account)
        .and_then(|()| lchown(top, Some(account.uid), Some(account.gid)))
        .doing(doing)
}

fn chown_entries(folder: &Path, old_uid: u32, account: &Account) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            chown_entries(&entry.path(), old_uid, account)?;
        }
        if entry.metadata()?.uid() == old_uid {
            lchown(entry.path(), Some(account.uid), Some(account.gid))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_service_has_a_uid_or_its_named_user() {
        let passwd = "root:x:0:0::/:/bin/sh\natoll-webui:x:300:301::/:/bin/false\n";
        let users = ServiceUsers::in_passwd(passwd, 61_000).unwrap();
        let uid = |name| (users.0[&name].uid, users.0[&name].gid);
        assert_eq!(uid(ServiceName::Registry), (61_000, 61_000));
        assert_eq!(uid(ServiceName::ApiServer), (61_001, 61_001));
        assert_eq!(uid(ServiceName::Webui), (300, 301));
    }

    #[test]
    fn uids_of_other_users_are_refused() {
        let passwd = "other:x:61001:61001::/:/bin/sh\n";
        let reason = ServiceUsers::in_passwd(passwd, 61_000).unwrap_err();
        assert!(
            reason.contains("other") && reason.contains("ATOLL_UID_BASE"),
            "{reason}"
        );
        ServiceUsers::in_passwd(passwd, 0).unwrap_err();
        ServiceUsers::in_passwd("atoll-registry:x:0:0::/:/bin/sh\n", 61_000).unwrap_err();
    }
}
