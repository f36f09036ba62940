//! Small text files that commands take.

use std::fs::File;
use std::io::{Error as IoError, Read as _};
use std::path::Path;

use service::Error;

/// Largest file of certificates, keys or a password hash. Units: bytes.
pub(super) const MAX_TEXT: usize = 1 << 20;

/// The text of a file.
///
/// Errors: it cannot be read, is longer than [`MAX_TEXT`], or is not UTF-8.
pub(super) fn text(path: &Path) -> Result<String, Error> {
    let bytes = bytes(path, MAX_TEXT)?;
    let failed = |reason: String| Error::new(doing(path), reason);
    if bytes.len() > MAX_TEXT {
        return Err(failed(format!("it has more than {MAX_TEXT} bytes")));
    }
    String::from_utf8(bytes).map_err(|error| failed(format!("it is not UTF-8: {error}")))
}

/// The content of a file, and one byte more than `most` of a longer one.
///
/// Errors: it cannot be read.
pub(super) fn bytes(path: &Path, most: usize) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| {
        let mut bounded = file.take(most as u64 + 1);
        bounded.read_to_end(&mut bytes)
    });
    read.map_err(|error: IoError| Error::new(doing(path), error))?;
    Ok(bytes)
}

fn doing(path: &Path) -> String {
    format!("reading {}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ca.pem");
        for (content, expected) in [
            // limit: MAX_TEXT
            (vec![b'a'; MAX_TEXT], None),
            (vec![b'a'; MAX_TEXT + 1], Some("more than 1048576 bytes")),
            (vec![0xff], Some("not UTF-8")),
        ] {
            std::fs::write(&path, content).unwrap();
            let error = text(&path).err().map(|error| error.to_string());
            let is_expected = match (&error, expected) {
                (None, None) => true,
                (Some(error), Some(part)) => error.contains(part) && error.contains("ca.pem"),
                _ => false,
            };
            assert!(is_expected, "{error:?}");
        }
        assert!(text(folder.path()).is_err());
    }
}
