//! Data directory of Postgres, and the command of its server.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use service::file::write_atomic;
use service::{Error, ResultExt as _};

use super::binaries::Binaries;
use super::{roles, stale};
use crate::account::Account;
use crate::data_directory::DataDirectory;
use crate::environment::DB_NAME;

/// Settings that differ from Postgres's defaults. Small caches: installers have small databases.
const OPTIONS: [&str; 8] = [
    "listen_addresses=127.0.0.1",
    // The socket's folder would have to be writable by two users; TCP on loopback does not.
    "unix_socket_directories=",
    "max_connections=60",
    "shared_buffers=32MB",
    "password_encryption=scram-sha-256",
    "lc_messages=C",
    "log_line_prefix=%m [%p] ",
    "cluster_name=atoll",
];

/// Marks data whose application role is no superuser. In the data folder, so that it is copied with the data.
const ROLES_MARK: &str = "atoll.roles";

/// Data, programs and user of a Postgres server.
#[derive(Debug, Clone)]
pub struct Cluster {
    pub(super) binaries: Binaries,
    account: Option<Account>,
    data: PathBuf,
    pub(super) port: u16,
}

impl Cluster {
    /// Initialises the data at the first start; true if it is new.
    ///
    /// Errors: no Postgres, an inaccessible data directory, those of initdb.
    pub fn prepare(
        directory: &DataDirectory,
        port: u16,
        password: &Path,
    ) -> Result<(Self, bool), Error> {
        let cluster = Self::at(directory, port)?;
        if let Some(account) = &cluster.account {
            account.check_reach(&cluster.data)?;
        }
        let is_new = data_version(&cluster.data).is_none();
        if is_new {
            cluster.make(directory, password)?;
        } else if !cluster.data.join(ROLES_MARK).exists() {
            cluster.demote_application(password)?;
        }
        Ok((cluster, is_new))
    }

    /// The server of the data in `directory`, on `port`.
    ///
    /// Errors: no data, no Postgres of its version.
    pub fn at(directory: &DataDirectory, port: u16) -> Result<Self, Error> {
        let data = directory.postgres().join("data");
        Ok(Self {
            binaries: Binaries::find(data_version(&data))?,
            account: Account::needed()?,
            data,
            port,
        })
    }

    /// Stops the server of a killed run on the data of `directory`; true if there was one.
    ///
    /// Errors: it does not stop.
    pub fn stop_stale(directory: &DataDirectory) -> Result<bool, Error> {
        stale::stop(&directory.postgres().join("data"))
    }

    /// Command of the server.
    pub fn server(&self) -> Command {
        let mut command = self.command("postgres");
        command.arg("-D").arg(&self.data);
        for option in OPTIONS {
            command.args(["-c", option]);
        }
        command.args(["-c", &format!("port={}", self.port)]);
        command
    }

    /// Major version of the server.
    pub fn major(&self) -> u32 {
        self.binaries.major
    }

    /// User that runs it, if not this one.
    pub fn user(&self) -> Option<&str> {
        self.account.as_ref().map(|account| account.name.as_str())
    }

    /// Initialises the data atomically: temporary name, rename.
    fn make(&self, directory: &DataDirectory, password: &Path) -> Result<(), Error> {
        let doing = "initialising the database";
        let part = directory.postgres().join("data.part");
        if part.exists() {
            fs::remove_dir_all(&part).doing(doing)?;
        }
        fs::create_dir(&part).doing(doing)?;
        fs::set_permissions(&part, fs::Permissions::from_mode(0o700)).doing(doing)?;
        if let Some(account) = &self.account {
            account.own(&part)?;
        }
        let mut initdb = self.command("initdb");
        initdb
            .arg("-D")
            .arg(&part)
            .args(["-U", roles::SUPERUSER, "--encoding=UTF8", "--locale=C"])
            // The superuser has no password and cannot log in over TCP; there is no socket.
            .args(["--auth-local=peer", "--auth-host=scram-sha-256"])
            .arg("--no-instructions");
        run(&mut initdb, "")?;
        let password = read_password(password)?;
        self.session(&part, "postgres", &roles::first_statements(&password)?)?;
        write_atomic(&part.join(ROLES_MARK), b"", 0o600)?;
        // Last: a crash before leaves only the temporary name, which the next start removes.
        fs::rename(&part, &self.data).doing(doing)
    }

    /// Migrates data of older versions, whose application role was the superuser.
    fn demote_application(&self, password: &Path) -> Result<(), Error> {
        let password = read_password(password)?;
        let split = roles::split_superuser(&password)?;
        self.session(&self.data, "postgres", &split)?;
        self.session(&self.data, DB_NAME, &roles::reassign_objects())?;
        // Last: after a crash the statements run again, and they are idempotent.
        write_atomic(&self.data.join(ROLES_MARK), b"", 0o600)
    }

    /// Runs statements in a single-user session, without listener and without logging statements.
    fn session(&self, folder: &Path, database: &str, statements: &str) -> Result<(), Error> {
        let mut single = self.command("postgres");
        single.args(["--single", "-j", "-c", "log_min_error_statement=panic"]);
        single.args(["-c", "password_encryption=scram-sha-256", "-D"]);
        single.arg(folder).arg(database);
        run(&mut single, statements)
    }

    pub(super) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.binaries.program(program));
        // Ctrl-C at the terminal must reach only the supervisor, which shuts down gracefully.
        command.current_dir("/").env("LC_ALL", "C").process_group(0);
        if let Some(account) = &self.account {
            command.uid(account.uid).gid(account.gid);
        }
        command
    }
}

/// Major version of the server that created `data`.
fn data_version(data: &Path) -> Option<u32> {
    let text = fs::read_to_string(data.join("PG_VERSION")).ok()?;
    text.trim().parse().ok()
}

fn read_password(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path).doing(|| format!("reading {}", path.display()))
}

fn run(command: &mut Command, input: &str) -> Result<(), Error> {
    let doing = format!("running {}", command.get_program().display());
    let output = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .and_then(|mut child| {
            if let Some(mut stdin) = child.stdin.take() {
                stdin.write_all(input.as_bytes())?;
            }
            child.wait_with_output()
        })
        .doing(|| doing.clone())?;
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    // A single-user session continues after a failed statement and exits with success.
    if output.status.success() && !text.contains("ERROR:") {
        return Ok(());
    }
    Err(Error::new(
        doing,
        format!("{}: {}", output.status, text.trim()),
    ))
}
