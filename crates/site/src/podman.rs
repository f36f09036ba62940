//! Calls of `podman` for containers and volumes of the pod.

use std::fs::File;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use service::file::is_root;
use service::{Error, ResultExt as _};

const PROGRAM: &str = "podman";

/// Runs this command again in podman's user namespace, where rootless volumes can be read; true if it did.
///
/// Files of rootless containers belong to users of a user namespace. `podman unshare` enters it as root. `folder` is
/// only used in error texts.
///
/// Errors: the command fails there, with its exit code.
pub(crate) fn enter(folder: &Path) -> Result<bool, Error> {
    if is_root()? {
        return Ok(false);
    }
    let doing = || format!("entering podman's user namespace for {}", folder.display());
    let status = Command::new(PROGRAM)
        .arg("unshare")
        .arg("/proc/self/exe")
        .args(std::env::args_os().skip(1))
        .status()
        .doing(doing)?;
    if status.success() {
        Ok(true)
    } else {
        Err(Error::new(doing(), status.to_string()))
    }
}

/// Names of containers that use `volume`; with `is_any` also of stopped ones.
///
/// Errors: those of podman.
pub(crate) fn users(volume: &str, is_any: bool) -> Result<Vec<String>, Error> {
    let filter = format!("volume={volume}");
    let mut arguments = vec!["ps", "--format", "{{.Names}}", "--filter", &filter];
    if is_any {
        arguments.push("--all");
    }
    let text = run(&arguments)?;
    Ok(text.split_whitespace().map(str::to_owned).collect())
}

/// Mount point of `volume`, if it exists.
///
/// Errors: those of podman.
pub(crate) fn mountpoint(volume: &str) -> Result<Option<PathBuf>, Error> {
    let names = run(&["volume", "ls", "--quiet"])?;
    if names.lines().all(|name| name != volume) {
        return Ok(None);
    }
    let text = run(&["volume", "inspect", "--format", "{{.Mountpoint}}", volume])?;
    Ok(Some(PathBuf::from(text.trim())))
}

/// Mount point of `volume`, which is created if missing, with the labels that `podman-compose down --volumes` looks
/// for.
///
/// Errors: those of podman.
pub(crate) fn ensure_volume(project: &str, volume: &str) -> Result<PathBuf, Error> {
    if let Some(path) = mountpoint(volume)? {
        return Ok(path);
    }
    let labels = ["io.podman", "com.docker"].map(|of| format!("{of}.compose.project={project}"));
    let [podman, docker] = &labels;
    run(&[
        "volume", "create", "--label", podman, "--label", docker, volume,
    ])?;
    mountpoint(volume)?.ok_or_else(|| Error::new(format!("creating volume {volume}"), "not found"))
}

/// The last lines of a container's log, of both of its streams; empty if they cannot be read.
pub(crate) fn last_lines(container: &str, count: &str) -> String {
    let output = Command::new(PROGRAM)
        .args(["logs", "--tail", count, container])
        .stdin(Stdio::null())
        .output();
    // Podman prints each stream to its own.
    let text = output.map(|it| [it.stdout, it.stderr].concat());
    String::from_utf8_lossy(&text.unwrap_or_default()).into_owned()
}

/// Runs `podman` and returns its output.
///
/// Errors: podman is missing or fails, with its standard error.
pub(crate) fn run(arguments: &[&str]) -> Result<String, Error> {
    run_in(Path::new("."), arguments)
}

/// [`run`] in the folder `dir`.
///
/// Errors: as [`run`].
pub(crate) fn run_in(dir: &Path, arguments: &[&str]) -> Result<String, Error> {
    let output = Command::new(PROGRAM)
        .args(arguments)
        .current_dir(dir)
        .stdin(Stdio::null())
        .output()
        .doing(|| doing(arguments))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    Err(Error::new(doing(arguments), stderr.trim().to_owned()))
}

/// [`run`] with `input` as its standard input.
///
/// Errors: as [`run`].
pub(crate) fn run_with_input(arguments: &[&str], input: &str) -> Result<String, Error> {
    let run = || {
        let mut child = Command::new(PROGRAM)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            // A program that fails early does not read it: its error says more.
            stdin.write_all(input.as_bytes()).ok();
        }
        child.wait_with_output()
    };
    let output = run().doing(|| doing(arguments))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    Err(Error::new(doing(arguments), stderr.trim().to_owned()))
}

/// Runs `podman` with the terminal of this program.
///
/// Errors: podman is missing or fails.
pub(crate) fn attached(arguments: &[&str]) -> Result<(), Error> {
    let status = Command::new(PROGRAM).args(arguments).status();
    let status = status.doing(|| doing(arguments))?;
    if status.success() {
        return Ok(());
    }
    Err(Error::new(doing(arguments), status.to_string()))
}

/// Runs a program in a container, with files as its input and output.
///
/// Errors: as [`run`].
pub(crate) fn exec(
    container: &str,
    arguments: &[&str],
    input: Option<File>,
    output: Option<File>,
) -> Result<(), Error> {
    let all = [&["exec", "--interactive", container], arguments].concat();
    let output = Command::new(PROGRAM)
        .args(&all)
        .stdin(input.map_or_else(Stdio::null, Stdio::from))
        .stdout(output.map_or_else(Stdio::null, Stdio::from))
        .stderr(Stdio::piped())
        // Ctrl-C at the terminal must reach only this program, which cleans up.
        .process_group(0)
        .spawn()
        .and_then(std::process::Child::wait_with_output)
        .doing(|| doing(&all))?;
    if output.status.success() {
        return Ok(());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    Err(Error::new(doing(&all), stderr.trim().to_owned()))
}

fn doing(arguments: &[&str]) -> String {
    let verb: Vec<&str> = arguments.iter().copied().take(2).collect();
    format!("running {PROGRAM} {}", verb.join(" "))
}
