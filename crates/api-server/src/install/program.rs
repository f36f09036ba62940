//! Running the installer.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::{Child, Command};
use tokio::time::Instant;

use super::context::Failure;
use super::launch::Launch;
use super::masks::Masks;

/// Lines of output kept for the failure's text and the log.
pub(super) const KEPT_LINES: usize = 200;
/// What is kept of a line. Units: bytes.
const KEPT_LINE_BYTES: usize = 4096;
/// What helpers of the installer are looked for in.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// How often a program that is still open for writing somewhere is tried again.
const BUSY_TRIES: u32 = 100;
const BUSY_PAUSE: Duration = Duration::from_millis(20);

/// The installer of one release and how it is to be run.
pub(super) struct Installer {
    /// The program.
    pub(super) launch: Launch,
    /// Private folder of inputs and outputs.
    pub(super) folder: PathBuf,
    /// Variables beside the search path, the home and the temporary folder. Nothing of the service's own
    /// environment is passed on: it holds the database's password.
    pub(super) environment: Vec<(&'static str, String)>,
    /// What must not show in logs and failures.
    pub(super) masks: Masks,
    /// When the program is stopped.
    pub(super) deadline: Instant,
}

impl Installer {
    /// Runs `create <target>`.
    pub(super) async fn create(&self, target: &str) -> Result<(), Failure> {
        let doing = format!("create {target}");
        let mut child = self
            .spawn(target)
            .await
            .map_err(|error| Failure::new(format!("the installer cannot be started: {error}")))?;
        let stdout = child.stdout.take();
        let stderr = child.stderr.take();
        let run = async {
            let lines = tokio::join!(tail(stdout, KEPT_LINES), tail(stderr, KEPT_LINES));
            (lines, child.wait().await)
        };
        let Ok(((stdout, stderr), status)) = tokio::time::timeout_at(self.deadline, run).await
        else {
            return Err(Failure::new(format!(
                "the installer did not finish {doing} within the time limit and was stopped"
            )));
        };
        let status = status
            .map_err(|error| Failure::new(format!("waiting for the installer failed: {error}")))?;
        let lines: Vec<String> = stdout
            .iter()
            .chain(&stderr)
            .map(|line| self.masks.apply(line))
            .collect();
        for line in &lines {
            tracing::debug!(target: "installer", doing, "{line}");
        }
        if status.success() {
            return Ok(());
        }
        Err(Failure::new(format!(
            "the installer failed to {doing}: {}",
            last_error(&lines, status)
        )))
    }

    async fn spawn(&self, target: &str) -> io::Result<Child> {
        let mut command = self.launch.command();
        command
            .args(["create", target, "--dir"])
            .arg(&self.folder)
            .current_dir(&self.folder)
            .env_clear()
            .env("PATH", PATH)
            .env("HOME", &self.folder)
            .env("TMPDIR", temporary(&self.folder))
            .envs(self.launch.environment())
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        spawn(&mut command).await
    }
}

/// Starts a program that this process may just have written.
pub(super) async fn spawn(command: &mut Command) -> io::Result<Child> {
    // A fork elsewhere in this process may hold the handle that the program was just written through until it
    // calls exec; the kernel then says that the file is busy.
    let mut tries = 0;
    loop {
        match command.spawn() {
            Err(error)
                if error.kind() == io::ErrorKind::ExecutableFileBusy && tries < BUSY_TRIES =>
            {
                tries += 1;
                tokio::time::sleep(BUSY_PAUSE).await;
            }
            outcome => return outcome,
        }
    }
}

/// Where the installer keeps scratch files: beside its folder, because it lists the folder's contents.
pub(super) fn temporary(folder: &Path) -> PathBuf {
    folder.with_extension("tmp")
}

/// The last lines of `output`, no more than `limit`.
pub(super) async fn tail(output: Option<impl AsyncRead + Unpin>, limit: usize) -> Vec<String> {
    let Some(output) = output else {
        return Vec::new();
    };
    let mut reader = BufReader::new(output);
    let mut lines = VecDeque::new();
    let mut line = Vec::new();
    while let Ok(chunk) = reader.fill_buf().await {
        if chunk.is_empty() {
            break;
        }
        let end = chunk.iter().position(|byte| *byte == b'\n');
        let part = &chunk[..end.unwrap_or(chunk.len())];
        let room = KEPT_LINE_BYTES - line.len();
        line.extend_from_slice(&part[..part.len().min(room)]);
        let used = part.len() + usize::from(end.is_some());
        reader.consume(used);
        if end.is_some() {
            keep(&mut lines, &mut line, limit);
        }
    }
    keep(&mut lines, &mut line, limit);
    lines.into()
}

/// Moves `line` behind `lines`, of which the oldest gives way.
fn keep(lines: &mut VecDeque<String>, line: &mut Vec<u8>, limit: usize) {
    if lines.len() == limit {
        lines.pop_front();
    }
    lines.push_back(String::from_utf8_lossy(line).trim_end().to_owned());
    line.clear();
}

/// What the program itself said last about its failure.
fn last_error(lines: &[String], status: ExitStatus) -> String {
    let is_error = |line: &&String| {
        ["level=fatal", "level=error", "FATAL", "ERROR"]
            .iter()
            .any(|level| line.contains(level))
    };
    let last = lines
        .iter()
        .rev()
        .find(is_error)
        .or_else(|| lines.iter().rev().find(|line| !line.trim().is_empty()));
    match last {
        Some(line) => message(line).to_owned(),
        None => format!("it said nothing ({status})"),
    }
}

/// The text of a log line `time=… level=… msg=…`, with or without quotes.
fn message(line: &str) -> &str {
    let text = line.split_once("msg=").map_or(line, |(_, text)| text);
    text.trim()
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'))
        .unwrap_or(text)
        .trim()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use secrecy::SecretString;

    use super::*;

    fn installer(folder: &Path, script: &str, limit: Duration) -> Installer {
        let program = folder.join("openshift-install");
        fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
        let work = folder.join("work");
        fs::create_dir(&work).unwrap();
        fs::create_dir(temporary(&work)).unwrap();
        Installer {
            launch: Launch::new(program, None),
            folder: work,
            environment: vec![("OPENSHIFT_INSTALL_INVOKER", "tests".to_owned())],
            masks: Masks::of_pull_secret(&SecretString::from(
                r#"{"auths":{"r":{"auth":"dXNlcjpzZWNyZXQ="}}}"#,
            )),
            deadline: Instant::now() + limit,
        }
    }

    const LONG: Duration = Duration::from_mins(1);

    #[tokio::test]
    async fn arguments_and_environment_are_the_documented_ones() {
        let folder = tempfile::tempdir().unwrap();
        let installer = installer(folder.path(), r#"echo "$@" > args; env | sort > env"#, LONG);
        installer.create("manifests").await.unwrap();
        let read = |name| fs::read_to_string(installer.folder.join(name)).unwrap();
        assert_eq!(
            read("args"),
            format!("create manifests --dir {}\n", installer.folder.display())
        );
        let environment = read("env");
        assert!(
            environment.contains("OPENSHIFT_INSTALL_INVOKER=tests\n"),
            "{environment}"
        );
        assert!(!environment.contains("CARGO"), "{environment}");
    }

    #[tokio::test]
    async fn its_last_error_is_the_reason_without_secrets() {
        let folder = tempfile::tempdir().unwrap();
        let script = "echo 'level=info msg=fine' >&2\n\
                      echo 'level=error msg=\"bad baseDomain, found dXNlcjpzZWNyZXQ=\"' >&2\n\
                      echo 'level=info msg=bye' >&2\nexit 3";
        let installer = installer(folder.path(), script, LONG);
        let failure = installer.create("manifests").await.unwrap_err();
        assert_eq!(
            failure.reason,
            "the installer failed to create manifests: bad baseDomain, found <hidden>"
        );
    }

    #[tokio::test]
    async fn silence_is_reported_with_the_status() {
        let folder = tempfile::tempdir().unwrap();
        let installer = installer(folder.path(), "exit 7", LONG);
        let failure = installer.create("manifests").await.unwrap_err();
        assert!(failure.reason.contains("exit status: 7"), "{failure}");
    }

    #[tokio::test]
    async fn endless_output_is_cut() {
        let folder = tempfile::tempdir().unwrap();
        let script = "head -c 1000000 /dev/zero | tr '\\0' x\nseq 5000\nexit 1";
        let installer = installer(folder.path(), script, LONG);
        let failure = installer.create("manifests").await.unwrap_err();
        assert!(failure.reason.ends_with(": 5000"), "{failure}");
    }

    #[tokio::test]
    async fn a_program_that_hangs_is_stopped() {
        let folder = tempfile::tempdir().unwrap();
        let installer = installer(folder.path(), "exec sleep 1000", Duration::from_millis(50));
        let failure = installer.create("manifests").await.unwrap_err();
        assert!(failure.reason.contains("time limit"), "{failure}");
    }

    #[tokio::test]
    async fn what_cannot_run_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let mut installer = installer(folder.path(), "", LONG);
        let program = folder.path().join("openshift-install");
        fs::write(program, [0x7f, b'E', b'L', b'F', 0]).unwrap();
        let failure = installer.create("manifests").await.unwrap_err();
        assert!(failure.reason.contains("cannot be started"), "{failure}");
        installer.launch = Launch::new(folder.path().join("nowhere"), None);
        assert!(installer.create("manifests").await.is_err());
    }
}
