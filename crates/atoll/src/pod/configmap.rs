//! Settings as a Kubernetes ConfigMap.

use std::fmt::Write as _;

use service::settings::env_lines;

/// Settings file in the pod's folder. Compose reads this name by default.
pub(super) const SETTINGS: &str = ".env";
/// Address of all services in a pod of `podman play kube`, whose containers share the loopback interface.
const LOOPBACK: &str = "127.0.0.1";

/// Renders the ConfigMap `atoll` from `settings`, the text of an env file.
///
/// Errors: the number of the first malformed line (`NAME=value`).
pub(super) fn render(settings: &str) -> Result<String, usize> {
    let mut text =
        String::from("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: atoll\ndata:\n");
    for (name, value) in env_lines(settings)? {
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
    fn a_malformed_line_is_reported_by_number() {
        assert_eq!(render("A=1\n\nnonsense\n"), Err(3));
    }
}
