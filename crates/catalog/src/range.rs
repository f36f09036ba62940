//! Version ranges of `skipRange` and `olm.package.required`. The syntax differs from Cargo's and npm's.

use std::fmt;
use std::str::FromStr;

use crate::version::{BundleVersion, VersionError};

/// A version range: `>=1.0.0 <2.0.0 || 3.x`.
///
/// Blanks are *and*, ` || ` is *or*. A trailing wildcard `x` is expanded to comparisons before parsing: `!1.x` is
/// `<1.0.0 >=2.0.0`, which matches nothing, as does the empty range. Source: github.com/blang/semver/v4, `range.go`;
/// same verdict for all of `fixtures/version_ranges.json`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Range {
    alternatives: Vec<Vec<Comparison>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Comparison {
    operator: ComparisonOperator,
    version: BundleVersion,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ComparisonOperator {
    Equal,
    NotEqual,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
}

impl Range {
    /// Whether `version` is in the range.
    pub fn contains(&self, version: &BundleVersion) -> bool {
        self.alternatives
            .iter()
            .any(|all| all.iter().all(|comparison| comparison.holds(version)))
    }
}

impl FromStr for Range {
    type Err = VersionError;

    fn from_str(text: &str) -> Result<Self, VersionError> {
        if text.is_empty() {
            let alternatives = Vec::new();
            return Ok(Self { alternatives });
        }
        let terms = split(text);
        match (terms.first(), terms.last()) {
            (None, _) => return Err(VersionError(format!("no version in {text:?}"))),
            (Some(first), _) if first == OR => {
                return Err(VersionError("first element in range is '||'".to_owned()));
            }
            (_, Some(last)) if last == OR => {
                return Err(VersionError("last element in range is '||'".to_owned()));
            }
            _ => {}
        }
        let alternatives = terms
            .split(|term| term == OR)
            .filter(|terms| !terms.is_empty())
            .map(comparisons)
            .collect::<Result<_, _>>()?;
        Ok(Self { alternatives })
    }
}

const OR: &str = "||";

/// Terms without blanks. A blank after an operator does not end a term; terms of one character are dropped, as the dash
/// of `1.0.0 - 2.0.0` is. Source: `splitAndTrim`.
fn split(text: &str) -> Vec<String> {
    let mut terms = Vec::new();
    let (mut start, mut before) = (0, 0);
    for (index, byte) in text.bytes().enumerate() {
        if byte != b' ' {
            before = byte;
        } else if !b"<>=".contains(&before) {
            terms.push(&text[start..index]);
            start = index + 1;
        }
    }
    terms.push(&text[start..]);
    let is_term = |term: &&str| term.len() > 1;
    let without_blanks = |term: &str| term.replace(' ', "");
    terms
        .into_iter()
        .filter(is_term)
        .map(without_blanks)
        .collect()
}

fn comparisons(terms: &[String]) -> Result<Vec<Comparison>, VersionError> {
    let mut comparisons = Vec::new();
    for term in terms {
        if term.contains('x') {
            for plain in expand(term)? {
                comparisons.push(plain.parse()?);
            }
        } else {
            comparisons.push(term.parse()?);
        }
    }
    Ok(comparisons)
}

/// Splits a term before its first digit: operator, version.
fn halves(term: &str) -> Result<(&str, &str), VersionError> {
    match term.find(|c: char| c.is_ascii_digit()) {
        Some(start) => Ok((term[..start].trim(), &term[start..])),
        None => Err(VersionError(format!("no version in {term:?}"))),
    }
}

/// Expansion of a wildcard under some operators. Source: `expandWildcardVersion`.
struct Expansion {
    operators: &'static [&'static str],
    /// Additional comparison with the version itself.
    and: Option<&'static str>,
    operator: &'static str,
    /// Whether the bound is the next version instead of this one.
    next: bool,
}

const EXPANSIONS: &[Expansion] = &[
    Expansion {
        operators: &["", "=", "=="],
        and: Some(">="),
        operator: "<",
        next: true,
    },
    Expansion {
        operators: &["!", "!="],
        and: Some("<"),
        operator: ">=",
        next: true,
    },
    Expansion {
        operators: &[">"],
        and: None,
        operator: ">=",
        next: true,
    },
    Expansion {
        operators: &[">="],
        and: None,
        operator: ">=",
        next: false,
    },
    Expansion {
        operators: &["<"],
        and: None,
        operator: "<",
        next: false,
    },
    Expansion {
        operators: &["<="],
        and: None,
        operator: "<",
        next: true,
    },
];

/// Expands a term that contains an `x`. A misplaced `x` yields a term that fails to parse, unless it means the same.
fn expand(term: &str) -> Result<Vec<String>, VersionError> {
    let (operator, version) = halves(term)?;
    let plain = plain(version);
    let expansion = EXPANSIONS
        .iter()
        .find(|expansion| expansion.operators.contains(&operator));
    let Some(expansion) = expansion else {
        return Ok(vec![plain]);
    };
    let bound = if expansion.next {
        next(version, &plain).ok_or_else(|| VersionError(format!("no wildcard in {term:?}")))?
    } else {
        plain.clone()
    };
    let and = expansion.and.map(|operator| format!("{operator}{plain}"));
    let last = format!("{}{bound}", expansion.operator);
    Ok(and.into_iter().chain([last]).collect())
}

/// The version with its wildcard as zero; `1.x.x` becomes `1.0.0` and counts as `1.0.x`.
fn plain(version: &str) -> String {
    let plain = version.replacen(".x.x", ".x", 1).replacen(".x", ".0", 1);
    if plain.split('.').count() == 2 {
        plain + ".0"
    } else {
        plain
    }
}

/// The lowest version above the wildcard.
fn next(version: &str, plain: &str) -> Option<String> {
    let parts: Vec<&str> = version.split('.').collect();
    let counted = match parts.as_slice() {
        [_, "x"] => 0,
        [_, _, "x"] => 1,
        _ => return None,
    };
    let mut parts: Vec<String> = plain.split('.').map(str::to_owned).collect();
    let number: i64 = parts[counted].parse().ok()?;
    parts[counted] = number.checked_add(1)?.to_string();
    Some(parts.join("."))
}

impl FromStr for Comparison {
    type Err = VersionError;

    fn from_str(term: &str) -> Result<Self, VersionError> {
        let (operator, version) = halves(term)?;
        let operator = match operator {
            "" | "=" | "==" => ComparisonOperator::Equal,
            "!" | "!=" => ComparisonOperator::NotEqual,
            ">" => ComparisonOperator::Greater,
            ">=" => ComparisonOperator::GreaterOrEqual,
            "<" => ComparisonOperator::Less,
            "<=" => ComparisonOperator::LessOrEqual,
            _ => {
                let reason = format!("unknown operator {operator:?} in {term:?}");
                return Err(VersionError(reason));
            }
        };
        let version = version.parse().map_err(|e| {
            VersionError(format!(
                "could not parse version {version:?} in {term:?}: {e}"
            ))
        })?;
        Ok(Self { operator, version })
    }
}

impl Comparison {
    fn holds(&self, version: &BundleVersion) -> bool {
        match self.operator {
            ComparisonOperator::Equal => *version == self.version,
            ComparisonOperator::NotEqual => *version != self.version,
            ComparisonOperator::Greater => *version > self.version,
            ComparisonOperator::GreaterOrEqual => *version >= self.version,
            ComparisonOperator::Less => *version < self.version,
            ComparisonOperator::LessOrEqual => *version <= self.version,
        }
    }
}

impl fmt::Display for ComparisonOperator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Equal => "=",
            Self::NotEqual => "!=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
        })
    }
}

/// Prints without wildcards; parses to the same range.
impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, all) in self.alternatives.iter().enumerate() {
            if index > 0 {
                write!(f, " {OR} ")?;
            }
            for (index, comparison) in all.iter().enumerate() {
                let blank = if index == 0 { "" } else { " " };
                write!(f, "{blank}{}{}", comparison.operator, comparison.version)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde::Deserialize;

    use super::*;

    /// Verdicts of blang/semver.
    #[derive(Deserialize)]
    struct Verdicts {
        valid: Vec<String>,
        refused: Vec<String>,
    }

    fn verdicts() -> Verdicts {
        serde_json::from_str(include_str!("../fixtures/version_ranges.json")).unwrap()
    }

    fn contains(range: &str, version: &str) -> bool {
        let range: Range = range.parse().unwrap();
        range.contains(&version.parse().unwrap())
    }

    #[test]
    fn verdicts_are_those_of_the_peer() {
        let Verdicts { valid, refused } = verdicts();
        for range in valid {
            assert!(range.parse::<Range>().is_ok(), "{range:?}");
        }
        for range in refused {
            assert!(range.parse::<Range>().is_err(), "{range:?}");
        }
    }

    #[test]
    fn ranges_contain_and_exclude_versions() {
        for (range, inside, outside) in [
            ("1.0.0", "1.0.0+b", "1.0.1"),
            ("!1.0.0", "1.0.1", "1.0.0"),
            ("> 1.0.0", "1.0.1-0", "1.0.0"),
            (">=1.0.0 <2.0.0", "2.0.0-rc.1", "2.0.0"),
            (">=3.0.0 || <1.0.0", "0.9.0", "2.0.0"),
            ("1.x", "1.9.9", "2.0.0"),
            ("1.2.x", "1.2.9", "1.3.0"),
            ("1.x.x", "1.0.9", "1.1.0"),
            ("!2.0.0 !3.0.0", "1.0.0", "3.0.0"),
            (">1.x", "2.0.0", "1.9.0"),
            ("<=1.x", "1.9.9", "2.0.0"),
            ("<1.2.x", "1.1.9", "1.2.0"),
            (">=1.x", "1.0.0", "1.0.0-rc.1"),
            ("1.0.0 || || 2.0.0", "2.0.0", "3.0.0"),
        ] {
            assert!(contains(range, inside), "{range} has {inside}");
            assert!(!contains(range, outside), "{range} has no {outside}");
        }
        for nothing in ["", "!1.x"] {
            assert!(!contains(nothing, "1.0.0") && !contains(nothing, "2.0.0"));
        }
    }

    fn ranges() -> impl Strategy<Value = String> {
        let operator = prop::sample::select(vec!["", "=", "==", "!", "!=", ">", ">=", "<", "<="]);
        let version = prop_oneof![
            (0_u8..4, 0_u8..4, 0_u8..4).prop_map(|(a, b, c)| format!("{a}.{b}.{c}")),
            (0_u8..4, 0_u8..4).prop_map(|(a, b)| format!("{a}.{b}.x")),
            (0_u8..4).prop_map(|a| format!("{a}.x")),
            (0_u8..4, 0_u8..4).prop_map(|(a, b)| format!("{a}.0.0-rc.{b}")),
        ];
        let term =
            (operator, version).prop_map(|(operator, version)| operator.to_owned() + &version);
        let all = prop::collection::vec(term, 1..4).prop_map(|terms| terms.join(" "));
        prop::collection::vec(all, 1..4).prop_map(|all| all.join(" || "))
    }

    proptest! {
        #[test]
        fn printed_ranges_have_no_wildcards_and_are_equal(text in ranges(), v in (0_u64..5, 0_u64..5, 0_u64..5)) {
            let range: Range = text.parse().unwrap();
            let printed = range.to_string();
            prop_assert!(!printed.contains('x'));
            prop_assert_eq!(&printed.parse::<Range>().unwrap(), &range);
            let version: BundleVersion = format!("{}.{}.{}", v.0, v.1, v.2).parse().unwrap();
            let any = text.split(" || ").any(|all| {
                all.split(' ').all(|term| contains(term, &version.to_string()))
            });
            prop_assert_eq!(range.contains(&version), any);
        }

        #[test]
        fn parsing_any_text_round_trips_or_fails(text in "[0-9x.<>=! |+a-]{0,24}|.*") {
            if let Ok(range) = text.parse::<Range>() {
                prop_assert_eq!(range.to_string().parse::<Range>().unwrap(), range);
            }
        }
    }
}
