//! Users of the registry. What the file holds besides stays as it is, byte for byte.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use clap::Args;
use service::Error;

use super::password;
use crate::{file, secrets, terminal};

/// Mode of a file that is made: hashes can be guessed at.
const OWNER_ONLY: u32 = 0o600;

/// Whose line is written or deleted.
#[derive(Debug, Clone, Args)]
pub(crate) struct HtpasswdArgs {
    /// The password file; made when it is not there
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The user's name
    user: String,
    /// Make up a password and print it, this once
    #[arg(long, conflicts_with = "delete")]
    generate: bool,
    /// Delete the user
    #[arg(long)]
    delete: bool,
}

/// Adds, changes or deletes the user.
///
/// Errors: a file that the registry would not read, or that cannot be written; a name or password that cannot stand
/// there; nobody to delete.
pub(crate) fn run(arguments: &HtpasswdArgs) -> Result<(), Error> {
    let HtpasswdArgs { user, .. } = arguments;
    let path = target(&arguments.file);
    // Told before anybody types a password.
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
        .map_err(|e| Error::new(format!("making the line of {user:?}"), e))?;

    // One at a time, or the other's user would be lost. Where folders cannot be locked, nobody is hindered.
    folder.lock().ok();
    let old = read(&path)?;
    let (text, was_there) = edited(&old, user, line.as_deref());
    let shown = path.display();
    if line.is_none() && !was_there {
        let reason = format!("there is no such user in {shown}");
        return Err(Error::new(format!("deleting {user:?}"), reason));
    }
    file::rewrite(&path, text.as_bytes(), OWNER_ONLY)?;
    match password {
        Some(password) if arguments.generate => terminal::print(&password),
        Some(_) if was_there => terminal::print(&format!("{user} has a new password in {shown}")),
        Some(_) => terminal::print(&format!("{user} is added to {shown}")),
        None => terminal::print(&format!("{user} is deleted from {shown}")),
    }
    Ok(())
}

/// Where a link leads, so that it stays one.
fn target(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

fn folder(path: &Path) -> Result<File, Error> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    File::open(folder)
        .map_err(|e| Error::new(format!("opening the folder {}", folder.display()), e))
}

/// Nothing when there is no file.
fn read(path: &Path) -> Result<String, Error> {
    let doing = || format!("reading {}", path.display());
    let text = match fs::read_to_string(path) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(String::new()),
        read => read.map_err(|e| Error::new(doing(), e))?,
    };
    for (index, line) in text.lines().enumerate() {
        let is_one = is_aside(line) || user_of(line).is_some_and(|user| !user.is_empty());
        if !is_one {
            let reason = format!(
                "line {}: expected user:hash, or the registry refuses the file",
                index + 1
            );
            return Err(Error::new(doing(), reason));
        }
    }
    Ok(text)
}

/// `text` with `line` as the only one of `user`, or without any; whether there was one.
fn edited(text: &str, user: &str, line: Option<&str>) -> (String, bool) {
    let mut edited = String::with_capacity(text.len() + line.map_or(0, str::len) + 2);
    let mut new = line;
    let mut was_there = false;
    for old in text.split_inclusive('\n') {
        if is_aside(old) || user_of(old) != Some(user) {
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

fn is_aside(line: &str) -> bool {
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
        // The registry takes the last of several, so none may stay behind.
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
    fn a_file_that_the_registry_refuses_is_told() {
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
