//! Files of records, bounded in bytes, documents, values and texts.

use std::fmt;

use located_yaml::Position;
use located_yaml::v1_1::{Located, Value, read};

use super::node::RecordNode;
use super::split;
use super::tree::{json_text, member, weight, yaml_text};

/// Largest file. Units: bytes.
pub const MAX_FILE: usize = 8 << 20;
/// Most documents of a file.
pub const MAX_DOCUMENTS: usize = 10_000;
/// Most values of a file, expanded aliases included: some 50 MB.
pub const MAX_VALUES: usize = 500_000;
/// Most text of a file, expanded aliases included. Units: bytes.
pub const MAX_TEXT: usize = 64 << 20;

/// Most documents that cannot be read: each may be a bomb of aliases, which takes milliseconds to refuse.
const MAX_BROKEN: usize = 100;

/// The records of one file.
#[derive(Clone)]
pub struct RecordFile {
    /// Name, for messages.
    pub name: String,
    /// Its documents, in file order.
    pub documents: Vec<Located>,
    /// Documents that are not YAML.
    pub broken: Vec<BrokenDocument>,
}

/// A document that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokenDocument {
    /// Position of the mistake.
    pub place: Position,
    /// The mistake.
    pub reason: String,
}

/// Counts only: a Secret is among the documents.
impl fmt::Debug for RecordFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordFile")
            .field("name", &self.name)
            .field("documents", &self.documents.len())
            .field("broken", &self.broken)
            .finish()
    }
}

impl RecordFile {
    /// Reads a file; documents that cannot be read are in `broken`.
    pub fn read(name: &str, content: &[u8]) -> Self {
        let mut file = Self {
            name: name.to_owned(),
            documents: Vec::new(),
            broken: Vec::new(),
        };
        if content.len() > MAX_FILE {
            let most = MAX_FILE >> 20;
            file.refuse(
                Position::START,
                format!("the file has more than {most} MiB; split it"),
            );
            return file;
        }
        match std::str::from_utf8(content) {
            Ok(text) => file.parse(text.strip_prefix('\u{feff}').unwrap_or(text)),
            Err(error) => {
                let before = String::from_utf8_lossy(&content[..error.valid_up_to()]);
                let last = before.rsplit('\n').next().unwrap_or_default();
                let place = Position {
                    line: before.split('\n').count(),
                    column: last.chars().count() + 1,
                };
                file.refuse(place, "not UTF-8; save the file as UTF-8 text".to_owned());
            }
        }
        file
    }

    /// The records: documents, and the items of lists.
    pub fn records(&self) -> impl Iterator<Item = RecordNode<'_>> {
        self.documents.iter().flat_map(|document| {
            let items = items(document);
            let roots: Vec<&Located> = match items {
                Some(items) => items.iter().collect(),
                None => vec![document],
            };
            roots.into_iter().map(|root| RecordNode {
                file: &self.name,
                root,
            })
        })
    }

    /// All documents as YAML, in file order.
    ///
    /// Errors: a document that cannot be read or written.
    pub fn to_yaml(&self) -> Result<String, BrokenDocument> {
        self.written(yaml_text)
    }

    /// All documents as JSON, one after the other, in file order.
    ///
    /// Errors: a document that cannot be read or written.
    pub fn to_json(&self) -> Result<String, BrokenDocument> {
        self.written(|document| json_text(document).map(|text| text + "\n"))
    }

    fn written(
        &self,
        text: impl Fn(&Located) -> Result<String, String>,
    ) -> Result<String, BrokenDocument> {
        if let Some(broken) = self.broken.first() {
            return Err(broken.clone());
        }
        let texts = self.documents.iter().map(|document| {
            text(document).map_err(|reason| BrokenDocument {
                place: document.place,
                reason,
            })
        });
        texts.collect()
    }

    fn parse(&mut self, text: &str) {
        let (mut values, mut length) = (0, 0);
        for document in split::documents(text) {
            let start = document.place(Position::START);
            if self.documents.len() + self.broken.len() == MAX_DOCUMENTS {
                let reason = format!("the file has more than {MAX_DOCUMENTS} documents; split it");
                self.refuse(start, reason);
                return;
            }
            if self.broken.len() == MAX_BROKEN {
                let reason = "the file has too many documents that are not YAML up to here";
                self.refuse(start, format!("{reason}; correct them first"));
                return;
            }
            match read(document.text) {
                Err(wrong) => self.refuse(document.place(wrong.at), without_value(wrong.reason)),
                Ok(root) if root.value == Value::Null => {}
                Ok(mut root) => {
                    let (more_values, more_length) = weight(&root);
                    (values, length) = (values + more_values, length + more_length);
                    if values > MAX_VALUES || length > MAX_TEXT {
                        let reason = "the file has too many values up to here; split it";
                        self.refuse(start, reason.to_owned());
                        return;
                    }
                    shift(&mut root, &|place| document.place(place));
                    self.documents.push(root);
                }
            }
        }
    }

    fn refuse(&mut self, place: Position, reason: String) {
        self.broken.push(BrokenDocument { place, reason });
    }
}

/// The items of `kind: List`, and of lists of one kind.
fn items(document: &Located) -> Option<&[Located]> {
    let Some(Value::Text(kind)) = member(document, "kind").map(|it| &it.value.value) else {
        return None;
    };
    match member(document, "items").map(|it| &it.value.value) {
        Some(Value::List(items)) if kind.ends_with("List") => Some(items),
        _ => None,
    }
}

/// The reason without the value that has another type than its tag: it may be a password.
fn without_value(reason: String) -> String {
    match reason.rfind(" is no !!") {
        Some(at) => format!("the value{}", &reason[at..]),
        None => reason,
    }
}

fn shift(value: &mut Located, by: &impl Fn(Position) -> Position) {
    value.place = by(value.place);
    match &mut value.value {
        Value::List(list) => list.iter_mut().for_each(|item| shift(item, by)),
        Value::Object(members) => {
            for member in members {
                member.place = by(member.place);
                shift(&mut member.value, by);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests;
