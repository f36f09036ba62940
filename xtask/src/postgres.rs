//! Postgres's server programs: found, or installed from the distribution.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::apt::Apt;

const VERSIONED: &str = "/usr/lib/postgresql";
const PROGRAMS: [&str; 3] = ["initdb", "postgres", "psql"];
/// Read by Debian's package when it is configured; without it, the package makes and starts a database.
const NO_CLUSTER: (&str, &str) = (
    "/etc/postgresql-common/createcluster.d/atoll.conf",
    "create_main_cluster = false\n",
);

/// The folder with the server's programs; installs them first when there is none.
pub(crate) fn ensure_binaries() -> Result<PathBuf> {
    if let Some(folder) = find() {
        return Ok(folder);
    }
    println!(
        "Postgres's server programs (initdb, postgres) are not here. Atoll runs a private Postgres \
         in its data directory, and the tests use throw-away ones."
    );
    install()?;
    find().context("the package was installed, but initdb and postgres are still not found; name their folder in PG_BIN")
}

fn find() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let given = std::env::var_os("PG_BIN").map(PathBuf::from);
    let mut versioned: Vec<_> = fs::read_dir(VERSIONED)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path().join("bin")))
        .collect();
    versioned.sort_by_key(|folder| version_of(folder));
    given
        .into_iter()
        .chain(std::env::split_paths(&path))
        .chain(versioned.into_iter().rev())
        .find_map(|folder| whole(&folder))
}

/// `/usr/lib/postgresql/15/bin` is 15.
fn version_of(folder: &Path) -> u32 {
    let name = folder.parent().and_then(Path::file_name);
    name.and_then(|name| name.to_str()?.parse().ok())
        .unwrap_or(0)
}

/// The canonical folder, when it has all programs.
fn whole(folder: &Path) -> Option<PathBuf> {
    let real = fs::canonicalize(folder.join("postgres"))
        .ok()?
        .parent()?
        .to_owned();
    PROGRAMS
        .iter()
        .all(|name| real.join(name).is_file())
        .then_some(real)
}

fn install() -> Result<()> {
    let apt = Apt::prepare(
        &["postgresql"],
        "install a Postgres server with your distribution's tools (the package is called postgresql-server or \
         postgresql), or name the folder of its programs in PG_BIN",
    )?;
    println!("Installing the Debian package `postgresql` (no database of its own is started).");
    apt.install("postgresql-common")?;
    let is_prepared = apt
        .write(NO_CLUSTER.0, NO_CLUSTER.1)
        .inspect_err(|error| eprintln!("The package may start a database of its own: {error:#}"))
        .is_ok();
    let installed = apt.install("postgresql");
    if is_prepared {
        apt.remove(NO_CLUSTER.0)?;
    }
    installed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        let version = |text: &str| version_of(Path::new(text));
        assert!(version("/usr/lib/postgresql/9/bin") < version("/usr/lib/postgresql/15/bin"));
    }

    #[test]
    fn an_incomplete_server_is_ignored() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(whole(dir.path()), None);
        for name in ["postgres", "initdb"] {
            fs::write(dir.path().join(name), "").unwrap();
        }
        assert_eq!(whole(dir.path()), None);
        fs::write(dir.path().join("psql"), "").unwrap();
        assert_eq!(
            whole(dir.path()),
            Some(fs::canonicalize(dir.path()).unwrap())
        );
    }
}
