//! The database's files, and the command that serves them.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use service::Error;

use super::binaries::Binaries;
use super::{roles, stale};
use crate::file::write_whole;
use crate::up::account::Account;
use crate::up::data_directory::DataDirectory;
use crate::up::environment::DB_NAME;

/// What differs from Postgres's own defaults. Small caches: installers have small databases.
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

/// Marks data whose application is no superuser. In the data folder, so that it is copied with it.
const ROLES_MARK: &str = "atoll.roles";

/// A Postgres server's data, and how it is run.
#[derive(Debug, Clone)]
pub(crate) struct Cluster {
    pub(super) binaries: Binaries,
    account: Option<Account>,
    data: PathBuf,
    pub(super) port: u16,
}

impl Cluster {
    /// Ends what an earlier run left, and makes the files at the first start. Whether they are new.
    ///
    /// Errors: no Postgres, a data directory that its user does not reach, initdb's own.
    pub(crate) fn prepare(
        directory: &DataDirectory,
        port: u16,
        password: &Path,
    ) -> Result<(Self, bool), Error> {
        let cluster = Self::at(directory, port)?;
        if let Some(account) = &cluster.account {
            account.check_reach(&cluster.data)?;
        }
        let is_new = made_by(&cluster.data).is_none();
        if is_new {
            cluster.make(directory, password)?;
        } else if !cluster.data.join(ROLES_MARK).exists() {
            cluster.demote_application(password)?;
        }
        Ok((cluster, is_new))
    }

    /// The server that runs on the data of `directory` and takes connections on `port`.
    ///
    /// Errors: no data, no Postgres of its version.
    pub(crate) fn at(directory: &DataDirectory, port: u16) -> Result<Self, Error> {
        let data = directory.postgres().join("data");
        Ok(Self {
            binaries: Binaries::find(made_by(&data))?,
            account: Account::needed()?,
            data,
            port,
        })
    }

    /// Ends the server that a killed run left on the data of `directory`; whether there was one.
    ///
    /// Errors: it does not end.
    pub(crate) fn end_stale(directory: &DataDirectory) -> Result<bool, Error> {
        stale::end(&directory.postgres().join("data"))
    }

    /// The command that serves until it is ended.
    pub(crate) fn server(&self) -> Command {
        let mut command = self.command("postgres");
        command.arg("-D").arg(&self.data);
        for option in OPTIONS {
            command.args(["-c", option]);
        }
        command.args(["-c", &format!("port={}", self.port)]);
        command
    }

    /// Major version of the server.
    pub(crate) fn major(&self) -> u32 {
        self.binaries.major
    }

    /// Who runs it, when not this user.
    pub(crate) fn user(&self) -> Option<&str> {
        self.account.as_ref().map(|account| account.name.as_str())
    }

    /// The files appear under their name once they are whole.
    fn make(&self, directory: &DataDirectory, password: &Path) -> Result<(), Error> {
        let doing = "making the database";
        let part = directory.postgres().join("data.part");
        if part.exists() {
            fs::remove_dir_all(&part).map_err(|e| Error::new(doing, e))?;
        }
        fs::create_dir(&part).map_err(|e| Error::new(doing, e))?;
        fs::set_permissions(&part, fs::Permissions::from_mode(0o700))
            .map_err(|e| Error::new(doing, e))?;
        if let Some(account) = &self.account {
            account.own(&part)?;
        }
        let mut initdb = self.command("initdb");
        initdb
            .arg("-D")
            .arg(&part)
            .args(["-U", roles::SUPERUSER, "--encoding=UTF8", "--locale=C"])
            // The superuser has no password, so that nobody is it over the network; there is no socket.
            .args(["--auth-local=peer", "--auth-host=scram-sha-256"])
            .arg("--no-instructions");
        run(&mut initdb, "")?;
        let password = read_password(password)?;
        self.session(&part, "postgres", &roles::first_statements(&password)?)?;
        write_whole(&part.join(ROLES_MARK), b"", 0o600)?;
        fs::rename(&part, &self.data).map_err(|e| Error::new(doing, e))
    }

    /// Takes superuser rights from the application in data of a version that gave them.
    fn demote_application(&self, password: &Path) -> Result<(), Error> {
        let password = read_password(password)?;
        let split = roles::split_superuser(&password)?;
        self.session(&self.data, "postgres", &split)?;
        self.session(&self.data, DB_NAME, &roles::hand_over())?;
        // Last: after a crash the statements run once more, which changes nothing.
        write_whole(&self.data.join(ROLES_MARK), b"", 0o600)
    }

    /// Runs statements in a single-user session: nothing listens meanwhile, and nothing of it is logged.
    fn session(&self, folder: &Path, database: &str, statements: &str) -> Result<(), Error> {
        let mut single = self.command("postgres");
        single.args(["--single", "-j", "-c", "log_min_error_statement=panic"]);
        single.args(["-c", "password_encryption=scram-sha-256", "-D"]);
        single.arg(folder).arg(database);
        run(&mut single, statements)
    }

    pub(super) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.binaries.program(program));
        // A Ctrl-C at the terminal is for the supervisor, which ends everything in order.
        command.current_dir("/").env("LC_ALL", "C").process_group(0);
        if let Some(account) = &self.account {
            command.uid(account.uid).gid(account.gid);
        }
        command
    }
}

/// Major version of the server that made `data`.
fn made_by(data: &Path) -> Option<u32> {
    let text = fs::read_to_string(data.join("PG_VERSION")).ok()?;
    text.trim().parse().ok()
}

fn read_password(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path).map_err(|e| Error::new(format!("reading {}", path.display()), e))
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
        .map_err(|e| Error::new(doing.clone(), e))?;
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    // A single session goes on after a failed statement and ends well.
    if output.status.success() && !text.contains("ERROR:") {
        return Ok(());
    }
    Err(Error::new(
        doing,
        format!("{}: {}", output.status, text.trim()),
    ))
}
