//! JSONPath, as far as it names places.
//!
//! Source: Kubernetes, client-go, util/jsonpath. Filters and ranges are not known here.

use std::str::FromStr;

use serde_json::Value;

/// A JSONPath.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonPath(Vec<PathStep>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum PathStep {
    Member(String),
    /// From the end, where it is negative.
    Element(i64),
    /// Every member or element.
    Any,
    /// The thing itself and all that is in it.
    Deep,
}

impl JsonPath {
    /// Values at the path; none where it ends before.
    pub fn find<'a>(&self, document: &'a Value) -> Vec<&'a Value> {
        let mut found = vec![document];
        for step in &self.0 {
            found = found.into_iter().flat_map(|value| step.of(value)).collect();
        }
        found
    }
}

impl PathStep {
    fn of<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        match (self, value) {
            (Self::Member(name), Value::Object(members)) => members.get(name).into_iter().collect(),
            (Self::Element(index), Value::Array(elements)) => {
                let length = i64::try_from(elements.len()).unwrap_or(i64::MAX);
                let index = if *index < 0 { length + index } else { *index };
                let index = usize::try_from(index).ok();
                index
                    .and_then(|index| elements.get(index))
                    .into_iter()
                    .collect()
            }
            (Self::Any, Value::Object(members)) => members.values().collect(),
            (Self::Any, Value::Array(elements)) => elements.iter().collect(),
            (Self::Deep, _) => {
                let inside = Self::Any.of(value);
                let inside = inside.into_iter().flat_map(|value| Self::Deep.of(value));
                std::iter::once(value).chain(inside).collect()
            }
            _ => Vec::new(),
        }
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
        let mut rest = inside.trim().trim_start_matches('$');
        let mut steps = Vec::new();
        while !rest.is_empty() {
            rest = if let Some(after) = rest.strip_prefix("..") {
                steps.push(PathStep::Deep);
                let (name, after) = name(after);
                steps.extend(member(name));
                after
            } else if let Some(after) = rest.strip_prefix('.') {
                let (name, after) = name(after);
                let step = member(name).ok_or_else(|| wrong("has a dot without a name"))?;
                steps.push(step);
                after
            } else if let Some(after) = rest.strip_prefix('[') {
                let (inner, after) = after.split_once(']').ok_or_else(|| wrong("lacks a ]"))?;
                let step = element(inner.trim());
                let known =
                    "has an unsupported element: brackets take a number, a name in quotes or *";
                steps.push(step.ok_or_else(|| wrong(known))?);
                after
            } else {
                return Err(wrong("is no JSONPath: names begin with a dot"));
            };
        }
        if steps.is_empty() {
            return Err(wrong("names nothing"));
        }
        Ok(Self(steps))
    }
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

fn member(name: String) -> Option<PathStep> {
    match name.as_str() {
        "" => None,
        "*" => Some(PathStep::Any),
        _ => Some(PathStep::Member(name)),
    }
}

fn element(inner: &str) -> Option<PathStep> {
    if inner == "*" {
        return Some(PathStep::Any);
    }
    for quote in ['\'', '"'] {
        if let Some(name) = inner
            .strip_prefix(quote)
            .and_then(|it| it.strip_suffix(quote))
        {
            return Some(PathStep::Member(name.to_owned()));
        }
    }
    inner.parse().ok().map(PathStep::Element)
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
            ("{.a[?(@.b)]}", "unsupported element"),
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
