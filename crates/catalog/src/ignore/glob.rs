//! Glob patterns of one path segment: `*`, `?`, `[a-z]`, `[^a-z]` and `\` escapes.

/// A glob pattern. Source: Go's `path/filepath.Match`.
#[derive(Debug)]
pub(super) struct Glob(Vec<Token>);

#[derive(Debug)]
enum Token {
    /// `*`
    Any,
    /// `?`
    One,
    Class {
        is_negated: bool,
        ranges: Vec<(u32, u32)>,
    },
    Char(u32),
}

impl Glob {
    /// `None` for a malformed pattern.
    pub(super) fn parse(mut text: &[u8]) -> Option<Self> {
        let mut tokens = Vec::new();
        while let Some((char, rest)) = next(text) {
            text = rest;
            tokens.push(match u8::try_from(char).unwrap_or_default() {
                b'*' => Token::Any,
                b'?' => Token::One,
                b'[' => class(&mut text)?,
                b'\\' => {
                    let (char, rest) = next(text)?;
                    text = rest;
                    Token::Char(char)
                }
                _ => Token::Char(char),
            });
        }
        Some(Self(tokens))
    }

    /// Whether the pattern matches the whole `name`.
    pub(super) fn matches(&self, name: &[u8]) -> bool {
        let mut tokens = self.0.as_slice();
        let mut name = name;
        // Backtracking point: the latest `*` takes one more character.
        let mut retry = None;
        loop {
            if let [Token::Any, rest @ ..] = tokens {
                tokens = rest;
                retry = Some((rest, name));
                continue;
            }
            match (tokens, next(name)) {
                ([], None) => return true,
                ([token, tokens_left @ ..], Some((char, name_left))) if token.matches(char) => {
                    tokens = tokens_left;
                    name = name_left;
                }
                _ => {
                    let Some((after, from)) = retry else {
                        return false;
                    };
                    let Some((_, shorter)) = next(from) else {
                        return false;
                    };
                    retry = Some((after, shorter));
                    tokens = after;
                    name = shorter;
                }
            }
        }
    }
}

impl Token {
    fn matches(&self, char: u32) -> bool {
        match self {
            Self::Any | Self::One => true,
            Self::Class { is_negated, ranges } => {
                ranges
                    .iter()
                    .any(|&(low, high)| (low..=high).contains(&char))
                    != *is_negated
            }
            Self::Char(own) => *own == char,
        }
    }
}

/// Parses a character class after its `[`.
fn class(text: &mut &[u8]) -> Option<Token> {
    let is_negated = text.starts_with(b"^");
    *text = &text[usize::from(is_negated)..];
    let mut ranges = Vec::new();
    loop {
        if text.starts_with(b"]") && !ranges.is_empty() {
            *text = &text[1..];
            return Some(Token::Class { is_negated, ranges });
        }
        let low = bound(text)?;
        let mut high = low;
        if let Some(rest) = text.strip_prefix(b"-") {
            *text = rest;
            high = bound(text)?;
        }
        ranges.push((low, high));
    }
}

/// One bound of a range in a class.
fn bound(text: &mut &[u8]) -> Option<u32> {
    if text.starts_with(b"-") || text.starts_with(b"]") {
        return None;
    }
    *text = text.strip_prefix(b"\\").unwrap_or(text);
    let (char, rest) = next(text)?;
    *text = rest;
    // The class has to be closed.
    (!rest.is_empty()).then_some(char)
}

/// The first character and the rest. Names need not be UTF-8: an invalid byte counts as U+FFFD.
fn next(text: &[u8]) -> Option<(u32, &[u8])> {
    let first = *text.first()?;
    if first.is_ascii() {
        return Some((first.into(), &text[1..]));
    }
    let chunk = text[..text.len().min(4)].utf8_chunks().next()?;
    let char = chunk.valid().chars().next();
    let length = char.map_or(1, char::len_utf8);
    Some((
        char.unwrap_or(char::REPLACEMENT_CHARACTER).into(),
        &text[length..],
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_names() {
        for (pattern, good, bad) in [
            ("", "", "a"),
            ("abc", "abc", "abcd"),
            ("*", "anything", "/"),
            ("*.md", "README.md", "README.mdx"),
            ("a*b*c", "axxbyybzc", "axxbyyb"),
            ("?", "ä", "ab"),
            ("[a-c]x", "bx", "dx"),
            ("[^a-c]x", "dx", "bx"),
            (r"\*", "*", "a"),
            (r"[\]]", "]", r"\"),
            ("[äö]", "ö", "o"),
        ] {
            let glob = Glob::parse(pattern.as_bytes()).unwrap();
            assert!(glob.matches(good.as_bytes()), "{pattern} {good}");
            if bad != "/" {
                assert!(!glob.matches(bad.as_bytes()), "{pattern} {bad}");
            }
        }
    }

    #[test]
    fn malformed_patterns_are_refused() {
        for pattern in ["[", "[]", "[a", "[a-", "[a-]", "[-a]", r"a\", "[^]", r"[\"] {
            assert!(Glob::parse(pattern.as_bytes()).is_none(), "{pattern}");
        }
    }

    #[test]
    fn many_stars_match_in_linear_time() {
        let glob = Glob::parse(&b"*a".repeat(50)).unwrap();
        assert!(!glob.matches(&[b'a'; 49]));
        assert!(glob.matches(&[b'a'; 5000]));
    }
}
