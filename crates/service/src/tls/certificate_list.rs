//! A list of certificates, in HAProxy's format `crt-list`.
//!
//! Each line names a PEM bundle; `[alpn h2,http/1.1]` and the server names that it is for may follow. Lines that begin
//! with `#` are comments. Without names, those in the certificate count.

use std::fmt;
use std::path::{Path, PathBuf};

/// A line of the list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ListEntry {
    /// Certificate, chain and key in one file.
    pub(super) bundle: PathBuf,
    /// Protocols that are offered; absent: those of the listener.
    pub(super) alpn: Option<Vec<String>>,
    /// Server names that it is for; empty: those in the certificate.
    pub(super) names: Vec<NamePattern>,
    /// Server names that it is not for.
    pub(super) excluded: Vec<NamePattern>,
    /// Options that have no effect here, as `ssl-min-ver`.
    pub(super) ignored: Vec<String>,
}

/// A server name, or all with one label below a domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NamePattern {
    Exact(String),
    /// `*.DOMAIN`.
    Below(String),
}

/// How well a pattern matches; a later one is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum NameMatch {
    Wildcard,
    Exact,
}

impl fmt::Display for NamePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(name) => f.write_str(name),
            Self::Below(domain) => write!(f, "*.{domain}"),
        }
    }
}

impl NamePattern {
    pub(super) fn new(text: &str) -> Self {
        let text = text.trim_end_matches('.').to_ascii_lowercase();
        match text.strip_prefix("*.") {
            Some(domain) => Self::Below(domain.to_owned()),
            None => Self::Exact(text),
        }
    }

    /// How well it matches `name`, which is in lower case.
    pub(super) fn matches(&self, name: &str) -> Option<NameMatch> {
        match self {
            Self::Exact(own) => (own == name).then_some(NameMatch::Exact),
            // A wildcard covers one label. Source: RFC 6125, section 6.4.3.
            Self::Below(domain) => name
                .split_once('.')
                .is_some_and(|(label, rest)| !label.is_empty() && rest == domain)
                .then_some(NameMatch::Wildcard),
        }
    }
}

/// Parses the list at `path`; names of bundles are relative to its folder.
///
/// Errors: a line with an unclosed `[`; no line at all.
pub(super) fn parse(path: &Path, text: &str) -> Result<Vec<ListEntry>, String> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut entries = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let entry = entry(folder, line)
            .map_err(|reason| format!("{}: line {number}: {reason}", path.display()))?;
        entries.push(entry);
    }
    if entries.is_empty() {
        return Err(format!("{}: it names no certificate", path.display()));
    }
    Ok(entries)
}

fn entry(folder: &Path, line: &str) -> Result<ListEntry, &'static str> {
    let (bundle, rest) = line
        .split_once(|c: char| c.is_whitespace())
        .unwrap_or((line, ""));
    let rest = rest.trim_start();
    let (options, filters) = match rest.strip_prefix('[') {
        None => ("", rest),
        Some(rest) => rest
            .split_once(']')
            .ok_or("the bracket of its options is not closed")?,
    };
    let mut entry = ListEntry {
        bundle: folder.join(bundle),
        ..ListEntry::default()
    };
    let mut options = options.split_whitespace();
    while let Some(option) = options.next() {
        match (option, options.next()) {
            ("alpn", Some(protocols)) => {
                let protocols = protocols.split(',').map(str::to_owned);
                entry.alpn = Some(protocols.filter(|name| !name.is_empty()).collect());
            }
            (option, _) => entry.ignored.push(option.to_owned()),
        }
    }
    for filter in filters.split_whitespace() {
        match filter.strip_prefix('!') {
            Some(excluded) => entry.excluded.push(NamePattern::new(excluded)),
            None => entry.names.push(NamePattern::new(filter)),
        }
    }
    Ok(entry)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_name_bundles_options_and_server_names() {
        let text = "# site\n\n  a.pem\n/etc/b.pem [alpn h2,http/1.1 ssl-min-ver TLSv1.3] *.B.example !x.b.example b.example.\n\
                    c.pem [] c.example\n";
        let entries = parse(Path::new("/certs/crt-list.txt"), text).unwrap();
        let bundles: Vec<_> = entries.iter().map(|entry| entry.bundle.clone()).collect();
        let expected = ["/certs/a.pem", "/etc/b.pem", "/certs/c.pem"].map(PathBuf::from);
        assert_eq!(bundles, expected);
        assert_eq!(entries[0].alpn, None);
        let alpn = entries[1].alpn.as_deref().unwrap();
        assert_eq!(alpn, ["h2", "http/1.1"]);
        assert_eq!(entries[1].ignored, ["ssl-min-ver"]);
        let below = NamePattern::Below("b.example".to_owned());
        assert_eq!(entries[1].names, [below, NamePattern::new("b.example")]);
        assert_eq!(entries[1].excluded, [NamePattern::new("x.b.example")]);
        assert_eq!(entries[2].names, [NamePattern::new("c.example")]);
    }

    #[test]
    fn a_list_without_a_certificate_and_a_broken_line_are_refused_with_their_place() {
        let path = Path::new("list");
        let error = parse(path, "# nothing\n").unwrap_err();
        assert_eq!(error, "list: it names no certificate");
        let error = parse(path, "a.pem\nb.pem [alpn h2\n").unwrap_err();
        assert!(error.starts_with("list: line 2: the bracket"), "{error}");
    }

    #[test]
    fn a_wildcard_covers_one_label() {
        let below = NamePattern::new("*.d.example");
        for (name, matched) in [
            ("a.d.example", true),
            ("a.b.d.example", false),
            ("d.example", false),
            (".d.example", false),
        ] {
            assert_eq!(below.matches(name).is_some(), matched, "{name}");
        }
        let exact = NamePattern::new("D.example.");
        assert_eq!(exact.matches("d.example"), Some(NameMatch::Exact));
    }
}
