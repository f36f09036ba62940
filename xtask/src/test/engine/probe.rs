//! One tiny container, run like those of the pod.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::CONFIGURATION;
use crate::command::bounded;

/// A working engine takes two seconds; one that hangs does not work.
const LIMIT: Duration = Duration::from_mins(1);
/// A static program of podman's package: its small init.
const PROGRAMS: [&str; 2] = ["/usr/libexec/podman/catatonit", "/usr/bin/catatonit"];

/// Builds an image, makes a network, runs a container with all the limits of the pod's, and removes everything.
pub(super) fn run(configuration: &Path, folder: &Path) -> Result<()> {
    let podman = Podman {
        configuration: configuration.to_owned(),
        folder: folder.to_owned(),
        name: format!("atoll-probe-{}", std::process::id()),
    };
    let done = podman.try_out();
    podman.clean_up();
    done
}

struct Podman {
    configuration: PathBuf,
    folder: PathBuf,
    name: String,
}

impl Podman {
    fn try_out(&self) -> Result<()> {
        fs::create_dir_all(&self.folder)?;
        let program = PROGRAMS.iter().find(|path| Path::new(path).is_file());
        let program = program.with_context(|| format!("{} is not here", PROGRAMS[0]))?;
        fs::copy(program, self.folder.join("program"))?;
        let containerfile = "FROM scratch\nCOPY program /program\nENTRYPOINT [\"/program\"]\n";
        fs::write(self.folder.join("Containerfile"), containerfile)?;
        let context = self.folder.to_string_lossy();
        self.run(&[
            "build",
            "--quiet",
            "--pull=never",
            "--tag",
            &self.image(),
            &context,
        ])?;
        self.run(&["network", "create", &self.name])?;
        self.run(&[
            "run",
            "--rm",
            "--name",
            &self.name,
            "--network",
            &self.name,
            "--init",
            "--read-only",
            "--user=10001:10001",
            "--cap-drop=all",
            "--security-opt=no-new-privileges",
            "--tmpfs=/tmp",
            "--memory=64m",
            "--pids-limit=50",
            "--publish=127.0.0.1::8080",
            &self.image(),
            "--version",
        ])
    }

    fn image(&self) -> String {
        format!("localhost/{}:1", self.name)
    }

    /// Removes all leftovers, and ignores errors.
    fn clean_up(&self) {
        self.run(&["rm", "--force", &self.name]).ok();
        self.run(&["network", "rm", &self.name]).ok();
        self.run(&["rmi", &self.image()]).ok();
        fs::remove_dir_all(&self.folder).ok();
    }

    fn run(&self, arguments: &[&str]) -> Result<()> {
        let log = self.folder.join("log");
        let mut command = Command::new("podman");
        command
            .args(arguments)
            .env(CONFIGURATION, &self.configuration);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&log)?);
        bounded(&mut command, LIMIT).with_context(|| {
            let printed = fs::read_to_string(&log).unwrap_or_default();
            printed.trim().to_owned()
        })
    }
}
