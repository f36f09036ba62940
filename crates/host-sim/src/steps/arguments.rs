//! Arguments of steps, checked as strictly as the real agent checks them.

use serde::de::DeserializeOwned;

/// The only argument.
pub(super) fn only(args: &[String]) -> Result<&str, String> {
    match args {
        [arg] => Ok(arg),
        _ => Err(format!("{} arguments instead of one: {args:?}", args.len())),
    }
}

/// The only argument, read as JSON.
pub(super) fn only_json<T: DeserializeOwned>(args: &[String]) -> Result<T, String> {
    let arg = only(args)?;
    serde_json::from_str(arg).map_err(|e| format!("argument {arg:?} does not fit: {e}"))
}

/// Whether a text can be an image reference.
pub(crate) fn is_image(text: &str) -> bool {
    let allowed =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '/' | '@' | ':');
    text.len() >= 2 && text.chars().all(allowed)
}

/// Steps without arguments.
pub(super) fn none(args: &[String]) -> Result<(), String> {
    if args.is_empty() {
        Ok(())
    } else {
        Err(format!("no arguments are expected: {args:?}"))
    }
}

/// Steps whose only argument is the name of a directory on the host.
pub(super) fn absolute(path: &str) -> Result<(), String> {
    if path.starts_with('/') {
        Ok(())
    } else {
        Err(format!("{path:?} is not an absolute path"))
    }
}

/// Steps whose only argument may be anything but empty.
pub(super) fn some_text(args: &[String]) -> Result<&str, String> {
    only(args).and_then(|arg| {
        if arg.trim().is_empty() {
            Err("the argument is empty".into())
        } else {
            Ok(arg)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_recognised() {
        assert!(is_image("registry.local:5000/ocp/release@sha256:0123"));
        for bad in ["", "a b", "x\ny"] {
            assert!(!is_image(bad), "{bad:?}");
        }
    }
}
