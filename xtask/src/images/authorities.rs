//! The certificates of public authorities, from Debian's package.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};

use crate::apt;

/// One file per authority. This machine's own bundle is not used: it may have private authorities, which other machines
/// do not trust.
const FOLDER: &str = "/usr/share/ca-certificates/mozilla";

/// The bundle; installs the package first when it is missing.
pub(super) fn bundle() -> Result<Vec<u8>> {
    let folder = Path::new(FOLDER);
    if !folder.is_dir() {
        apt::install(
            &["ca-certificates"],
            "images carry the certificates of public authorities",
        )?;
    }
    join(folder)
}

/// All certificates of a folder, sorted by name.
fn join(folder: &Path) -> Result<Vec<u8>> {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder)
        .with_context(|| format!("reading {}", folder.display()))?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_>>()?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "crt"));
    paths.sort();
    ensure!(
        !paths.is_empty(),
        "{} has no certificates",
        folder.display()
    );
    let mut bundle = Vec::new();
    for path in paths {
        let certificate = fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
        bundle.extend(certificate);
        if !bundle.ends_with(b"\n") {
            bundle.push(b'\n');
        }
    }
    Ok(bundle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_are_joined_in_the_order_of_their_names() {
        let folder = tempfile::tempdir().unwrap();
        assert!(join(folder.path()).is_err());
        for (name, text) in [("b.crt", "B"), ("a.crt", "A\n"), ("README", "R")] {
            fs::write(folder.path().join(name), text).unwrap();
        }
        assert_eq!(join(folder.path()).unwrap(), b"A\nB\n");
    }
}
