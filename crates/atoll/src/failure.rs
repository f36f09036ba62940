//! Failures on the terminal: the causes, and a way out where the system's words name none.

use std::error::Error as StdError;
use std::io::ErrorKind;

use model::error::causes;

/// A way out of a failure of the system.
struct Advice {
    kind: ErrorKind,
    words: &'static str,
}

const fn advice(kind: ErrorKind, words: &'static str) -> Advice {
    Advice { kind, words }
}

static ADVICE: &[Advice] = &[
    advice(ErrorKind::NotFound, "check the path"),
    advice(
        ErrorKind::PermissionDenied,
        "check owner and mode, or run the command as the owner",
    ),
    advice(ErrorKind::StorageFull, "free some space, and run it again"),
    advice(
        ErrorKind::QuotaExceeded,
        "free some space, and run it again",
    ),
    advice(
        ErrorKind::ReadOnlyFilesystem,
        "choose a folder on another file system",
    ),
    advice(ErrorKind::IsADirectory, "name a file, not a folder"),
    advice(ErrorKind::NotADirectory, "name a folder, not a file"),
    advice(
        ErrorKind::AlreadyExists,
        "choose another name, or remove it",
    ),
    advice(
        ErrorKind::AddrInUse,
        "stop the program that listens there, or choose another port",
    ),
    advice(
        ErrorKind::ConnectionRefused,
        "check the address, and that the service runs",
    ),
    advice(
        ErrorKind::HostUnreachable,
        "check the address and the network",
    ),
    advice(
        ErrorKind::NetworkUnreachable,
        "check the address and the network",
    ),
    advice(
        ErrorKind::InvalidData,
        "check that it is the right file, and whole",
    ),
];

/// An error with all its causes, on one line. A text that ends with words of the system gets a way out.
pub(crate) fn text(error: &(dyn StdError + 'static)) -> String {
    let mut text = error.to_string();
    for cause in causes(error).map(ToString::to_string) {
        if !text.contains(&cause) {
            text.extend([": ", &cause]);
        }
    }
    let found = system_kind(&text).and_then(|kind| ADVICE.iter().find(|it| it.kind == kind));
    match found {
        Some(found) => format!("{text}: {}", found.words),
        None => text,
    }
}

/// The kind of the system's error that a text ends with: causes are often texts already.
fn system_kind(text: &str) -> Option<ErrorKind> {
    let (_, code) = text.strip_suffix(')')?.rsplit_once("(os error ")?;
    Some(std::io::Error::from_raw_os_error(code.parse().ok()?).kind())
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn causes_are_shown_with_a_way_out() {
        let failed = |code: i32| {
            let cause = io::Error::from_raw_os_error(code);
            let path = "a.db".into();
            let quiet = etcd::SnapshotError::File {
                path,
                source: cause,
            };
            service::Error::new("saving a snapshot", quiet)
        };
        for (code, expected) in [
            (
                2,
                "saving a snapshot: a.db: No such file or directory (os error 2): check the path",
            ),
            (21, "(os error 21): name a file, not a folder"),
            (28, "(os error 28): free some space"),
            (98, "choose another port"),
        ] {
            let text = text(&failed(code));
            assert!(text.contains(expected), "{text}");
        }
    }

    #[test]
    fn remedies_of_the_error_itself_are_the_last_words() {
        let own = service::Error::new("writing a.json", "it exists; use --force to replace it");
        assert_eq!(
            text(&own),
            "writing a.json: it exists; use --force to replace it"
        );
        let wrapped = io::Error::new(io::ErrorKind::NotFound, "no such member");
        let wrapped = service::Error::new("reading a.tar", wrapped);
        assert_eq!(text(&wrapped), "reading a.tar: no such member");
        let quoted = service::Error::new("reading a", "x: Is a directory (os error 21)");
        assert!(text(&quoted).ends_with("21): name a file, not a folder"));
    }
}
