//! The configuration of a live system that installs one node by itself, and restarts into it.

use std::fmt;
use std::str::FromStr;

use crate::Error;
use crate::config::{IgnitionConfig, IgnitionFile, Resource, Unit};
use crate::node::{CONNECTIONS, NodeConfig};
use crate::problem::quoted;

/// Path of the node's configuration in the live system.
pub const NODE_CONFIG_PATH: &str = "/etc/atoll/node.ign";

const UNIT: &str = "atoll-install-node.service";
const SCRIPT_PATH: &str = "/usr/local/bin/atoll-install-node";
const SCRIPT: &str = include_str!("live_installer/install-node.sh");

/// Longest path of a disk. Units: bytes.
const DISK_PATH_MAX: usize = 255;
/// Units: characters.
const MARK_MAX: usize = 64;

/// Path of a disk, as `/dev/sda` or `/dev/disk/by-id/wwn-0x5000c500a0b1c2d3`. It has no character that shells or units
/// of systemd read as another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskPath(String);

impl FromStr for DiskPath {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"/_.:+=@,-".contains(&byte);
        let has_name = |rest: &str| rest.split('/').all(|it| !["", ".", ".."].contains(&it));
        let is_disk = text.len() <= DISK_PATH_MAX
            && text.bytes().all(is_allowed)
            && text.strip_prefix("/dev/").is_some_and(has_name);
        if is_disk {
            return Ok(Self(text.to_owned()));
        }
        Err("expected the path of a disk, as /dev/sda or /dev/disk/by-id/…".to_owned())
    }
}

impl fmt::Display for DiskPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A live system that installs a node.
#[derive(Debug, Clone)]
pub struct LiveInstaller {
    /// The installed node. The live system has its network and its login, too.
    pub node: NodeConfig,
    /// The disk, whose content is lost.
    pub disk: DiskPath,
    /// Name of this image: letters, digits and hyphens. The installed disk is marked with it, since an image that stays
    /// attached is booted again after the restart, and would wipe the node.
    pub mark: String,
}

impl LiveInstaller {
    /// The configuration of the live system: connection files (0600), the node's configuration (0600), and a unit that
    /// writes the operating system of the live image with both to the disk, once.
    ///
    /// Errors: as [`NodeConfig::render`]; `Invalid` for a mark that is none.
    pub fn render(&self) -> Result<IgnitionConfig, Error> {
        let node = self.node.render()?;
        let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        if !(1..=MARK_MAX).contains(&self.mark.len()) || !self.mark.bytes().all(is_inner) {
            let reason = format!("{} has other than letters and digits", quoted(&self.mark));
            let at = "mark".to_owned();
            return Err(Error::Invalid { at, reason });
        }
        let script = SCRIPT
            .replace("@DISK@", &self.disk.0)
            .replace("@MARK@", &self.mark);
        let mut config = IgnitionConfig::new(self.node.version)
            .file(IgnitionFile::text(SCRIPT_PATH, 0o755, &script))
            .unit(Unit::enabled(UNIT, self.unit()));
        config.passwd = node.passwd.clone();
        let connections = node.storage.files.iter();
        let connections = connections.filter(|file| file.path.starts_with(CONNECTIONS));
        config.storage.files.extend(connections.cloned());
        let contents = Resource::gzip(&node.to_json());
        let config = config.file(IgnitionFile::new(NODE_CONFIG_PATH, 0o600, contents));
        config.validate()?;
        Ok(config)
    }

    /// Only a node that is installed restarts the machine: after a failure the live system stays, with its reason on the
    /// console.
    fn unit(&self) -> String {
        let (name, disk) = (&self.node.host_name, &self.disk);
        format!(
            "[Unit]
Description=Install {name} on {disk}
SuccessAction=reboot

[Service]
Type=oneshot
ExecStart={SCRIPT_PATH}
StandardOutput=journal+console
StandardError=journal+console

[Install]
WantedBy=multi-user.target
"
        )
    }
}

#[cfg(test)]
mod tests;
