//! Credential helpers, `docker-credential-NAME`.
//!
//! Source: docker-credential-helpers, README, "Development".

use std::process::Stdio;
use std::time::Duration;

use model::Error;
use serde::Deserialize;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};

use super::login::{Login, RegistrySecret};

/// Prefix of the programs.
const PREFIX: &str = "docker-credential-";
/// Timeout of a helper: long enough for a keychain that asks its user.
const TIMEOUT: Duration = Duration::from_mins(1);
/// Largest response. Units: bytes.
const ANSWER_LIMIT_BYTES: u64 = 64 * 1024;
/// The key under which docker's tools store the login for their own registry.
const DOCKER: (&str, &str) = ("docker.io", "https://index.docker.io/v1/");
/// The user name that marks the secret as an identity token.
const TOKEN_USER: &str = "<token>";
/// Message of a helper without a login for a registry.
const NOBODY: &str = "credentials not found";

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct HelperOutput {
    username: String,
    secret: String,
}

/// Runs the helper for the secret of `registry`; `None` when it has none.
///
/// Errors: Invalid – the program does not exist, fails, exceeds its timeout, or returns something else. The text never
/// repeats its output.
pub(super) async fn ask(name: &str, registry: &str) -> Result<Option<RegistrySecret>, Error> {
    let program = format!("{PREFIX}{name}");
    let wrong = |reason: String| Error::invalid(program.clone(), format!("{registry}: {reason}"));
    if name.is_empty() || name.contains('/') {
        return Err(wrong("a helper's name is no path".to_owned()));
    }
    let child = Command::new(&program)
        .arg("get")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .map_err(|e| wrong(e.to_string()))?;
    let server = if registry == DOCKER.0 {
        DOCKER.1
    } else {
        registry
    };
    let answered = tokio::time::timeout(TIMEOUT, talk(child, server)).await;
    let Ok(answered) = answered else {
        let seconds = TIMEOUT.as_secs();
        return Err(wrong(format!("it did not answer within {seconds} seconds")));
    };
    let (is_success, answer) = answered.map_err(|e| wrong(e.to_string()))?;
    if !is_success {
        if String::from_utf8_lossy(&answer).contains(NOBODY) {
            return Ok(None);
        }
        return Err(wrong("it failed".to_owned()));
    }
    // serde's own message may quote the offending value.
    let answer: HelperOutput = serde_json::from_slice(&answer)
        .map_err(|_| wrong("its output is no JSON with Username and Secret".to_owned()))?;
    Ok(Some(if answer.username == TOKEN_USER {
        RegistrySecret::IdentityToken(answer.secret.into())
    } else {
        RegistrySecret::Login(Login {
            user: answer.username,
            password: answer.secret.into(),
        })
    }))
}

/// Runs the protocol. Returns whether it succeeded, and its output.
async fn talk(mut child: Child, server: &str) -> std::io::Result<(bool, Vec<u8>)> {
    if let Some(mut input) = child.stdin.take() {
        // A helper that does not read its input reports its failure by its exit status.
        input.write_all(server.as_bytes()).await.ok();
    }
    let mut answer = Vec::new();
    if let Some(output) = child.stdout.take() {
        output
            .take(ANSWER_LIMIT_BYTES)
            .read_to_end(&mut answer)
            .await?;
    }
    Ok((child.wait().await?.success(), answer))
}
