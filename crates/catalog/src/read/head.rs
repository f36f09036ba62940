//! Common members of documents: schema, package, name.

use std::collections::BTreeMap;

use located_yaml::text::shown;

use crate::normal::{JsonWriter, unescaped};

/// Most problems reported per document.
const MAX_WRONG: usize = 5;

/// Schema, package and name; empty when absent.
#[derive(Debug, Default)]
pub(super) struct DocumentHead {
    pub(super) schema: String,
    pub(super) package: String,
    pub(super) name: String,
}

/// Reads them from the written document. Member names are case-insensitive, and duplicates under case folding are
/// errors. Source: operator-registry, `alpha/declcfg/declcfg.go`, `Meta.UnmarshalJSON`.
///
/// Errors: the problems of the document, with the members found.
pub(super) fn head(document: &JsonWriter) -> Result<DocumentHead, (DocumentHead, String)> {
    let mut head = DocumentHead::default();
    if !document.is_object() {
        let text = "a document is an object with a \"schema\"; list other files in .indexignore";
        return Err((head, text.to_owned()));
    }
    let mut wrong = Vec::new();
    let mut seen = BTreeMap::new();
    for (key, value) in document.members() {
        let key = unescaped(key);
        let folded = folded(&key);
        let member = match folded.as_str() {
            "schema" => Some(&mut head.schema),
            "package" => Some(&mut head.package),
            "name" => Some(&mut head.name),
            _ => None,
        };
        if let Some(member) = member {
            match value.strip_prefix('"').and_then(|it| it.strip_suffix('"')) {
                Some(value) => *member = unescaped(value).into_owned(),
                None => wrong.push(format!("the value of {} must be a string", shown(&key))),
            }
        }
        if let Some(other) = seen.insert(folded, key.clone()) {
            let [other, key] = [&other, &key].map(|name| shown(name));
            wrong.push(format!(
                "{other} and {key} differ in case only; keep one of them"
            ));
        }
    }
    if head.schema.is_empty() && wrong.is_empty() {
        wrong.push("the document has no \"schema\"".to_owned());
    }
    if wrong.is_empty() {
        return Ok(head);
    }
    wrong.truncate(MAX_WRONG);
    Err((head, wrong.join("; ")))
}

/// Full Unicode case folding.
fn folded(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    let fold = |part: &str| -> String {
        let chars = part.chars().flat_map(char::to_lowercase);
        chars
            .flat_map(char::to_uppercase)
            .flat_map(char::to_lowercase)
            .collect()
    };
    // The dotless i folds to itself only, though it shares its capital.
    let parts: Vec<_> = text.split('ı').map(fold).collect();
    parts.join("ı")
}
