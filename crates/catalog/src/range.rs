//! Ranges of versions, in the language of `skipRange` and `olm.package.required`. Cargo's and npm's are others.

use std::fmt;
use std::str::FromStr;

use crate::version::{Version, VersionError};

/// Which versions are meant: `>=1.0.0 <2.0.0 || 3.x`.
///
/// Blanks are *and*, ` || ` is *or*. Wildcards are an `x` at the end and become plain comparisons before anything is
/// read. An empty text is the range without versions.
/// Source: github.com/blang/semver/v4, `range.go`, whose verdicts it follows to the letter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Range {
    alternatives: Vec<Vec<Comparison>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Comparison {
    operator: Operator,
    version: Version,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Equal,
    NotEqual,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
}

impl Range {
    pub fn contains(&self, version: &Version) -> bool {
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

/// The terms, without blanks. A blank after an operator does not end a term; single letters are no terms and are
/// lost, as the dash of `1.0.0 - 2.0.0` is.
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

/// The operator and what begins with the first digit.
fn halves(term: &str) -> Result<(&str, &str), VersionError> {
    match term.find(|c: char| c.is_ascii_digit()) {
        Some(start) => Ok((term[..start].trim(), &term[start..])),
        None => Err(VersionError(format!("no version in {term:?}"))),
    }
}

/// How the wildcards of one operator are written without.
struct Expansion {
    operators: &'static [&'static str],
    /// What the version itself is compared by, besides.
    and: Option<&'static str>,
    operator: &'static str,
    /// Whether the next version is compared, or this one.
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

/// A term with an `x` anywhere as terms without wildcards. What is no wildcard becomes a term that cannot be read,
/// unless it means the same.
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

/// A version with its wildcard as zero. `1.x.x` is `1.0.0` and counts as `1.0.x`.
fn plain(version: &str) -> String {
    let plain = version.replacen(".x.x", ".x", 1).replacen(".x", ".0", 1);
    if plain.split('.').count() == 2 {
        plain + ".0"
    } else {
        plain
    }
}

/// The first version after all that the wildcard stands for.
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
            "" | "=" | "==" => Operator::Equal,
            "!" | "!=" => Operator::NotEqual,
            ">" => Operator::Greater,
            ">=" => Operator::GreaterOrEqual,
            "<" => Operator::Less,
            "<=" => Operator::LessOrEqual,
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
    fn holds(&self, version: &Version) -> bool {
        match self.operator {
            Operator::Equal => *version == self.version,
            Operator::NotEqual => *version != self.version,
            Operator::Greater => *version > self.version,
            Operator::GreaterOrEqual => *version >= self.version,
            Operator::Less => *version < self.version,
            Operator::LessOrEqual => *version <= self.version,
        }
    }
}

impl fmt::Display for Operator {
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

/// Without wildcards; parses to the same range.
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
