//! Versions of agents: container images, which the service replaces, or agents that came inside a discovery image.

use super::at_least;

/// Beginning of the versions of agents inside discovery images, which come with their image.
const EMBEDDED: &str = "atoll-agent/";

/// Whether the service works with an agent: one of its own image, or one inside a discovery image.
pub(crate) fn is_compatible(agent: &str, image: &str) -> bool {
    agent == image || is_embedded(agent)
}

/// Whether an agent came inside a discovery image.
pub(crate) fn is_embedded(agent: &str) -> bool {
    agent.starts_with(EMBEDDED)
}

/// Whether an agent has the features that the agent of release `major.minor` brought. Other agents than embedded ones
/// are of `release`, the version that their cluster installs; an empty one counts as the newest.
pub(crate) fn has_features_of(agent: &str, release: &str, (major, minor): (u64, u64)) -> bool {
    is_embedded(agent) || release.is_empty() || at_least(release, major, minor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_of_images_are_not_replaced() {
        let image = "quay.io/a/agent:v2";
        assert!(is_compatible(image, image));
        assert!(is_compatible("atoll-agent/0.1.0", image));
        assert!(!is_compatible("quay.io/a/agent:v1", image));
        assert!(!is_compatible("", image));
    }

    #[test]
    fn agents_have_the_features_of_their_release() {
        let image = "quay.io/a/agent:v2";
        for (agent, release, expected) in [
            (image, "4.13.9", false),
            (image, "4.14.0-rc.1", true),
            (image, "4.20.3-multi", true),
            (image, "", true),
            ("", "4.13.9", false),
            ("atoll-agent/0.1.0", "4.12.3", true),
        ] {
            let has = has_features_of(agent, release, (4, 14));
            assert_eq!(has, expected, "{agent} {release}");
        }
    }
}
