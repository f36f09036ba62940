//! The folder of a rehearsal, which stays behind no end of the process: a watcher outlives it, ends the database in the
//! folder, and removes the folder.

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use service::{Error, ResultExt as _};

/// Program of the watcher; `$0` is the folder. Its input ends with the process that holds the pipe, also by a kill.
/// Ids of processes are reused: the database works in its data.
const WATCH: &str = r#"
    read -r _
    file=$(find "$0" -name postmaster.pid)
    pid=$(head -n 1 "$file" 2>/dev/null)
    if [ -n "$pid" ] && [ "$(readlink "/proc/$pid/cwd")" = "${file%/*}" ]; then
        kill -QUIT "$pid"
        for _ in $(seq 200); do
            [ -e "$file" ] || break
            sleep 0.05
        done
    fi
    rm -rf "$0"
"#;

/// A folder that other users may enter; removed with everything in it when this is dropped, or the process ends.
#[derive(Debug)]
pub(crate) struct TemporaryFolder {
    path: PathBuf,
    watcher: Child,
}

impl TemporaryFolder {
    /// A new folder.
    ///
    /// Errors: no place for temporary files, no shell.
    pub(crate) fn new() -> Result<Self, Error> {
        let doing = "creating the folder of the rehearsal";
        let folder = tempfile::tempdir().doing(doing)?;
        // Postgres runs as another user under root and has to enter its folder.
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755))
            .doing(doing)?;
        // The kernel's name of the folder: the watcher compares it with those of processes.
        let path = folder.path().canonicalize();
        let path = path.doing(doing)?;
        let watcher = Command::new("/bin/sh")
            .args(["-c", WATCH])
            .arg(&path)
            .current_dir("/")
            // Ctrl-C at the terminal must not reach it.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .doing("starting the watcher of the rehearsal's folder")?;
        // The watcher removes it from now on.
        let _ = folder.keep();
        Ok(Self { path, watcher })
    }

    /// Its path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        drop(self.watcher.stdin.take());
        self.watcher.wait().ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_goes_with_its_content() {
        let folder = TemporaryFolder::new().unwrap();
        let path = folder.path().to_owned();
        std::fs::create_dir(path.join("data")).unwrap();
        // A process that is no database.
        let pid = format!("{}\n", std::process::id());
        std::fs::write(path.join("data/postmaster.pid"), pid).unwrap();
        drop(folder);
        assert!(!path.exists());
    }
}
