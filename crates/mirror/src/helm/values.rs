//! Files of values for the templates of charts.

use std::fs::File;
use std::io::{self, ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use located_yaml::v1_1::{self, Value};
use model::Error;

/// Largest file of values. Units: bytes.
const BYTES_LIMIT: u64 = 16 << 20;
const FIELD: &str = "valuesFiles";

/// Full paths of the files, whose syntax is checked: the program that renders charts names no place in them.
///
/// Errors: Invalid – a file that is not there, or holds no values.
pub(super) async fn read_values(files: &[String]) -> Result<Vec<PathBuf>, Error> {
    let files = files.to_vec();
    let check = move || files.iter().map(|file| checked(file)).collect();
    tokio::task::spawn_blocking(check)
        .await
        .unwrap_or_else(|e| Err(Error::internal("reading files of values", e)))
}

fn checked(file: &str) -> Result<PathBuf, Error> {
    let wrong = |reason: String| Error::invalid(FIELD, format!("{file}: {reason}"));
    let path = Path::new(file);
    let text = read(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => {
            let folder = std::env::current_dir().unwrap_or_default();
            let remedy = if path.is_absolute() {
                String::new()
            } else {
                format!("; relative paths start at {}", folder.display())
            };
            wrong(format!("there is no such file{remedy}"))
        }
        _ => wrong(error.to_string()),
    })?;
    let read =
        v1_1::read(&text).map_err(|error| Error::invalid(FIELD, format!("{file}:{error}")))?;
    if !matches!(read.value, Value::Object(_) | Value::Null) {
        let reason = "values are an object, as in `image: {tag: v1}`";
        let reason = format!("{file}:{}: {reason}", read.place);
        return Err(Error::invalid(FIELD, reason));
    }
    path.canonicalize().map_err(|e| wrong(e.to_string()))
}

fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    let read = File::open(path)?
        .take(BYTES_LIMIT + 1)
        .read_to_string(&mut text)?;
    if read as u64 > BYTES_LIMIT {
        let reason = format!("it has more than {BYTES_LIMIT} bytes");
        return Err(io::Error::other(reason));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn broken_files_are_named_with_their_place() {
        let folder = tempfile::tempdir().unwrap();
        for (name, content, expected) in [
            ("ok.yaml", &b"image:\n  tag: v1\n"[..], None),
            ("ok.json", b"{\"image\": {\"tag\": \"v1\"}}", None),
            ("empty.yaml", b"# none\n", None),
            (
                "list.yaml",
                b"\n- a\n",
                Some("list.yaml:2:1: values are an object"),
            ),
            (
                "text.yaml",
                b"text\n",
                Some("text.yaml:1:1: values are an object"),
            ),
            ("bad.yaml", b"a: 1\nb: [1\n", Some("bad.yaml:")),
            (
                "two.yaml",
                b"a: 1\n---\nb: 2\n",
                Some("two.yaml:2:1: another document"),
            ),
            ("bytes.yaml", b"a: \xff\n", Some("UTF-8")),
        ] {
            let path = folder.path().join(name);
            std::fs::write(&path, content).unwrap();
            let file = path.to_str().unwrap().to_owned();
            let read = read_values(std::slice::from_ref(&file)).await;
            match expected {
                None => assert_eq!(read.unwrap(), [path.canonicalize().unwrap()], "{name}"),
                Some(expected) => {
                    let error = read.unwrap_err().to_string();
                    assert!(error.contains(expected), "{name}: {error}");
                }
            }
        }
        let missing = folder.path().join("none.yaml").display().to_string();
        for (file, expected) in [
            (missing.as_str(), "none.yaml: there is no such file"),
            ("none.yaml", "no such file; relative paths start at /"),
            (
                "https://example.org/values.yaml",
                "no such file; relative paths",
            ),
            (folder.path().to_str().unwrap(), "directory"),
        ] {
            let error = read_values(&[file.to_owned()])
                .await
                .unwrap_err()
                .to_string();
            assert!(error.contains(FIELD) && error.contains(expected), "{error}");
        }
    }
}
