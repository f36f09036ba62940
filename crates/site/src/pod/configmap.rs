//! Settings as a Kubernetes ConfigMap.

use std::fmt::Write as _;

use service::settings::env_lines;

/// Settings file in the pod's folder. Compose reads this name by default.
pub const SETTINGS: &str = ".env";
/// Address of all services in a pod of `podman play kube`, whose containers share the loopback interface.
const LOOPBACK: &str = "127.0.0.1";
/// A port that compose publishes; with it, the image service would leave the one that pod.yml publishes.
const OF_COMPOSE: &str = "HTTP_LISTEN_PORT";

/// Renders the ConfigMap `atoll` from `settings`, the text of an env file.
///
/// Errors: the number of the first malformed line (`NAME=value`).
pub(super) fn render(settings: &str) -> Result<String, usize> {
    let mut text =
        String::from("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: atoll\ndata:\n");
    let lines = env_lines(settings)?.into_iter();
    for (name, value) in lines.filter(|(name, _)| *name != OF_COMPOSE) {
        // The database container of compose; an external database keeps its address.
        let value = match (name, value) {
            ("DB_HOST", "db") => LOOPBACK,
            _ => value,
        };
        // A JSON string is a YAML string.
        let quoted = serde_json::Value::from(value);
        writeln!(text, "  {name}: {quoted}").ok();
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_quoted() {
        let settings = "# words\nOS_IMAGES=[{\"version\":\"4\"}]\nNTP_DEFAULT_SERVER=\nDB_HOST=db\nX=a: b # c\n";
        assert_eq!(
            render(settings).unwrap(),
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: atoll\ndata:\n  \
             OS_IMAGES: \"[{\\\"version\\\":\\\"4\\\"}]\"\n  NTP_DEFAULT_SERVER: \"\"\n  \
             DB_HOST: \"127.0.0.1\"\n  X: \"a: b # c\"\n"
        );
    }

    #[test]
    fn an_external_database_keeps_its_address() {
        let text = render("DB_HOST=db.example.org\n").unwrap();
        assert!(text.ends_with("  DB_HOST: \"db.example.org\"\n"), "{text}");
    }

    #[test]
    fn the_port_that_compose_publishes_is_left_out() {
        let text = render("HTTP_LISTEN_PORT=8087\nLISTEN_PORT=8888\n").unwrap();
        assert!(!text.contains("HTTP_LISTEN_PORT"), "{text}");
        assert!(text.ends_with("  LISTEN_PORT: \"8888\"\n"), "{text}");
    }

    #[test]
    fn a_malformed_line_is_reported_by_number() {
        assert_eq!(render("A=1\n\nnonsense\n"), Err(3));
    }
}
