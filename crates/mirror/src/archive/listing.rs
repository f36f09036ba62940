//! The archives that the listing of a web server links to: of nginx, Apache, the reverse proxy, and others in HTML.
//!
//! A listing is not trusted: only links to files of its own folder count, and they are bounded.

use std::collections::BTreeMap;

use model::Error;
use net::web::{self, WebPage};
use percent_encoding::percent_decode_str;
use url::Url;

/// Largest listing: some 50 000 entries. Units: bytes.
pub(super) const LISTING_LIMIT_BYTES: u64 = 16 << 20;
/// Most archive files of a listing.
pub(super) const FILES_LIMIT: usize = 10_000;
/// Longest link. Units: bytes.
const LINK_LIMIT_BYTES: usize = 4096;
/// Folders that an error names.
const NAMED_FOLDERS: usize = 5;
/// End of the names of archives.
pub(super) const END: &str = ".tar";

/// The archives of a listing, by name.
///
/// Errors: Invalid – there are none, or too many.
pub(super) fn archives(page: &WebPage) -> Result<Vec<(String, Url)>, Error> {
    let text = String::from_utf8_lossy(&page.bytes);
    let mut found = BTreeMap::new();
    let mut folders = Vec::new();
    for link in links(&text) {
        let Some((name, url)) = entry(&page.url, &link) else {
            continue;
        };
        if name.ends_with('/') {
            if folders.len() < NAMED_FOLDERS && !folders.contains(&name) {
                folders.push(name);
            }
        } else if name.ends_with(END) {
            found.insert(name, url);
            if found.len() > FILES_LIMIT {
                let reason = format!("it links to more than {FILES_LIMIT} files {END}");
                return Err(Error::invalid(web::shown(&page.url), reason));
            }
        }
    }
    if found.is_empty() {
        return Err(Error::invalid(web::shown(&page.url), none(&folders)));
    }
    Ok(found.into_iter().collect())
}

fn none(folders: &[String]) -> String {
    let mut reason = "no archives found: the page has no link to a file of that folder whose name ends with .tar, as \
                      mirror_seq1_000000.tar does"
        .to_owned();
    if folders.is_empty() {
        reason.push_str("; is it a listing? Without one, name the first file of the set");
    } else {
        let folders = folders.join(", ");
        reason.push_str("; folders are not searched, it has ");
        reason.push_str(&folders);
    }
    reason
}

/// Name and URL of a file or folder right below the page; that of a folder ends with a slash.
fn entry(page: &Url, link: &str) -> Option<(String, Url)> {
    if !link.ends_with(END) && !link.ends_with('/') {
        return None;
    }
    let url = page.join(link).ok()?;
    let is_own = url.origin() == page.origin()
        && (url.username(), url.password()) == (page.username(), page.password());
    if !is_own || url.query().is_some() || url.fragment().is_some() {
        return None;
    }
    let folder = page.path().rfind('/').map(|at| &page.path()[..=at])?;
    let encoded = url.path().strip_prefix(folder)?;
    let (name, slash) = match encoded.strip_suffix('/') {
        Some(name) => (name, "/"),
        None => (encoded, ""),
    };
    let name = percent_decode_str(name).decode_utf8().ok()?;
    let is_name = |it: &str| !it.is_empty() && !it.contains('/') && !it.contains(char::is_control);
    if !is_name(&name) {
        return None;
    }
    let name = format!("{name}{slash}");
    Some((name, url))
}

/// The values of all `href`, unescaped.
fn links(page: &str) -> impl Iterator<Item = String> {
    let mut rest = page;
    std::iter::from_fn(move || {
        loop {
            let at = rest.bytes().zip(1..).find_map(|(byte, next)| {
                let is_start = byte.eq_ignore_ascii_case(&b'h');
                let following = rest.get(next..next + 3).filter(|_| is_start)?;
                following.eq_ignore_ascii_case("ref").then_some(next + 3)
            })?;
            rest = &rest[at..];
            if let Some((value, after)) = value(rest) {
                // Behind the value, so that each byte is read once.
                rest = after;
                if value.len() <= LINK_LIMIT_BYTES {
                    return Some(unescaped(value));
                }
            }
        }
    })
}

/// The value of an attribute after its name, and the text after it.
fn value(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start().strip_prefix('=')?.trim_start();
    let quote = text.chars().next().filter(|c| ['"', '\''].contains(c));
    if let Some(quote) = quote {
        return text[1..].split_once(quote);
    }
    let end = text.find(|c: char| c.is_whitespace() || c == '>');
    Some(text.split_at(end.unwrap_or(text.len())))
}

fn unescaped(value: &str) -> String {
    let mut text = value.to_owned();
    for (escaped, character) in [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#39;", "'"),
        ("&amp;", "&"),
    ] {
        text = text.replace(escaped, character);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(html: &str) -> WebPage {
        WebPage {
            url: "https://a.example/pub/archives/".parse().unwrap(),
            bytes: html.to_owned().into(),
        }
    }

    fn found(html: &str) -> Vec<String> {
        let found = archives(&page(html)).unwrap().into_iter();
        found
            .map(|(name, url)| format!("{name} {}", url.path()))
            .collect()
    }

    #[test]
    fn listings_of_common_servers_are_read() {
        let expected = ["mirror_seq1_000000.tar /pub/archives/mirror_seq1_000000.tar"];
        let nginx = "<html>\r\n<head><title>Index of /pub/archives/</title></head>\r\n<body>\r\n\
            <h1>Index of /pub/archives/</h1><hr><pre><a href=\"../\">../</a>\r\n\
            <a href=\"mirror_seq1_000000.tar\">mirror_seq1_000000.tar</a>    27-Nov-2026 10:00   1073741824\r\n";
        let apache = "<tr><th valign=\"top\"><img src=\"/icons/blank.gif\" alt=\"[ICO]\"></th><th><a href=\"?C=N;O=D\">Name</a></th>\
            <tr><td><a href=\"/pub/\">Parent Directory</a></td></tr>\
            <tr><td valign=\"top\"><a href=\"mirror_seq1_000000.tar\"><img src=\"/icons/tar.gif\"></a></td>\
            <td><a href=\"mirror_seq1_000000.tar\">mirror_seq1_000..&gt;</a></td></tr>";
        let lighttpd = "<A HREF='mirror_seq1_000000.tar'>x</A>";
        let absolute = "<a class=x href = /pub/archives/mirror_seq1_000000.tar>x</a>";
        for html in [nginx, apache, lighttpd, absolute] {
            assert_eq!(found(html), expected, "{html}");
        }
        let named = found("<a href=\"a%20b&amp;c.tar\">x</a><a href=\"./d.tar\">x</a>");
        assert_eq!(
            named,
            [
                "a b&c.tar /pub/archives/a%20b&c.tar",
                "d.tar /pub/archives/d.tar"
            ]
        );
    }

    #[test]
    fn links_out_of_the_folder_do_not_count() {
        for link in [
            "../a.tar",
            "/a.tar",
            "/pub/archives/below/a.tar",
            "https://b.example/pub/archives/a.tar",
            "//b.example/pub/archives/a.tar",
            "http://a.example/pub/archives/a.tar",
            "https://a.example:8443/pub/archives/a.tar",
            "https://me:secret@a.example/pub/archives/a.tar",
            "javascript:alert(1)//a.tar",
            "data:text/html,a.tar",
            "file:///etc/a.tar",
            "..%2f..%2fetc%2fa.tar",
            "a%0a.tar",
            "a%00.tar",
            "%ff.tar",
            "a.tar?x",
            "a.tar#x",
            "https://[/a.tar",
            "",
        ] {
            let error = archives(&page(&format!("<a href=\"{link}\">x</a>"))).unwrap_err();
            assert!(error.to_string().contains("no archives found"), "{link}");
        }
        for html in [
            "",
            "href",
            "href=",
            "href=\"",
            "href='a.tar",
            "<a href>",
            "hrefé=a.tar",
            "hré",
        ] {
            assert!(archives(&page(html)).is_err(), "{html}");
        }
    }

    // limit: archive files of a listing
    #[test]
    fn archives_of_a_listing_are_bounded() {
        let links = |count: usize| {
            let links: Vec<_> = (0..count).map(|n| format!("<a href={n}.tar>")).collect();
            page(&links.concat())
        };
        assert_eq!(archives(&links(FILES_LIMIT)).unwrap().len(), FILES_LIMIT);
        let error = archives(&links(FILES_LIMIT + 1)).unwrap_err().to_string();
        assert!(error.contains("more than 10000 files"), "{error}");
    }

    // limit: bytes of a link
    #[test]
    fn links_are_bounded() {
        let link = |length: usize| format!("<a href='{}.tar'>", "a".repeat(length - END.len()));
        assert_eq!(archives(&page(&link(LINK_LIMIT_BYTES))).unwrap().len(), 1);
        assert!(archives(&page(&link(LINK_LIMIT_BYTES + 1))).is_err());
    }

    #[test]
    fn hostile_pages_are_read_in_linear_time() {
        let count = 200_000;
        for part in ["href=\"", "href=", "href='", "href ", "href=a "] {
            assert!(archives(&page(&part.repeat(count))).is_err());
        }
    }

    #[test]
    fn an_error_names_the_folders_and_the_searched_names() {
        let error = archives(&page(
            "<a href=../>x</a><a href=one/>x</a><a href=two/>x</a>",
        ));
        insta::assert_snapshot!(error.unwrap_err(), @"https://a.example/pub/archives/: no archives found: the page has no link to a file of that folder whose name ends with .tar, as mirror_seq1_000000.tar does; folders are not searched, it has one/, two/");
        insta::assert_snapshot!(archives(&page("<p>Hello</p>")).unwrap_err(), @"https://a.example/pub/archives/: no archives found: the page has no link to a file of that folder whose name ends with .tar, as mirror_seq1_000000.tar does; is it a listing? Without one, name the first file of the set");
    }
}
