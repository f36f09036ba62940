//! Actions of users in repositories.
//!
//! Rules only grant: none takes away another's grant, so their order means nothing. Actions that no rule grants are
//! refused.

use serde::Deserialize;

use crate::glob::Glob;
use concurrency::BoxError;

/// Actions in a repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Action {
    /// Reading content and lists.
    Pull,
    /// Sending content. Implies pulling: every client checks for existing content before it sends.
    Push,
    /// Deleting tags, manifests and blobs.
    Delete,
}

/// The rules in force.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Policy {
    rules: Vec<Rule>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    users: Vec<Subject>,
    repositories: Vec<Glob>,
    actions: Vec<Action>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
enum Subject {
    /// Logged in or not: logging in never takes anything away.
    Anonymous,
    /// Every user.
    Users,
    User(String),
}

impl Policy {
    /// Reads rules in YAML or JSON.
    ///
    /// Errors: neither of them, unknown keys, patterns that match nothing.
    pub(super) fn parse(text: &str) -> Result<Self, BoxError> {
        Ok(serde_yaml::from_str(text)?)
    }

    /// Everything for every client.
    pub(super) fn open() -> Self {
        Self {
            rules: vec![
                Rule::everywhere(Subject::Anonymous, Action::Push),
                Rule::everywhere(Subject::Anonymous, Action::Delete),
            ],
        }
    }

    /// Everything for users; pulling for anonymous clients, if `is_pull_free`.
    pub(super) fn of_users(is_pull_free: bool) -> Self {
        let mut rules = vec![
            Rule::everywhere(Subject::Users, Action::Push),
            Rule::everywhere(Subject::Users, Action::Delete),
        ];
        if is_pull_free {
            rules.push(Rule::everywhere(Subject::Anonymous, Action::Pull));
        }
        Self { rules }
    }

    /// Whether `user`, or an anonymous client, may do `action` in `repository`.
    pub(super) fn allows(&self, user: Option<&str>, repository: &str, action: Action) -> bool {
        self.grants(user, action, |glob| glob.matches(repository))
    }

    /// Whether the same holds in every repository, also those to come.
    pub(super) fn allows_everywhere(&self, user: Option<&str>, action: Action) -> bool {
        self.grants(user, action, Glob::is_everything)
    }

    /// Whether there is anything to do without logging in.
    pub(super) fn lets_in_anonymous(&self) -> bool {
        self.grants(None, Action::Pull, |_| true) || self.grants(None, Action::Delete, |_| true)
    }

    /// Whether anonymous clients may push to or delete from any repository.
    pub(super) fn lets_in_anonymous_writers(&self) -> bool {
        let may = |action| self.grants(None, action, |_| true);
        may(Action::Push) || may(Action::Delete)
    }

    fn grants(&self, user: Option<&str>, action: Action, is_there: impl Fn(&Glob) -> bool) -> bool {
        self.rules.iter().any(|rule| {
            rule.users.iter().any(|subject| subject.is(user))
                && rule.actions.iter().any(|granted| granted.covers(action))
                && rule.repositories.iter().any(&is_there)
        })
    }
}

impl Action {
    fn covers(self, other: Self) -> bool {
        self == other || (self == Self::Push && other == Self::Pull)
    }
}

impl Rule {
    fn everywhere(subject: Subject, action: Action) -> Self {
        Self {
            users: vec![subject],
            repositories: vec![Glob::everything()],
            actions: vec![action],
        }
    }
}

impl Subject {
    fn is(&self, user: Option<&str>) -> bool {
        match self {
            Self::Anonymous => true,
            Self::Users => user.is_some(),
            Self::User(name) => user == Some(name),
        }
    }
}

impl TryFrom<String> for Subject {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match text.as_str() {
            "" => Err("a user without a name".to_owned()),
            "*" => Ok(Self::Users),
            // A user of that name has the access of anonymous clients.
            "anonymous" => Ok(Self::Anonymous),
            _ => Ok(Self::User(text)),
        }
    }
}

#[cfg(test)]
mod tests {
    use Action::{Delete, Pull, Push};
    use proptest::prelude::*;

    use super::*;

    const EXAMPLE: &str = r#"
rules:
  - users: [admin]
    repositories: ["**"]
    actions: [pull, push, delete]
  - users: [ci, robot]
    repositories: ["team/*", scratch]
    actions: [push]
  - users: ["*"]
    repositories: ["ocp/**"]
    actions: [pull]
  - users: [anonymous]
    repositories: ["public/**"]
    actions: [pull]
"#;

    #[test]
    fn the_example() {
        let policy = Policy::parse(EXAMPLE).unwrap();
        for (user, repository, actions) in [
            (Some("admin"), "any/thing", &[Pull, Push, Delete][..]),
            (Some("ci"), "team/a", &[Pull, Push]),
            (Some("robot"), "scratch", &[Pull, Push]),
            (Some("ci"), "team/a/b", &[]),
            (Some("ci"), "ocp/a/b", &[Pull]),
            (Some("x"), "ocp/a", &[Pull]),
            (Some("x"), "team/a", &[]),
            (Some("x"), "public/a", &[Pull]),
            (None, "public/a", &[Pull]),
            (None, "public", &[]),
            (None, "ocp/a", &[]),
            // Reserved words are no way in.
            (Some("*"), "team/a", &[]),
            (Some("anonymous"), "public/a", &[Pull]),
            (Some(""), "team/a", &[]),
        ] {
            for action in [Pull, Push, Delete] {
                assert_eq!(
                    policy.allows(user, repository, action),
                    actions.contains(&action),
                    "{user:?} {repository} {action:?}"
                );
            }
        }
        assert!(policy.allows_everywhere(Some("admin"), Delete));
        assert!(!policy.allows_everywhere(Some("ci"), Pull));
        assert!(policy.lets_in_anonymous());
    }

    #[test]
    fn the_rules_in_the_readme_can_be_used() {
        let readme = include_str!("../../README.md");
        let rules = readme
            .split("```")
            .find_map(|block| block.strip_prefix("yaml\n"))
            .unwrap();
        let policy = Policy::parse(rules).unwrap();
        assert!(policy.allows(Some("ci"), "team/a", Pull));
        assert!(policy.allows(None, "public/a", Pull));
    }

    #[test]
    fn policies_without_a_file() {
        let (open, closed, free) = (
            Policy::open(),
            Policy::of_users(false),
            Policy::of_users(true),
        );
        for action in [Pull, Push, Delete] {
            assert!(open.allows(None, "a", action) && closed.allows(Some("u"), "a", action));
            assert!(!closed.allows(None, "a", action));
            assert_eq!(free.allows(None, "a", action), action == Pull);
        }
        assert!(!closed.lets_in_anonymous() && free.lets_in_anonymous());
        assert!(!free.lets_in_anonymous_writers() && open.lets_in_anonymous_writers());
    }

    #[test]
    fn json_is_parsed_and_mistakes_are_reported() {
        let json = r#"{"rules": [{"users": ["*"], "repositories": ["a"], "actions": ["pull"]}]}"#;
        assert!(Policy::parse(json).unwrap().allows(Some("u"), "a", Pull));
        assert_eq!(Policy::parse("rules: []").unwrap().rules, []);
        for (wrong, message) in [
            ("", "end of input"),
            ("rule: []", "rule"),
            (&EXAMPLE.replace("[push]", "[write]"), "write"),
            (&EXAMPLE.replace("scratch", "Scratch"), "Scratch"),
            (&EXAMPLE.replace("[admin]", "['']"), "without a name"),
            (&EXAMPLE.replace("actions: [push]", ""), "actions"),
            (&EXAMPLE.replace("users: [admin]", "user: admin"), "user"),
        ] {
            let error = Policy::parse(wrong).unwrap_err().to_string();
            assert!(error.contains(message), "{message}: {error}");
        }
    }

    fn rule() -> impl Strategy<Value = Rule> {
        let subject = prop_oneof![
            Just(Subject::Anonymous),
            Just(Subject::Users),
            "[uv]".prop_map(Subject::User)
        ];
        let glob = prop_oneof![Just("**"), Just("a/*"), Just("a"), Just("a/**")]
            .prop_map(|text| Glob::try_from(text.to_owned()).unwrap());
        let action = prop_oneof![Just(Pull), Just(Push), Just(Delete)];
        (
            proptest::collection::vec(subject, 0..3),
            proptest::collection::vec(glob, 0..3),
            proptest::collection::vec(action, 0..3),
        )
            .prop_map(|(users, repositories, actions)| Rule {
                users,
                repositories,
                actions,
            })
    }

    fn rules() -> impl Strategy<Value = Vec<Rule>> {
        proptest::collection::vec(rule(), 0..4)
    }

    proptest! {
        #[test]
        fn rules_only_grant(
            rules in rules(),
            more in rule(),
            user in proptest::option::of("[uvw]"),
            repository in "a(/[ab]){0,2}",
            action in prop_oneof![Just(Pull), Just(Push), Just(Delete)],
        ) {
            let allows = |rules: &[Rule], user: Option<&str>| {
                Policy { rules: rules.to_vec() }.allows(user, &repository, action)
            };
            let policy = Policy { rules: rules.clone() };
            let user = user.as_deref();
            let is_allowed = allows(&rules, user);
            let alone = rules.iter().any(|rule| allows(std::slice::from_ref(rule), user));
            prop_assert_eq!(is_allowed, alone, "a rule counts by itself");
            let reversed: Vec<_> = rules.iter().rev().cloned().collect();
            prop_assert_eq!(is_allowed, allows(&reversed, user), "order means nothing");
            let longer = [&rules[..], &[more]].concat();
            prop_assert!(!is_allowed || allows(&longer, user), "nothing is taken away");
            prop_assert!(!allows(&rules, None) || is_allowed, "logging in takes nothing away");
            prop_assert!(!allows(&rules, None) || policy.lets_in_anonymous());
            prop_assert!(!policy.allows_everywhere(user, action) || is_allowed);
            if policy.allows(user, &repository, Push) {
                prop_assert!(policy.allows(user, &repository, Pull));
            }
        }

        #[test]
        fn any_file_is_read_or_refused(text in "\\PC{0,60}(\n\\PC{0,20}){0,3}") {
            Policy::parse(&text).ok();
        }
    }
}
