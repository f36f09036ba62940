//! Programs of the host: `chronyc`, `coreos-installer`, `journalctl`, `podman`.

use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Command;

use crate::Error;

/// Kept output of a program, of each kind. Units: bytes.
const MAX_OUTPUT: u64 = 1 << 20;

/// Result of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommandOutput {
    /// Exit code; none after a signal.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs a program. It is killed after `timeout`, and with the caller.
///
/// Errors: it cannot be started, or takes longer.
pub(crate) async fn run(
    program: &str,
    arguments: &[&str],
    timeout: Duration,
) -> Result<CommandOutput, Error> {
    let failed = |error: std::io::Error| Error::io(format!("running {program}"), error);
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(failed)?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let output = async { tokio::join!(read(stdout), read(stderr), child.wait()) };
    let (stdout, stderr, status) = tokio::time::timeout(timeout, output)
        .await
        .map_err(|_| Error::message(format!("{program} took more than {timeout:?}")))?;
    Ok(CommandOutput {
        code: status.map_err(failed)?.code(),
        stdout: stdout.map_err(failed)?,
        stderr: stderr.map_err(failed)?,
    })
}

/// The output of a program that succeeded.
///
/// Errors: as [`run`]; it failed, with its error output.
pub(crate) async fn succeed(
    program: &str,
    arguments: &[&str],
    timeout: Duration,
) -> Result<String, Error> {
    let output = run(program, arguments, timeout).await?;
    if output.code == Some(0) {
        return Ok(output.stdout);
    }
    let code = output
        .code
        .map_or_else(|| "a signal".to_owned(), |code| code.to_string());
    let text = match output.stderr.trim() {
        "" => output.stdout.trim(),
        text => text,
    };
    Err(Error::message(format!(
        "{program} ended with {code}: {text}"
    )))
}

/// The first part of a stream; the rest is read and dropped, so that the program does not block.
async fn read(stream: Option<impl AsyncRead + Unpin>) -> std::io::Result<String> {
    let Some(mut stream) = stream else {
        return Ok(String::new());
    };
    let mut bytes = Vec::new();
    (&mut stream)
        .take(MAX_OUTPUT)
        .read_to_end(&mut bytes)
        .await?;
    tokio::io::copy(&mut stream, &mut tokio::io::sink()).await?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_mins(1);

    #[tokio::test]
    async fn output_and_code_are_kept() {
        let output = run("sh", &["-c", "echo a; echo b >&2; exit 3"], PATIENCE)
            .await
            .unwrap();
        let expected = CommandOutput {
            code: Some(3),
            stdout: "a\n".to_owned(),
            stderr: "b\n".to_owned(),
        };
        assert_eq!(output, expected);
        let error = succeed("sh", &["-c", "echo b >&2; exit 3"], PATIENCE)
            .await
            .unwrap_err();
        assert_eq!(error.to_string(), "sh ended with 3: b");
        assert!(run("no-such-program", &[], PATIENCE).await.is_err());
    }

    #[tokio::test]
    async fn long_output_is_cut() {
        let script = "head -c 3000000 /dev/zero | tr '\\0' x";
        let output = run("sh", &["-c", script], PATIENCE).await.unwrap();
        assert_eq!(
            (output.code, output.stdout.len() as u64),
            (Some(0), MAX_OUTPUT)
        );
    }

    #[tokio::test]
    async fn slow_programs_are_killed() {
        let error = run("sleep", &["1000"], Duration::from_millis(50))
            .await
            .unwrap_err();
        assert!(error.to_string().contains("took more than"), "{error}");
    }
}
