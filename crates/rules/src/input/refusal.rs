//! Refusals of values.

use model::Error;

/// The error that names the value.
pub fn refuse(field: &str, value: &str, remedy: &str) -> Error {
    // A pasted file must not fill the error.
    let shown: String = value.chars().take(128).collect();
    let dots = if shown.len() < value.len() { "…" } else { "" };
    Error::invalid(field, format!("\"{shown}{dots}\" {remedy}"))
}
