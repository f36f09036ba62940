use std::time::Duration;

use proptest::prelude::*;

use super::super::{Pattern, Policy};
use super::*;

/// The end of 100 days.
const NOW: i64 = 100;

fn day(n: i64) -> Timestamp {
    Timestamp::from_timestamp(n * 24 * 3600, 0).unwrap()
}

fn digest(name: &str) -> Digest {
    Digest::sha256(name.as_bytes())
}

/// Pushed and pulled on that day.
fn tagged(name: &str, manifest: &str, pushed: i64, pulled: i64) -> Tagged {
    Tagged {
        tag: name.parse().unwrap(),
        digest: digest(manifest),
        pushed_at: day(pushed),
        pulled_at: day(pulled),
        is_immutable: false,
    }
}

fn held(name: &str, children: &[&str], subject: Option<&str>) -> Held {
    Held {
        digest: digest(name),
        pushed_at: day(0),
        children: children.iter().map(|name| digest(name)).collect(),
        subject: subject.map(digest),
    }
}

fn rules(text: &str) -> Rules {
    let text = format!("retention: {{policies: [{{repositories: ['**'], {text}}}]}}");
    let mut policy = Policy::parse(&text).unwrap();
    policy.retention.policies.remove(0)
}

fn names(decision: &Decision<'_>) -> Vec<String> {
    let mut names: Vec<_> = decision
        .tags
        .iter()
        .map(|tagged| tagged.tag.to_string())
        .collect();
    names.sort();
    names
}

#[test]
fn tags_stay_if_any_rule_keeps_them() {
    let tags = [
        tagged("v1", "1", 10, 99),
        tagged("v2", "2", 20, 20),
        tagged("v3", "3", 30, 30),
        tagged("dev", "4", 95, 95),
        tagged("old", "5", 5, 5),
    ];
    for (keep, gone) in [
        ("keep_tags: []", &[][..]),
        ("keep_tags: [{}]", &[]),
        ("keep_tags: [{patterns: ['^v']}]", &["dev", "old"]),
        (
            "keep_tags: [{patterns: ['^v'], most_recently_pushed_count: 2}]",
            &["dev", "old", "v1"],
        ),
        (
            "keep_tags: [{patterns: ['^v'], most_recently_pulled_count: 1}]",
            &["dev", "old", "v2", "v3"],
        ),
        (
            "keep_tags: [{most_recently_pushed_count: 0}]",
            &["dev", "old", "v1", "v2", "v3"],
        ),
        (
            "keep_tags: [{pushed_within: 10d}]",
            &["old", "v1", "v2", "v3"],
        ),
        ("keep_tags: [{pushed_within: 70d}]", &["old", "v1", "v2"]),
        (
            "keep_tags: [{pulled_within: 24h}]",
            &["dev", "old", "v2", "v3"],
        ),
        (
            "keep_tags: [{most_recently_pushed_count: 1, pulled_within: 24h}, {patterns: [old]}]",
            &["v2", "v3"],
        ),
    ] {
        let rules = rules(keep);
        let decision = decide(&rules, Span::default(), &tags, &[], day(NOW));
        assert_eq!(names(&decision), gone, "{keep}");
        let delay = Span(Duration::from_hours(24 * 1000));
        let none = decide(&rules, delay, &tags, &[], day(NOW));
        assert_eq!(none, Decision::default(), "{keep}: all are young");
    }
    let mut fixed = tags.clone();
    fixed[4].is_immutable = true;
    let rules = rules("keep_tags: [{patterns: [dev]}]");
    let decision = decide(&rules, Span::default(), &fixed, &[], day(NOW));
    assert_eq!(names(&decision), ["v1", "v2", "v3"]);
}

#[test]
fn manifests_follow_their_tags_indexes_and_subjects() {
    let manifests = [
        held("index", &["amd64", "arm64"], None),
        held("amd64", &[], None),
        held("arm64", &[], None),
        held("old index", &["arm64", "s390x"], None),
        held("s390x", &[], None),
        held("signature", &[], Some("amd64")),
        held("signature of signature", &[], Some("signature")),
        held("old signature", &[], Some("s390x")),
        held("signature of nothing", &[], Some("gone")),
        held("untagged", &[], None),
    ];
    let tags = [
        tagged("keep", "index", 0, 0),
        tagged("old", "old index", 0, 0),
    ];
    for (more, gone) in [
        ("", &["old index", "s390x"][..]),
        (
            "delete_untagged: true, ",
            &["old index", "s390x", "untagged"],
        ),
        (
            "delete_referrers: true, ",
            &[
                "old index",
                "s390x",
                "old signature",
                "signature of nothing",
            ],
        ),
    ] {
        let rules = rules(&format!("{more}keep_tags: [{{patterns: [keep]}}]"));
        let decision = decide(&rules, Span::default(), &tags, &manifests, day(NOW));
        assert_eq!(names(&decision), ["old"]);
        let found: Vec<_> = decision
            .manifests
            .iter()
            .map(|held| held.digest.clone())
            .collect();
        let expected: Vec<_> = gone.iter().map(|name| digest(name)).collect();
        assert_eq!(found, expected, "{more}");
    }
}

#[test]
fn tags_that_stand_for_referrers_follow_their_subject() {
    let of = |name: &str, end: &str| format!("sha256-{}{end}", digest(name).hex());
    let manifests = [
        held("kept", &[], None),
        held("old", &[], None),
        held("its signature", &[], None),
        held("old signature", &[], None),
    ];
    let tags = [
        tagged("keep", "kept", 0, 0),
        tagged("old", "old", 0, 0),
        tagged(&of("kept", ".sig"), "its signature", 0, 0),
        tagged(&of("old", ""), "old signature", 0, 0),
    ];
    for (more, gone) in [("", 1), ("delete_referrers: true, ", 2)] {
        let rules = rules(&format!("{more}keep_tags: [{{patterns: ['^keep$']}}]"));
        let decision = decide(&rules, Span::default(), &tags, &manifests, day(NOW));
        assert_eq!(
            (decision.tags.len(), decision.manifests.len()),
            (gone, gone),
            "{more}"
        );
    }
}

fn a_name() -> impl Strategy<Value = String> {
    "[a-h]"
}

fn a_held() -> impl Strategy<Value = Held> {
    let children = proptest::collection::vec(a_name(), 0..3);
    (a_name(), children, proptest::option::of(a_name()), 0..NOW).prop_map(
        |(name, children, subject, pushed)| Held {
            digest: digest(&name),
            pushed_at: day(pushed),
            children: children.iter().map(|name| digest(name)).collect(),
            subject: subject.map(|name| digest(&name)),
        },
    )
}

fn a_tag() -> impl Strategy<Value = Tagged> {
    let name = prop_oneof![
        "[a-h]{1,2}",
        "[a-h]".prop_map(|name| format!("sha256-{}.sig", digest(&name).hex())),
    ];
    (name, a_name(), 0..NOW, 0..NOW, prop::bool::weighted(0.1)).prop_map(
        |(name, manifest, pushed, pulled, is_immutable)| Tagged {
            is_immutable,
            ..tagged(&name, &manifest, pushed, pulled)
        },
    )
}

fn a_keep() -> impl Strategy<Value = KeepTags> {
    let span = || {
        proptest::option::of(
            (0..NOW.unsigned_abs()).prop_map(|n| Span(Duration::from_hours(n * 24))),
        )
    };
    let count = || proptest::option::of(0..4_usize);
    let patterns = proptest::collection::vec("[a-h]", 0..2);
    (patterns, count(), count(), span(), span()).prop_map(
        |(patterns, pushed, pulled, pushed_within, pulled_within)| KeepTags {
            patterns: patterns
                .into_iter()
                .map(|text| Pattern::try_from(text).unwrap())
                .collect(),
            most_recently_pushed_count: pushed,
            most_recently_pulled_count: pulled,
            pushed_within,
            pulled_within,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn nothing_that_is_kept_goes_and_nothing_that_belongs_to_it(
        mut tags in proptest::collection::vec(a_tag(), 0..8),
        mut manifests in proptest::collection::vec(a_held(), 0..8),
        keep_tags in proptest::collection::vec(a_keep(), 0..3),
        delete_untagged: bool,
        delete_referrers: bool,
        delay in 0..NOW.unsigned_abs(),
    ) {
        tags.sort_by(|a, b| a.tag.cmp(&b.tag));
        tags.dedup_by(|a, b| a.tag == b.tag);
        manifests.sort_by(|a, b| a.digest.cmp(&b.digest));
        manifests.dedup_by(|a, b| a.digest == b.digest);
        let delay = Span(Duration::from_hours(delay * 24));
        let rules = Rules { repositories: Vec::new(), delete_untagged, delete_referrers, keep_tags };
        let decision = decide(&rules, delay, &tags, &manifests, day(NOW));
        let goes = |digest: &Digest| decision.manifests.iter().any(|held| held.digest == *digest);
        for tagged in &tags {
            let is_gone = decision.tags.contains(&tagged);
            let named = rules.keep_tags.is_empty()
                || rules.keep_tags.iter().any(|keep| kept_by(keep, &tags, day(NOW)).contains(&tagged));
            prop_assert!(!(is_gone && named), "a rule keeps {}", tagged.tag);
            prop_assert!(!(is_gone && tagged.is_immutable));
            prop_assert!(!(is_gone && tagged.pushed_at > day(NOW) - delay.0), "too young");
            prop_assert!(is_gone || !goes(&tagged.digest), "{} has lost its manifest", tagged.tag);
        }
        for held in &manifests {
            let is_gone = goes(&held.digest);
            prop_assert!(!(is_gone && held.pushed_at > day(NOW) - delay.0), "too young");
            if !is_gone {
                for child in &held.children {
                    prop_assert!(!goes(child), "an index has lost a manifest");
                }
            }
            if let Some(subject) = &held.subject {
                let has_subject = manifests.iter().any(|held| held.digest == *subject);
                prop_assert!(!is_gone || !has_subject || goes(subject), "a subject has lost a referrer");
                prop_assert!(!is_gone || delete_referrers);
            }
        }
    }
}
