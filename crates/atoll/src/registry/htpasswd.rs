//! Users of the registry. Other lines of the file are kept byte for byte.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use clap::Args;
use credentials::secrets;
use service::file;
use service::{Error, ResultExt as _};

use super::password;
use crate::terminal;

/// Mode of a new file: hashes can be brute-forced.
const OWNER_ONLY: u32 = 0o600;

/// Arguments of `atoll registry htpasswd`.
#[derive(Debug, Clone, Args)]
pub(crate) struct HtpasswdArgs {
    /// Password file; created if missing
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// User name
    user: String,
    /// Generate a password and print it once
    #[arg(long, conflicts_with = "delete")]
    generate: bool,
    /// Delete the user
    #[arg(long)]
    delete: bool,
}

/// Adds, changes or deletes the user.
///
/// Errors: a malformed or unwritable file; an invalid name or password; an unknown user to delete.
pub(crate) fn run(arguments: &HtpasswdArgs) -> Result<(), Error> {
    let HtpasswdArgs { user, .. } = arguments;
    let path = target(&arguments.file);
    // Errors of the file come before the password prompt.
    let folder = folder(&path)?;
    read(&path)?;
    let password = match arguments {
        HtpasswdArgs { delete: true, .. } => None,
        HtpasswdArgs { generate: true, .. } => Some(secrets::password()),
        _ => Some(password::read(user)?),
    };
    let line = password
        .as_ref()
        .map(|password| ::registry::htpasswd::line(user, password))
        .transpose()
        .doing(|| format!("hashing the password of {user:?}"))?;

    // Concurrent changes would lose a user. The lock is best effort: some file systems have none for folders.
    folder.lock().ok();
    let old = read(&path)?;
    let (text, was_there) = edited(&old, user, line.as_deref());
    let shown = path.display();
    if line.is_none() && !was_there {
        let reason = format!("there is no such user in {shown}");
        return Err(Error::new(format!("deleting {user:?}"), reason));
    }
    file::rewrite_atomic(&path, text.as_bytes(), OWNER_ONLY)?;
    match password {
        Some(password) if arguments.generate => terminal::print(&password),
        Some(_) if was_there => terminal::print(&format!("{user} has a new password in {shown}")),
        Some(_) => terminal::print(&format!("{user} is added to {shown}")),
        None => terminal::print(&format!("{user} is deleted from {shown}")),
    }
    Ok(())
}

/// Target of a symbolic link, so that the link is kept.
fn target(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

fn folder(path: &Path) -> Result<File, Error> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    File::open(folder).doing(|| format!("opening the folder {}", folder.display()))
}

/// Content of the file; empty if it does not exist.
fn read(path: &Path) -> Result<String, Error> {
    let doing = || format!("reading {}", path.display());
    let text = match fs::read_to_string(path) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(String::new()),
        read => read.doing(doing)?,
    };
    for (index, line) in text.lines().enumerate() {
        let is_valid = is_ignored(line) || user_of(line).is_some_and(|user| !user.is_empty());
        if !is_valid {
            let reason = format!(
                "line {}: expected user:hash; the registry refuses the file",
                index + 1
            );
            return Err(Error::new(doing(), reason));
        }
    }
    Ok(text)
}

/// Replaces or deletes the lines of `user`; whether there was one.
fn edited(text: &str, user: &str, line: Option<&str>) -> (String, bool) {
    let mut edited = String::with_capacity(text.len() + line.map_or(0, str::len) + 2);
    let mut new = line;
    let mut was_there = false;
    for old in text.split_inclusive('\n') {
        if is_ignored(old) || user_of(old) != Some(user) {
            edited.push_str(old);
            continue;
        }
        was_there = true;
        edited.extend(new.take().into_iter().flat_map(|line| [line, "\n"]));
    }
    if let Some(line) = new {
        if !edited.is_empty() && !edited.ends_with('\n') {
            edited.push('\n');
        }
        edited.extend([line, "\n"]);
    }
    (edited, was_there)
}

fn is_ignored(line: &str) -> bool {
    let line = line.trim();
    line.is_empty() || line.starts_with('#')
}

fn user_of(line: &str) -> Option<&str> {
    line.trim().split_once(':').map(|(user, _)| user)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_users_own_lines_change() {
        let text = "# a:comment\r\n\n  b:1 \nab:2\na:3\r\nc:4:5\na:6";
        let with = |user, line| edited(text, user, line);
        // The registry takes the last of several lines, so all of them are replaced.
        let expected = "# a:comment\r\n\n  b:1 \nab:2\na:new\nc:4:5\n";
        assert_eq!(with("a", Some("a:new")), (expected.to_owned(), true));
        let expected = "# a:comment\r\n\n  b:1 \nab:2\nc:4:5\n";
        assert_eq!(with("a", None), (expected.to_owned(), true));
        let expected = "# a:comment\r\n\nb:new\nab:2\na:3\r\nc:4:5\na:6";
        assert_eq!(with("b", Some("b:new")), (expected.to_owned(), true));
        assert_eq!(with("d", Some("d:7")), (format!("{text}\nd:7\n"), false));
        assert_eq!(with("# a", None), (text.to_owned(), false));
        assert_eq!(edited("", "a", Some("a:1")), ("a:1\n".to_owned(), false));
    }

    #[test]
    fn a_malformed_line_is_reported_by_number() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("users");
        assert_eq!(read(&path).unwrap(), "");
        for (text, number) in [("a:1\ngarbage\n", 2), (":hash", 1)] {
            fs::write(&path, text).unwrap();
            let error = read(&path).unwrap_err().to_string();
            assert!(error.contains(&format!("line {number}")), "{error}");
            assert!(!error.contains("garbage"), "{error}");
        }
    }
}
