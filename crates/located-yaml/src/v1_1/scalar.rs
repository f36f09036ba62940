//! Scalar resolution of YAML 1.1. Source: go-yaml, `resolve.go`; same result for all of `catalog/fixtures/yaml-scalars.tsv`.

use std::borrow::Cow;

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};

use crate::text::{repaired, shown};

/// Go's base64: surplus bits may be set.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);
const TRUE: &[&str] = &[
    "y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON",
];
const FALSE: &[&str] = &[
    "n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF",
];
const NULL: &[&str] = &["", "~", "null", "Null", "NULL"];
/// Numbers that JSON does not have.
const NOT_FINITE: [(&[&str], f64); 3] = [
    (&[".nan", ".NaN", ".NAN"], f64::NAN),
    (
        &[".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"],
        f64::INFINITY,
    ),
    (&["-.inf", "-.Inf", "-.INF"], f64::NEG_INFINITY),
];
/// Prefixes of integers that are not decimal.
const BASES: [(&str, u32); 7] = [
    ("0x", 16),
    ("0X", 16),
    ("0b", 2),
    ("0B", 2),
    ("0o", 8),
    ("0O", 8),
    ("0", 8),
];

/// A scalar value.
#[derive(Debug, Clone, PartialEq)]
pub enum Scalar<'a> {
    /// Nothing.
    Null,
    /// True or false.
    Bool(bool),
    /// Range: smallest signed to largest unsigned 64-bit integer.
    Integer(i128),
    /// Possibly infinite or NaN.
    Float(f64),
    /// Text.
    Text(Cow<'a, str>),
}

impl Scalar<'_> {
    /// The name of a member with this key, none of null. Source: `sigs.k8s.io/yaml`.
    pub fn name(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Text(text) => Some(Cow::Borrowed(text)),
            Self::Bool(value) => Some(value.to_string().into()),
            Self::Integer(value) => i64::try_from(*value)
                .ok()
                .map(|value| value.to_string().into()),
            Self::Float(value) => Some(general(*value).into()),
            Self::Null => None,
        }
    }
}

/// Resolves a plain scalar without a tag.
pub(super) fn plain(text: Cow<'_, str>) -> Scalar<'_> {
    let is = |list: &[&str]| list.contains(&&*text);
    if is(NULL) {
        return Scalar::Null;
    }
    if is(TRUE) || is(FALSE) {
        return Scalar::Bool(is(TRUE));
    }
    if let Some((_, value)) = NOT_FINITE.iter().find(|(list, _)| is(list)) {
        return Scalar::Float(*value);
    }
    number(&text).unwrap_or(Scalar::Text(text))
}

/// Resolves a scalar with a YAML tag.
///
/// Errors: the scalar does not fit the tag.
pub(super) fn tagged<'a>(text: Cow<'a, str>, tag: &str) -> Result<Scalar<'a>, String> {
    let wrong = |text: &str| format!("{} is no !!{tag}", shown(text));
    let fits: fn(&Scalar<'_>) -> bool = match tag {
        "binary" => return binary(&text).ok_or_else(|| wrong(&text)),
        "bool" => |it| matches!(it, Scalar::Bool(_)),
        "int" => |it| matches!(it, Scalar::Integer(_)),
        "float" => |it| matches!(it, Scalar::Integer(_) | Scalar::Float(_)),
        "null" => |it| matches!(it, Scalar::Null),
        _ => return Ok(Scalar::Text(text)),
    };
    let scalar = plain(Cow::Borrowed(&*text));
    match scalar {
        _ if !fits(&scalar) => Err(wrong(&text)),
        #[expect(clippy::cast_precision_loss, reason = "that is what the tag asks for")]
        Scalar::Integer(integer) if tag == "float" => Ok(Scalar::Float(integer as f64)),
        Scalar::Integer(integer) => Ok(Scalar::Integer(integer)),
        Scalar::Float(float) => Ok(Scalar::Float(float)),
        Scalar::Bool(bool) => Ok(Scalar::Bool(bool)),
        Scalar::Null | Scalar::Text(_) => Ok(Scalar::Null),
    }
}

fn number<'a>(text: &str) -> Option<Scalar<'a>> {
    match text.as_bytes().first()? {
        b'.' => decimal(text),
        b'+' | b'-' | b'0'..=b'9' => {
            let digits = text.replace('_', "");
            integer(&digits).or_else(|| decimal(&digits))
        }
        _ => None,
    }
}

fn integer<'a>(text: &str) -> Option<Scalar<'a>> {
    // go-yaml accepts the sign of binary integers on either side of the prefix.
    let signed = text.strip_prefix("0b");
    if let Some(signed) = signed.filter(|it| it.starts_with(['+', '-'])) {
        let (sign, digits) = signed.split_at(1);
        return integer(&format!("{sign}0b{digits}"));
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let prefix = BASES.iter().find_map(|&(prefix, base)| {
        let digits = unsigned.strip_prefix(prefix)?;
        (!digits.is_empty()).then_some((digits, base))
    });
    let (digits, base) = prefix.unwrap_or((unsigned, 10));
    // `from_str_radix` would accept a second sign.
    if !digits.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return None;
    }
    let value = i128::from_str_radix(digits, base).ok()?;
    let value = if text.starts_with('-') { -value } else { value };
    let has_sign = unsigned.len() < text.len();
    let largest = if has_sign {
        i64::MAX.into()
    } else {
        u64::MAX.into()
    };
    (i128::from(i64::MIN)..=largest)
        .contains(&value)
        .then_some(Scalar::Integer(value))
}

/// `[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`, within 64-bit floats.
fn decimal<'a>(text: &str) -> Option<Scalar<'a>> {
    let of_number = |byte: u8| byte.is_ascii_digit() || b"+-.eE".contains(&byte);
    if !text.bytes().all(of_number) {
        return None;
    }
    // The rest of the grammar is that of `f64::from_str`.
    let value: f64 = text.parse().ok()?;
    value.is_finite().then_some(Scalar::Float(value))
}

fn binary<'a>(text: &str) -> Option<Scalar<'a>> {
    let text = text.replace(['\r', '\n'], "");
    let bytes = BASE64.decode(text).ok()?;
    Some(Scalar::Text(Cow::Owned(repaired(&bytes).into_owned())))
}

/// Formats a 32-bit float with the fewest digits that identify it; exponent form below -4 or above 5.
#[expect(
    clippy::cast_possible_truncation,
    reason = "that is how the peer's library prints keys"
)]
fn general(value: f64) -> String {
    let value = value as f32;
    if !value.is_finite() {
        let sign = if value < 0.0 { "-" } else { "" };
        return format!("{sign}.{}", if value.is_nan() { "nan" } else { "inf" });
    }
    let scientific = format!("{value:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (-4..6).contains(&exponent) {
        return format!("{value}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}
