//! Advice about documents that are valid, and of which nothing is served.

use std::fmt;

use serde::Deserialize;

use crate::DocumentOrigin;
use crate::cache::{CachedDocument, CatalogCache, Damaged};
use crate::schema::decode::decode;
use crate::schema::{BUNDLE, BundleDocument, kind};
use crate::template::Template;

/// Most advice about one catalog.
const LIMIT: usize = 1000;

/// A document of which nothing is served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Advice {
    pub origin: DocumentOrigin,
    /// Package of the document; empty when unknown.
    pub package: String,
    /// The reason and the remedy.
    pub text: String,
}

impl Advice {
    /// Advice about the documents of a catalog, in walk order.
    ///
    /// Errors: the cache is damaged.
    pub fn of(cache: &CatalogCache) -> Result<Vec<Self>, Damaged> {
        let mut all = Vec::new();
        for line in cache.lines() {
            let text = match template(&line) {
                Some(text) => Some(text),
                None => object(cache, &line)?,
            };
            all.extend(text.map(|text| Self::at(&line, text)));
            if all.len() == LIMIT {
                break;
            }
        }
        Ok(all)
    }

    /// Advice about templates alone, for which no document is read.
    pub fn of_templates(cache: &CatalogCache) -> Vec<Self> {
        let lines = cache.lines();
        let templates = lines.filter_map(|line| Some(Self::at(&line, template(&line)?)));
        templates.take(LIMIT).collect()
    }

    fn at(line: &CachedDocument<'_>, text: String) -> Self {
        let (file, number) = line.origin;
        Self {
            origin: DocumentOrigin::new(file, number),
            package: line.group().to_owned(),
            text,
        }
    }
}

/// Advice about a template.
fn template(line: &CachedDocument<'_>) -> Option<String> {
    Template::is_schema(line.schema).then(|| {
        format!(
            "a template of schema {:?} is served as nothing: expand it with `atoll catalog render`, and keep it outside of the catalog or in .indexignore",
            line.schema
        )
    })
}

/// Advice about an object by reference in a bundle.
fn object(cache: &CatalogCache, line: &CachedDocument<'_>) -> Result<Option<String>, Damaged> {
    if line.schema != BUNDLE {
        return Ok(None);
    }
    let json = cache.slice(line.json)?;
    // Documents are large, and few have such members.
    let has = |text: &str| memchr::memmem::find(&json, text.as_bytes()).is_some();
    if !has(kind::BUNDLE_OBJECT) || !has("\"ref\"") {
        return Ok(None);
    }
    let json = String::from_utf8_lossy(&json);
    let Ok(bundle) = decode::<BundleDocument<'_>>(&json) else {
        return Ok(None);
    };
    let mut references = bundle.properties.iter().filter_map(|property| {
        let is_object = property.kind == kind::BUNDLE_OBJECT;
        let object = is_object.then(|| decode::<ObjectReference>(property.value()).ok());
        object
            .flatten()
            .map(|it| it.file)
            .filter(|it| !it.is_empty())
    });
    Ok(references.next().map(|file| {
        format!(
            "bundle {:?} has an \"olm.bundle.object\" by ref ({file:?}), which is served as null: put the content of the file into \"data\", as base64",
            line.name
        )
    }))
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ObjectReference {
    #[serde(rename = "ref")]
    file: String,
}

/// `file:line: warning: text`.
impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: warning: ", self.origin)?;
        if !self.package.is_empty() {
            write!(f, "package {}: ", self.package)?;
        }
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::num::NonZeroUsize;

    use super::*;
    use crate::cache::build_new;
    use crate::template::SCHEMAS;

    #[test]
    fn templates_and_objects_by_reference_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let configs = folder.path().join("configs");
        fs::create_dir(&configs).unwrap();
        let bundle = r#"{"schema":"olm.bundle","package":"a","name":"a.v1","image":"quay.io/x/a:1","properties":[
  {"type":"olm.package","value":{"packageName":"a","version":"1.0.0"}},
  {"type":"olm.bundle.object","value":OBJECT}]}"#;
        let package = r#"{"schema":"olm.package","name":"a","defaultChannel":"stable"}
{"schema":"olm.channel","package":"a","name":"stable","entries":[{"name":"a.v1"}]}
"#;
        for (object, templates, expected) in [
            (r#"{"ref":"objects/csv.yaml"}"#, SCHEMAS, 6),
            (r#"{"data":"e30="}"#, &[], 0),
        ] {
            let templates = templates
                .iter()
                .map(|schema| format!("{{\"schema\":\"{schema}\"}}\n"));
            let text = package.to_owned()
                + &bundle.replace("OBJECT", object)
                + "\n"
                + &templates.collect::<String>();
            fs::write(configs.join("catalog.json"), text).unwrap();
            let path = folder.path().join(format!("cache-{expected}"));
            let cache = build_new(&configs, &path, NonZeroUsize::MIN).unwrap();
            assert!(cache.report().is_clean());
            let advice = Advice::of(&cache).unwrap();
            assert_eq!(advice.len(), expected, "{advice:?}");
            if let Some(first) = advice.first() {
                let first = first.to_string();
                assert!(
                    first.starts_with("catalog.json:3: warning: package a: bundle \"a.v1\"")
                        && first.contains("objects/csv.yaml"),
                    "{first}"
                );
            }
        }
    }
}
