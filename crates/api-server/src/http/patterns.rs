//! Members of cluster bodies whose texts have a pattern in the API description. A violation has the shape and text of
//! the description's own checks; addresses that match and are none are refused by the rules.
//!
//! Source: the installer API description (patterns); openshift/assisted-service, observed over HTTP (text of a refusal).

use serde_json::Value;

use super::error::ApiError;

/// A pattern, and whether a text matches it.
struct TextPattern {
    text: &'static str,
    matches: fn(&str) -> bool,
}

/// `subnet` of the API description.
static SUBNET: TextPattern = TextPattern {
    text: r"^(?:(?:(?:[0-9]{1,3}\.){3}[0-9]{1,3}\/(?:(?:[0-9])|(?:[1-2][0-9])|(?:3[0-2])))|(?:(?:[0-9a-fA-F]*:[0-9a-fA-F]*){2,})/(?:(?:[0-9])|(?:[1-9][0-9])|(?:1[0-1][0-9])|(?:12[0-8])))$",
    matches: is_subnet,
};

/// `ip` of the API description; empty for an address that is removed.
static IP: TextPattern = TextPattern {
    text: r"^(?:(?:(?:[0-9]{1,3}\.){3}[0-9]{1,3})|(?:(?:[0-9a-fA-F]*:[0-9a-fA-F]*){2,}))?$",
    matches: |text| text.is_empty() || is_ipv4(text) || is_ipv6(text),
};

/// Members of new and changed clusters.
static TEXTS: &[(&str, &TextPattern)] = &[
    ("cluster_network_cidr", &SUBNET),
    ("service_network_cidr", &SUBNET),
    ("machine_network_cidr", &SUBNET),
];

/// Lists of them, and the member of each item.
static LISTS: &[(&str, &str, &TextPattern)] = &[
    ("api_vips", "ip", &IP),
    ("ingress_vips", "ip", &IP),
    ("cluster_networks", "cidr", &SUBNET),
    ("service_networks", "cidr", &SUBNET),
    ("machine_networks", "cidr", &SUBNET),
];

/// Checks a body of a new or changed cluster.
///
/// Errors: the first member that does not match its pattern.
pub(super) fn check_cluster(body: &Value) -> Result<(), ApiError> {
    for (name, pattern) in TEXTS {
        // An empty text resets the member.
        let text = body[name].as_str().filter(|text| !text.is_empty());
        pattern.check(text, || (*name).to_owned())?;
    }
    for (list, member, pattern) in LISTS {
        let items = body[list].as_array().into_iter().flatten();
        for (index, item) in items.enumerate() {
            pattern.check(item[member].as_str(), || format!("{list}.{index}.{member}"))?;
        }
    }
    Ok(())
}

impl TextPattern {
    fn check(&self, text: Option<&str>, name: impl Fn() -> String) -> Result<(), ApiError> {
        if text.is_none_or(self.matches) {
            return Ok(());
        }
        let problem = format_args!("should match '{}'", self.text);
        Err(ApiError::parameter(&name(), "body", problem))
    }
}

fn is_subnet(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else {
        return false;
    };
    let longest = if is_ipv4(address) {
        32
    } else if is_ipv6(address) {
        128
    } else {
        return false;
    };
    // Digits only, and no leading zero.
    let number = length.parse::<u8>().ok();
    number.is_some_and(|number| number <= longest && number.to_string() == length)
}

fn is_ipv4(text: &str) -> bool {
    let is_group =
        |group: &str| (1..=3).contains(&group.len()) && group.bytes().all(|b| b.is_ascii_digit());
    text.split('.').count() == 4 && text.split('.').all(is_group)
}

fn is_ipv6(text: &str) -> bool {
    let is_known = |b: u8| b.is_ascii_hexdigit() || b == b':';
    text.bytes().all(is_known) && text.bytes().filter(|b| *b == b':').count() >= 2
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn texts_match_as_described() {
        for (text, is_address, is_subnet) in [
            ("", true, false),
            ("x", false, false),
            ("192.0.2.1", true, false),
            ("999.0.2.1", true, false),
            ("1.2.3", false, false),
            ("1.2.3.4.5", false, false),
            ("1.2.3.4567", false, false),
            ("0.0.0.a/8", false, false),
            ("10.0.0.0/0", false, true),
            ("10.0.0.0/32", false, true),
            ("10.0.0.0/33", false, false),
            ("10.0.0.0/08", false, false),
            ("10.0.0.0/+8", false, false),
            ("10.0.0.0/8/8", false, false),
            ("10.0.0.0/", false, false),
            ("::", true, false),
            ("a:b", false, false),
            ("fd00::1", true, false),
            ("fd00::/128", false, true),
            ("fd00::/129", false, false),
            ("fg00::/64", false, false),
        ] {
            assert_eq!((IP.matches)(text), is_address, "{text}");
            assert_eq!((SUBNET.matches)(text), is_subnet, "{text}");
        }
    }

    #[test]
    fn the_first_violation_is_named() {
        let refusal = |body: Value| check_cluster(&body).unwrap_err().to_string();
        assert_eq!(
            refusal(json!({ "service_network_cidr": "x", "api_vips": [{ "ip": "x" }] })),
            format!(
                "service_network_cidr in body should match '{}'",
                SUBNET.text
            )
        );
        let body =
            json!({ "machine_networks": [{ "cidr": "192.0.2.0/24" }, { "cidr": "192.0.2.0" }] });
        assert!(refusal(body).starts_with("machine_networks.1.cidr in body should match '^"));
        for valid in [
            json!({}),
            json!({ "machine_network_cidr": "", "cluster_networks": [], "api_vips": "x" }),
            json!({ "ingress_vips": [{ "ip": "192.0.2.1" }, {}] }),
        ] {
            assert!(check_cluster(&valid).is_ok(), "{valid}");
        }
    }
}
