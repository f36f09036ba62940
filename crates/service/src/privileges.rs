//! Servers that their container starts as root: they take over empty data folders, and become another user.
//!
//! Folders of a host, mounted into a container, often belong to root. Where the container has a user already, nothing
//! happens here but a warning about folders that it cannot write.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use rustix::fs::{Access, access};
use rustix::process::{geteuid, getuid};

use crate::Error;

/// Gives `folders` of root to `user`, and runs this program again as that user, which does not return.
///
/// Errors: missing rights. Not started as root: `Ok`.
pub(crate) fn become_user(user: u32, folders: &[&Path]) -> Result<(), Error> {
    if user == 0 || !geteuid().is_root() {
        return Ok(());
    }
    let failed = |doing: String| {
        move |error: io::Error| {
            Error::new(
                format!(
                    "{doing}: start the container as user {user} (runAsUser: {user}, or --user={user}:{user})"
                ),
                error,
            )
        }
    };
    for folder in folders {
        let belongs_to_root =
            fs::metadata(folder).is_ok_and(|found| found.is_dir() && found.uid() == 0);
        if belongs_to_root {
            // Not its content: files of the operator keep their owner.
            chown(folder, Some(user), Some(user)).map_err(failed(format!(
                "giving {} to user {user}",
                folder.display()
            )))?;
        }
    }
    // Its supplementary groups are dropped, too, and with the user all capabilities.
    let mut arguments = std::env::args_os();
    let mut program = Command::new("/proc/self/exe");
    if let Some(name) = arguments.next() {
        program.arg0(name);
    }
    let error = program.args(arguments).uid(user).gid(user).exec();
    Err(failed(format!("becoming user {user}"))(error))
}

/// Warns about folders that this process cannot write.
pub(crate) fn warn_of_unwritable(folders: &[&Path]) {
    for folder in folders.iter().filter(|folder| folder.is_dir()) {
        if access(*folder, Access::WRITE_OK | Access::EXEC_OK).is_err() {
            let user = getuid().as_raw();
            tracing::warn!(
                folder = %folder.display(),
                "data folder not writable by user {user}: give the mounted folder to it with `chown {user}:{user} FOLDER` \
                 on the host (`podman unshare chown {user}:{user} FOLDER` without root), or mount it writable"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_users_stay_and_unwritable_folders_are_no_error() {
        become_user(0, &[Path::new("/proc")]).unwrap();
        if !geteuid().is_root() {
            become_user(10001, &[Path::new("/proc")]).unwrap();
        }
        warn_of_unwritable(&[Path::new("/none"), Path::new("/proc")]);
    }
}
