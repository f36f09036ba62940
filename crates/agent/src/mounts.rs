//! Mounted file systems.

use crate::HostFiles;

/// One mounted file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mount {
    pub(crate) source: String,
    pub(crate) target: String,
    /// `major:minor` of the device.
    pub(crate) device: String,
}

/// The mounted file systems, oldest first.
#[derive(Debug, Clone, Default)]
pub(crate) struct Mounts(Vec<Mount>);

impl Mounts {
    pub(crate) fn read(files: &HostFiles) -> Self {
        // Of the first process: a service may have a view of its own.
        let text = files
            .text("/proc/1/mountinfo")
            .or_else(|| files.text("/proc/self/mountinfo"));
        Self::parse(&text.unwrap_or_default())
    }

    /// Parses lines `id parent major:minor root target options … - type source options`. Source: proc(5).
    pub(crate) fn parse(text: &str) -> Self {
        let mount = |line: &str| {
            let (first, second) = line.split_once(" - ")?;
            let mut first = first.split(' ');
            let device = first.nth(2)?.to_owned();
            let target = unescaped(first.nth(1)?);
            let source = unescaped(second.split(' ').nth(1)?);
            Some(Mount {
                source,
                target,
                device,
            })
        };
        Self(text.lines().filter_map(mount).collect())
    }

    /// The device that is mounted on exactly this folder. The latest mount hides earlier ones.
    pub(crate) fn source_of(&self, target: &str) -> Option<&str> {
        let mount = self.0.iter().rev().find(|mount| mount.target == target)?;
        Some(&mount.source)
    }

    /// The folders that a device is mounted on.
    pub(crate) fn targets_of<'a>(&'a self, device: &'a str) -> impl Iterator<Item = &'a str> {
        let mounts = self.0.iter().filter(move |mount| mount.device == device);
        mounts.map(|mount| mount.target.as_str())
    }
}

/// Blanks, tabs, line ends and backslashes are octal numbers there.
fn unescaped(text: &str) -> String {
    [
        ("\\040", " "),
        ("\\011", "\t"),
        ("\\012", "\n"),
        ("\\134", "\\"),
    ]
    .iter()
    .fold(text.to_owned(), |text, (code, character)| {
        text.replace(code, character)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_mounts_hide_earlier_ones() {
        let mounts = Mounts::parse(
            "22 1 8:2 / /sysroot rw shared:1 - ext4 /dev/sda2 rw\n\
             23 22 7:1 / /sysroot ro,relatime - squashfs /dev/loop1 ro\n\
             24 22 11:0 / /run/media/iso ro - iso9660 /dev/sr0 ro\n\
             25 22 8:3 / /mnt/a\\040b rw - xfs /dev/sda3 rw\n\
             nonsense",
        );
        assert_eq!(mounts.source_of("/sysroot"), Some("/dev/loop1"));
        assert_eq!(mounts.source_of("/run"), None);
        assert_eq!(mounts.targets_of("8:3").collect::<Vec<_>>(), ["/mnt/a b"]);
    }
}
