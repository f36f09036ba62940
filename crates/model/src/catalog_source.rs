//! Names of catalog sources in clusters, as mirroring tools write them.
//!
//! Source: openshift/oc-mirror, `v2/internal/pkg/clusterresources`.

/// Longest name of an object that becomes a host name. Source: RFC 1035, label.
pub const NAME_LIMIT: usize = 63;
/// Length of a tag in a name.
const TAG_LIMIT: usize = 12;

/// `PREFIX-<last component of the repository>-<tag>`: `cs` for catalog sources, `cc` for cluster catalogs.
pub fn name(prefix: &str, repository: &str, tag: &str) -> String {
    let last = repository
        .rsplit_once('/')
        .map_or(repository, |(_, last)| last);
    let tag: String = tag.chars().take(TAG_LIMIT).collect();
    label(&format!("{prefix}-{last}-{tag}"))
}

/// A label of host names: other characters become a dash, runs of dashes one, and trailing dashes are dropped.
pub fn label(text: &str) -> String {
    let mut label = String::new();
    for c in text.chars().flat_map(char::to_lowercase) {
        let c = if c.is_ascii_lowercase() || c.is_ascii_digit() {
            c
        } else {
            '-'
        };
        if c != '-' || !label.ends_with('-') {
            label.push(c);
        }
    }
    shortened(label, NAME_LIMIT)
}

/// Without a dash at the end.
pub fn shortened(mut label: String, limit: usize) -> String {
    label.truncate(limit);
    if label.ends_with('-') {
        label.truncate(limit - 2);
        let end = if label.ends_with('-') { "0" } else { "-0" };
        label.push_str(end);
    }
    label
}
