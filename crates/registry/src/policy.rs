//! The operator's policy: one file for retention, quotas and immutable tags.

mod pulls;
mod quota;
mod retain;
mod retention;

use std::sync::Arc;
use std::time::Duration;

use concurrency::{BoxError, WatchedFile};
use oci::{Repository, Tag};
use regex::{Regex, RegexBuilder};
use serde::Deserialize;
use service::settings::Setting as _;
use service::{Error, ResultExt as _};

use crate::glob::Glob;
use crate::settings::Settings;
use crate::size::Size;

pub(crate) use pulls::{Pulls, run as record_pulls};
pub(crate) use quota::{Quotas, Reservation};
pub(crate) use retain::{Expired, retain};

/// Units: bytes. Bound of one compiled tag pattern.
const PATTERN_LIMIT_BYTES: usize = 1 << 20;

/// The file.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Policy {
    pub(crate) retention: Retention,
    pub(crate) quotas: Vec<Quota>,
    pub(crate) immutable: Vec<Immutable>,
}

/// Which tags stay. Source: zot's configuration of the same name, whose spelling is read, too.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Retention {
    /// Only report content that would expire.
    #[serde(alias = "dryRun")]
    pub(crate) dry_run: bool,
    /// Younger content never expires.
    pub(crate) delay: Span,
    /// The first one that is for a repository counts.
    pub(crate) policies: Vec<Rules>,
}

/// Rules of some repositories.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Rules {
    pub(crate) repositories: Vec<Glob>,
    /// Whether manifests go that never had a tag, or lost it by a push.
    #[serde(alias = "deleteUntagged")]
    pub(crate) delete_untagged: bool,
    /// Whether referrers, such as signatures, expire with their subject.
    #[serde(alias = "deleteReferrers")]
    pub(crate) delete_referrers: bool,
    /// A tag stays if any of them keeps it; without any, all tags stay.
    #[serde(alias = "keepTags")]
    pub(crate) keep_tags: Vec<KeepTags>,
}

/// Of the tags that match, those stay that any of the other members names; all, if there is none.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct KeepTags {
    /// None is all tags.
    pub(crate) patterns: Vec<Pattern>,
    #[serde(alias = "mostRecentlyPushedCount")]
    pub(crate) most_recently_pushed_count: Option<usize>,
    #[serde(alias = "mostRecentlyPulledCount")]
    pub(crate) most_recently_pulled_count: Option<usize>,
    #[serde(alias = "pushedWithin")]
    pub(crate) pushed_within: Option<Span>,
    #[serde(alias = "pulledWithin")]
    pub(crate) pulled_within: Option<Span>,
}

/// How much repositories may hold together.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Quota {
    pub(crate) repositories: Vec<Glob>,
    pub(crate) limit: Size,
}

/// Tags that stay where they were pushed first.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Immutable {
    pub(crate) repositories: Vec<Glob>,
    #[serde(alias = "tags")]
    pub(crate) patterns: Vec<Pattern>,
}

/// A regular expression that is looked for in tags.
#[derive(Debug, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Pattern(Regex);

/// A time, in days, too.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Span(pub(crate) Duration);

/// The policy in force.
#[derive(Debug)]
pub(crate) struct Policies {
    file: Option<WatchedFile<Policy>>,
    none: Arc<Policy>,
}

impl Policies {
    /// Errors: a file that cannot be used.
    pub(crate) async fn open(settings: &Settings) -> Result<Self, Error> {
        let file = match &settings.registry_storage_policy_path {
            None => None,
            Some(path) => {
                let watched =
                    WatchedFile::open(path, |bytes| Policy::parse(std::str::from_utf8(bytes)?))
                        .await;
                Some(watched.doing(|| format!("reading {}", path.display()))?)
            }
        };
        let none = Arc::default();
        Ok(Self { file, none })
    }

    /// The current policy; empty without a file.
    pub(crate) async fn get(&self) -> Arc<Policy> {
        match &self.file {
            Some(file) => file.get().await,
            None => Arc::clone(&self.none),
        }
    }
}

impl Policy {
    /// Reads YAML or JSON.
    ///
    /// Errors: neither of them, unknown keys, patterns that cannot be used.
    fn parse(text: &str) -> Result<Self, BoxError> {
        Ok(serde_yaml::from_str(text)?)
    }

    /// Whether a tag stays where it was pushed first.
    pub(crate) fn is_immutable(&self, repository: &Repository, tag: &Tag) -> bool {
        self.immutable.iter().any(|rule| {
            matches(&rule.repositories, repository)
                && rule.patterns.iter().any(|pattern| pattern.matches(tag))
        })
    }

    /// Whether any tag of a repository can be such a one.
    pub(crate) fn has_immutable(&self, repository: &Repository) -> bool {
        let mut rules = self.immutable.iter();
        rules.any(|rule| matches(&rule.repositories, repository))
    }

    /// Whether any rule asks when tags were pulled.
    pub(crate) fn wants_pulls(&self) -> bool {
        let rules = self.retention.policies.iter();
        rules
            .flat_map(|rules| &rules.keep_tags)
            .any(|keep| keep.most_recently_pulled_count.is_some() || keep.pulled_within.is_some())
    }
}

impl Retention {
    /// The rules of a repository.
    pub(crate) fn rules(&self, repository: &Repository) -> Option<&Rules> {
        let mut rules = self.policies.iter();
        rules.find(|rules| matches(&rules.repositories, repository))
    }
}

fn matches(globs: &[Glob], repository: &Repository) -> bool {
    globs.iter().any(|glob| glob.matches(repository.as_str()))
}

impl Pattern {
    pub(crate) fn matches(&self, tag: &Tag) -> bool {
        self.0.is_match(tag.as_str())
    }
}

impl TryFrom<String> for Pattern {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let built = RegexBuilder::new(&text)
            .size_limit(PATTERN_LIMIT_BYTES)
            .build();
        built
            .map(Self)
            .map_err(|e| format!("{text:?} is no regular expression: {e}"))
    }
}

impl TryFrom<String> for Span {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let days = text
            .strip_suffix('d')
            .and_then(|days| days.parse::<u32>().ok());
        let span = match days {
            Some(days) => Ok(Duration::from_hours(u64::from(days) * 24)),
            None => Duration::parse(&text),
        };
        // Far beyond any policy, and no subtraction leaves the calendar.
        let span = span.map(|span| span.min(crate::purge::AGE_LIMIT));
        span.map(Self)
            .map_err(|why| format!("{text:?} is no time, as in 24h or 30d: {why}"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tag(name: &str) -> Tag {
        name.parse().unwrap()
    }

    fn repository(name: &str) -> Repository {
        name.parse().unwrap()
    }

    #[test]
    fn the_policy_in_the_readme_can_be_used() {
        let readme = include_str!("../README.md");
        let text = readme
            .split("```yaml\n")
            .find(|block| block.starts_with("retention:"))
            .and_then(|block| block.split("```").next())
            .unwrap();
        let policy = Policy::parse(text).unwrap();
        assert!(policy.retention.rules(&repository("team/app")).is_some());
        assert!(policy.retention.rules(&repository("other")).is_none());
        assert_eq!(policy.quotas[0].limit, Size(50 << 30));
        assert!(policy.is_immutable(&repository("release/app"), &tag("v1.0")));
        assert!(!policy.is_immutable(&repository("release/app"), &tag("latest")));
        assert!(!policy.is_immutable(&repository("team/app"), &tag("v1.0")));
        assert!(policy.wants_pulls());
    }

    #[test]
    fn zots_spelling_is_read_too() {
        let text = r#"{"retention": {"dryRun": true, "delay": "24h", "policies": [{"repositories": ["infra/*"],
            "deleteReferrers": true, "deleteUntagged": true, "keepTags": [{"patterns": ["v2.*", ".*-prod"],
            "mostRecentlyPushedCount": 10, "mostRecentlyPulledCount": 10, "pulledWithin": "720h",
            "pushedWithin": "720h"}]}]}}"#;
        let retention = Policy::parse(text).unwrap().retention;
        let [rules] = &retention.policies[..] else {
            panic!("{retention:?}");
        };
        let [keep] = &rules.keep_tags[..] else {
            panic!("{rules:?}");
        };
        assert!(retention.dry_run && rules.delete_referrers && rules.delete_untagged);
        assert_eq!(retention.delay.0, Duration::from_hours(24));
        assert_eq!(keep.pushed_within, Some(Span(Duration::from_hours(720))));
        assert_eq!(keep.most_recently_pulled_count, Some(10));
        assert!(keep.patterns[1].matches(&tag("a-prod")));
    }

    #[test]
    fn mistakes_are_reported() {
        assert!(Policy::parse("{}").unwrap().quotas.is_empty());
        for (wrong, message) in [
            ("retain: []", "retain"),
            ("quotas: [{repositories: [a], limit: 1 XB}]", "XB"),
            ("quotas: [{repositories: [A], limit: 1}]", "\"A\""),
            ("quotas: [{repositories: [a]}]", "limit"),
            (
                "immutable: [{repositories: [a], patterns: ['(']}]",
                "regular expression",
            ),
            ("retention: {delay: 5x}", "5x"),
            ("retention: {policies: [{keep_tag: []}]}", "keep_tag"),
        ] {
            let error = Policy::parse(wrong).unwrap_err().to_string();
            assert!(error.contains(message), "{message}: {error}");
        }
        let span = |text: &str| Span::try_from(text.to_owned()).map(|span| span.0);
        assert_eq!(span("30d"), Ok(Duration::from_hours(720)));
        assert_eq!(span("1h30m"), Ok(Duration::from_mins(90)));
        assert_eq!(span("4000000000d"), Ok(crate::purge::AGE_LIMIT));
    }

    proptest! {
        #[test]
        fn any_file_is_read_or_refused(text in "\\PC{0,60}(\n\\PC{0,20}){0,3}") {
            Policy::parse(&text).ok();
        }
    }
}
