//! Versions of agents: container images, which the service replaces, or agents that came inside a discovery image.

/// Beginning of the versions of agents inside discovery images, which come with their image.
const EMBEDDED: &str = "atoll-agent/";

/// Whether the service works with an agent: one of its own image, or one inside a discovery image.
pub(crate) fn is_compatible(agent: &str, image: &str) -> bool {
    agent == image || agent.starts_with(EMBEDDED)
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
}
