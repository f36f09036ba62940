//! The images that manifests name.

use std::collections::BTreeSet;
use std::net::IpAddr;

use catalog::yaml_to_json;
use model::Error;
use serde_json::Value;

use super::JsonPath;
use crate::names;

/// Paths of images in workloads and pods. Source: the peer, and the template of cron jobs, which it lacks.
const PATHS: [&str; 6] = [
    "{.spec.template.spec.initContainers[*].image}",
    "{.spec.template.spec.containers[*].image}",
    "{.spec.jobTemplate.spec.template.spec.initContainers[*].image}",
    "{.spec.jobTemplate.spec.template.spec.containers[*].image}",
    "{.spec.initContainers[*].image}",
    "{.spec.containers[*].image}",
];
/// Ends of the names of members that have images by custom, in lower case.
const MEMBERS: [&str; 3] = ["image", "imagename", "imageref"];
/// In names of environment variables with images, in upper case. Source: operators, RELATED_IMAGE_.
const VARIABLE: &str = "IMAGE";
/// Numbers from here on are ports rather than tags after a name without a host.
const LEAST_PORT: u16 = 1024;
/// Most notes of one chart.
const NOTES_LIMIT: usize = 100;

/// The images of a chart.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ManifestImages {
    /// Each once.
    pub(super) images: Vec<String>,
    /// Values of `imagePaths` that are no images, and images at places that nothing names.
    pub(super) notes: Vec<String>,
}

/// The images at the usual places and at those of `paths`.
///
/// Errors: Invalid – a document is no YAML.
pub(super) fn images(manifests: &str, paths: &[JsonPath]) -> Result<ManifestImages, Error> {
    let usual = PATHS.iter().map(|path| path.parse());
    let usual: Vec<JsonPath> = usual
        .collect::<Result<_, _>>()
        .expect("places that are written here are places");
    let mut found = ManifestImages::default();
    let (mut seen, mut skipped) = (BTreeSet::new(), BTreeSet::new());
    let mut elsewhere = Vec::new();
    for (number, document) in documents(manifests).into_iter().enumerate() {
        let wrong = |reason: String| Error::invalid(format!("document {}", number + 1), reason);
        let json = yaml_to_json(&document).map_err(|e| wrong(e.to_string()))?;
        let value: Value = serde_json::from_str(&json).map_err(|e| wrong(e.to_string()))?;
        for path in usual.iter().chain(paths) {
            let is_certain = is_member(path.last_name());
            let texts = path.find(&value).into_iter().filter_map(Value::as_str);
            for image in texts.flat_map(str::split_whitespace) {
                if !is_image(image) && (!is_certain || names::reference(image).is_err()) {
                    if skipped.insert(image.to_owned()) {
                        found.notes.push(format!(
                            "{}: {image:?} is no image reference: skipped",
                            kind_and_name(&value)
                        ));
                    }
                } else if seen.insert(image.to_owned()) {
                    found.images.push(image.to_owned());
                }
            }
        }
        elsewhere.extend(members(&value));
    }
    for (owner, path, image) in elsewhere {
        if is_image(&image) && !skipped.contains(&image) && seen.insert(image.clone()) {
            found.notes.push(format!(
                "{owner}: {image} is not mirrored: where it is needed, add {path} to imagePaths"
            ));
        }
    }
    let more = found.notes.len().saturating_sub(NOTES_LIMIT);
    if more > 0 {
        found.notes.truncate(NOTES_LIMIT);
        found.notes.push(format!("{more} more values"));
    }
    Ok(found)
}

/// Whether members of that name have images.
fn is_member(name: &str) -> bool {
    let name = name.to_lowercase();
    MEMBERS.iter().any(|end| name.ends_with(end))
}

/// Whether a text names an image: a reference with a host and a path, a tag or a digest. A word, a path, the address of a
/// server or a network is none.
fn is_image(text: &str) -> bool {
    if names::reference(text).is_err() {
        return false;
    }
    let is_host = |name: &str| name.contains(['.', ':']) || name == "localhost";
    let (first, rest) = match text.split_once('/') {
        Some((first, rest)) => (first, Some(rest)),
        None => (text, None),
    };
    match rest {
        Some(_) if text.contains('@') => true,
        Some(bits) if first.parse::<IpAddr>().is_ok() => bits.parse::<u8>().is_err(),
        Some(rest) => is_host(first) || rest.contains(':'),
        None => match text.split_once(':') {
            Some((name, tag)) => {
                let least = if is_host(name) { 0 } else { LEAST_PORT };
                !tag.parse::<u16>().is_ok_and(|port| port >= least)
            }
            None => text.contains('@'),
        },
    }
}

/// Kind and name of a manifest.
fn kind_and_name(manifest: &Value) -> String {
    let text = |pointer: &str| {
        let value = manifest.pointer(pointer).and_then(Value::as_str);
        value.unwrap_or_default().to_owned()
    };
    let (kind, name) = (text("/kind"), text("/metadata/name"));
    format!("{kind} {name}").trim().to_owned()
}

/// The members with images by their names, and environment variables: manifest, path, text.
fn members(manifest: &Value) -> Vec<(String, String, String)> {
    let owner = kind_and_name(manifest);
    let mut found = Vec::new();
    let mut next = vec![(String::new(), manifest)];
    while let Some((path, value)) = next.pop() {
        match value {
            Value::Object(members) => {
                let variable = members.get("name").and_then(Value::as_str);
                let is_variable = variable.is_some_and(|name| name.contains(VARIABLE));
                for (name, value) in members {
                    let escaped = name.replace('.', "\\.");
                    let path = format!("{path}.{escaped}");
                    match value {
                        Value::String(text)
                            if is_member(name) || (is_variable && name == "value") =>
                        {
                            found.push((owner.clone(), format!("{{{path}}}"), text.clone()));
                        }
                        Value::Object(_) | Value::Array(_) => next.push((path, value)),
                        _ => {}
                    }
                }
            }
            Value::Array(items) => {
                let path = format!("{path}[*]");
                next.extend(items.iter().map(|item| (path.clone(), item)));
            }
            _ => {}
        }
    }
    found.sort();
    found.dedup();
    found
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
        let found = images(manifests, &paths).unwrap();
        assert_eq!(found.images, expected);
        assert!(found.notes.is_empty(), "{:?}", found.notes);
    }

    #[test]
    fn cron_jobs_are_searched() {
        let manifests = "kind: CronJob\nspec:\n  jobTemplate:\n    spec:\n      template:\n        spec:\n          \
            containers: [{image: a/job:1}]\n          initContainers: [{image: a/first:1}]\n";
        let found = images(manifests, &[]).unwrap();
        assert_eq!(found.images, ["a/first:1", "a/job:1"]);
    }

    #[test]
    fn values_that_are_no_images_are_skipped_and_named() {
        let values = [
            "LOG_LEVEL=debug",
            "debug",
            "0.0.0.0:8080",
            "localhost:5000",
            "10.0.0.0/8",
            "http://a/b",
            "5m",
            "redis:6379",
            "text/html",
            "data/cache",
            "db.example.org:5432",
        ];
        let listed: Vec<_> = values
            .iter()
            .map(|it| format!("{{value: '{it}'}}"))
            .collect();
        let manifests = format!(
            "kind: Deployment\nmetadata: {{name: web}}\nspec:\n  env: [{}, {{value: 'q.io/a/b:1'}}, {{value: 'nginx:1'}}]\n",
            listed.join(", ")
        );
        let path: JsonPath = "{.spec.env[*].value}".parse().unwrap();
        let found = images(&manifests, &[path]).unwrap();
        assert_eq!(found.images, ["q.io/a/b:1", "nginx:1"]);
        assert_eq!(found.notes.len(), values.len(), "{:?}", found.notes);
        for (note, value) in found.notes.iter().zip(values) {
            assert!(
                note.starts_with("Deployment web: ") && note.contains(value),
                "{note}"
            );
        }
    }

    #[test]
    fn images_at_unknown_places_are_named() {
        let manifests = "kind: Own\nmetadata: {name: x}\nspec:\n  nodes: [{image: 'q.io/a/b:1'}, {image: 'q.io/a/c:1'}]\n  \
            image: latest\n";
        let found = images(manifests, &[]).unwrap();
        assert!(found.images.is_empty());
        assert_eq!(found.notes.len(), 2, "{:?}", found.notes);
        assert!(
            found.notes[0].contains("q.io/a/b:1")
                && found.notes[0].contains("{.spec.nodes[*].image}"),
            "{}",
            found.notes[0]
        );
        let path: JsonPath = "{.spec.nodes[*].image}".parse().unwrap();
        let found = images(manifests, &[path]).unwrap();
        assert_eq!((found.images.len(), found.notes.len()), (2, 0));
    }

    #[test]
    fn images_of_other_members_and_variables_are_named() {
        let manifests = "kind: Deployment\nmetadata: {name: x}\nspec:\n  sidecarImage: q.io/a/side:1\n  env:\n  \
            - {name: RELATED_IMAGE_DB, value: 'q.io/a/db@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'}\n  \
            - {name: LEVEL, value: 'q.io/a/other:1'}\n  - {name: IMAGE_POLICY, value: Always}\n  imagePullPolicy: Always\n";
        let found = images(manifests, &[]).unwrap();
        let [variable, sidecar] = found.notes.as_slice() else {
            panic!("{:?}", found.notes);
        };
        assert!(
            variable.contains("a/db@sha256:") && variable.contains("{.spec.env[*].value}"),
            "{variable}"
        );
        assert!(sidecar.contains("add {.spec.sidecarImage}"), "{sidecar}");
    }

    #[test]
    fn malformed_yaml_is_reported() {
        let error = images("a: 1\n---\na: [", &[]).unwrap_err().to_string();
        assert!(error.contains("document 2"), "{error}");
    }
}
