//! Running the installer.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use sandbox::ProgramOutcome;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::time::Instant;

use super::confinement::{Confinement, Program};
use super::context::Failure;
use super::launch::Launch;
use super::redaction::Masks;

/// Lines of output kept for the failure's text and the log.
pub(super) const KEPT_LINES: usize = 200;
/// What is kept of a line. Units: bytes.
const KEPT_LINE_BYTES: usize = 4096;
/// What helpers of the installer are looked for in.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The installer of one release and how it is to be run.
pub(super) struct Installer {
    /// What confines it.
    pub(super) confinement: Confinement,
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
        let temporary = temporary(&self.folder);
        let program = Program {
            command: self.command(target),
            launch: &self.launch,
            environment: self.variables(),
            work: &self.folder,
            scratch: &temporary,
        };
        let running = self
            .confinement
            .run(program, KEPT_LINES, Some(self.deadline));
        let run = running
            .await
            .map_err(|error| Failure::new(format!("the installer cannot be started: {error}")))?;
        let Some(run) = run else {
            return Err(Failure::new(format!(
                "the installer did not finish {doing} within the time limit and was stopped"
            )));
        };
        let lines: Vec<String> = run
            .stdout
            .iter()
            .chain(&run.stderr)
            .map(|line| self.masks.apply(line))
            .collect();
        for line in &lines {
            tracing::debug!(target: "installer", doing, "{line}");
        }
        judge(&doing, &run.outcome, &lines)
    }

    fn command(&self, target: &str) -> (PathBuf, Vec<String>) {
        let (program, mut arguments) = self.launch.command();
        arguments.extend(["create", target, "--dir"].map(str::to_owned));
        arguments.push(self.folder.display().to_string());
        (program, arguments)
    }

    fn variables(&self) -> Vec<(String, String)> {
        let own = [
            ("PATH", PATH.to_owned()),
            ("HOME", self.folder.display().to_string()),
            ("TMPDIR", temporary(&self.folder).display().to_string()),
        ];
        own.into_iter()
            .chain(self.launch.environment())
            .chain(self.environment.iter().cloned())
            .map(|(name, value)| (name.to_owned(), value))
            .collect()
    }
}

/// Whether the installer succeeded; else what it said last, or what ended it.
fn judge(doing: &str, outcome: &ProgramOutcome, lines: &[String]) -> Result<(), Failure> {
    Err(Failure::new(match outcome {
        ProgramOutcome::Exited(0) => return Ok(()),
        ProgramOutcome::Exited(_) | ProgramOutcome::Signalled(_) => format!(
            "the installer failed to {doing}: {}",
            last_error(lines, outcome)
        ),
        ProgramOutcome::Exceeded(bound) => {
            format!("the installer was stopped while it had to {doing}: it used more than {bound}")
        }
        ProgramOutcome::NotStarted(why) => format!("the installer cannot be started: {why}"),
    }))
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
fn last_error(lines: &[String], outcome: &ProgramOutcome) -> String {
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
        None => format!("it said nothing ({outcome})"),
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
    use std::time::Duration;

    use sandbox::{Launcher, SandboxLimits};
    use secrecy::SecretString;

    use super::*;

    fn installer() -> Installer {
        Installer {
            confinement: Confinement {
                launcher: Launcher::own(),
                limits: SandboxLimits {
                    memory_bytes: 1,
                    processes: 1,
                    disk_bytes: 1,
                    time: Duration::from_secs(1),
                },
                strict: true,
            },
            launch: Launch::new("/cache/a/openshift-install".into(), None),
            folder: "/work/a".into(),
            environment: vec![("OPENSHIFT_INSTALL_INVOKER", "tests".to_owned())],
            masks: Masks::of_pull_secret(&SecretString::from("{}")),
            deadline: Instant::now(),
        }
    }

    #[test]
    fn arguments_and_environment_are_the_documented_ones() {
        let installer = installer();
        let (program, arguments) = installer.command("manifests");
        assert_eq!(program, Path::new("/cache/a/openshift-install"));
        assert_eq!(arguments, ["create", "manifests", "--dir", "/work/a"]);
        let variables = installer.variables();
        let names: Vec<&str> = variables.iter().map(|(name, _)| name.as_str()).collect();
        let expected = ["PATH", "HOME", "TMPDIR", "OPENSHIFT_INSTALL_INVOKER"];
        assert_eq!(names, expected);
        assert_eq!(variables[2].1, "/work/a.tmp");
    }

    fn reason(outcome: &ProgramOutcome, lines: &[&str]) -> String {
        let lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
        judge("create manifests", outcome, &lines)
            .unwrap_err()
            .reason
    }

    #[test]
    fn its_last_error_is_the_reason() {
        let lines = [
            "level=info msg=fine",
            "level=error msg=\"bad baseDomain\"",
            "level=info msg=bye",
        ];
        assert_eq!(
            reason(&ProgramOutcome::Exited(3), &lines),
            "the installer failed to create manifests: bad baseDomain"
        );
        let silent = reason(&ProgramOutcome::Exited(7), &[]);
        assert!(silent.contains("exit status: 7"), "{silent}");
        let killed = reason(
            &ProgramOutcome::Exceeded("5 bytes of memory".to_owned()),
            &lines,
        );
        assert!(killed.contains("5 bytes of memory"), "{killed}");
        let missing = reason(&ProgramOutcome::NotStarted("no such file".to_owned()), &[]);
        assert!(missing.contains("cannot be started"), "{missing}");
        assert!(judge("create manifests", &ProgramOutcome::Exited(0), &[]).is_ok());
    }

    #[tokio::test]
    async fn endless_output_is_cut() {
        let numbers: Vec<String> = (1..=5000).map(|number| format!("{number}\n")).collect();
        let text = format!("{}\n{}", "x".repeat(1_000_000), numbers.concat());
        let lines = tail(Some(text.as_bytes()), KEPT_LINES).await;
        assert_eq!(lines.len(), KEPT_LINES);
        assert!(lines.iter().any(|line| line == "5000"));
        let lines = tail(Some(text.as_bytes()), usize::MAX).await;
        assert_eq!(lines[0].len(), KEPT_LINE_BYTES);
    }
}
