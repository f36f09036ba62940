//! References to images in the files of a bundle: `image` members of YAML and JSON, variables whose names end in `_IMAGE`,
//! and `Image=` of quadlets.

use std::collections::{BTreeMap, BTreeSet};

use model::Error;
use serde_json::Value;

use crate::interpolation::interpolate;

/// End of the names of variables that hold a reference.
const VARIABLE: &str = "_IMAGE";

/// References found so far, each with the places that name it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct References(pub(crate) BTreeMap<String, BTreeSet<String>>);

impl References {
    /// Finds the references in a file, by its name: YAML and JSON, quadlets, and settings.
    ///
    /// Errors: Invalid – malformed YAML or JSON.
    pub(crate) fn find(&mut self, name: &str, text: &str) -> Result<(), Error> {
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
