//! `atoll node restore`: two of three members are lost for ever.

use std::fs::{self, File};
use std::process::Command;

use anyhow::{Result, ensure};
use system_tests::process::program;

use super::servers::Servers;
use super::wait::until;

fn command(servers: &Servers, arguments: &[&str]) -> Result<Command> {
    let mut command = Command::new(program("atoll")?);
    command.args(["node", "restore"]).args(arguments);
    for place in servers.places.values() {
        command.args(["--etcd-endpoint", &place.client_url()]);
    }
    for (option, file) in [
        ("--etcd-ca", "authority.pem"),
        ("--etcd-cert", "certificate.pem"),
        ("--etcd-key", "key.pem"),
    ] {
        command.arg(option).arg(servers.path(file));
    }
    Ok(command)
}

/// Whether it succeeds, and its output.
fn shown(servers: &Servers, arguments: &[&str]) -> Result<(bool, String)> {
    let output = command(servers, arguments)?.output()?;
    let text = [output.stdout, output.stderr].concat();
    Ok((
        output.status.success(),
        String::from_utf8_lossy(&text).into_owned(),
    ))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_survivor_continues_alone() -> Result<()> {
    let Some(mut servers) = Servers::start(3).await else {
        return Ok(());
    };
    let (is_done, text) = shown(&servers, &[])?;
    ensure!(!is_done && text.contains("quorum is not lost"), "{text}");

    let survivor = servers.places["control-3"].client_url();
    servers.kill("control-1");
    servers.kill("control-2");
    let (is_done, text) = shown(&servers, &[])?;
    let advice = format!("--survivor {survivor} --others-are-off");
    ensure!(is_done && text.contains(&advice), "{text}");
    let (is_done, text) = shown(&servers, &["--survivor", &survivor])?;
    ensure!(!is_done && text.contains("must be off"), "{text}");

    let decided = ["--survivor", &survivor, "--others-are-off"];
    let path = servers.path("restore.log");
    let mut waiting = command(&servers, &decided)?
        .stdout(File::create(&path)?)
        .spawn()?;
    let written = async |part: &str| {
        let text = fs::read_to_string(&path).unwrap_or_default();
        if text.contains(part) {
            Ok(())
        } else {
            Err(text)
        }
    };
    until("the instructions", async || {
        written("quorum-restore.sh").await
    })
    .await;
    // The script on the node does the same.
    servers.force_alone("control-3");
    until("quorum", async || written("Quorum is back").await).await;
    ensure!(waiting.wait()?.success());
    Ok(())
}
