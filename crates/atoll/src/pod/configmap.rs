//! The settings as Kubernetes spells them.

use std::fmt::Write as _;

use service::settings::env_lines;

/// Where everything is when all containers share one loopback address, as in a pod of `podman play kube`.
const LOOPBACK: &str = "127.0.0.1";

/// A ConfigMap called `atoll` of the variables in `settings`, the text of an env file.
///
/// Errors: the number of the first line that is no `NAME=value`.
pub(super) fn render(settings: &str) -> Result<String, usize> {
    let mut text =
        String::from("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: atoll\ndata:\n");
    for (name, value) in env_lines(settings)? {
        // The name of the database's container under compose; a database elsewhere stays.
        let value = match (name, value) {
            ("DB_HOST", "db") => LOOPBACK,
            _ => value,
        };
        // A JSON text is a YAML text.
        let quoted = serde_json::Value::from(value);
        writeln!(text, "  {name}: {quoted}").ok();
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_value_survives() {
        let settings = "# words\nOS_IMAGES=[{\"version\":\"4\"}]\nNTP_DEFAULT_SERVER=\nDB_HOST=db\nX=a: b # c\n";
        assert_eq!(
            render(settings).unwrap(),
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: atoll\ndata:\n  \
             OS_IMAGES: \"[{\\\"version\\\":\\\"4\\\"}]\"\n  NTP_DEFAULT_SERVER: \"\"\n  \
             DB_HOST: \"127.0.0.1\"\n  X: \"a: b # c\"\n"
        );
    }

    #[test]
    fn a_database_elsewhere_stays() {
        let text = render("DB_HOST=db.example.org\n").unwrap();
        assert!(text.ends_with("  DB_HOST: \"db.example.org\"\n"), "{text}");
    }

    #[test]
    fn a_wrong_line_is_numbered() {
        assert_eq!(render("A=1\n\nnonsense\n"), Err(3));
    }
}
