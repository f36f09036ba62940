//! `cargo xtask db`: the query descriptions for builds without a database.

use std::collections::BTreeMap;
use std::fs;
use std::net::TcpStream;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use clap::{Args, Subcommand};

use crate::cargo::{cargo, root};
use crate::command::run as run_command;
use crate::scratch::{ScratchFolder, free_ports};
use crate::{apt, postgres};

/// Crates with checked queries.
const CRATES: [&str; 1] = ["api-server"];
const START_TIMEOUT: Duration = Duration::from_mins(1);
/// Users to run the server as when this process is root: it refuses root.
const ACCOUNTS: [&str; 2] = ["postgres", "nobody"];

/// The database tasks.
#[derive(Debug, Subcommand)]
pub(crate) enum DbTask {
    /// Describe every checked query anew, in .sqlx
    Prepare(PrepareArgs),
}

/// Arguments of `db prepare`.
#[derive(Debug, Args)]
pub(crate) struct PrepareArgs {
    /// Change nothing; fail when .sqlx is out of date
    #[arg(long)]
    check: bool,
}

/// Runs a throw-away server with the schema, so that the compiler describes the queries.
pub(crate) fn run(DbTask::Prepare(prepare): &DbTask) -> Result<ExitCode> {
    let binaries = postgres::ensure_binaries()?;
    let scratch = ScratchFolder::new()?;
    let server = ThrowAwayServer::start(&binaries, scratch.path())?;
    server.migrate(&binaries)?;
    let described = scratch.path().join("sqlx");
    fs::create_dir(&described)?;
    for name in CRATES {
        touch(&root().join("crates").join(name).join("src/lib.rs"))?;
        run_command(
            cargo(&["check", "--package", name, "--all-targets"])
                .env("DATABASE_URL", &server.url)
                .env("SQLX_OFFLINE", "false")
                .env("SQLX_OFFLINE_DIR", &described),
        )?;
    }
    let (new, old) = (queries(&described)?, queries(&root().join(".sqlx"))?);
    if new == old {
        println!(".sqlx describes all {} queries.", new.len());
        return Ok(ExitCode::SUCCESS);
    }
    if prepare.check {
        bail!(".sqlx is out of date: run `cargo xtask db prepare` and commit it");
    }
    replace(&root().join(".sqlx"), &new, &old)?;
    println!(".sqlx has {} queries now; it had {}.", new.len(), old.len());
    Ok(ExitCode::SUCCESS)
}

/// Marks a crate as changed: queries are described while it is compiled.
fn touch(path: &Path) -> Result<()> {
    let file = fs::File::options().append(true).open(path)?;
    file.set_modified(std::time::SystemTime::now())
        .with_context(|| format!("touching {}", path.display()))
}

fn queries(folder: &Path) -> Result<BTreeMap<String, Vec<u8>>> {
    let mut found = BTreeMap::new();
    let Ok(entries) = fs::read_dir(folder) else {
        return Ok(found);
    };
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with("query-") {
            found.insert(name, fs::read(entry.path())?);
        }
    }
    Ok(found)
}

fn replace(
    folder: &Path,
    new: &BTreeMap<String, Vec<u8>>,
    old: &BTreeMap<String, Vec<u8>>,
) -> Result<()> {
    fs::create_dir_all(folder)?;
    for name in old.keys().filter(|name| !new.contains_key(*name)) {
        fs::remove_file(folder.join(name))?;
    }
    for (name, text) in new {
        fs::write(folder.join(name), text)?;
    }
    Ok(())
}

/// A server that trusts all users on loopback, for the duration of a build.
struct ThrowAwayServer {
    child: Child,
    url: String,
}

impl ThrowAwayServer {
    fn start(binaries: &Path, folder: &Path) -> Result<Self> {
        let data = folder.join("postgres");
        fs::create_dir(&data)?;
        let account = account()?;
        if let Some((uid, gid)) = account {
            chown(&data, Some(uid), Some(gid))?;
        }
        let program = |name: &str| {
            let mut command = Command::new(binaries.join(name));
            command
                .current_dir("/")
                .env("LC_ALL", "C")
                .stdin(Stdio::null());
            if let Some((uid, gid)) = account {
                command.uid(uid).gid(gid);
            }
            command
        };
        let mut initdb = program("initdb");
        initdb.arg("-D").arg(&data).args([
            "-U",
            "atoll",
            "--auth=trust",
            "--encoding=UTF8",
            "--locale=C",
        ]);
        run_command(
            initdb
                .args(["--no-sync", "--no-instructions"])
                .stdout(Stdio::null()),
        )?;
        let port = free_ports(1)?;
        let mut postgres = program("postgres");
        postgres
            .arg("-D")
            .arg(&data)
            .args(["-c", "fsync=off", "-c", "unix_socket_directories="]);
        postgres.args([
            "-c",
            "listen_addresses=127.0.0.1",
            "-c",
            &format!("port={port}"),
        ]);
        let child = postgres
            .stderr(Stdio::null())
            .spawn()
            .context("starting postgres")?;
        let server = Self {
            child,
            url: format!("postgres://atoll@127.0.0.1:{port}/postgres"),
        };
        let deadline = Instant::now() + START_TIMEOUT;
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            ensure!(
                Instant::now() < deadline,
                "postgres does not take connections on port {port}"
            );
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(server)
    }

    fn migrate(&self, binaries: &Path) -> Result<()> {
        let mut files: Vec<PathBuf> = fs::read_dir(root().join("migrations"))?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.extension().is_some_and(|extension| extension == "sql"))
            .collect();
        files.sort();
        for file in files {
            let mut psql = Command::new(binaries.join("psql"));
            psql.args([
                "--no-psqlrc",
                "--quiet",
                "--single-transaction",
                "--set=ON_ERROR_STOP=1",
                "--file",
            ]);
            run_command(psql.arg(&file).arg(&self.url))?;
        }
        Ok(())
    }
}

impl Drop for ThrowAwayServer {
    fn drop(&mut self) {
        // SIGKILL loses nothing: its data is deleted with it.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Uid and gid of the unprivileged user to run as, when this is root.
fn account() -> Result<Option<(u32, u32)>> {
    if !apt::is_root() {
        return Ok(None);
    }
    let passwd = fs::read_to_string("/etc/passwd").context("reading /etc/passwd")?;
    ACCOUNTS
        .iter()
        .find_map(|name| {
            let line = passwd
                .lines()
                .find(|line| line.split(':').next() == Some(*name))?;
            let mut fields = line.split(':').skip(2);
            Some(Some((
                fields.next()?.parse().ok()?,
                fields.next()?.parse().ok()?,
            )))
        })
        .with_context(|| {
            format!("postgres refuses root, and none of {ACCOUNTS:?} is in /etc/passwd")
        })
}
