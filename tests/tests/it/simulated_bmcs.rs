//! `atoll host` with the BMCs of `host-sim --bmcs`.

use std::fs::{self, File};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use system_tests::process::program;
use system_tests::{Scratch, until};

const LIMIT: Duration = Duration::from_mins(1);
const COUNT: usize = 8;

#[tokio::test(flavor = "multi_thread")]
async fn hosts_are_checked_and_inspected() -> Result<()> {
    let scratch = Scratch::new()?;
    let folder = scratch.path().join("bmcs");
    let log = scratch.path().join("host-sim.log");
    let _simulated = tokio::process::Command::new(program("host-sim")?)
        .arg("--bmcs")
        .arg(&folder)
        .args(["--hosts", &format!("masters=3,workers={}", COUNT - 3)])
        .stdin(Stdio::null())
        .stderr(File::create(&log)?)
        .kill_on_drop(true)
        .spawn()?;
    let records = folder.join("hosts.yaml");
    let written = until("the records are written", LIMIT, async || {
        Ok(records.exists().then_some(()))
    });
    written
        .await
        .with_context(|| fs::read_to_string(&log).unwrap_or_default())?;

    let atoll = |arguments: &[&str]| -> Result<String> {
        let mut command = Command::new(program("atoll")?);
        let output = command.arg("host").args(arguments).arg(&records).output()?;
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text).into_owned();
        ensure!(output.status.success(), "{arguments:?}: {text}");
        Ok(text)
    };
    atoll(&["check"])?;
    let ca = folder.join("bmc-ca.pem").display().to_string();
    let table = atoll(&["inspect", "--ca", &ca])?;
    let hosts = table.lines().filter(|line| line.contains("1x 240 GB"));
    ensure!(hosts.count() == COUNT, "{table}");
    Ok(())
}
