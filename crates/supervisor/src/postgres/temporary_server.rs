//! A temporary server, to dump or load the database of a stopped installation.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use service::{Error, ResultExt as _};

use super::Cluster;
use crate::environment::{DB_NAME, DB_USER};

/// Log line of the server when it accepts connections.
const READY: &str = "database system is ready to accept connections";
/// Last lines of the log that an error shows: the very last one is only that the server is shut down.
const SHOWN: usize = 8;

/// A running server; stopped when this is dropped.
#[derive(Debug)]
pub struct TemporaryServer {
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
    pub fn serve(&self) -> Result<TemporaryServer, Error> {
        let doing = "starting the database";
        let mut child = self
            .server()
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .doing(doing)?;
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
    pub fn dump(&self, password: &Path, file: &File) -> Result<(), Error> {
        let mut command = self.client("pg_dump", password)?;
        command
            .args(["--format=custom", "--no-owner", "--no-privileges", DB_NAME])
            .stdin(Stdio::null())
            .stdout(file.try_clone().doing("saving the database")?);
        finish(command, "saving the database")
    }

    /// Loads a dump of [`Cluster::dump`] into the empty database, in one transaction.
    ///
    /// Errors: no pg_restore, those of the database.
    pub fn load(&self, password: &Path, file: File) -> Result<(), Error> {
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
        let password = fs::read_to_string(password).doing(doing)?;
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
        .doing(doing)?;
    if output.status.success() {
        return Ok(());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    Err(Error::new(
        doing,
        format!("{}: {}", output.status, stderr.trim()),
    ))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::data_directory::DataDirectory;
    use crate::ports::temporary_port;

    const COMMENT: &str = "COMMENT ON TABLE public.t IS '";

    /// The dump with another statement in the place of the table's comment.
    fn with_statement(dump: &[u8], statement: &str) -> Vec<u8> {
        let find = |text: &[u8], from: usize| {
            let mut parts = dump[from..].windows(text.len());
            from + parts.position(|part| part == text).unwrap()
        };
        let start = find(COMMENT.as_bytes(), 0);
        let end = find(b"';", start) + 2;
        let mut changed = dump.to_vec();
        changed[start..end].fill(b' ');
        changed[start..start + statement.len()].copy_from_slice(statement.as_bytes());
        changed
    }

    #[test]
    fn a_hostile_dump_gets_no_rights_of_the_server() {
        let dir = tempfile::tempdir().unwrap();
        // The server may run as another user.
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let directory = DataDirectory::new(Some(dir.path().join("data"))).unwrap();
        directory.create().unwrap();
        let password = dir.path().join("password");
        fs::write(&password, "secret").unwrap();
        let port = temporary_port().unwrap();
        let (cluster, _) = Cluster::prepare(&directory, port, &password).unwrap();
        let _serving = cluster.serve().unwrap();
        let run = |sql: &str| {
            let mut psql = cluster.client("psql", &password).unwrap();
            psql.args(["--dbname", DB_NAME, "--command", sql])
                .stdout(Stdio::null());
            finish(psql, "running psql")
        };
        let padding = "x".repeat(400);
        run("create table public.t (a int)").unwrap();
        run(&format!("comment on table public.t is '{padding}'")).unwrap();
        let path = dir.path().join("dump");
        cluster
            .dump(&password, &File::create(&path).unwrap())
            .unwrap();
        run("drop table public.t").unwrap();
        let dump = fs::read(&path).unwrap();
        let load = |statement: &str| {
            fs::write(&path, with_statement(&dump, statement)).unwrap();
            cluster.load(&password, File::open(&path).unwrap())
        };
        let marker = dir.path().join("marker");
        let program = format!("touch {}", marker.display());
        for statement in [
            format!("COPY (SELECT 1) TO PROGRAM '{program}';"),
            format!("COPY (SELECT 1) TO '{}';", marker.display()),
            format!("RESET ROLE; SET ROLE postgres; COPY (SELECT 1) TO PROGRAM '{program}';"),
            "ALTER ROLE CURRENT_USER SUPERUSER;".to_owned(),
            format!("ALTER SYSTEM SET archive_command = '{program}';"),
            "CREATE FUNCTION public.f() RETURNS int LANGUAGE c AS '/tmp/x.so', 'f';".to_owned(),
            "CREATE EXTENSION file_fdw SCHEMA public;".to_owned(),
            "SELECT pg_read_file('/etc/passwd');".to_owned(),
            "SELECT lo_import('/etc/passwd');".to_owned(),
        ] {
            let error = load(&statement).unwrap_err().to_string();
            let is_refused = [
                "permission denied",
                "must be superuser",
                "not available",
                "cannot run inside a transaction",
            ]
            .iter()
            .any(|text| error.contains(text));
            assert!(is_refused, "{statement}: {error}");
            assert!(!marker.exists(), "{statement}");
            // One transaction: nothing of the dump is left.
            run("select from public.t").unwrap_err();
        }
        load("SELECT 1;").unwrap();
        run("select from public.t").unwrap();
    }
}
