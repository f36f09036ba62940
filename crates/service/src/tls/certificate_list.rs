//! A list of certificates, in HAProxy's format `crt-list`.
//!
//! Each line names a PEM bundle; options in brackets and the server names that it is for may follow. `#` begins a
//! comment. Without names, those in the certificate count. Source: HAProxy, `crt-list`.

use std::fmt;
use std::path::{Path, PathBuf};

use super::line_options::LineOptions;

/// The filter of a default certificate.
const ANY_NAME: &str = "*";

/// A line of the list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ListEntry {
    /// Certificate and chain, and the key unless it has a file of its own.
    pub(super) bundle: PathBuf,
    pub(super) options: LineOptions,
    /// Server names that it is for; empty: those in the certificate.
    pub(super) names: Vec<NamePattern>,
    /// Server names that it is not for.
    pub(super) excluded: Vec<NamePattern>,
    /// Whether it serves clients that ask for no name of the list; else, the first line does. Source: HAProxy 3.0.
    pub(super) is_default: bool,
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

/// Parses the list at `path`; names of files are relative to its folder.
///
/// Errors: a line whose brackets do not match; no line at all.
pub(super) fn parse(path: &Path, text: &str) -> Result<Vec<ListEntry>, String> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut entries = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = without_comment(line).trim();
        if line.is_empty() {
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

/// A comment begins a line, or follows blanks: names of files may have a `#`.
fn without_comment(line: &str) -> &str {
    let mut marks = line.match_indices('#').map(|(at, _)| at);
    let comment = marks.find(|at| {
        line[..*at]
            .chars()
            .next_back()
            .is_none_or(char::is_whitespace)
    });
    comment.map_or(line, |at| &line[..at])
}

fn entry(folder: &Path, line: &str) -> Result<ListEntry, &'static str> {
    let (bundle, rest) = match line.find(|c: char| c.is_whitespace() || c == '[') {
        Some(end) => line.split_at(end),
        None => (line, ""),
    };
    if bundle.is_empty() {
        return Err("the file of its certificate is missing before the bracket");
    }
    let (options, filters) = match rest.trim_start().strip_prefix('[') {
        None => ("", rest),
        Some(rest) => rest
            .split_once(']')
            .ok_or("the bracket of its options is not closed")?,
    };
    if options.contains('[') || filters.contains(['[', ']']) {
        return Err("expected FILE [OPTIONS] NAMES, with one pair of brackets");
    }
    let mut entry = ListEntry {
        bundle: folder.join(bundle),
        options: LineOptions::parse(folder, options),
        ..ListEntry::default()
    };
    for filter in filters.split_whitespace() {
        match filter.strip_prefix('!') {
            None if filter == ANY_NAME => entry.is_default = true,
            Some(ANY_NAME) => {}
            Some(excluded) => entry.excluded.push(NamePattern::new(excluded)),
            None => entry.names.push(NamePattern::new(filter)),
        }
    }
    Ok(entry)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tls::TlsVersion;

    #[test]
    fn lines_name_bundles_options_and_server_names() {
        let text = "# site\n\n  a.pem\n/etc/b.pem [alpn h2,http/1.1 ssl-min-ver TLSv1.3] *.B.example !x.b.example b.example.\n\
                    c.pem[] c.example # d.example\n\r\n";
        let entries = parse(Path::new("/certs/crt-list.txt"), text).unwrap();
        let bundles: Vec<_> = entries.iter().map(|entry| entry.bundle.clone()).collect();
        let expected = ["/certs/a.pem", "/etc/b.pem", "/certs/c.pem"].map(PathBuf::from);
        assert_eq!(bundles, expected);
        assert_eq!(entries[0].options, LineOptions::default());
        let alpn = entries[1].options.alpn.as_deref().unwrap();
        assert_eq!(alpn, ["h2", "http/1.1"]);
        let demands = &entries[1].options.demands;
        assert_eq!(demands.minimum, Some(TlsVersion::Tls13));
        let below = NamePattern::Below("b.example".to_owned());
        assert_eq!(entries[1].names, [below, NamePattern::new("b.example")]);
        assert_eq!(entries[1].excluded, [NamePattern::new("x.b.example")]);
        assert_eq!(entries[2].names, [NamePattern::new("c.example")]);
        let named = parse(Path::new("list"), "a#b.pem #c\n").unwrap();
        assert_eq!(named[0].bundle, Path::new("a#b.pem"));
        let defaults = parse(Path::new("list"), "a.pem !*\nb.pem * b.example\n").unwrap();
        let is_default: Vec<_> = defaults.iter().map(|entry| entry.is_default).collect();
        assert_eq!(is_default, [false, true]);
        assert!(defaults[0].excluded.is_empty() && defaults[1].names.len() == 1);
    }

    #[test]
    fn a_list_without_a_certificate_and_a_broken_line_are_refused_with_their_place() {
        let path = Path::new("list");
        let error = parse(path, "# nothing\n").unwrap_err();
        assert_eq!(error, "list: it names no certificate");
        let error = parse(path, "a.pem\nb.pem [alpn h2\n").unwrap_err();
        assert!(error.starts_with("list: line 2: the bracket"), "{error}");
        for line in [
            "[alpn h2] a.pem",
            "a.pem a.example [verify required]",
            "a.pem [alpn h2] [verify required]",
            "a.pem [alpn [h2]",
            "a.pem alpn h2]",
        ] {
            let error = parse(path, line).unwrap_err();
            assert!(error.starts_with("list: line 1: "), "{line}: {error}");
        }
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
