//! HTML of listings and of errors: no scripts, nothing from elsewhere, good in text browsers.

use std::fmt::Write as _;
use std::sync::LazyLock;

use axum::response::{IntoResponse as _, Response};
use data_encoding::BASE64;
use http::{HeaderName, HeaderValue, StatusCode, header};
use ring::digest::{SHA256, digest};

use super::path::{RequestPath, encode};
use super::sort::{SortBy, SortOrder};

/// The one style.
pub(crate) const STYLE: &str = "body{font:1em/1.5 system-ui,sans-serif;margin:1.5em auto;max-width:75em;padding:0 1em}\
h1{font-size:1.3em;overflow-wrap:anywhere}\
h2{font-size:1.1em;overflow-wrap:anywhere}\
table{border-collapse:collapse;width:100%}\
th,td{padding:.15em .6em;text-align:left;vertical-align:top}\
th{border-bottom:1px solid}\
td:first-child{overflow-wrap:anywhere}\
td:nth-child(2),th:nth-child(2){text-align:right}\
td:nth-child(n+2){font-variant-numeric:tabular-nums;white-space:nowrap}\
tbody tr:hover{background:#8882}\
a{text-decoration:none}a:hover,a:focus{text-decoration:underline}\
p{opacity:.8}pre{overflow-x:auto}";

/// Columns: the order of a link, and the heading.
const COLUMNS: [(SortBy, &str); 3] = [
    (SortBy::Name, "Name"),
    (SortBy::Size, "Size"),
    (SortBy::Time, "Modified"),
];

/// End of the name of a checksum.
pub(super) const CHECKSUM_END: &str = ".sha256";

/// Allows the style, by its digest, and nothing else.
static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| {
    let style = BASE64.encode(digest(&SHA256, STYLE.as_bytes()).as_ref());
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{style}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    HeaderValue::from_str(&policy).expect("base64 is ASCII")
});

/// Headers of every page.
pub(crate) fn headers() -> [(HeaderName, HeaderValue); 4] {
    [
        (
            header::CONTENT_TYPE,
            HeaderValue::from_static("text/html; charset=utf-8"),
        ),
        (header::CONTENT_SECURITY_POLICY, POLICY.clone()),
        (
            header::X_CONTENT_TYPE_OPTIONS,
            HeaderValue::from_static("nosniff"),
        ),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
    ]
}

/// A page that says why there is nothing else.
pub(super) fn message(status: StatusCode, text: &str) -> Response {
    let title = format!(
        "{} {}",
        status.as_u16(),
        status.canonical_reason().unwrap_or_default()
    );
    let mut page = String::new();
    begin(&title, &mut page);
    page.push_str("<h1>");
    page.push_str(&title);
    page.push_str("</h1>\n<p>");
    escape(text, &mut page);
    page.push_str("</p>\n<p><a href=\"/\">All files</a></p>\n</body></html>\n");
    (status, headers(), page).into_response()
}

fn begin(title: &str, page: &mut String) {
    page.push_str("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n");
    page.push_str("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    page.push_str("<meta name=\"color-scheme\" content=\"light dark\">\n<title>");
    page.push_str(title);
    page.push_str("</title>\n<style>");
    page.push_str(STYLE);
    page.push_str("</style></head>\n<body>\n");
}

/// The page up to the first entry.
pub(super) fn listing_head(path: &RequestPath, order: Option<SortOrder>, page: &mut String) {
    let mut title = "Index of /".to_owned();
    for component in path.components() {
        name(component, &mut title);
        title.push('/');
    }
    begin(&title, page);
    page.push_str("<h1>Index of ");
    breadcrumbs(path, page);
    page.push_str("</h1>\n");
    if order.is_none() {
        page.push_str(
            "<p>Too many entries to sort: they are in the order of the file system.</p>\n",
        );
    }
    page.push_str("<table>\n<thead><tr>");
    for (by, heading) in COLUMNS {
        page.push_str("<th scope=\"col\">");
        match order {
            None => page.push_str(heading),
            Some(order) => column(by, heading, order, page),
        }
        page.push_str("</th>");
    }
    page.push_str("<th scope=\"col\">Checksum</th></tr></thead>\n<tbody>\n");
    if path.name().is_some() {
        page.push_str("<tr><td><a href=\"../\">../</a></td><td>-</td><td></td><td></td></tr>\n");
    }
}

/// Links to the root and each folder, relative, so that the page works below any address.
fn breadcrumbs(path: &RequestPath, page: &mut String) {
    let depth = path.components().count();
    let link = |up: usize, page: &mut String| {
        page.push_str("<a href=\"");
        page.push_str(if up == 0 { "./" } else { "" });
        (0..up).for_each(|_| page.push_str("../"));
        page.push_str("\">");
    };
    link(depth, page);
    page.push_str("/</a>");
    for (index, component) in path.components().enumerate() {
        link(depth - index - 1, page);
        name(component, page);
        page.push_str("/</a>");
    }
}

/// A heading whose link sorts by its column, and reverses the order where it is sorted by it already.
fn column(by: SortBy, heading: &str, order: SortOrder, page: &mut String) {
    let is_current = order.by == by;
    let next = if is_current && !order.is_descending {
        "desc"
    } else {
        "asc"
    };
    let by = by.text();
    write!(
        page,
        "<a rel=\"nofollow\" href=\"?sort={by}&amp;order={next}\">{heading}</a>"
    )
    .unwrap_or_default();
    if is_current {
        page.push_str(if order.is_descending { " ↓" } else { " ↑" });
    }
}

/// A name, without characters that hide others or change their direction.
fn name(bytes: &[u8], page: &mut String) {
    match std::str::from_utf8(bytes) {
        Ok(text) => escape(text, page),
        Err(_) => escape(&String::from_utf8_lossy(bytes), page),
    }
}

/// Appends text as HTML.
fn escape(text: &str, page: &mut String) {
    let is_plain =
        |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'<' | b'>' | b'&' | b'"' | b'\'');
    if text.bytes().all(is_plain) {
        page.push_str(text);
        return;
    }
    for c in text.chars() {
        match c {
            '<' => page.push_str("&lt;"),
            '>' => page.push_str("&gt;"),
            '&' => page.push_str("&amp;"),
            '"' => page.push_str("&quot;"),
            '\'' => page.push_str("&#39;"),
            c if c.is_control() || is_direction(c) => page.push(char::REPLACEMENT_CHARACTER),
            c => page.push(c),
        }
    }
}

/// Marks of direction, which could disguise one name as another.
fn is_direction(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Columns of an entry.
pub(super) struct ListingRow<'a> {
    pub(super) name: &'a [u8],
    pub(super) is_folder: bool,
    /// Units: bytes.
    pub(super) size: Option<u64>,
    /// As it is shown.
    pub(super) modified: &'a str,
}

impl ListingRow<'_> {
    pub(super) fn write(&self, page: &mut String) {
        let slash = if self.is_folder { "/" } else { "" };
        page.push_str("<tr><td><a href=\"");
        let start = page.len();
        encode(self.name, page);
        let end = page.len();
        page.push_str(slash);
        page.push_str("\">");
        name(self.name, page);
        page.push_str(slash);
        page.push_str("</a></td><td>");
        match self.size {
            Some(size) => write_size(size, page),
            None => page.push('-'),
        }
        page.push_str("</td><td>");
        page.push_str(self.modified);
        page.push_str("</td><td>");
        if self.size.is_some() && !self.name.ends_with(CHECKSUM_END.as_bytes()) {
            page.push_str("<a href=\"");
            page.extend_from_within(start..end);
            page.push_str(CHECKSUM_END);
            page.push_str("\">sha256</a>");
        }
        page.push_str("</td></tr>\n");
    }
}

/// The page after the last entry. `notes` are sentences, `archives` is the URL of archives in the folder.
pub(super) fn listing_end(notes: &str, archives: Option<&str>, page: &mut String) {
    page.push_str("</tbody></table>\n");
    if let Some(url) = archives {
        page.push_str(
            "<p>Archives of an image set are verified and published from here:</p>\n<pre>",
        );
        escape(&format!("atoll mirror verify {url}"), page);
        page.push('\n');
        escape(
            &format!("atoll mirror --from {url} docker://REGISTRY:PORT/NAMESPACE"),
            page,
        );
        page.push_str("</pre>\n");
    }
    page.push_str("<p>");
    escape(notes, page);
    page.push_str("</p>\n</body></html>\n");
}

/// Up to 9999 bytes exactly, else in the largest unit, without decimals. Source: nginx, `autoindex_exact_size off`.
fn write_size(size: u64, text: &mut String) {
    let (shift, unit) = match size {
        0..=9999 => (0, ""),
        10_000..1_048_576 => (10, "K"),
        1_048_576..1_073_741_824 => (20, "M"),
        _ => (30, "G"),
    };
    let half = (1_u64 << shift) >> 1;
    let rounded = (size >> shift) + u64::from(half > 0 && size & ((1 << shift) - 1) >= half);
    write!(text, "{rounded}{unit}").unwrap_or_default();
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sizes_are_shown_as_by_nginx() {
        for (size, expected) in [
            (0, "0"),
            (9999, "9999"),
            (10_000, "10K"),
            (1_000_000, "977K"),
            (1_048_575, "1024K"),
            (1 << 20, "1M"),
            (10_485_759, "10M"),
            ((3 << 19) - 1, "1M"),
            (3 << 19, "2M"),
            (5500 << 20, "5G"),
            (9999 << 20, "10G"),
            (u64::MAX, "17179869184G"),
        ] {
            let mut text = String::new();
            write_size(size, &mut text);
            assert_eq!(text, expected, "{size}");
        }
    }

    #[test]
    fn the_policy_names_the_style() {
        let policy = POLICY.to_str().unwrap();
        assert!(policy.contains("style-src 'sha256-"), "{policy}");
        assert!(!policy.contains("unsafe"), "{policy}");
    }

    proptest! {
        #[test]
        fn names_have_no_markup(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let mut page = String::new();
            name(&bytes, &mut page);
            prop_assert!(!page.contains(['<', '>', '"', '\'', '\0', '\u{202e}']), "{page}");
            let mut url = String::new();
            encode(&bytes, &mut url);
            prop_assert!(!url.contains(['<', '>', '"', '\'', ':', '/', '?', '#']), "{url}");
        }
    }
}
