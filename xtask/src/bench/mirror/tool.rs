//! The compared tools, and the command line of each.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use super::RunEnvironment;
use crate::apt::find_program;

const NAMESPACE: &str = "mirrored";

/// A step of a mirroring run, in sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MirrorStep {
    ToFiles,
    FromFiles,
    Direct,
    DirectAgain,
}

impl MirrorStep {
    pub(super) const ALL: [Self; 4] = [
        Self::ToFiles,
        Self::FromFiles,
        Self::Direct,
        Self::DirectAgain,
    ];

    pub(super) fn label(self) -> &'static str {
        match self {
            Self::ToFiles => "registry to files",
            Self::FromFiles => "files to registry",
            Self::Direct => "registry to registry",
            Self::DirectAgain => "the same again",
        }
    }

    pub(super) fn is_to_new_target(self) -> bool {
        matches!(self, Self::FromFiles | Self::Direct)
    }
}

/// An installed tool.
#[derive(Debug)]
pub(super) struct Tool {
    pub(super) kind: ToolKind,
    path: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ToolKind {
    Ours,
    OcMirror,
    /// oc-mirror v2, in the same program.
    OcMirror2,
    Skopeo,
    Regsync,
}

impl ToolKind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Ours => "atoll",
            Self::OcMirror => "oc-mirror",
            Self::OcMirror2 => "oc-mirror 2",
            Self::Skopeo => "skopeo",
            Self::Regsync => "regsync",
        }
    }

    fn program(self) -> &'static str {
        match self {
            Self::OcMirror2 => Self::OcMirror.name(),
            kind => kind.name(),
        }
    }

    /// Installation instructions.
    fn install(self) -> &'static str {
        match self {
            Self::Ours => "it is built here",
            Self::OcMirror | Self::OcMirror2 => {
                "its sources are at https://github.com/openshift/oc-mirror"
            }
            Self::Skopeo => "apt install skopeo",
            Self::Regsync => "go install github.com/regclient/regclient/cmd/regsync@latest",
        }
    }
}

impl Tool {
    /// Our tool, from the folder with the built programs.
    pub(super) fn ours(programs: &Path) -> Self {
        Self {
            kind: ToolKind::Ours,
            path: programs.join("atoll"),
        }
    }

    /// The peers; for one that is not installed, its installation instructions.
    pub(super) fn peers() -> impl Iterator<Item = Result<Self, String>> {
        let kinds = [
            ToolKind::OcMirror,
            ToolKind::OcMirror2,
            ToolKind::Skopeo,
            ToolKind::Regsync,
        ];
        kinds
            .into_iter()
            .map(|kind| match find_program(kind.program()) {
                Some(path) => Ok(Self { kind, path }),
                None => Err(format!(
                    "{} is not installed: {}",
                    kind.name(),
                    kind.install()
                )),
            })
    }

    /// Its version output.
    pub(super) fn version(&self) -> Result<String> {
        let arguments: &[&str] = match self.kind {
            ToolKind::Ours | ToolKind::Skopeo => &["--version"],
            ToolKind::OcMirror => &["--v1", "version", "--short"],
            ToolKind::OcMirror2 => &["--v2", "version", "--short"],
            ToolKind::Regsync => &["version", "--format", "{{.VCSTag}}"],
        };
        // Some write a log into the working directory.
        let printed = Command::new(&self.path)
            .args(arguments)
            .current_dir(std::env::temp_dir())
            .output()?;
        let printed = String::from_utf8_lossy(&printed.stdout);
        Ok(printed.lines().next_back().unwrap_or_default().to_owned())
    }

    /// The command of `step`; `None` where the tool does not support it.
    pub(super) fn command(
        &self,
        step: MirrorStep,
        place: &RunEnvironment<'_>,
    ) -> Result<Option<Command>> {
        let mut command = Command::new(&self.path);
        command.current_dir(place.folder);
        Ok(match self.kind {
            ToolKind::Ours | ToolKind::OcMirror => {
                set(self.kind, step, place, &mut command)?;
                // oc-mirror v1 keeps no history of the run before.
                (self.kind == ToolKind::Ours || step != MirrorStep::DirectAgain).then_some(command)
            }
            ToolKind::OcMirror2 => {
                newer(step, place, &mut command)?;
                Some(command)
            }
            ToolKind::Skopeo => {
                skopeo(step, place, &mut command)?;
                Some(command)
            }
            ToolKind::Regsync => {
                let config = place.folder.join("regsync.yaml");
                let target = format!("127.0.0.1:{}", place.target);
                fs::write(&config, place.content.for_regsync(&target).to_string())?;
                command.args(["once", "--config"]).arg(config);
                matches!(step, MirrorStep::Direct | MirrorStep::DirectAgain).then_some(command)
            }
        })
    }
}

/// Ours has the peer's flags.
fn set(
    kind: ToolKind,
    step: MirrorStep,
    place: &RunEnvironment<'_>,
    command: &mut Command,
) -> Result<()> {
    command.arg(match kind {
        ToolKind::Ours => "mirror",
        _ => "--v1",
    });
    let archives = place.folder.join("archives");
    let config = place.folder.join("set.yaml");
    fs::write(&config, place.content.image_set("v1alpha2").to_string())?;
    match step {
        MirrorStep::FromFiles => command.arg("--from").arg(&archives),
        _ => command.arg("--config").arg(config),
    };
    match step {
        MirrorStep::ToFiles => command.arg(format!("file://{}", archives.display())),
        _ => command.arg(format!("docker://127.0.0.1:{}/{NAMESPACE}", place.target)),
    };
    command.args(["--source-use-http", "--dest-use-http"]);
    Ok(())
}

/// oc-mirror v2 keeps a cache of mirrored content, and needs the configuration at every step.
fn newer(step: MirrorStep, place: &RunEnvironment<'_>, command: &mut Command) -> Result<()> {
    let config = place.folder.join("set.yaml");
    fs::write(&config, place.content.image_set("v2alpha1").to_string())?;
    let file = |name: &str| format!("file://{}", place.folder.join(name).display());
    command.args(["--v2", "--src-tls-verify=false", "--dest-tls-verify=false"]);
    command.arg("--config").arg(config);
    command.arg("--cache-dir").arg(place.folder.join("cache"));
    match step {
        MirrorStep::ToFiles => {}
        MirrorStep::FromFiles => drop(command.arg("--from").arg(file("archives"))),
        MirrorStep::Direct | MirrorStep::DirectAgain => {
            command.arg("--workspace").arg(file("direct"));
        }
    }
    command.arg(match step {
        MirrorStep::ToFiles => file("archives"),
        _ => format!("docker://127.0.0.1:{}/{NAMESPACE}", place.target),
    });
    Ok(())
}

fn skopeo(step: MirrorStep, place: &RunEnvironment<'_>, command: &mut Command) -> Result<()> {
    let (list, folder) = (
        place.folder.join("images.yaml"),
        place.folder.join("folders"),
    );
    fs::write(&list, place.content.for_skopeo().to_string())?;
    let target = format!("127.0.0.1:{}/{NAMESPACE}", place.target);
    command.args(["sync", "--all"]);
    match step {
        MirrorStep::ToFiles => command
            .args(["--src", "yaml", "--dest", "dir"])
            .arg(list)
            .arg(folder),
        MirrorStep::FromFiles => command
            .args([
                "--src",
                "dir",
                "--dest",
                "docker",
                "--dest-tls-verify=false",
            ])
            .arg(folder)
            .arg(target),
        MirrorStep::Direct | MirrorStep::DirectAgain => command
            .args([
                "--src",
                "yaml",
                "--dest",
                "docker",
                "--dest-tls-verify=false",
            ])
            .arg(list)
            .arg(target),
    };
    Ok(())
}
