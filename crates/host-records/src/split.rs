//! Documents of a text: those of a YAML stream, or JSON objects one after the other.

use located_yaml::Position;
use serde::de::IgnoredAny;

/// The text of one document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DocumentText<'a> {
    pub(super) text: &'a str,
    /// Lines before it.
    line: usize,
    /// Characters before it in its first line.
    column: usize,
}

impl DocumentText<'_> {
    /// The position in the whole text.
    pub(super) fn place(&self, within: Position) -> Position {
        let column = if within.line == 1 { self.column } else { 0 };
        Position {
            line: within.line + self.line,
            column: within.column + column,
        }
    }
}

/// The documents with content.
pub(super) fn documents(text: &str) -> Vec<DocumentText<'_>> {
    let mut cutter = Cutter {
        text,
        cut: 0,
        line: 0,
        column: 0,
        documents: Vec::new(),
    };
    let json = json_objects(text, &mut cutter);
    yaml_documents(json, &mut cutter);
    cutter.documents
}

/// Cuts JSON objects off; returns the offset of the rest.
fn json_objects(text: &str, cutter: &mut Cutter<'_>) -> usize {
    let mut at = 0;
    loop {
        let rest = text[at..].trim_start();
        if !rest.starts_with('{') {
            return at;
        }
        let start = text.len() - rest.len();
        let mut objects = serde_json::Deserializer::from_str(rest).into_iter::<IgnoredAny>();
        let Some(Ok(_)) = objects.next() else {
            return at;
        };
        let end = start + objects.byte_offset();
        cutter.skip(start);
        cutter.push(end);
        at = end;
    }
}

/// Cuts at the lines `---` and after the lines `...`.
fn yaml_documents(from: usize, cutter: &mut Cutter<'_>) {
    let mut is_open = false;
    let mut has_content = false;
    let mut end = from;
    let text = cutter.text;
    for line in text[from..].split_inclusive('\n') {
        let start = end;
        end += line.len();
        if is_marker(line, "---") {
            if is_open || has_content {
                cutter.push_or_skip(start, has_content);
                has_content = false;
            }
            is_open = true;
            has_content |= line.len() > "---\r\n".len() && has_value(&line[3..]);
        } else if is_marker(line, "...") {
            cutter.push_or_skip(end, has_content);
            (is_open, has_content) = (false, false);
        } else {
            // Directives precede their document.
            has_content |= has_value(line) && (is_open || !line.starts_with('%'));
        }
    }
    cutter.push_or_skip(text.len(), has_content);
}

fn is_marker(line: &str, marker: &str) -> bool {
    let rest = line.strip_prefix(marker);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t', '\r', '\n']))
}

/// Whether a line is more than blanks and a comment.
fn has_value(line: &str) -> bool {
    let line = line.trim();
    !line.is_empty() && !line.starts_with('#')
}

struct Cutter<'a> {
    text: &'a str,
    /// Offset of the rest.
    cut: usize,
    line: usize,
    column: usize,
    documents: Vec<DocumentText<'a>>,
}

impl Cutter<'_> {
    fn skip(&mut self, to: usize) {
        let passed = &self.text[self.cut..to];
        match passed.rfind('\n') {
            Some(last) => {
                self.line += passed.bytes().filter(|byte| *byte == b'\n').count();
                self.column = passed[last + 1..].chars().count();
            }
            None => self.column += passed.chars().count(),
        }
        self.cut = to;
    }

    fn push(&mut self, to: usize) {
        self.documents.push(DocumentText {
            text: &self.text[self.cut..to],
            line: self.line,
            column: self.column,
        });
        self.skip(to);
    }

    fn push_or_skip(&mut self, to: usize, has_content: bool) {
        if has_content {
            self.push(to);
        } else {
            self.skip(to);
        }
    }
}

#[cfg(test)]
mod tests {
    use located_yaml::v1_1::read;
    use proptest::prelude::*;

    use super::*;

    fn texts(text: &str) -> Vec<&str> {
        documents(text).iter().map(|it| it.text).collect()
    }

    #[test]
    fn yaml_is_cut_at_its_markers() {
        for (text, expected) in [
            ("", vec![]),
            ("# a\n\n---\n---\n# b\n", vec![]),
            ("a: 1\n", vec!["a: 1\n"]),
            ("---\na: 1\n---\nb: 2", vec!["---\na: 1\n", "---\nb: 2"]),
            ("a: 1\n---\n---\nb: 2", vec!["a: 1\n", "---\nb: 2"]),
            ("a: 1\n...\nb: 2\n", vec!["a: 1\n...\n", "b: 2\n"]),
            ("%YAML 1.2\n---\na: 1\n", vec!["%YAML 1.2\n---\na: 1\n"]),
            (
                "--- {a: 1}\n--- # b\nb: 2",
                vec!["--- {a: 1}\n", "--- # b\nb: 2"],
            ),
            ("a: |\n  ---\n  x\n", vec!["a: |\n  ---\n  x\n"]),
            ("---a: 1\n", vec!["---a: 1\n"]),
            (
                "a: 1\r\n---\r\nb: 2\r\n",
                vec!["a: 1\r\n", "---\r\nb: 2\r\n"],
            ),
        ] {
            assert_eq!(texts(text), expected, "{text:?}");
        }
    }

    #[test]
    fn json_objects_are_cut_off() {
        for (text, expected) in [
            (
                "{\"a\": \"}\"} {\"b\": 2}\n",
                vec!["{\"a\": \"}\"}", "{\"b\": 2}"],
            ),
            (
                "{\"a\": 1}\n---\nb: 2\n",
                vec!["{\"a\": 1}", "\n---\nb: 2\n"],
            ),
            ("{a: 1}\n", vec!["{a: 1}\n"]),
            ("{\"a\": 1", vec!["{\"a\": 1"]),
            ("{\n\t\"a\": 1\n}\n", vec!["{\n\t\"a\": 1\n}"]),
        ] {
            assert_eq!(texts(text), expected, "{text:?}");
        }
    }

    #[test]
    fn positions_are_those_of_the_whole_text() {
        let text = "{\"ä\": 1} {\"b\":\n2}\n---\nc: 3\n";
        let places: Vec<_> = documents(text)
            .iter()
            .map(|one| {
                let place = one.place(Position { line: 1, column: 2 });
                let next = one.place(Position { line: 2, column: 2 });
                [(place.line, place.column), (next.line, next.column)]
            })
            .collect();
        assert_eq!(
            places,
            [[(1, 2), (2, 2)], [(1, 11), (2, 2)], [(2, 4), (3, 2)]]
        );
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_nothing_panics(
            text in "(---|\\.\\.\\.|\n|a: 1|\\{|\\}|\"|#| |%YAML 1.2|ä|\r){0,24}"
        ) {
            let whole: String = documents(&text).iter().map(|it| it.text).collect();
            prop_assert_eq!(
                whole.matches("a: 1").count() <= text.matches("a: 1").count(), true
            );
            for document in documents(&text) {
                read(document.text).ok();
            }
        }

        #[test]
        fn documents_are_read_one_by_one(numbers in prop::collection::vec(0u8..9, 0..6)) {
            let text: String = numbers.iter().flat_map(|number| ["---\nn: ".to_owned(), number.to_string(), "\n".to_owned()]).collect();
            let found = texts(&text);
            prop_assert_eq!(found.len(), numbers.len());
            for (document, number) in found.iter().zip(&numbers) {
                prop_assert_eq!(*document, format!("---\nn: {number}\n"));
            }
        }
    }
}
