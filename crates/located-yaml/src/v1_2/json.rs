//! JSON with positions. Accepts the documents that Go's `encoding/json` accepts, within the bounds: a member may
//! come twice, bytes that are not UTF-8 and lone surrogates become replacement characters.

use super::node::{ConfigMember, ConfigNode, ScalarKind};
use super::{MAX_DEPTH, NodeBudget, check_length, too_deep};
use crate::{DocumentError, Position};

/// Reads one JSON document.
///
/// Errors: malformed JSON, or more than the bounds of [`v1_2`](super) allow.
pub fn from_json(bytes: &[u8]) -> Result<ConfigNode, DocumentError> {
    check_length(bytes.len())?;
    let mut scanner = Scanner {
        bytes,
        offset: 0,
        at: Position::START,
    };
    let mut budget = NodeBudget::default();
    let mut open = Vec::new();
    loop {
        let at = scanner.skip_space();
        budget.spend(1, at)?;
        let Some(node) = begin_value(&mut scanner, &mut open)? else {
            continue;
        };
        if let Some(root) = end_value(&mut scanner, &mut open, node)? {
            scanner.skip_space();
            return match scanner.peek() {
                None => Ok(root),
                Some(_) => Err(scanner.unexpected("the end of the document")),
            };
        }
    }
}

/// Reads a scalar or an empty list or object, or opens one that has content.
fn begin_value(
    scanner: &mut Scanner<'_>,
    open: &mut Vec<OpenNode>,
) -> Result<Option<ConfigNode>, DocumentError> {
    let at = scanner.at;
    let Some(opening @ (b'{' | b'[')) = scanner.peek() else {
        return scanner.scalar().map(Some);
    };
    if open.len() == MAX_DEPTH {
        return Err(too_deep(at));
    }
    scanner.bump();
    let mut node = OpenNode::new(at, opening == b'{');
    scanner.skip_space();
    if scanner.peek() == Some(node.end()) {
        scanner.bump();
        return Ok(Some(node.close()));
    }
    node.read_name(scanner)?;
    open.push(node);
    Ok(None)
}

/// Adds a value to the list or object around it. The root is returned when nothing is open any more.
fn end_value(
    scanner: &mut Scanner<'_>,
    open: &mut Vec<OpenNode>,
    mut node: ConfigNode,
) -> Result<Option<ConfigNode>, DocumentError> {
    while let Some(mut parent) = open.pop() {
        parent.add(node);
        scanner.skip_space();
        match scanner.peek() {
            Some(b',') => {
                scanner.bump();
                scanner.skip_space();
                parent.read_name(scanner)?;
                open.push(parent);
                return Ok(None);
            }
            Some(end) if end == parent.end() => {
                scanner.bump();
                node = parent.close();
            }
            _ => return Err(scanner.unexpected(parent.expected())),
        }
    }
    Ok(Some(node))
}

/// A list or object whose end is not read yet.
enum OpenNode {
    List(Position, Vec<ConfigNode>),
    Object {
        at: Position,
        members: Vec<ConfigMember>,
        /// Of the next member.
        name: (String, Position),
    },
}

impl OpenNode {
    fn new(at: Position, is_object: bool) -> Self {
        if is_object {
            Self::Object {
                at,
                members: Vec::new(),
                name: (String::new(), at),
            }
        } else {
            Self::List(at, Vec::new())
        }
    }

    fn end(&self) -> u8 {
        match self {
            Self::List(..) => b']',
            Self::Object { .. } => b'}',
        }
    }

    fn expected(&self) -> &'static str {
        match self {
            Self::List(..) => "a comma or the end of the list",
            Self::Object { .. } => "a comma or the end of the object",
        }
    }

    fn read_name(&mut self, scanner: &mut Scanner<'_>) -> Result<(), DocumentError> {
        let Self::Object { name, .. } = self else {
            return Ok(());
        };
        let at = scanner.at;
        if scanner.peek() != Some(b'"') {
            return Err(scanner.unexpected("the name of a member in double quotes"));
        }
        *name = (scanner.string()?, at);
        scanner.skip_space();
        if scanner.peek() != Some(b':') {
            return Err(scanner.unexpected("a colon after the name of a member"));
        }
        scanner.bump();
        Ok(())
    }

    fn add(&mut self, node: ConfigNode) {
        match self {
            Self::List(_, items) => items.push(node),
            Self::Object { members, name, .. } => {
                let (name, at) = std::mem::take(name);
                members.push(ConfigMember { name, at, node });
            }
        }
    }

    fn close(self) -> ConfigNode {
        match self {
            Self::List(at, items) => ConfigNode::list(at, items),
            Self::Object { at, members, .. } => ConfigNode::object(at, members),
        }
    }
}

struct Scanner<'a> {
    bytes: &'a [u8],
    offset: usize,
    at: Position,
}

impl Scanner<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.offset).copied()
    }

    fn bump(&mut self) {
        match self.peek() {
            Some(b'\n') => {
                self.at.line += 1;
                self.at.column = 1;
            }
            // Continuation bytes of UTF-8 belong to the character before.
            Some(0x80..=0xbf) => {}
            _ => self.at.column += 1,
        }
        self.offset += 1;
    }

    fn skip_space(&mut self) -> Position {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.bump();
        }
        self.at
    }

    fn unexpected(&self, expected: &str) -> DocumentError {
        let rest = &self.bytes[self.offset.min(self.bytes.len())..];
        let found = String::from_utf8_lossy(&rest[..rest.len().min(4)]);
        let found = match found.chars().next() {
            Some(found) => format!("{found:?}"),
            None => "the end of the text".to_owned(),
        };
        DocumentError::new(self.at, format!("not JSON: {found} instead of {expected}"))
    }

    fn scalar(&mut self) -> Result<ConfigNode, DocumentError> {
        let at = self.at;
        match self.peek() {
            Some(b'"') => Ok(ConfigNode::text(at, self.string()?)),
            Some(b'-' | b'0'..=b'9') => self.number(at),
            Some(b't') => self.word(at, "true", ScalarKind::Bool(true)),
            Some(b'f') => self.word(at, "false", ScalarKind::Bool(false)),
            Some(b'n') => self.word(at, "null", ScalarKind::Null),
            _ => Err(self.unexpected("a value")),
        }
    }

    fn word(
        &mut self,
        at: Position,
        word: &str,
        kind: ScalarKind,
    ) -> Result<ConfigNode, DocumentError> {
        for letter in word.bytes() {
            if self.peek() != Some(letter) {
                return Err(self.unexpected(word));
            }
            self.bump();
        }
        Ok(ConfigNode::scalar(at, kind, word))
    }

    fn number(&mut self, at: Position) -> Result<ConfigNode, DocumentError> {
        let start = self.offset;
        let mut is_whole = true;
        if self.peek() == Some(b'-') {
            self.bump();
        }
        if self.peek() == Some(b'0') {
            self.bump();
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            is_whole = false;
            self.bump();
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            is_whole = false;
            self.bump();
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.bump();
            }
            self.digits()?;
        }
        let text = String::from_utf8_lossy(&self.bytes[start..self.offset]);
        let integer = text.parse().ok().filter(|_| is_whole);
        let kind = integer.map_or_else(
            || ScalarKind::Float(text.parse().unwrap_or(f64::INFINITY)),
            ScalarKind::Integer,
        );
        Ok(ConfigNode::scalar(at, kind, text))
    }

    fn digits(&mut self) -> Result<(), DocumentError> {
        if !matches!(self.peek(), Some(b'0'..=b'9')) {
            return Err(self.unexpected("a digit"));
        }
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.bump();
        }
        Ok(())
    }

    /// The content of a string; the scanner is at its opening quote.
    fn string(&mut self) -> Result<String, DocumentError> {
        self.bump();
        let mut content = Vec::new();
        loop {
            match self.peek() {
                None | Some(0..=0x1f) => return Err(self.unexpected("the rest of a string")),
                Some(b'"') => {
                    self.bump();
                    return Ok(String::from_utf8(content).unwrap_or_else(|error| {
                        String::from_utf8_lossy(error.as_bytes()).into_owned()
                    }));
                }
                Some(b'\\') => {
                    self.bump();
                    let escaped = self.escape()?;
                    content.extend(escaped.encode_utf8(&mut [0; 4]).bytes());
                }
                Some(byte) => {
                    self.bump();
                    content.push(byte);
                }
            }
        }
    }

    fn escape(&mut self) -> Result<char, DocumentError> {
        let escaped = match self.peek() {
            Some(b'u') => {
                self.bump();
                return self.unicode_escape();
            }
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(other @ (b'"' | b'\\' | b'/')) => char::from(other),
            _ => return Err(self.unexpected("an escaped character")),
        };
        self.bump();
        Ok(escaped)
    }

    fn unicode_escape(&mut self) -> Result<char, DocumentError> {
        let first = self.hex()?;
        let follows = self.bytes.get(self.offset..self.offset + 2) == Some(b"\\u".as_slice());
        if !(0xd800..0xdc00).contains(&first) || !follows {
            return Ok(char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER));
        }
        let before = (self.offset, self.at);
        self.bump();
        self.bump();
        let second = self.hex()?;
        if (0xdc00..0xe000).contains(&second) {
            let code = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
            return Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
        }
        // The second escape is a character of its own.
        (self.offset, self.at) = before;
        Ok(char::REPLACEMENT_CHARACTER)
    }

    fn hex(&mut self) -> Result<u32, DocumentError> {
        let mut code = 0;
        for _ in 0..4 {
            let digit = self.peek().and_then(|byte| char::from(byte).to_digit(16));
            let Some(digit) = digit else {
                return Err(self.unexpected("four hexadecimal digits"));
            };
            code = code * 16 + digit;
            self.bump();
        }
        Ok(code)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::v1_2::{MAX_BYTES, MAX_NODES};

    fn problem(text: &str) -> String {
        from_json(text.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn values_have_positions() {
        let root =
            from_json("{\n  \"ä\": [1, {\"b\": \"ü\" , \"c\": null}],\n\t\"d\":true}".as_bytes())
                .unwrap();
        assert_eq!(root.at.to_string(), "1:1");
        let list = &root.members()[0];
        assert_eq!(
            (list.name.as_str(), list.at.to_string()),
            ("ä", "2:3".to_owned())
        );
        assert_eq!(list.node.at.to_string(), "2:8");
        let inner = &list.node.items()[1].members()[1];
        assert_eq!(inner.at.to_string(), "2:24");
        assert_eq!(root.get("d").unwrap().at.to_string(), "3:6");
        assert_eq!(root.find(&["ä"]).unwrap().items()[0].as_integer(), Some(1));
        assert_eq!(root.count(), 7);
    }

    #[test]
    fn malformed_documents_are_refused_with_their_position() {
        for (text, at) in [
            ("", "1:1: "),
            ("{", "1:2: "),
            ("{\"a\"}", "1:5: "),
            ("{\"a\":1,}", "1:8: "),
            ("[1 2]", "1:4: "),
            ("[1,]", "1:4: "),
            ("[1}", "1:3: "),
            ("{a:1}", "1:2: "),
            ("\n\n 01", "3:3: "),
            ("1.", "1:3: "),
            ("1e", "1:3: "),
            ("-", "1:2: "),
            ("+1", "1:1: "),
            ("tru", "1:4: "),
            ("\"\t\"", "1:2: "),
            ("\"\\x\"", "1:3: "),
            ("\"\\u12g4\"", "1:6: "),
            ("\"open", "1:6: "),
            ("{} {}", "1:4: "),
            ("\u{feff}{}", "1:1: "),
            ("{} // x", "1:4: "),
            ("'a'", "1:1: "),
        ] {
            let problem = problem(text);
            assert!(problem.starts_with(at), "{text:?}: {problem}");
        }
    }

    #[test]
    fn go_takes_more_than_strict_unicode() {
        let text = |bytes: &[u8]| from_json(bytes).unwrap().as_text().unwrap().to_owned();
        assert_eq!(text(b"\"a\xffb\""), "a\u{fffd}b");
        assert_eq!(text(br#""\ud800""#), "\u{fffd}");
        assert_eq!(text(br#""\ud800A""#), "\u{fffd}A");
        assert_eq!(text(br#""\ud83d\ude00\/""#), "😀/");
        let twice = from_json(br#"{"a":1,"a":2}"#).unwrap();
        assert_eq!(twice.members().len(), 2);
        assert_eq!(twice.to_json(), json!({"a": 2}));
    }

    #[test]
    fn bounds_hold() {
        let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert!(from_json(nested(MAX_DEPTH).as_bytes()).is_ok());
        assert!(problem(&nested(MAX_DEPTH + 1)).contains("levels deep"));
        assert!(problem(&"[".repeat(1_000_000)).contains("levels deep"));
        let long = |items: usize| format!("[{}1]", "1,".repeat(items - 1));
        assert!(from_json(long(MAX_NODES - 1).as_bytes()).is_ok());
        assert!(problem(&long(MAX_NODES)).contains("values"));
        let spaces = |bytes: usize| format!("1{}", " ".repeat(bytes - 1));
        assert!(from_json(spaces(MAX_BYTES).as_bytes()).is_ok());
        assert!(problem(&spaces(MAX_BYTES + 1)).contains("bytes"));
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            ".{0,12}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 60, 6, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                proptest::collection::btree_map(".{0,6}", inner, 0..6)
                    .prop_map(|members| members.into_iter().collect()),
            ]
        })
    }

    proptest! {
        #[test]
        fn reading_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            from_json(&bytes).ok();
        }

        #[test]
        fn nearly_json_never_panics(text in r#"[\[\]{}:,"\\u0-9dD8e.\-tnf ]{0,60}"#) {
            let ours = from_json(text.as_bytes());
            // Lone surrogates aside, serde_json takes the same documents.
            if let Ok(theirs) = serde_json::from_str::<Value>(&text) {
                prop_assert_eq!(ours.unwrap().to_json(), theirs);
            } else if !text.contains("\\u") && !text.contains(['e', '.']) {
                prop_assert!(ours.is_err(), "{}", text);
            }
        }

        #[test]
        fn json_round_trips(value in values()) {
            let compact = from_json(value.to_string().as_bytes()).unwrap();
            prop_assert_eq!(compact.to_json(), value.clone());
            let pretty = serde_json::to_vec_pretty(&value).unwrap();
            prop_assert_eq!(from_json(&pretty).unwrap().to_json(), value);
        }
    }
}
