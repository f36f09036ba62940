//! A temporary server, to dump or load the database of a stopped installation.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use service::Error;

use super::Cluster;
use crate::up::environment::{DB_NAME, DB_USER};

/// Log line of the server when it accepts connections.
const READY: &str = "database system is ready to accept connections";
/// Last lines of the log that an error shows: the very last one is only that the server is shut down.
const SHOWN: usize = 8;

/// A running server; stopped when this is dropped.
#[derive(Debug)]
pub(crate) struct TemporaryServer {
    child: Child,
}

impl Drop for TemporaryServer {
    fn drop(&mut self) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        if let Some(pid) = pid {
            kill_process(pid, Signal::INT).ok();
        }
        self.child.wait().ok();
    }
}

impl Cluster {
    /// Starts the server and waits until it accepts connections.
    ///
    /// Errors: it exits before, with the end of its log.
    pub(crate) fn serve(&self) -> Result<TemporaryServer, Error> {
        let doing = "starting the database";
        let mut child = self
            .server()
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|e| Error::new(doing, e))?;
        let stderr = child.stderr.take();
        let serving = TemporaryServer { child };
        let mut last = VecDeque::new();
        let mut lines =
            BufReader::new(stderr.ok_or_else(|| Error::new(doing, "no output"))?).lines();
        while let Some(Ok(line)) = lines.next() {
            if line.contains(READY) {
                // Drained further: the server would block on a full pipe.
                std::thread::spawn(move || lines.for_each(drop));
                return Ok(serving);
            }
            if last.len() == SHOWN {
                last.pop_front();
            }
            last.push_back(line);
        }
        Err(Error::new(doing, last.make_contiguous().join("\n")))
    }

    /// Writes a consistent dump of the database into `file`, in the format of `pg_restore`.
    ///
    /// Errors: no pg_dump, those of the database.
    pub(crate) fn dump(&self, password: &Path, file: &File) -> Result<(), Error> {
        let mut command = self.client("pg_dump", password)?;
        command
            .args(["--format=custom", "--no-owner", "--no-privileges", DB_NAME])
            .stdin(Stdio::null())
            .stdout(
                file.try_clone()
                    .map_err(|e| Error::new("saving the database", e))?,
            );
        finish(command, "saving the database")
    }

    /// Loads a dump of [`Cluster::dump`] into the empty database, in one transaction.
    ///
    /// Errors: no pg_restore, those of the database.
    pub(crate) fn load(&self, password: &Path, file: File) -> Result<(), Error> {
        let mut command = self.client("pg_restore", password)?;
        command
            .args(["--no-owner", "--no-privileges", "--exit-on-error"])
            .args(["--single-transaction", "--dbname", DB_NAME])
            .stdin(file)
            .stdout(Stdio::null());
        finish(command, "loading the database")
    }

    fn client(&self, program: &str, password: &Path) -> Result<std::process::Command, Error> {
        let doing = || format!("finding {program}");
        let path = self.binaries.program(program);
        if !path.is_file() {
            let major = self.binaries.major;
            return Err(Error::new(
                doing(),
                format!(
                    "{} not found: install the client programs of Postgres {major} (Debian: apt-get install postgresql-client-{major})",
                    path.display()
                ),
            ));
        }
        let password = fs::read_to_string(password).map_err(|e| Error::new(doing(), e))?;
        let mut command = self.command(program);
        command
            .args(["--host=127.0.0.1", "--username", DB_USER, "--no-password"])
            .arg(format!("--port={}", self.port))
            // The environment of a process is visible only to its user.
            .env("PGPASSWORD", password.trim_end());
        Ok(command)
    }
}

fn finish(mut command: std::process::Command, doing: &str) -> Result<(), Error> {
    let output = command
        .stderr(Stdio::piped())
        .spawn()
        .and_then(std::process::Child::wait_with_output)
        .map_err(|e| Error::new(doing, e))?;
    if output.status.success() {
        return Ok(());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    Err(Error::new(
        doing,
        format!("{}: {}", output.status, stderr.trim()),
    ))
}
