//! The note about the archives of a folder: how they are verified and published from their URL.

use http::request::Parts;
use http::{Extensions, header};
use model::archive_name;

/// Longest host of a note, with its port.
const HOST_LIMIT: usize = 261;

/// Marks requests that were received by HTTPS.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReceivedByHttps;

/// The archives among the entries of a folder.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ArchiveSets {
    /// The latest sequence.
    sequence: Option<u64>,
    has_several: bool,
}

impl ArchiveSets {
    /// Notes a file.
    pub(super) fn note(&mut self, name: &[u8]) {
        let Some((sequence, _)) = std::str::from_utf8(name).ok().and_then(archive_name::parse)
        else {
            return;
        };
        self.has_several |= self.sequence.is_some_and(|other| other != sequence);
        self.sequence = self.sequence.max(Some(sequence));
    }

    /// The URL of the only set, or of the latest one, below that of the folder; none without archives.
    pub(super) fn url(&self, folder: &str) -> Option<String> {
        let sequence = self.sequence?;
        Some(if self.has_several {
            format!("{folder}{}", archive_name::file_name(sequence, 0))
        } else {
            folder.to_owned()
        })
    }
}

/// Scheme and host of the URL of a request; none for a host with characters that no host has.
pub(super) fn origin(head: &Parts) -> Option<String> {
    let host = head.headers.get(header::HOST);
    let host = match head.uri.authority() {
        Some(authority) => authority.as_str(),
        None => host?.to_str().ok()?,
    };
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:[]".contains(&byte);
    let is_host = !host.is_empty() && host.len() <= HOST_LIMIT && host.bytes().all(is_part);
    is_host.then(|| format!("{}://{host}", scheme(&head.extensions)))
}

fn scheme(extensions: &Extensions) -> &'static str {
    match extensions.get::<ReceivedByHttps>() {
        Some(ReceivedByHttps) => "https",
        None => "http",
    }
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn of_host(host: &[u8]) -> Option<String> {
        let request = Request::builder().header(header::HOST, host);
        origin(&request.body(()).unwrap().into_parts().0)
    }

    #[test]
    fn only_hosts_become_part_of_a_command() {
        for host in ["mirror.example.org", "127.0.0.1:8080", "[::1]:8080"] {
            assert_eq!(of_host(host.as_bytes()), Some(format!("http://{host}")));
        }
        for host in [
            "",
            "a b",
            "a;reboot",
            "$(reboot)",
            "`reboot`",
            "<b>",
            "me:secret@a",
            "a/b",
            "a\"",
            "a&b",
            "a|b",
        ] {
            assert_eq!(of_host(host.as_bytes()), None, "{host}");
        }
        assert_eq!(of_host(b"\xff"), None);
    }

    // limit: host of a note
    #[test]
    fn hosts_are_bounded() {
        assert!(of_host("a".repeat(HOST_LIMIT).as_bytes()).is_some());
        assert_eq!(of_host("a".repeat(HOST_LIMIT + 1).as_bytes()), None);
    }

    #[test]
    fn the_url_is_that_of_one_set() {
        let of = |names: &[&str]| {
            let mut sets = ArchiveSets::default();
            for name in names {
                sets.note(name.as_bytes());
            }
            sets.url("http://a/b/")
        };
        assert_eq!(of(&["a.tar", "mirror_seq1_0.tar"]), None);
        let one = ["mirror_seq7_000000.tar", "mirror_seq7_000001.tar", "b"];
        assert_eq!(of(&one), Some("http://a/b/".to_owned()));
        let two = [
            "mirror_seq7_000000.tar",
            "mirror_seq12_000000.tar",
            "mirror_seq7_000001.tar",
        ];
        let latest = "http://a/b/mirror_seq12_000000.tar".to_owned();
        assert_eq!(of(&two), Some(latest));
    }
}
