//! Validation of names.

use super::ProblemReport;
use crate::{Document, Rule};

/// Longest label. Units: bytes.
const MAX_LABEL: usize = 63;

/// The reason why a name is not a DNS-1123 label.
///
/// Source: RFC 1123.
pub(crate) fn label_flaw(name: &str) -> Option<&'static str> {
    let fits = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    if name.len() > MAX_LABEL {
        Some("must be no more than 63 characters")
    } else if name.is_empty()
        || !name.bytes().all(fits)
        || name.starts_with('-')
        || name.ends_with('-')
    {
        Some(
            "must consist of lower case letters, digits and '-', and start and end with a letter or digit",
        )
    } else {
        None
    }
}

/// Checks schema and package of a custom document. Source: `opm serve`; `opm validate` accepts any.
pub(crate) fn check_custom(document: &Document, report: &mut ProblemReport<'_>) {
    let names = [
        ("schema", &document.schema),
        ("packageName", &document.package),
    ];
    for (what, name) in names {
        if !name.is_empty() && !is_plain(name) {
            let text = format!(
                "invalid custom schema meta: invalid {what} {name:?}: must match ^[a-zA-Z0-9][a-zA-Z0-9._-]*$"
            );
            report.add(Rule::CustomSchema, &document.origin, text);
        }
    }
}

fn is_plain(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
}
