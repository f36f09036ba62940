//! The closure: every image that a file of the bundle names has to be inside.
//!
//! Nothing is listed by hand. References are found in the files themselves: `image` members of YAML and JSON, variables
//! whose names end in `_IMAGE`, `Image=` of quadlets, the payload of release images, the catalogs of operator indexes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use model::Error;
use oci::Reference;
use serde_json::Value;

use crate::archives::ArchivedImages;
use crate::images::{ImageSet, path_in_registry};
use crate::interpolation::interpolate;
use crate::manifest::ClosureImage;
use crate::payload;

/// Placeholder of the host name in settings: the local registry.
const HOST: &str = "<host>";
/// End of the names of variables that hold a reference.
const VARIABLE: &str = "_IMAGE";
/// Missing images that an error names; more are counted.
const SHOWN: usize = 50;

/// References found so far, each with the places that name it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct References(BTreeMap<String, BTreeSet<String>>);

impl References {
    /// Finds the references in a file, by its name: YAML and JSON, quadlets, and settings.
    ///
    /// Errors: Invalid – malformed YAML or JSON.
    pub fn find(&mut self, name: &str, text: &str) -> Result<(), Error> {
        let file = name.rsplit('/').next().unwrap_or(name);
        let end = file.rsplit('.').next().unwrap_or_default();
        match end {
            // One value after the other, as in catalogs.
            "json" => {
                for document in serde_json::Deserializer::from_str(text).into_iter::<Value>() {
                    let document =
                        document.map_err(|e| Error::invalid(name.to_owned(), e.to_string()))?;
                    self.walk(name, "", &document);
                }
            }
            "yaml" | "yml" => {
                let documents: Vec<Value> = serde_yaml::from_multiple(text)
                    .map_err(|e| Error::invalid(name.to_owned(), e.to_string()))?;
                for document in &documents {
                    self.walk(name, "", document);
                }
            }
            "container" | "image" => self.lines(name, text, |key| key == "Image"),
            "env" => self.lines(name, text, |key| key.ends_with(VARIABLE)),
            _ => {}
        }
        Ok(())
    }

    /// Adds a reference.
    pub(crate) fn add(&mut self, image: &str, place: String) {
        self.0.entry(image.to_owned()).or_default().insert(place);
    }

    /// Adds the payloads of release images and the catalogs of operator indexes.
    ///
    /// Errors: the registry's; Invalid – a damaged image.
    pub async fn find_in_images(&mut self, images: &ImageSet) -> Result<(), Error> {
        for (name, location, digest) in &images.locations {
            payload::find(self, name, location, digest).await?;
        }
        Ok(())
    }

    fn lines(&mut self, name: &str, text: &str, is_reference: impl Fn(&str) -> bool) {
        let lines = text.lines().map(str::trim);
        for line in lines.filter(|line| !line.starts_with('#')) {
            if let Some((key, value)) = line.split_once('=')
                && is_reference(key)
                && !value.is_empty()
            {
                self.add(value, format!("{name}: {key}"));
            }
        }
    }

    fn walk(&mut self, name: &str, path: &str, value: &Value) {
        match value {
            Value::Object(members) => {
                // An entry of `env`.
                if let (Some(Value::String(variable)), Some(Value::String(image))) =
                    (members.get("name"), members.get("value"))
                    && variable.ends_with(VARIABLE)
                    && !image.is_empty()
                {
                    self.add(image, format!("{name}: {path}.{variable}"));
                }
                for (key, member) in members {
                    let below = if path.is_empty() {
                        key.clone()
                    } else {
                        format!("{path}.{key}")
                    };
                    match member {
                        Value::String(image)
                            if (key == "image" || key.ends_with(VARIABLE)) && !image.is_empty() =>
                        {
                            self.add(&interpolate(image, &|_| None), format!("{name}: {below}"));
                        }
                        _ => self.walk(name, &below, member),
                    }
                }
            }
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    // Containers have names, which say more than their number.
                    let own = item.get("name").and_then(Value::as_str);
                    let own = own.map_or_else(|| index.to_string(), str::to_owned);
                    self.walk(name, &format!("{path}[{own}]"), item);
                }
            }
            _ => {}
        }
    }

    /// The closure, when all of it is in `images` or in archives, and the images that may be elsewhere.
    ///
    /// Errors: Invalid – with every image that is not inside, and the places that name it.
    pub fn closure(
        self,
        images: &ImageSet,
        others: &ArchivedImages,
        is_elsewhere: impl Fn(&str) -> bool,
    ) -> Result<(Vec<ClosureImage>, Vec<ClosureImage>), Error> {
        let inside = Inside::new(images, others);
        let (mut closure, mut elsewhere) = (Vec::new(), Vec::new());
        let mut missing = Vec::new();
        for (image, places) in self.0 {
            let named_by: Vec<String> = places.into_iter().collect();
            if inside.has(&image) {
                closure.push(ClosureImage { image, named_by });
            } else if is_elsewhere(&image) {
                elsewhere.push(ClosureImage { image, named_by });
            } else {
                missing.push(format!("{image}, named by {}", named_by.join(" and ")));
            }
        }
        if missing.is_empty() {
            return Ok((closure, elsewhere));
        }
        let count = missing.len();
        let subject = if count == 1 {
            "1 image is".to_owned()
        } else {
            format!("{count} images are")
        };
        let mut text = format!("{subject} named and not inside:");
        for line in missing.iter().take(SHOWN) {
            text.push_str("\n  ");
            text.push_str(line);
        }
        if count > SHOWN {
            write!(text, "\n  and {} more", count - SHOWN).ok();
        }
        text.push_str("\nAdd them with --image, or the archives that have them with --archives.");
        Err(Error::invalid("bundle", text))
    }
}

/// Whether the reference names the local registry of the installed host.
pub fn is_of_local_registry(image: &str) -> bool {
    image.starts_with(HOST)
}

struct Inside<'a> {
    names: BTreeSet<&'a str>,
    paths: BTreeSet<String>,
    images: &'a ImageSet,
    others: &'a ArchivedImages,
}

impl<'a> Inside<'a> {
    fn new(images: &'a ImageSet, others: &'a ArchivedImages) -> Self {
        let names: BTreeSet<&str> = images.images().iter().map(|image| &*image.name).collect();
        let paths = names.iter().map(|name| path_in_registry(name));
        Self {
            paths: paths.collect(),
            names,
            images,
            others,
        }
    }

    fn has(&self, image: &str) -> bool {
        if self.names.contains(image) || self.others.names.contains(image) {
            return true;
        }
        if let Some(rest) = image.strip_prefix(HOST) {
            let path = rest.split_once('/').map(|(_, path)| path);
            return path.is_some_and(|path| self.paths.contains(path));
        }
        let reference: Option<Reference> = image.parse().ok();
        let digest = reference.and_then(|reference| reference.digest);
        digest.is_some_and(|digest| {
            self.images.has_digest(&digest) || self.others.digests.contains(&digest)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(name: &str, text: &str) -> Vec<(String, Vec<String>)> {
        let mut references = References::default();
        references.find(name, text).unwrap();
        let entries = references.0.into_iter();
        entries
            .map(|(image, places)| (image, places.into_iter().collect()))
            .collect()
    }

    #[test]
    fn references_are_found_in_every_kind_of_file() {
        for (name, text, image, place) in [
            (
                "compose.yaml",
                "services: {db: {image: '${IMAGE:-a/db:1}'}}",
                "a/db:1",
                "services.db.image",
            ),
            (
                "pod.yml",
                "kind: ConfigMap\n---\nspec: {containers: [{name: db, image: a/db:1}]}",
                "a/db:1",
                "spec.containers[db].image",
            ),
            (
                "deployment.json",
                r#"{"kind":"x"}{"env":[{"name":"AGENT_DOCKER_IMAGE","value":"a/agent:1"}]}"#,
                "a/agent:1",
                "env[AGENT_DOCKER_IMAGE].AGENT_DOCKER_IMAGE",
            ),
            (
                "config.yml",
                "data: {INSTALLER_IMAGE: 'a/i:1'}",
                "a/i:1",
                "data.INSTALLER_IMAGE",
            ),
            (
                "db.container",
                "[Container]\nImage=a/db:1\n",
                "a/db:1",
                "Image",
            ),
            (
                "atoll.env",
                "# X_IMAGE=no\nA_IMAGE=<host>:5000/a:1\nB=2\n",
                "<host>:5000/a:1",
                "A_IMAGE",
            ),
        ] {
            let expected = vec![(image.to_owned(), vec![format!("{name}: {place}")])];
            assert_eq!(found(name, text), expected, "{name}");
        }
        assert!(References::default().find("a.yaml", "a: [").is_err());
    }
}
