//! The console of the host: its state, and a form that mends its network when the service cannot be reached.
//!
//! It is on the first virtual terminal and on the kernel's serial consoles. Terminals stay in line mode: any keyboard,
//! serial line or remote console works.

mod form;
mod screen;

use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::fs::{File, OpenOptions};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};

use self::form::{CONNECTION_PREFIX, FormProgress, NetworkConnection, NetworkForm};
use crate::host_files::write_private;
use crate::links::LinkTable;
use crate::status::StatusHandle;
use crate::{Error, HostFiles, command};

/// Addresses may change without any event of the agent.
const REFRESH: Duration = Duration::from_secs(5);
const CLEAR: &str = "\x1b[H\x1b[2J\x1b[3J";
const KEYFILES: &str = "/etc/NetworkManager/system-connections";
const TIMEOUT: Duration = Duration::from_mins(2);
/// Longest answer. Units: characters.
const MAX_LINE: usize = 1024;

/// Terminals of the console: the first virtual one, and the serial consoles of the kernel.
pub(crate) fn terminals(files: &HostFiles) -> Vec<PathBuf> {
    let active = files
        .text("/sys/class/tty/console/active")
        .unwrap_or_default();
    let serial = active.split_whitespace().filter(|name| {
        name.strip_prefix("tty")
            .is_none_or(|rest| rest.starts_with(|char: char| !char.is_ascii_digit()))
    });
    let names = std::iter::once("tty1").chain(serial);
    names.map(|name| Path::new("/dev").join(name)).collect()
}

/// Whether a connection was made by the form: the installed system has to have it, too.
pub(crate) fn has_connections(files: &HostFiles) -> bool {
    files
        .names(KEYFILES)
        .iter()
        .any(|name| name.starts_with(CONNECTION_PREFIX))
}

/// The console on one terminal.
pub(crate) struct HostConsole {
    pub(crate) files: HostFiles,
    pub(crate) status: StatusHandle,
    /// URL of the installer API.
    pub(crate) service: String,
}

impl HostConsole {
    /// Runs until the terminal is closed. A host without the terminal has no such console.
    pub(crate) async fn run(&self, terminal: &Path) {
        if let Some(name) = terminal.file_name().and_then(|name| name.to_str()) {
            for unit in ["getty", "serial-getty"] {
                let unit = format!("{unit}@{name}.service");
                let _ = command::run("systemctl", &["stop", &unit], TIMEOUT).await;
            }
        }
        if let Err(error) = self.serve(terminal).await {
            tracing::info!(terminal = %terminal.display(), error = error.chain(), "no console");
        }
    }

    async fn serve(&self, terminal: &Path) -> Result<(), Error> {
        let failed = |error| Error::io(format!("using {}", terminal.display()), error);
        let mut options = OpenOptions::new();
        let input = options
            .read(true)
            .custom_flags(libc::O_NOCTTY)
            .open(terminal);
        let mut lines = BufReader::new(input.await.map_err(failed)?).lines();
        let mut options = OpenOptions::new();
        let output = options
            .write(true)
            .custom_flags(libc::O_NOCTTY)
            .open(terminal);
        let mut output = output.await.map_err(failed)?;
        let mut changes = self.status.subscribe();
        let mut shown = String::new();
        loop {
            let status = changes.borrow_and_update().clone();
            let table = LinkTable::read(&self.files).await.unwrap_or_default();
            let text = screen::screen(&status, &table, &self.service);
            if text != shown {
                print(&mut output, &format!("{CLEAR}{text}"))
                    .await
                    .map_err(failed)?;
                shown = text;
            }
            let letter = tokio::select! {
                line = lines.next_line() => match line.map_err(failed)? {
                    Some(line) => line,
                    None => return Ok(()),
                },
                _ = changes.changed() => continue,
                () = tokio::time::sleep(REFRESH) => continue,
            };
            match letter.trim() {
                "n" => self
                    .change_network(&mut lines, &mut output, &table)
                    .await
                    .map_err(failed)?,
                "l" => log_in(terminal).await,
                _ => {}
            }
            shown.clear();
        }
    }

    async fn change_network(
        &self,
        lines: &mut Lines<BufReader<File>>,
        output: &mut File,
        table: &LinkTable,
    ) -> std::io::Result<()> {
        let physical = table.links.iter().filter(|link| link.kind == "physical");
        let names = physical.map(|link| link.name.clone()).collect();
        let mut form = NetworkForm::new(names);
        loop {
            print(output, &form.prompt()).await?;
            let Some(line) = lines.next_line().await? else {
                return Ok(());
            };
            let line: String = line.chars().take(MAX_LINE).collect();
            match form.answer(&line) {
                FormProgress::Ask => {}
                FormProgress::Wrong(problem) => print(output, &format!("{problem}\n")).await?,
                FormProgress::Cancelled => return Ok(()),
                FormProgress::Done(connection) => {
                    print(output, "Applying\n").await?;
                    let problem = self
                        .apply(&connection)
                        .await
                        .err()
                        .map(|error| error.chain());
                    self.status.check("Network", problem);
                    return Ok(());
                }
            }
        }
    }

    /// Writes the connection and has NetworkManager use it.
    async fn apply(&self, connection: &NetworkConnection) -> Result<(), Error> {
        let name = connection.name();
        let path = self
            .files
            .path(KEYFILES)
            .join(format!("{name}.nmconnection"));
        // NetworkManager ignores files that others can read.
        let written = write_private(&path, connection.keyfile().as_bytes());
        written.map_err(|error| Error::io(format!("writing {}", path.display()), error))?;
        command::succeed("nmcli", &["connection", "reload"], TIMEOUT).await?;
        command::succeed("nmcli", &["connection", "up", &name], TIMEOUT)
            .await
            .map(drop)
    }
}

async fn print(output: &mut File, text: &str) -> std::io::Result<()> {
    output.write_all(text.as_bytes()).await?;
    output.flush().await
}

/// A login on the terminal, until the shell ends.
async fn log_in(terminal: &Path) {
    let Some(name) = terminal.file_name() else {
        return;
    };
    let login = tokio::process::Command::new("agetty")
        .arg("--noclear")
        .arg(name)
        .status()
        .await;
    if let Err(error) = login {
        tracing::info!(%error, "no login");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn serial_consoles_of_the_kernel_are_used() {
        let root = tempfile::tempdir().unwrap();
        let files = HostFiles::below(root.path());
        let names = || {
            let terminals = terminals(&files).into_iter();
            terminals
                .map(|path| path.display().to_string())
                .collect::<Vec<_>>()
        };
        assert_eq!(names(), ["/dev/tty1"]);
        let folder = root.path().join("sys/class/tty/console");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("active"), "tty0 ttyS1 hvc0\n").unwrap();
        assert_eq!(names(), ["/dev/tty1", "/dev/ttyS1", "/dev/hvc0"]);
    }
}
