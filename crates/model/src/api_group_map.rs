//! API groups of a distribution that has its own, in resources that are published for clusters.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::str::FromStr;

use serde::Deserialize;

/// Units: bytes. Longest group. Source: DNS.
const LONGEST_GROUP: usize = 253;

/// The distribution's groups by those of the platform, as in `{"config.openshift.io": "config.example.org"}`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "BTreeMap<String, String>")]
pub struct ApiGroupMap(BTreeMap<String, String>);

impl ApiGroupMap {
    /// YAML with the groups of API versions, and those before the names of labels and annotations, replaced. Documents in it,
    /// as those of a ConfigMap, are included; all else is kept to the letter.
    pub fn replaced<'a>(&self, yaml: &'a str) -> Cow<'a, str> {
        if self.0.is_empty() {
            return Cow::Borrowed(yaml);
        }
        yaml.split_inclusive('\n')
            .flat_map(|line| self.replaced_in_line(line))
            .collect::<String>()
            .into()
    }

    /// The line in up to three parts.
    fn replaced_in_line<'a>(&'a self, line: &'a str) -> [&'a str; 3] {
        let entry = line.trim_start_matches([' ', '-']);
        let value = entry.strip_prefix("apiVersion: ").unwrap_or(entry);
        let value = value.trim_start_matches(['"', '\'']);
        let start = line.len() - value.len();
        let replaced = value.split_once('/').and_then(|(group, rest)| {
            let is_key = || {
                rest.split_once(':').is_some_and(|(name, value)| {
                    is_name(name) && (value.is_empty() || value.starts_with([' ', '\n']))
                })
            };
            let is_place = value.len() < entry.len() || is_key();
            let own = self.0.get(group).filter(|_| is_place)?;
            Some([&line[..start], own, &value[group.len()..]])
        });
        replaced.unwrap_or([line, "", ""])
    }
}

/// Whether it is the name in a key of a label, `GROUP/NAME`.
fn is_name(text: &str) -> bool {
    let text = text.trim_end_matches(['"', '\'']);
    text.bytes()
        .all(|it| it.is_ascii_alphanumeric() || b"-_.".contains(&it))
}

fn is_group(text: &str) -> bool {
    let is_label = |label: &str| {
        let inner = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'-';
        !label.is_empty() && label.bytes().all(inner) && label.trim_matches('-') == label
    };
    text.len() <= LONGEST_GROUP && text.split('.').all(is_label)
}

impl TryFrom<BTreeMap<String, String>> for ApiGroupMap {
    type Error = String;

    fn try_from(groups: BTreeMap<String, String>) -> Result<Self, String> {
        let mut names = groups.keys().chain(groups.values());
        if let Some(wrong) = names.find(|name| !is_group(name)) {
            return Err(format!(
                "{wrong:?} is no API group: expected a name in lower case without a version, as config.openshift.io"
            ));
        }
        Ok(Self(groups))
    }
}

impl FromStr for ApiGroupMap {
    type Err = String;

    /// From JSON.
    fn from_str(json: &str) -> Result<Self, String> {
        serde_json::from_str(json).map_err(|e| e.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_replaced_where_they_are_groups() {
        let groups: ApiGroupMap =
            r#"{"config.openshift.io": "config.example.org", "operators.openshift.org": "own"}"#
                .parse()
                .unwrap();
        let yaml = "---
apiVersion: config.openshift.io/v1
kind: ImageDigestMirrorSet
metadata:
  labels:
    operators.openshift.org/catalog: \"true\"
    \"operators.openshift.org/quoted\": \"true\"
spec:
  imageDigestMirrors:
  - mirrors:
    - config.openshift.io/mirror
    source: config.openshift.io/a
  - source: config.openshift.io/a:5000/b
---
apiVersion: \"config.openshift.io/v1\"
data:
  nested.yaml: |
    apiVersion: v1
    items:
    - apiVersion: config.openshift.io/v1
      text: apiVersion: config.openshift.io/v1
---
apiVersion: other.config.openshift.io/v1
";
        let expected = yaml
            .replacen(
                "apiVersion: config.openshift.io/v1\nkind",
                "apiVersion: config.example.org/v1\nkind",
                1,
            )
            .replace("operators.openshift.org/", "own/")
            .replace("\"config.openshift.io/v1\"", "\"config.example.org/v1\"")
            .replace(
                "- apiVersion: config.openshift.io",
                "- apiVersion: config.example.org",
            );
        assert_ne!(expected, yaml);
        assert_eq!(groups.replaced(yaml), expected);
        assert!(
            matches!(ApiGroupMap::default().replaced(yaml), Cow::Borrowed(text) if text == yaml)
        );
        assert_eq!(
            groups.replaced("apiVersion: config.openshift.io/v1"),
            "apiVersion: config.example.org/v1"
        );
        assert_eq!(
            groups.replaced("- config.openshift.io/a:5000/b"),
            "- config.openshift.io/a:5000/b"
        );
    }

    #[test]
    fn others_than_groups_are_refused() {
        let longest = format!("a{}", ".a".repeat(126));
        assert_eq!(longest.len(), LONGEST_GROUP);
        let json = |own: &str| format!(r#"{{"config.openshift.io": {own:?}}}"#);
        assert!(json(&longest).parse::<ApiGroupMap>().is_ok());
        for wrong in [
            "",
            "config.example.org/v1",
            "Config",
            "a..b",
            "-a",
            "a\nb",
            &format!("{longest}a"),
        ] {
            let reason = json(wrong).parse::<ApiGroupMap>().unwrap_err();
            assert!(reason.contains("is no API group"), "{reason}");
        }
        assert!("[]".parse::<ApiGroupMap>().is_err());
    }
}
