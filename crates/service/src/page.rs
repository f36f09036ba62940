//! Parts of HTML pages, for servers that list their content in a browser.
//!
//! Rendered by the server, without scripts. Foreign text stays text: the templates escape it, and [`Shown`] bounds it.

mod response;

use maud::{DOCTYPE, Markup, Render, html};
use model::time::Timestamp;

pub use response::{describe, file, page};

/// Style sheet of pages; at `style.css` below the root of a site.
pub const STYLE: &str = include_str!("page/style.css");
/// Icon of pages; at `icon.svg` below the root of a site.
pub const ICON: &str = include_str!("page/icon.svg");
/// Rows of one table; hostile content could have a hundred thousand.
pub const ROWS_LIMIT: usize = 256;
/// Longest foreign text that is shown. Units: characters.
const TEXT_LIMIT: usize = 1000;

/// The site of a page.
#[derive(Debug, Clone, Copy)]
pub struct Site {
    /// Its name, for people.
    pub name: &'static str,
    /// The address of its first page, with a slash at its end.
    pub root: &'static str,
}

/// Foreign text: cut, and without characters that move, hide or end others.
pub struct Shown<'a>(pub &'a str);

impl Render for Shown<'_> {
    fn render_to(&self, page: &mut String) {
        let cut = self.0.char_indices().nth(TEXT_LIMIT);
        let shown = cut.map_or(self.0, |(at, _)| &self.0[..at]);
        let shown: String = shown.chars().map(visible).collect();
        shown.render_to(page);
        if cut.is_some() {
            format!("… ({})", bytes(self.0.len() as u64)).render_to(page);
        }
    }
}

fn visible(c: char) -> char {
    // Marks of direction could disguise one name as another.
    let is_direction = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let is_control = c.is_control() && !matches!(c, '\n' | '\t');
    if is_control || is_direction {
        char::REPLACEMENT_CHARACTER
    } else {
        c
    }
}

/// A page of `site`, with `top` above `main`.
pub fn framed(site: &Site, title: &str, top: &Markup, main: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " – " (site.name) }
                link rel="icon" href={ (site.root) "icon.svg" };
                link rel="stylesheet" href={ (site.root) "style.css" };
            }
            body {
                a.skip href="#main" { "Skip to the content" }
                (top)
                main #main tabindex="-1" { (main) }
            }
        }
    }
}

/// A section under a heading.
pub fn section(title: &str, content: &Markup) -> Markup {
    html! { section.panel { h2 { (title) } (content) } }
}

/// A table; each of `heads` names a column. Says how many rows are left out.
pub fn table(caption: &str, heads: &[&str], rows: &[Markup], left_out: usize) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label=(caption) {
            table {
                caption.hidden { (caption) }
                thead { tr { @for head in heads { th scope="col" { (head) } } } }
                tbody { @for row in rows { tr { (row) } } }
            }
        }
        @if left_out > 0 { p.muted { (left_out) " more are not shown" } }
    }
}

/// Names and values; nothing for no pairs.
pub fn facts(pairs: &[(&str, Markup)]) -> Markup {
    html! {
        dl.facts {
            @for (name, value) in pairs { dt { (name) } dd { (value) } }
        }
    }
}

/// A size in the largest unit that it fills.
pub fn bytes(count: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if count < 1024 {
        return format!("{count} B");
    }
    let mut tenths = u128::from(count) * 10 / 1024;
    let mut units = UNITS.into_iter();
    let mut unit = units.next().unwrap_or_default();
    for larger in units {
        if tenths < 10 * 1024 {
            break;
        }
        tenths /= 1024;
        unit = larger;
    }
    format!("{}.{} {unit}", tenths / 10, tenths % 10)
}

/// How long ago `then` was.
pub fn age(then: Timestamp, now: Timestamp) -> Markup {
    const STEPS: [(i64, &str); 5] = [
        (365 * 86400, "year"),
        (30 * 86400, "month"),
        (86400, "day"),
        (3600, "hour"),
        (60, "minute"),
    ];
    let seconds = (now - then).num_seconds();
    let text = match STEPS.iter().find(|(length, _)| seconds >= *length) {
        Some((length, unit)) => match seconds / length {
            1 => format!("1 {unit} ago"),
            count => format!("{count} {unit}s ago"),
        },
        None if seconds < 0 => "in the future".to_owned(),
        None => "just now".to_owned(),
    };
    let exact = then.to_rfc3339();
    html! { time datetime=(exact) title=(exact) { (text) } }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn foreign_text_stays_text() {
        let shown = |text: &str| html! { p title=(text) { (Shown(text)) } }.into_string();
        let page = shown("<script>\"'&\0\u{1b}\u{202e}\n");
        assert!(!page.contains("<script>"), "{page}");
        assert!(
            page.contains("&lt;script&gt;&quot;'&amp;\u{fffd}\u{fffd}\u{fffd}\n</p>"),
            "{page}"
        );
        let long = html! { (Shown(&"é".repeat(1 << 19))) }.into_string();
        assert!(
            long.ends_with("é… (1.0 MiB)") && long.len() < 3 * TEXT_LIMIT,
            "{}",
            long.len()
        );
    }

    #[test]
    fn sizes() {
        for (count, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1536, "1.5 KiB"),
            (1 << 20, "1.0 MiB"),
            (u64::MAX, "15.9 EiB"),
        ] {
            assert_eq!(bytes(count), text);
        }
    }

    #[test]
    fn ages() {
        let now: Timestamp = "2026-11-21T10:00:00Z".parse().unwrap();
        for (then, text) in [
            ("2026-11-21T09:59:30Z", "just now"),
            ("2026-11-21T09:59:00Z", "1 minute ago"),
            ("2026-11-19T10:00:00Z", "2 days ago"),
            ("2024-01-01T00:00:00Z", "2 years ago"),
            ("2027-01-01T00:00:00Z", "in the future"),
        ] {
            let shown = age(then.parse().unwrap(), now).into_string();
            assert!(shown.contains(&format!(">{text}<")), "{shown}");
        }
    }

    proptest! {
        #[test]
        fn any_text_has_no_markup(text: String) {
            let page = html! { (Shown(&text)) }.into_string();
            prop_assert!(!page.contains(['<', '>', '"', '\0']));
        }
    }
}
