//! Other programs: run, with output and timeout.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

const POLL: Duration = Duration::from_millis(50);

/// Runs a command. Errors: it fails.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let shown = shown(command);
    let status = command
        .status()
        .with_context(|| format!("running {shown}"))?;
    ensure!(status.success(), "{shown}: {status}");
    Ok(())
}

/// Standard output of a command. Errors: it fails, with its standard error.
pub(crate) fn output(command: &mut Command) -> Result<Vec<u8>> {
    let shown = shown(command);
    let output = command
        .output()
        .with_context(|| format!("running {shown}"))?;
    ensure!(
        output.status.success(),
        "{shown}: {}: {}",
        output.status,
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(output.stdout)
}

/// Runs a command. Errors: it fails, or exceeds `limit`.
pub(crate) fn bounded(command: &mut Command, limit: Duration) -> Result<()> {
    let shown = shown(command);
    let mut child = command
        .spawn()
        .with_context(|| format!("running {shown}"))?;
    let deadline = Instant::now() + limit;
    loop {
        if let Some(status) = child.try_wait()? {
            ensure!(status.success(), "{shown}: {status}");
            return Ok(());
        }
        if Instant::now() >= deadline {
            child.kill().ok();
            child.wait().ok();
            bail!("{shown}: no end after {} s", limit.as_secs());
        }
        std::thread::sleep(POLL);
    }
}

/// A command in shell syntax.
pub(crate) fn shown(command: &Command) -> String {
    let name = Path::new(command.get_program())
        .file_name()
        .unwrap_or_default();
    std::iter::once(name)
        .chain(command.get_args())
        .map(|part| part.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hanging_command_is_killed() {
        let error = bounded(Command::new("sleep").arg("600"), Duration::ZERO).unwrap_err();
        assert!(error.to_string().contains("no end"), "{error}");
        let long = Duration::from_mins(1);
        let error = bounded(&mut Command::new("false"), long).unwrap_err();
        assert!(error.to_string().contains('1'), "{error}");
        bounded(&mut Command::new("true"), long).unwrap();
    }

    #[test]
    fn output_and_errors_of_a_command_are_reported() {
        assert_eq!(output(Command::new("echo").arg("a")).unwrap(), b"a\n");
        let mut wrong = Command::new("sh");
        let error = output(wrong.args(["-c", "echo why >&2; exit 3"])).unwrap_err();
        assert!(error.to_string().ends_with("3: why"), "{error}");
    }
}
