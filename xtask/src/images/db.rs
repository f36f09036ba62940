//! The `db` image's content: the server of the distribution's package with its dependencies, and nothing else.

mod entry;
mod licences;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::libraries::libraries;
use crate::apt;
use crate::cargo::root;
use crate::command::output;
use crate::postgres;
use entry::{ImageEntry, make_folder};

/// The server, and the programs that make, check, save and load a database.
const PROGRAMS: [&str; 6] = [
    "initdb",
    "pg_dump",
    "pg_isready",
    "pg_restore",
    "postgres",
    "psql",
];
/// Commands of deploy/db/entrypoint; initdb calls `sh` and `locale`.
const TOOLS: [&str; 10] = [
    "chmod", "chown", "flock", "locale", "mkdir", "mv", "rm", "setpriv", "sh", "sync",
];
/// Modules that the server itself loads, except the conversions between encodings.
const MODULES: [&str; 4] = ["dict_snowball", "libpqwalreceiver", "pgoutput", "plpgsql"];
const EXTENSIONS: [&str; 3] = ["pg_stat_statements", "pgcrypto", "plpgsql"];
/// Folders of the server's shared files that are copied whole; those beside them are documentation.
const SHARED: [&str; 2] = ["timezonesets", "tsearch_data"];
const LOCALE: &str = "/usr/lib/locale/C.utf8";
const ZONE: &str = "/usr/share/zoneinfo/Etc/UTC";
const PASSWD: &str = "root:x:0:0:root:/:/bin/sh\npostgres:x:999:999:PostgreSQL:/tmp:/bin/sh\n";
const GROUP: &str = "root:x:0:\npostgres:x:999:\n";
const NSSWITCH: &str = "hosts: files dns\n";

/// Fills `folder` with all files that deploy/db/Containerfile copies.
pub(crate) fn context(folder: &Path) -> Result<()> {
    make_folder(folder, 0o755)?;
    make_folder(&folder.join("data"), 0o755)?;
    let image = folder.join("root");
    for (path, entry) in plan()? {
        let target = image.join(&path);
        entry
            .write(&target)
            .with_context(|| format!("writing {} of the db image", path.display()))?;
    }
    Ok(())
}

/// A text that differs for different images: by the package, its libraries or files of deploy/db.
pub(crate) fn inputs() -> Result<String> {
    let mut text = fs::read_to_string(own("Containerfile"))?;
    for (path, entry) in plan()? {
        writeln!(text, "{} {}", path.display(), entry.describe()?)?;
    }
    Ok(text)
}

/// The distribution's packages with files in the image, and their versions.
pub(super) fn packages() -> Result<Vec<(String, String)>> {
    let names = licences::owners(plan()?.values().filter_map(ImageEntry::source));
    let mut command = Command::new("dpkg-query");
    command.args(["--show", "--showformat", "${Package}\\t${Version}\\n"]);
    let text = answer(command.args(names))?;
    let mut packages: Vec<_> = text
        .lines()
        .filter_map(|line| line.split_once('\t'))
        .map(|(name, version)| (name.to_owned(), version.to_owned()))
        .collect();
    packages.sort();
    packages.dedup();
    Ok(packages)
}

type DbImagePlan = BTreeMap<PathBuf, ImageEntry>;

/// Everything in the image, by its path there.
fn plan() -> Result<DbImagePlan> {
    let binaries = postgres::ensure_binaries()?;
    let shared = configured(&binaries, "--sharedir")?;
    let modules = configured(&binaries, "--pkglibdir")?;
    let mut plan = own_files();
    add_shared(&mut plan, &shared)?;
    add_tree(&mut plan, Path::new(LOCALE))?;
    let mut linked = add_programs(&mut plan, &binaries)?;
    linked.extend(add_modules(&mut plan, &modules)?);
    for library in libraries(&linked)? {
        plan.insert(inside(&library)?, ImageEntry::program(library));
    }
    for file in licences::of(plan.values().filter_map(ImageEntry::source)) {
        plan.insert(inside(&file)?, ImageEntry::plain(file));
    }
    Ok(plan)
}

/// Files from outside the distribution, and those that the C library needs.
fn own_files() -> DbImagePlan {
    let mut plan = DbImagePlan::new();
    for (path, text) in [
        ("etc/group", GROUP),
        ("etc/nsswitch.conf", NSSWITCH),
        ("etc/passwd", PASSWD),
    ] {
        plan.insert(path.into(), ImageEntry::Text(text));
    }
    for (path, mode) in [("etc/postgresql/conf.d", 0o755), ("tmp", 0o1777)] {
        plan.insert(path.into(), ImageEntry::Folder { mode });
    }
    for name in ["pg_hba.conf", "postgresql.conf"] {
        let path = Path::new("etc/postgresql").join(name);
        plan.insert(path, ImageEntry::plain(own(name)));
    }
    plan.insert("entrypoint".into(), ImageEntry::program(own("entrypoint")));
    for zone in ["UTC", "Etc/UTC"] {
        plan.insert(
            Path::new("usr/share/zoneinfo").join(zone),
            ImageEntry::plain(ZONE),
        );
    }
    plan
}

/// Adds the programs at their installed paths, from which the server derives its other paths, with links in PATH.
fn add_programs(plan: &mut DbImagePlan, binaries: &Path) -> Result<Vec<PathBuf>> {
    let mut added = Vec::new();
    for name in PROGRAMS {
        let source = binaries.join(name);
        plan.insert(
            Path::new("usr/bin").join(name),
            ImageEntry::Link(source.clone()),
        );
        plan.insert(inside(&source)?, ImageEntry::program(&source));
        added.push(source);
    }
    for name in TOOLS {
        let source = tool(name)?;
        plan.insert(Path::new("bin").join(name), ImageEntry::program(&source));
        added.push(source);
    }
    Ok(added)
}

fn add_modules(plan: &mut DbImagePlan, folder: &Path) -> Result<Vec<PathBuf>> {
    let mut added = Vec::new();
    for file in files(folder)? {
        let Some(name) = file.file_name().and_then(|name| name.to_str()) else {
            continue;
        };
        if name.strip_suffix(".so").is_some_and(is_wanted_module) {
            plan.insert(inside(&file)?, ImageEntry::plain(&file));
            added.push(file);
        }
    }
    for name in MODULES.iter().chain(&EXTENSIONS) {
        let file = folder.join(format!("{name}.so"));
        ensure!(
            added.contains(&file),
            "{} is missing: is the server's package whole?",
            file.display()
        );
    }
    Ok(added)
}

fn is_wanted_module(name: &str) -> bool {
    // The database's encoding is always UTF-8.
    name.starts_with("utf8_and_") || MODULES.contains(&name) || EXTENSIONS.contains(&name)
}

fn add_shared(plan: &mut DbImagePlan, folder: &Path) -> Result<()> {
    for file in files(folder)? {
        plan.insert(inside(&file)?, ImageEntry::plain(file));
    }
    for name in SHARED {
        add_tree(plan, &folder.join(name))?;
    }
    for file in files(&folder.join("extension"))? {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        if EXTENSIONS.iter().any(|of| belongs_to(&name, of)) {
            plan.insert(inside(&file)?, ImageEntry::plain(&file));
        }
    }
    Ok(())
}

/// `x.control`, `x--1.0.sql` and `x--1.0--1.1.sql` make up the extension x.
fn belongs_to(file: &str, extension: &str) -> bool {
    file.strip_prefix(extension)
        .is_some_and(|rest| rest == ".control" || rest.starts_with("--"))
}

fn add_tree(plan: &mut DbImagePlan, folder: &Path) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("listing {}", folder.display()))? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            add_tree(plan, &entry.path())?;
        } else if kind.is_file() {
            plan.insert(inside(&entry.path())?, ImageEntry::plain(entry.path()));
        }
    }
    Ok(())
}

/// The plain files of a folder; links point to files of this machine alone, such as dictionaries.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("listing {}", folder.display()))? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            found.push(entry.path());
        }
    }
    Ok(found)
}

/// A path of the server's build configuration.
fn configured(binaries: &Path, what: &str) -> Result<PathBuf> {
    let program = binaries.join("pg_config");
    let text = answer(Command::new(program).arg(what))?;
    Ok(PathBuf::from(text.trim()))
}

fn answer(command: &mut Command) -> Result<String> {
    let answer = output(command)?;
    String::from_utf8(answer).context("the output is not UTF-8")
}

/// Path of a program of this machine.
fn tool(name: &str) -> Result<PathBuf> {
    let found = apt::find_program(name)
        .with_context(|| format!("{name} is not in PATH, and the db image needs it"))?;
    fs::canonicalize(&found).with_context(|| format!("looking at {}", found.display()))
}

/// A file of deploy/db.
fn own(name: &str) -> PathBuf {
    root().join("deploy/db").join(name)
}

/// The same path below the image's root.
fn inside(path: &Path) -> Result<PathBuf> {
    let below = path.strip_prefix("/");
    below
        .map(Path::to_owned)
        .with_context(|| format!("{} does not start at the root", path.display()))
}
