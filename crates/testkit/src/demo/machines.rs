//! The simulated machines: a separate program whose only input is the image.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use tokio::process::{Child, Command};

use super::console::Console;

/// Restarts of a program that a signal killed; it resumes from its disks.
const RESTARTS: u32 = 5;
/// Lines of the log that an error shows.
const LOG_TAIL: usize = 15;

/// The running program.
#[derive(Debug)]
pub(super) struct Machines {
    program: PathBuf,
    args: Vec<String>,
    log: PathBuf,
    child: Child,
    restarts: u32,
}

impl Machines {
    /// Starts five machines from the image; their log and their disks go to `work`.
    pub(super) fn start(
        program: &Path,
        image: &Path,
        work: &Path,
        speedup: f64,
        weaken: Option<&str>,
    ) -> Result<Self> {
        let mut args: Vec<String> = ["--hosts", "masters=3,workers=2", "--iso"]
            .map(str::to_owned)
            .to_vec();
        args.push(image.display().to_string());
        args.extend([
            "--speedup".to_owned(),
            speedup.to_string(),
            "--state-dir".to_owned(),
        ]);
        args.push(work.join("machines").display().to_string());
        args.extend(
            weaken
                .into_iter()
                .flat_map(|weak| ["--weaken".to_owned(), weak.to_owned()]),
        );
        let log = work.join("host-sim.log");
        let child = spawn(program, &args, &log)?;
        Ok(Self {
            program: program.to_owned(),
            args,
            log,
            child,
            restarts: 0,
        })
    }

    /// The process id.
    pub(super) fn pid(&self) -> Option<u32> {
        self.child.id()
    }

    /// Log of the machines.
    pub(super) fn log(&self) -> &Path {
        &self.log
    }

    /// Restarts the program when it was killed. Errors: it failed by itself.
    pub(super) fn check(&mut self, console: &Console) -> Result<()> {
        let Some(status) = self
            .child
            .try_wait()
            .context("host-sim cannot be watched")?
        else {
            return Ok(());
        };
        match status.code() {
            Some(0) => Ok(()),
            None if self.restarts < RESTARTS => {
                self.restarts += 1;
                console.event(format!(
                    "the machines were killed ({status}), they go on from their disks"
                ));
                self.child = spawn(&self.program, &self.args, &self.log)?;
                Ok(())
            }
            _ => bail!(
                "host-sim ended with {status}; the end of {}:\n{}",
                self.log.display(),
                self.tail()
            ),
        }
    }

    /// Waits for its end, which must be a success.
    pub(super) async fn finish(mut self) -> Result<()> {
        let status = self
            .child
            .wait()
            .await
            .context("host-sim cannot be waited for")?;
        if !status.success() {
            bail!(
                "host-sim ended with {status}; the end of {}:\n{}",
                self.log.display(),
                self.tail()
            );
        }
        Ok(())
    }

    /// Switches all machines off.
    pub(super) async fn switch_off(mut self) -> Result<()> {
        self.child
            .kill()
            .await
            .context("host-sim cannot be stopped")
    }

    fn tail(&self) -> String {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(LOG_TAIL)..].join("\n")
    }
}

fn spawn(program: &Path, args: &[String], log: &Path) -> Result<Child> {
    let open = || File::options().create(true).append(true).open(log);
    let (out, errors) = open()
        .and_then(|file| Ok((file.try_clone()?, file)))
        .with_context(|| format!("{}: cannot be written", log.display()))?;
    Command::new(program)
        .args(args)
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .stdout(out)
        .stderr(errors)
        .kill_on_drop(true)
        .spawn()
        .with_context(|| format!("{}: cannot be started", program.display()))
}
