//! Runs of the installer.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use sandbox::ProgramOutcome;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::time::Instant;

use super::confinement::{ConfinedProgram, Confinement};
use super::context::PreparationFailure;
use super::launch::Launch;
use super::redaction::Masks;

/// Last lines of output kept for errors and the log.
pub(super) const TAIL_LINES: usize = 200;
/// Lines are truncated to this length. Units: bytes.
const LINE_BYTES: usize = 4096;
/// `PATH` of the installer.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The installer of a release, and the parameters of its run.
pub(super) struct InstallerRun {
    /// Its confinement.
    pub(super) confinement: Confinement,
    /// Its command.
    pub(super) launch: Launch,
    /// Private folder of inputs and outputs.
    pub(super) folder: PathBuf,
    /// Environment beside PATH, HOME and TMPDIR. The service's own environment is not inherited: it has the database's
    /// password.
    pub(super) environment: Vec<(&'static str, String)>,
    /// Redaction of secrets in logs and errors.
    pub(super) masks: Masks,
    /// Time at which the program is killed.
    pub(super) deadline: Instant,
}

impl InstallerRun {
    /// Runs `create <target>`.
    pub(super) async fn create(&self, target: &str) -> Result<(), PreparationFailure> {
        let doing = format!("create {target}");
        let temporary = temporary(&self.folder);
        let program = ConfinedProgram {
            command: self.command(target),
            launch: &self.launch,
            environment: self.variables(),
            work: &self.folder,
            scratch: &temporary,
        };
        let running = self
            .confinement
            .run(program, TAIL_LINES, Some(self.deadline));
        let run = running.await.map_err(|error| {
            PreparationFailure::new(format!("the installer cannot be started: {error}"))
        })?;
        let Some(run) = run else {
            return Err(PreparationFailure::new(format!(
                "the installer did not finish {doing} within the time limit and was killed"
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
        check_outcome(&doing, &run.outcome, &lines)
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

/// Checks the outcome; the error has the installer's last error message, or the exceeded limit.
fn check_outcome(
    doing: &str,
    outcome: &ProgramOutcome,
    lines: &[String],
) -> Result<(), PreparationFailure> {
    Err(PreparationFailure::new(match outcome {
        ProgramOutcome::Exited(0) => return Ok(()),
        ProgramOutcome::Exited(_) | ProgramOutcome::Signalled(_) => format!(
            "the installer failed to {doing}: {}",
            last_error(lines, outcome)
        ),
        ProgramOutcome::Exceeded(bound) => {
            format!("the installer was killed during {doing}: it exceeded {bound}")
        }
        ProgramOutcome::NotStarted(why) => format!("the installer cannot be started: {why}"),
    }))
}

/// Temporary folder of the installer: beside its working folder, whose files it lists.
pub(super) fn temporary(folder: &Path) -> PathBuf {
    folder.with_extension("tmp")
}

/// The last `limit` lines of `output`.
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
        let remaining = LINE_BYTES - line.len();
        line.extend_from_slice(&part[..part.len().min(remaining)]);
        let used = part.len() + usize::from(end.is_some());
        reader.consume(used);
        if end.is_some() {
            push_line(&mut lines, &mut line, limit);
        }
    }
    push_line(&mut lines, &mut line, limit);
    lines.into()
}

/// Moves `line` into the ring buffer `lines`.
fn push_line(lines: &mut VecDeque<String>, line: &mut Vec<u8>, limit: usize) {
    if lines.len() == limit {
        lines.pop_front();
    }
    lines.push_back(String::from_utf8_lossy(line).trim_end().to_owned());
    line.clear();
}

/// The last error message of the program, or its last line.
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
        None => format!("no output ({outcome})"),
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

    fn installer() -> InstallerRun {
        InstallerRun {
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
    fn arguments_and_environment_follow_the_documentation() {
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
        check_outcome("create manifests", outcome, &lines)
            .unwrap_err()
            .reason
    }

    #[test]
    fn last_error_message_is_the_reason() {
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
        assert!(check_outcome("create manifests", &ProgramOutcome::Exited(0), &[]).is_ok());
    }

    #[tokio::test]
    async fn output_is_bounded() {
        let numbers: Vec<String> = (1..=5000).map(|number| format!("{number}\n")).collect();
        let text = format!("{}\n{}", "x".repeat(1_000_000), numbers.concat());
        let lines = tail(Some(text.as_bytes()), TAIL_LINES).await;
        assert_eq!(lines.len(), TAIL_LINES);
        assert!(lines.iter().any(|line| line == "5000"));
        let lines = tail(Some(text.as_bytes()), usize::MAX).await;
        assert_eq!(lines[0].len(), LINE_BYTES);
    }
}
