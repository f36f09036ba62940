//! The images that manifests name.

use std::collections::BTreeSet;

use catalog::yaml_to_json;
use model::Error;
use serde_json::Value;

use super::JsonPath;

/// Paths of images in workloads and pods. Source: the peer.
const PATHS: [&str; 4] = [
    "{.spec.template.spec.initContainers[*].image}",
    "{.spec.template.spec.containers[*].image}",
    "{.spec.initContainers[*].image}",
    "{.spec.containers[*].image}",
];

/// The images at the usual places and at those of `paths`, each once.
///
/// Errors: Invalid – a document is no YAML.
pub(super) fn images(manifests: &str, paths: &[JsonPath]) -> Result<Vec<String>, Error> {
    let usual = PATHS.iter().map(|path| path.parse());
    let usual: Vec<JsonPath> = usual
        .collect::<Result<_, _>>()
        .expect("places that are written here are places");
    let (mut found, mut seen) = (Vec::new(), BTreeSet::new());
    for (number, document) in documents(manifests).into_iter().enumerate() {
        let wrong = |reason: String| Error::invalid(format!("document {}", number + 1), reason);
        let json = yaml_to_json(&document).map_err(|e| wrong(e.to_string()))?;
        let value: Value = serde_json::from_str(&json).map_err(|e| wrong(e.to_string()))?;
        for path in usual.iter().chain(paths) {
            let texts = path.find(&value).into_iter().filter_map(Value::as_str);
            for image in texts.flat_map(str::split_whitespace) {
                if seen.insert(image.to_owned()) {
                    found.push(image.to_owned());
                }
            }
        }
    }
    Ok(found)
}

/// The documents of a text, without the lines between them.
fn documents(text: &str) -> Vec<String> {
    let mut documents = vec![String::new()];
    for line in text.lines() {
        if line == "---" || line.starts_with("--- ") {
            documents.push(String::new());
        } else if let Some(last) = documents.last_mut() {
            last.push_str(line);
            last.push('\n');
        }
    }
    documents
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workloads_pods_and_named_places_are_searched() {
        let manifests = "kind: Deployment\nspec:\n  template:\n    spec:\n      initContainers:\n      - image: a/init:1\n      \
            containers:\n      - {name: x, image: a/main:1}\n      - {name: y}\n--- # next\n# only this\n---\nkind: Pod\nspec: {containers: [{image: a/main:1}, {image: b}]}\n\
            ---\nkind: Own\nspec:\n  operand: {image: c/operand:1}\n  count: 3\n";
        let paths = [
            "{.spec.operand.image}",
            "{.spec.count}",
            "{.nothing[*].here}",
        ];
        let paths: Vec<JsonPath> = paths.iter().map(|path| path.parse().unwrap()).collect();
        let expected = ["a/init:1", "a/main:1", "b", "c/operand:1"];
        assert_eq!(images(manifests, &paths).unwrap(), expected);
    }

    #[test]
    fn malformed_yaml_is_reported() {
        let error = images("a: 1\n---\na: [", &[]).unwrap_err().to_string();
        assert!(error.contains("document 2"), "{error}");
    }
}
