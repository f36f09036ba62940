//! JSONPath as kubectl writes it: `{.spec.images[*].image}`.
//!
//! Source: Kubernetes, client-go, util/jsonpath. One expression in braces; no text around it, no `range`.

use std::str::FromStr;

use serde_json::Value;

/// A JSONPath.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct JsonPath {
    path: serde_json_path::JsonPath,
    /// The last name in it.
    last: String,
}

impl JsonPath {
    /// Values at the path; none where it ends before.
    pub(crate) fn find<'a>(&self, document: &'a Value) -> Vec<&'a Value> {
        self.path.query(document).all()
    }

    /// The last name in the path: that of the member that has its values.
    pub(crate) fn last_name(&self) -> &str {
        &self.last
    }
}

impl FromStr for JsonPath {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |reason: &str| format!("{text:?} {reason}");
        let inside = text
            .trim()
            .strip_prefix('{')
            .and_then(|it| it.strip_suffix('}'));
        let inside =
            inside.ok_or_else(|| wrong("is no JSONPath in braces: write it as {.spec.image}"))?;
        let standard = standard(inside.trim().trim_start_matches('$')).map_err(wrong)?;
        let path = serde_json_path::JsonPath::parse(&standard).map_err(|_| {
            wrong("has an unsupported element: brackets take a number, a name in quotes, *, a range or a filter")
        })?;
        let rest = inside.trim_end_matches([']', '\'', '"', ' ', '*']);
        let last = rest.rsplit(['.', '[', '\'', '"']).next();
        Ok(Self {
            path,
            last: last.unwrap_or_default().to_owned(),
        })
    }
}

/// The same path in the syntax of RFC 9535, where a name after a dot has letters, digits and `_` only.
fn standard(mut rest: &str) -> Result<String, &'static str> {
    if rest.is_empty() {
        return Err("names nothing");
    }
    let mut path = "$".to_owned();
    while !rest.is_empty() {
        if rest.starts_with('[') {
            let (element, after) = element(rest).ok_or("lacks a ]")?;
            path.push_str(&element);
            rest = after;
            continue;
        }
        let after = rest
            .strip_prefix('.')
            .ok_or("is no JSONPath: names begin with a dot")?;
        let is_deep = after.starts_with('.');
        let (name, after) = name(after.strip_prefix('.').unwrap_or(after));
        path.push_str(if is_deep { ".." } else { "" });
        match name.as_str() {
            "" if is_deep => {}
            "" => return Err("has a dot without a name"),
            "*" => path.push_str("[*]"),
            _ => path.extend(["[", &Value::from(name).to_string(), "]"]),
        }
        rest = after;
    }
    Ok(path)
}

/// The first brackets and the rest. Names in quotes may escape their dots, which the standard forbids.
fn element(text: &str) -> Option<(String, &str)> {
    let is_filter = text.starts_with("[?(");
    let end = if is_filter { ")]" } else { "]" };
    let (element, rest) = text.split_at(text.find(end)? + end.len());
    let element = if is_filter {
        element.to_owned()
    } else {
        element.replace("\\.", ".")
    };
    Some((element, rest))
}

/// The first name, in which a backslash escapes the next letter, and the rest.
fn name(text: &str) -> (String, &str) {
    let mut name = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '.' | '[' => return (name, &text[at..]),
            '\\' => name.extend(characters.next().map(|(_, character)| character)),
            _ => name.push(character),
        }
    }
    (name, "")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn places_are_found() {
        let document = json!({
            "spec": {"images": [{"name": "a", "image": "x"}, {"image": "y"}], "a.b": "dotted"},
            "image": "top",
        });
        for (path, expected) in [
            ("{.image}", json!(["top"])),
            ("{$.image}", json!(["top"])),
            ("{.spec.images[*].image}", json!(["x", "y"])),
            ("{.spec.images[1].image}", json!(["y"])),
            ("{.spec.images[-2].image}", json!(["x"])),
            ("{.spec.images[7].image}", json!([])),
            ("{.spec['images'][0][\"name\"]}", json!(["a"])),
            ("{.spec.a\\.b}", json!(["dotted"])),
            ("{.spec.images[0].*}", json!(["x", "a"])),
            ("{..name}", json!(["a"])),
            ("{.spec.nothing[*].image}", json!([])),
            ("{.spec['a\\.b']}", json!(["dotted"])),
            ("{.spec.images[0:1].image}", json!(["x"])),
            ("{.spec.images[0,1].image}", json!(["x", "y"])),
            ("{.spec.images[?(@.name==\"a\")].image}", json!(["x"])),
            ("{.spec.images[?(@.name)].image}", json!(["x"])),
        ] {
            let path: JsonPath = path.parse().unwrap();
            assert_eq!(json!(path.find(&document)), expected, "{path:?}");
        }
        let all: JsonPath = "{..image}".parse().unwrap();
        assert_eq!(all.find(&document).len(), 3);
    }

    #[test]
    fn malformed_paths_are_refused() {
        for (path, expected) in [
            (".spec", "is no JSONPath in braces"),
            ("{}", "names nothing"),
            ("{spec}", "names begin with a dot"),
            ("{.}", "a dot without a name"),
            ("{.a[0}", "lacks a ]"),
            ("{.a[b]}", "unsupported element"),
            ("{.a[?(@.b =~ 'c')]}", "unsupported element"),
            ("{....a}", "unsupported element"),
        ] {
            let error = path.parse::<JsonPath>().unwrap_err();
            assert!(error.contains(expected), "{path}: {error}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "\\{[.\\[\\]a*'$0-9\\\\-]{0,20}\\}") {
            if let Ok(path) = text.parse::<JsonPath>() {
                path.find(&json!({"a": [{"a": 1}]}));
            }
        }
    }
}
