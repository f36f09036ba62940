//! Files for an initrd, with the folders above them.

use std::collections::BTreeMap;
use std::path::Path;

use crate::cpio::{CpioMember, DIRECTORY};
use crate::{Error, archive};

const FOLDER_MODE: u32 = DIRECTORY | 0o755;

/// Members by absolute path, which orders folders before their content: the kernel creates no folders itself.
#[derive(Debug, Default)]
pub struct MemberTree(BTreeMap<String, (u32, Vec<u8>)>);

impl MemberTree {
    /// Adds a file, or a link with its target as the content. `mode` has the type, too.
    pub fn add(&mut self, path: &str, mode: u32, content: impl Into<Vec<u8>>) {
        for folder in Path::new(path).ancestors().skip(1) {
            let folder = folder.to_string_lossy();
            if folder != "/" {
                let folder = self.0.entry(folder.into_owned());
                folder.or_insert((FOLDER_MODE, Vec::new()));
            }
        }
        self.0.insert(path.to_owned(), (mode, content.into()));
    }

    /// The compressed archive; empty without members.
    ///
    /// Errors: as [`archive::pack`].
    pub fn pack(&self) -> Result<Vec<u8>, Error> {
        let members: Vec<CpioMember<'_>> = self
            .0
            .iter()
            .map(|(name, (mode, data))| CpioMember {
                name,
                mode: *mode,
                data,
            })
            .collect();
        if members.is_empty() {
            return Ok(Vec::new());
        }
        archive::pack(&members)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpio::{LINK, REGULAR};

    #[test]
    fn folders_precede_their_content() {
        let mut tree = MemberTree::default();
        tree.add("/etc/b/link", LINK | 0o777, "/etc/a");
        tree.add("/etc/a", REGULAR | 0o600, "text");
        let files = archive::read(&tree.pack().unwrap()).unwrap();
        let names: Vec<(&str, u32)> = files
            .iter()
            .map(|file| (file.name.as_str(), file.mode))
            .collect();
        let expected = [
            ("/etc", 0o40_755),
            ("/etc/a", 0o100_600),
            ("/etc/b", 0o40_755),
            ("/etc/b/link", 0o120_777),
        ];
        assert_eq!(names, expected);
        assert!(MemberTree::default().pack().unwrap().is_empty());
    }
}
