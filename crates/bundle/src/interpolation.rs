//! Variables of compose files: `${NAME}`, `${NAME:-default}`, `${NAME-default}`, nested; `$$` is a dollar sign.

/// The text with its variables replaced. Unset variables without a default are empty, as in compose.
pub fn interpolate(text: &str, lookup: &dyn Fn(&str) -> Option<String>) -> String {
    let mut result = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        result.push_str(before);
        rest = if let Some(after) = after.strip_prefix('$') {
            result.push('$');
            after
        } else if let Some((body, behind)) = after.strip_prefix('{').and_then(closed) {
            result.push_str(&value(body, lookup));
            behind
        } else {
            result.push('$');
            after
        };
    }
    result.push_str(rest);
    result
}

/// The name of the only variable of a text, as `WEBUI_REPLICAS` in `${WEBUI_REPLICAS:-1}`.
pub fn only_variable(text: &str) -> Option<&str> {
    let (body, behind) = closed(text.strip_prefix("${")?)?;
    behind.is_empty().then(|| name(body))
}

/// Splits at the brace that closes the one before the text.
fn closed(text: &str) -> Option<(&str, &str)> {
    let mut depth = 1;
    for (index, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some((&text[..index], &text[index + 1..]));
        }
    }
    None
}

fn name(body: &str) -> &str {
    let end = body.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    &body[..end.unwrap_or(body.len())]
}

fn value(body: &str, lookup: &dyn Fn(&str) -> Option<String>) -> String {
    let name = name(body);
    let found = lookup(name);
    let rest = &body[name.len()..];
    let default = |text: &str| interpolate(text, lookup);
    match (rest.strip_prefix(":-"), rest.strip_prefix('-')) {
        (Some(text), _) => found
            .filter(|value| !value.is_empty())
            .unwrap_or_else(|| default(text)),
        (None, Some(text)) => found.unwrap_or_else(|| default(text)),
        (None, None) => found.unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replaced(text: &str) -> String {
        interpolate(text, &|name| match name {
            "A" => Some("x".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        })
    }

    #[test]
    fn variables_are_replaced() {
        for (text, expected) in [
            ("a/b:1", "a/b:1"),
            ("${A:-y}/${B:-y}:1", "x/y:1"),
            ("${B:-${A:-z}}:8", "x:8"),
            ("${EMPTY:-y}${EMPTY-y}", "y"),
            ("${B}", ""),
            ("$$A $A", "$A $A"),
            ("${A", "${A"),
        ] {
            assert_eq!(replaced(text), expected, "{text}");
        }
    }

    #[test]
    fn the_only_variable_is_named() {
        assert_eq!(only_variable("${N_1:-1}"), Some("N_1"));
        for other in ["1", "a${N}", "${N}b", "${N"] {
            assert_eq!(only_variable(other), None, "{other}");
        }
    }
}
