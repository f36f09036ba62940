//! Lookup of the Postgres server programs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use service::{Error, ResultExt as _};

use crate::settings::Settings;

/// Folders with one subfolder per major version.
const VERSIONED: [&str; 2] = ["/usr/lib/postgresql", "/usr/local/lib/postgresql"];
/// Required programs.
const PROGRAMS: [&str; 2] = ["initdb", "postgres"];

/// Programs of one Postgres installation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Binaries {
    folder: PathBuf,
    /// Major version.
    pub major: u32,
}

impl Binaries {
    /// Searches PG_BIN, or else PATH and the folders of distributions, for the newest version, or for the major version
    /// `wanted` of existing data.
    ///
    /// Errors: none found, or none of this version.
    pub(crate) fn find(wanted: Option<u32>) -> Result<Self, Error> {
        let doing = "finding Postgres";
        let settings = Settings::load(None).doing(doing)?;
        let candidates = match &settings.pg_bin {
            Some(folder) => vec![folder.clone()],
            None => candidates(&settings.path, &VERSIONED.map(Path::new)),
        };
        let mut found: Vec<Self> = candidates
            .iter()
            .filter_map(|folder| Self::at(folder))
            .collect();
        found.sort_by_key(|binaries| binaries.major);
        let chosen = match wanted {
            Some(major) => found.iter().rfind(|binaries| binaries.major == major),
            None => found.last(),
        };
        chosen.cloned().ok_or_else(|| {
            let searched = candidates
                .iter()
                .map(|folder| folder.display().to_string())
                .collect::<Vec<_>>()
                .join(", ");
            let reason = match wanted {
                Some(major) => format!(
                    "the data was created by Postgres {major}, but its initdb and postgres were not found in: {searched}; install that version, or set PG_BIN to its folder"
                ),
                None => format!(
                    "initdb and postgres were not found in: {searched}; install a Postgres server (Debian: apt-get install postgresql), or set PG_BIN to its folder"
                ),
            };
            Error::new(doing, reason)
        })
    }

    /// Path of a program.
    pub(crate) fn program(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn at(folder: &Path) -> Option<Self> {
        let is_whole = PROGRAMS.iter().all(|name| folder.join(name).is_file());
        if !is_whole {
            return None;
        }
        // Links in /usr/local/bin point to the real folder, where the programs find each other.
        let folder = fs::canonicalize(folder.join("postgres"))
            .ok()?
            .parent()?
            .to_owned();
        let output = Command::new(folder.join("postgres"))
            .arg("--version")
            .output()
            .ok()?;
        let major = major_of(&String::from_utf8_lossy(&output.stdout))?;
        Some(Self { folder, major })
    }
}

fn candidates(path: &str, versioned: &[&Path]) -> Vec<PathBuf> {
    let in_path = std::env::split_paths(path).filter(|folder| folder.is_absolute());
    let by_version = versioned
        .iter()
        .filter_map(|folder| fs::read_dir(folder).ok())
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path().join("bin")));
    in_path.chain(by_version).collect()
}

/// `postgres (PostgreSQL) 15.18 (Debian …)` is 15.
fn major_of(version: &str) -> Option<u32> {
    let text = version.split(' ').nth(2)?;
    let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_as_distributions_print_them() {
        for (text, major) in [
            (
                "postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n",
                Some(15),
            ),
            ("postgres (PostgreSQL) 18rc1\n", Some(18)),
            ("postgres\n", None),
        ] {
            assert_eq!(major_of(text), major, "{text}");
        }
    }

    #[test]
    fn versioned_folders_are_searched() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("16/bin")).unwrap();
        let found = candidates("/a:relative:/b", &[dir.path()]);
        let expected = [
            PathBuf::from("/a"),
            PathBuf::from("/b"),
            dir.path().join("16/bin"),
        ];
        assert_eq!(found, expected);
    }
}
