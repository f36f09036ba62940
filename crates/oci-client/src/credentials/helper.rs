//! Programs that keep logins, `docker-credential-NAME`.
//!
//! Source: docker-credential-helpers, README, "Development".

use std::process::Stdio;
use std::time::Duration;

use model::Error;
use serde::Deserialize;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};

use super::Login;

/// What such programs begin with.
const PREFIX: &str = "docker-credential-";
/// Long enough for a keychain that asks its user.
const TIMEOUT: Duration = Duration::from_mins(1);
/// Longer answers are none. Units: bytes.
const ANSWER_LIMIT_BYTES: u64 = 64 * 1024;
/// Under which docker's tools keep the login for their own registry.
const DOCKER: (&str, &str) = ("docker.io", "https://index.docker.io/v1/");
/// What stands for the user where the secret is no password but a token of another protocol.
const TOKEN_USER: &str = "<token>";
/// What helpers say when they know nobody.
const NOBODY: &str = "credentials not found";

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Answer {
    username: String,
    secret: String,
}

/// Asks the helper of that name for the login of `registry`; nothing when it knows none.
///
/// Errors: Invalid – there is no such program, it fails, does not answer in time, or with something else. The text never repeats
/// what it answered.
pub(super) async fn ask(name: &str, registry: &str) -> Result<Option<Login>, Error> {
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
    // serde's own message may quote the value it stumbled over.
    let answer: Answer = serde_json::from_slice(&answer)
        .map_err(|_| wrong("its answer is no JSON with Username and Secret".to_owned()))?;
    if answer.username == TOKEN_USER {
        return Err(wrong(
            "it has an identity token, which is not known here: log in with a password".to_owned(),
        ));
    }
    Ok(Some(Login {
        user: answer.username,
        password: answer.secret.into(),
    }))
}

/// Whether it was successful, and what it answered.
async fn talk(mut child: Child, server: &str) -> std::io::Result<(bool, Vec<u8>)> {
    if let Some(mut input) = child.stdin.take() {
        // One that does not read what it is asked tells that by its end.
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
