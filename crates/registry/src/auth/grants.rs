//! Grants of a token. Source: distribution, "Token Scope Documentation".

use serde::Deserialize;

use super::policy::Action;

/// The claim `access`.
#[derive(Debug, Default, Deserialize)]
#[serde(transparent)]
pub(super) struct Grants(Vec<Grant>);

#[derive(Debug, Deserialize)]
struct Grant {
    #[serde(rename = "type")]
    kind: String,
    name: String,
    #[serde(default)]
    actions: Vec<String>,
}

impl Grants {
    /// Actions are exact: `push` does not imply `pull`, so clients ask for `pull,push`.
    pub(super) fn allow(&self, repository: &str, action: Action) -> bool {
        let name = match action {
            Action::Pull => "pull",
            Action::Push => "push",
            Action::Delete => "delete",
        };
        self.has("repository", repository, &[name, "*"])
    }

    /// Whether all repositories may be listed: `registry:catalog:*`.
    pub(super) fn allow_catalog(&self) -> bool {
        self.has("registry", "catalog", &["*"])
    }

    /// Whether garbage collection, scrubs and the usage of quotas are allowed: `registry:maintenance:*`.
    pub(super) fn allow_maintenance(&self) -> bool {
        self.has("registry", "maintenance", &["*"])
    }

    fn has(&self, kind: &str, name: &str, actions: &[&str]) -> bool {
        self.0.iter().any(|grant| {
            grant.kind == kind
                && grant.name == name
                && grant
                    .actions
                    .iter()
                    .any(|action| actions.contains(&action.as_str()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_granted_is_allowed() {
        let grants: Grants = serde_json::from_str(
            r#"[{"type": "repository", "name": "a", "actions": ["pull"]},
                {"type": "repository", "name": "a/b", "class": "image", "actions": ["push", "pull"]},
                {"type": "repository", "name": "c", "actions": ["delete"]},
                {"type": "repository", "name": "push", "actions": ["push"]},
                {"type": "repository", "name": "all", "actions": ["*"]},
                {"type": "repository", "name": "none"},
                {"type": "repository(plugin)", "name": "d", "actions": ["pull"]}]"#,
        )
        .unwrap();
        let allowed = |name| {
            [Action::Pull, Action::Push, Action::Delete].map(|action| grants.allow(name, action))
        };
        assert_eq!(allowed("a"), [true, false, false]);
        assert_eq!(allowed("a/b"), [true, true, false]);
        assert_eq!(allowed("c"), [false, false, true]);
        assert_eq!(allowed("all"), [true, true, true]);
        assert_eq!(allowed("push"), [false, true, false]);
        for name in ["none", "d", "a/c", ""] {
            assert_eq!(allowed(name), [false; 3], "{name}");
        }
        assert!(!grants.allow_catalog());
        let catalog = r#"[{"type": "registry", "name": "catalog", "actions": ["*"]}]"#;
        let catalog: Grants = serde_json::from_str(catalog).unwrap();
        assert!(catalog.allow_catalog() && !catalog.allow_maintenance());
        let all = r#"[{"type": "registry", "name": "maintenance", "actions": ["*"]}]"#;
        let all: Grants = serde_json::from_str(all).unwrap();
        assert!(all.allow_maintenance() && !all.allow_catalog());
        assert!(!catalog.allow("a", Action::Pull));
    }
}
