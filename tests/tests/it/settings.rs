//! Invalid settings: all of them are reported together, before anything runs.

use std::net::{Ipv4Addr, TcpListener};
use std::process::{Command, Output, Stdio};

use anyhow::{Context as _, Result, ensure};
use system_tests::process::program;
use system_tests::{Installation, Scratch, free_ports};

/// Invalid settings have an exit code of their own.
const EXIT_SETTINGS: i32 = 2;
const PASSWORD: &str = "correct-horse-battery";

#[test]
fn the_api_server_reports_all_invalid_settings_together() -> Result<()> {
    wrong(
        "api-server",
        &[
            ("API_LISTEN_ADDRESS", "localhost", "IP address"),
            ("DB_PORT", "nine", "0 to 65535"),
            ("DUMMY_IGNITION", "maybe", "boolean"),
            ("SERVICE_BASE_URL", "ftp://a.example", "http or https"),
            ("RELEASE_IMAGES", "{", "JSON"),
            ("CLUSTER_MONITOR_INTERVAL", "soon", "10s"),
            ("AUTH_TYPE", "rhsso", "JWKS_FILE"),
            // Text that parses, and is invalid all the same.
            ("SERVICE_FQDN", "a:b", "plain name"),
            ("DISABLED_HOST_VALIDATIONS", "no-such", "no-such"),
            ("SERVICE_CA_CERT_PATH", "/none/ca.pem", "/none/ca.pem"),
        ],
    )
}

#[test]
fn the_image_service_reports_all_invalid_settings_together() -> Result<()> {
    wrong(
        "image-service",
        &[
            ("LISTEN_PORT", "70000", "0 to 65535"),
            ("OS_IMAGES", "no json", "JSON"),
            ("INSECURE_SKIP_VERIFY", "maybe", "boolean"),
            ("MAX_CONCURRENT_REQUESTS", "-1", "integer"),
            ("DATA_DIR", "/none", "folder"),
            ("HTTPS_CERT_FILE", "/none/cert.pem", "/none/cert.pem"),
        ],
    )
}

#[test]
fn the_registry_reports_all_invalid_settings_together() -> Result<()> {
    wrong(
        "registry",
        &[
            ("REGISTRY_HTTP_ADDR", "somewhere", "port"),
            ("REGISTRY_STORAGE_DELETE_ENABLED", "perhaps", "boolean"),
            ("REGISTRY_HTTP_RELATIVEURLS", "2", "boolean"),
            ("REGISTRY_AUTH_HTPASSWD_PATH", "/none/users", "/none/users"),
            ("REGISTRY_HTTP_TLS_KEY", "/none/key.pem", "/none/key.pem"),
        ],
    )
}

#[test]
fn the_page_reports_all_invalid_settings_together() -> Result<()> {
    wrong(
        "webui",
        &[
            ("LISTEN_ADDRESS", "here", "IP address"),
            ("WEBUI_PORT", "99999", "0 to 65535"),
            ("WEBUI_STATIC_PORT", "", ""),
            ("API_URL", "https://api.example", "http://"),
        ],
    )
}

/// Starts a server with these variables; each has to be reported with the expected text, the empty ones not at all.
fn wrong(server: &str, variables: &[(&str, &str, &str)]) -> Result<()> {
    let mut command = bare()?;
    command.args(["serve", server, "--check-config"]);
    command.env("DB_PASS", PASSWORD);
    for (name, value, _) in variables {
        command.env(name, value);
    }
    let output = command.output()?;
    let text = printed(&output);
    ensure!(
        output.status.code() == Some(EXIT_SETTINGS),
        "{} {text}",
        output.status
    );
    for (name, value, expected) in variables {
        let line = text
            .lines()
            .find(|line| line.trim().starts_with(&format!("{name}: ")));
        if value.is_empty() {
            ensure!(line.is_none(), "{name} is unset, but: {text}");
            continue;
        }
        let line = line.with_context(|| format!("{name} is not reported: {text}"))?;
        ensure!(
            line.contains(expected),
            "{line:?} does not say {expected:?}"
        );
    }
    ensure!(!text.contains(PASSWORD), "the password is shown: {text}");
    Ok(())
}

#[test]
fn a_password_is_never_shown() -> Result<()> {
    for arguments in [
        vec!["serve", "api-server", "settings"],
        vec!["serve", "api-server", "--check-config"],
    ] {
        let output = bare()?.args(&arguments).env("DB_PASS", PASSWORD).output()?;
        ensure!(
            output.status.success(),
            "{arguments:?}: {}",
            printed(&output)
        );
        ensure!(
            !printed(&output).contains(PASSWORD),
            "{arguments:?} shows the password"
        );
    }
    let output = bare()?
        .args(["serve", "api-server", "--check-config"])
        .env("DB_PASS_FILE", "/none/password")
        .output()?;
    let text = printed(&output);
    ensure!(output.status.code() == Some(EXIT_SETTINGS), "{text}");
    ensure!(text.contains("DB_PASS_FILE: /none/password"), "{text}");
    Ok(())
}

#[test]
fn settings_of_all_services_are_validated_before_anything_runs() -> Result<()> {
    let scratch = Scratch::new()?;
    let file = scratch.path().join("wrong.env");
    std::fs::write(
        &file,
        "DB_MAX_OPEN_CONNECTIONS=many\nMAX_CONCURRENT_REQUESTS=few\n",
    )?;
    let data = scratch.path().join("data");
    let mut command = up(&data, free_ports(6)?)?;
    let output = command.arg("--env-file").arg(&file).output()?;
    let text = printed(&output);
    ensure!(!output.status.success(), "{text}");
    for name in [
        "api-server",
        "DB_MAX_OPEN_CONNECTIONS",
        "image-service",
        "MAX_CONCURRENT_REQUESTS",
    ] {
        ensure!(text.contains(name), "{name} is not reported: {text}");
    }
    ensure!(
        !data.join("postgres/data").exists(),
        "a database was made for nothing"
    );
    Ok(())
}

#[test]
fn a_port_in_use_is_reported_with_a_remedy() -> Result<()> {
    let scratch = Scratch::new()?;
    let first = free_ports(6)?;
    for (offset, whose) in [
        (0, "database"),
        (1, "registry"),
        (2, "API"),
        (3, "image service"),
        (5, "page"),
    ] {
        let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, first + offset))?;
        let output = up(&scratch.path().join("data"), first)?.output()?;
        drop(taken);
        let text = printed(&output);
        ensure!(
            !output.status.success(),
            "it starts although port {offset} is taken: {text}"
        );
        for part in [&(first + offset).to_string(), whose, "--ports-from"] {
            ensure!(text.contains(part), "{part:?} is not reported: {text}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_second_one_on_the_same_data_is_refused() -> Result<()> {
    let installation = Installation::start().await?;
    let output = up(&installation.data(), free_ports(6)?)?.output()?;
    let text = printed(&output);
    ensure!(
        !output.status.success(),
        "two run on one data directory: {text}"
    );
    let pid = installation.pid("atoll")?.to_string();
    for part in [
        pid.as_str(),
        "--dir",
        &installation.data().display().to_string(),
    ] {
        ensure!(text.contains(part), "{part:?} is not reported: {text}");
    }
    // The first one keeps running.
    installation.is_ready().await?;
    installation.stop().await
}

/// `atoll` without any variables.
fn bare() -> Result<Command> {
    let mut command = Command::new(program("atoll")?);
    command.env_clear().stdin(Stdio::null());
    Ok(command)
}

/// An `atoll up` that exits at once if it starts at all.
fn up(data: &std::path::Path, first_port: u16) -> Result<Command> {
    let mut command = Command::new(program("atoll")?);
    command.args([
        "up",
        "--supervised",
        "--ports-from",
        &first_port.to_string(),
    ]);
    command.arg("--data").arg(data).stdin(Stdio::null());
    Ok(command)
}

fn printed(output: &Output) -> String {
    let text = [output.stdout.as_slice(), &output.stderr].concat();
    String::from_utf8_lossy(&text).into_owned()
}
