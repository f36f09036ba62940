//! Versions of the specification.

use std::fmt;

use located_yaml::Position;
use located_yaml::v1_2::ConfigNode;
use serde::{Deserialize, Serialize};

use crate::foreign::{kind_of_document, version_remedy};
use crate::path::{NodePath, is_same_folded};
use crate::problem::{ProblemClass, ProblemList, quoted};

/// A version of the specification, lowest first.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub enum SpecVersion {
    /// 3.0.0
    #[serde(rename = "3.0.0")]
    V3_0,
    /// 3.1.0, the version of the oldest supported hosts.
    #[default]
    #[serde(rename = "3.1.0")]
    V3_1,
    /// 3.2.0
    #[serde(rename = "3.2.0")]
    V3_2,
    /// 3.3.0
    #[serde(rename = "3.3.0")]
    V3_3,
    /// 3.4.0
    #[serde(rename = "3.4.0")]
    V3_4,
    /// 3.5.0
    #[serde(rename = "3.5.0")]
    V3_5,
    /// 3.6.0
    #[serde(rename = "3.6.0")]
    V3_6,
}

impl SpecVersion {
    /// All versions, lowest first.
    pub const ALL: [Self; 7] = [
        Self::V3_0,
        Self::V3_1,
        Self::V3_2,
        Self::V3_3,
        Self::V3_4,
        Self::V3_5,
        Self::V3_6,
    ];

    /// The version as configurations write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V3_0 => "3.0.0",
            Self::V3_1 => "3.1.0",
            Self::V3_2 => "3.2.0",
            Self::V3_3 => "3.3.0",
            Self::V3_4 => "3.4.0",
            Self::V3_5 => "3.5.0",
            Self::V3_6 => "3.6.0",
        }
    }

    /// The version of this text. Leading zeros do not matter, as in Ignition.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('.').map(|part| {
            let is_number = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
            is_number.then(|| part.trim_start_matches('0'))
        });
        let [major, minor, patch] = [(); 3].map(|()| parts.next().flatten());
        if major != Some("3") || patch != Some("") || parts.next().is_some() {
            return None;
        }
        let minor = minor.map(|minor| if minor.is_empty() { "0" } else { minor })?;
        let is_minor = |version: &Self| version.as_str().get(2..3) == Some(minor);
        Self::ALL.into_iter().find(is_minor)
    }
}

impl fmt::Display for SpecVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The version of a document; the problem is reported when it has none that is supported.
pub(crate) fn find_version(root: &ConfigNode, problems: &mut ProblemList) -> Option<SpecVersion> {
    let ignition = last_folded(root, "ignition");
    let found = ignition.and_then(|ignition| last_folded(ignition, "version"));
    let above = NodePath::Member(&NodePath::Root, "ignition");
    let mut refuse = |at: Position, reason: String| {
        let path = NodePath::Member(&above, "version");
        problems.add(ProblemClass::Refused, at, path, reason);
        None
    };
    let Some(found) = found else {
        let reason = "a configuration needs a version, one of 3.0.0 to 3.6.0";
        return refuse(root.at, kind_of_document(root).unwrap_or(reason).to_owned());
    };
    let Some(text) = found.as_text() else {
        let reason = format!("expected text, found {}", found.type_name());
        return refuse(found.at, reason);
    };
    SpecVersion::parse(text).or_else(|| {
        let (text, remedy) = (quoted(text), version_remedy(text));
        let reason = format!("{text} is not supported, expected one of 3.0.0 to 3.6.0{remedy}");
        refuse(found.at, reason)
    })
}

fn last_folded<'a>(node: &'a ConfigNode, name: &str) -> Option<&'a ConfigNode> {
    let members = node.members().iter().rev();
    let mut members = members.filter(|member| is_same_folded(name, &member.name));
    members
        .find(|member| !member.node.is_null())
        .map(|member| &member.node)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_parse_as_in_ignition() {
        for version in SpecVersion::ALL {
            assert_eq!(SpecVersion::parse(version.as_str()), Some(version));
            let json = serde_json::to_string(&version).unwrap();
            assert_eq!(json, format!("{version:?}").replace("V3_", "\"3.") + ".0\"");
        }
        assert_eq!(SpecVersion::parse("03.01.00"), Some(SpecVersion::V3_1));
        for text in [
            "",
            "3",
            "3.1",
            "3.1.0.0",
            "3.1.1",
            "2.2.0",
            "3.7.0",
            "3.6.0-experimental",
            "3.1.0-a",
            "3.1.0+a",
            " 3.1.0",
            "3..0",
            "3.+1.0",
            "3.10.0",
            "13.1.0",
        ] {
            assert_eq!(SpecVersion::parse(text), None, "{text}");
        }
    }
}
