//! Runs of the installer.

use std::path::PathBuf;

use sandbox::ProgramOutcome;
use tokio::time::Instant;

use crate::confinement::{ConfinedProgram, Confinement};
use crate::failure::PreparationFailure;
use crate::launch::Launch;
use crate::output_tail::TAIL_LINES;
use crate::redaction::Masks;
use crate::work_folder::temporary;

/// `PATH` of the installer.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The installer of a release, and the parameters of its run.
pub(crate) struct InstallerRun {
    /// Its confinement.
    pub(crate) confinement: Confinement,
    /// Its command.
    pub(crate) launch: Launch,
    /// Private folder of inputs and outputs.
    pub(crate) folder: PathBuf,
    /// Environment beside PATH, HOME and TMPDIR. The service's own environment is not inherited: it has the database's
    /// password.
    pub(crate) environment: Vec<(&'static str, String)>,
    /// Redaction of secrets in logs and errors.
    pub(crate) masks: Masks,
    /// Time at which the program is killed.
    pub(crate) deadline: Instant,
}

impl InstallerRun {
    /// Runs `create <target>`.
    pub(crate) async fn create(&self, target: &str) -> Result<(), PreparationFailure> {
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
    use std::path::Path;
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
            folder: "/installer/a".into(),
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
        assert_eq!(arguments, ["create", "manifests", "--dir", "/installer/a"]);
        let variables = installer.variables();
        let names: Vec<&str> = variables.iter().map(|(name, _)| name.as_str()).collect();
        let expected = ["PATH", "HOME", "TMPDIR", "OPENSHIFT_INSTALL_INVOKER"];
        assert_eq!(names, expected);
        assert_eq!(variables[2].1, "/installer/a.tmp");
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
}
