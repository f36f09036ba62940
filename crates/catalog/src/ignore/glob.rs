//! Patterns of one name: `*`, `?`, `[a-z]`, `[^a-z]` and `\` before what is meant as it stands.

/// A pattern. Source: Go's `path/filepath.Match`.
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
    /// Nothing where the pattern is malformed.
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

    /// Whether the whole `name` fits.
    pub(super) fn fits(&self, name: &[u8]) -> bool {
        let mut tokens = self.0.as_slice();
        let mut name = name;
        // What to try next where this way ends: the latest `*` takes one more character.
        let mut retry = None;
        loop {
            if let [Token::Any, rest @ ..] = tokens {
                tokens = rest;
                retry = Some((rest, name));
                continue;
            }
            match (tokens, next(name)) {
                ([], None) => return true,
                ([token, tokens_left @ ..], Some((char, name_left))) if token.fits(char) => {
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
    fn fits(&self, char: u32) -> bool {
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

/// Behind a `[`.
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

/// One end of a range.
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

/// The first character and the rest. Names need not be UTF-8: a byte that is none counts as U+FFFD.
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
    fn patterns_fit_whole_names() {
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
            assert!(glob.fits(good.as_bytes()), "{pattern} {good}");
            if bad != "/" {
                assert!(!glob.fits(bad.as_bytes()), "{pattern} {bad}");
            }
        }
    }

    #[test]
    fn malformed_patterns_are_noticed() {
        for pattern in ["[", "[]", "[a", "[a-", "[a-]", "[-a]", r"a\", "[^]", r"[\"] {
            assert!(Glob::parse(pattern.as_bytes()).is_none(), "{pattern}");
        }
    }

    #[test]
    fn many_stars_are_no_work() {
        let glob = Glob::parse(&b"*a".repeat(50)).unwrap();
        assert!(!glob.fits(&[b'a'; 49]));
        assert!(glob.fits(&[b'a'; 5000]));
    }
}
