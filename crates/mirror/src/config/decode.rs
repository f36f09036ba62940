//! Decodes a text by the schema, and reports every difference.

use std::collections::BTreeMap;

use located_yaml::Position;
use located_yaml::v1_1::{Located, LocatedMember, Value};
use serde_json::{Map, Value as Json, json};

use super::form::{TextForm, nearest};
use super::problem::ConfigProblems;
use super::schema::{Field, RecordSchema, ValueKind};
use super::version::ConfigVersion;

/// Longest text that a problem quotes. Units: characters.
const SHOWN: usize = 60;
/// Most that an archive may be: as bytes it has to fit 64 bits with a sign. Units: GiB.
const MAX_SIZE: i128 = (i64::MAX >> 30) as i128;

/// State of one decoding.
pub(super) struct Decoder<'a> {
    text: &'a str,
    version: Option<ConfigVersion>,
    /// Place of each member with a usable value.
    places: BTreeMap<String, Position>,
    pub(super) problems: ConfigProblems,
}

impl<'a> Decoder<'a> {
    pub(super) fn new(text: &'a str, version: Option<ConfigVersion>) -> Self {
        Self {
            text,
            version,
            places: BTreeMap::new(),
            problems: ConfigProblems::default(),
        }
    }

    /// Reports a problem of a member, or of the innermost member around it that exists.
    pub(super) fn problem(&mut self, path: &str, text: impl Into<String>) {
        let mut known = path;
        let place = loop {
            if let Some(place) = self.places.get(known) {
                break *place;
            }
            match known.rfind(['.', '[']) {
                Some(end) => known = &known[..end],
                None => break Position::START,
            }
        };
        self.problems.push(place, path, text);
    }

    /// The whole text in JSON; empty where it is no object.
    pub(super) fn whole(&mut self, root: &Located, record: &'static RecordSchema) -> Json {
        self.value(root, &ValueKind::Object(record), "")
            .unwrap_or_default()
    }

    /// The value in JSON, with the members' own names; nothing where it is wrong. An element that is wrong is empty, so
    /// that the others keep their numbers.
    fn value(&mut self, found: &Located, kind: &ValueKind, path: &str) -> Option<Json> {
        self.places.insert(path.to_owned(), found.place);
        match (kind, &found.value) {
            (ValueKind::Text(form), Value::Text(text)) => return self.text(text, form, path),
            (ValueKind::Flag, Value::Bool(flag)) => return Some(json!(flag)),
            (ValueKind::Size, Value::Integer(size)) => return self.size(*size, path),
            // JSON does not distinguish 4.0 from 4.
            #[expect(
                clippy::cast_possible_truncation,
                reason = "too large a one stays too large"
            )]
            (ValueKind::Size, Value::Float(size)) if size.fract() == 0.0 => {
                return self.size(*size as i128, path);
            }
            (ValueKind::List(kind), Value::List(list)) => return Some(self.list(list, kind, path)),
            (ValueKind::Object(record), Value::Object(members)) => {
                return Some(self.object(members, record, found.place, path));
            }
            _ => {}
        }
        if let (ValueKind::Object(record), Value::Text(_)) = (kind, &found.value)
            && let Some(name) = record.alone
        {
            return self.alone(found, name, kind, path);
        }
        let text = self.otherwise(found, kind);
        self.problem(path, text);
        None
    }

    fn text(&mut self, text: &str, form: &TextForm, path: &str) -> Option<Json> {
        let checked = match text {
            "" => Err(format!("empty: expected {}", form.is)),
            text => (form.check)(text, self.version),
        };
        match checked {
            Ok(()) => Some(json!(text)),
            Err(why) => {
                self.problem(path, why);
                None
            }
        }
    }

    fn size(&mut self, size: i128, path: &str) -> Option<Json> {
        if (0..=MAX_SIZE).contains(&size) {
            return u64::try_from(size).ok().map(Json::from);
        }
        let text =
            format!("{size} is no number of GiB: expected 0 to {MAX_SIZE}, and 0 for the default");
        self.problem(path, text);
        None
    }

    fn list(&mut self, list: &[Located], kind: &ValueKind, path: &str) -> Json {
        let mut values = Vec::new();
        for (index, found) in list.iter().enumerate() {
            let value = self.value(found, kind, &format!("{path}[{index}]"));
            values.push(value.unwrap_or_else(|| empty(kind)));
        }
        Json::Array(values)
    }

    fn alone(&mut self, found: &Located, name: &str, kind: &ValueKind, path: &str) -> Option<Json> {
        let member = LocatedMember {
            name: name.to_owned(),
            place: found.place,
            value: found.clone(),
        };
        let value = Value::Object(vec![member]);
        let place = found.place;
        self.value(&Located { place, value }, kind, path)
    }

    fn object(
        &mut self,
        members: &[LocatedMember],
        record: &RecordSchema,
        place: Position,
        path: &str,
    ) -> Json {
        let mut object = Map::new();
        let mut given: BTreeMap<&str, Position> = BTreeMap::new();
        for member in members {
            let below = join(path, &named(&member.name));
            let Some(field) = self.field(record, &member.name) else {
                let why = self.unknown(record, &member.name);
                self.problems.push(member.place, &below, why);
                continue;
            };
            if let Some(first) = given.insert(field.name, member.place) {
                let why = format!("given twice, first in line {}: leave one out", first.line);
                self.problems.push(member.place, &below, why);
                continue;
            }
            let is_unset = match &member.value.value {
                Value::Null => true,
                Value::Text(text) => text.is_empty() && matches!(field.kind, ValueKind::Text(_)),
                _ => false,
            };
            if is_unset {
                given.remove(field.name);
                continue;
            }
            let value = self.value(&member.value, &field.kind, &join(path, field.name));
            if let Some(value) = value {
                object.insert(field.name.to_owned(), value);
            }
        }
        for field in record.fields {
            if field.is_required && self.has(field) && !given.contains_key(field.name) {
                let why = format!("missing: expected {}", expected(&field.kind));
                self.problems.push(place, &join(path, field.name), why);
            }
        }
        Json::Object(object)
    }

    /// The field of that name, in any case. Source: Go's JSON decoder.
    fn field<'r>(&self, record: &'r RecordSchema, name: &str) -> Option<&'r Field> {
        let mut fields = record.fields.iter().filter(|field| self.has(field));
        fields.find(|field| field.name.eq_ignore_ascii_case(name))
    }

    fn has(&self, field: &Field) -> bool {
        let (Some(own), Some(only)) = (self.version, field.only) else {
            return true;
        };
        own == only
    }

    fn unknown(&self, record: &RecordSchema, name: &str) -> String {
        let is_named = |known: &str| known.eq_ignore_ascii_case(name);
        if let Some((_, instead)) = record.elsewhere.iter().find(|(it, _)| is_named(it)) {
            return format!("not known here: {instead}");
        }
        let of_other = record.fields.iter().find(|field| is_named(field.name));
        if let (Some(own), Some(only)) = (self.version, of_other.and_then(|field| field.only)) {
            let (own, only) = (own.name(), only.name());
            return format!("not known: only {only} has it, and this is {own}");
        }
        let known: Vec<_> = record
            .fields
            .iter()
            .filter(|field| self.has(field))
            .map(|field| field.name)
            .collect();
        match nearest(name, known.iter().copied()) {
            Some(meant) => format!("not known: {meant} may be meant"),
            None => format!("not known: expected one of {}", known.join(", ")),
        }
    }

    /// Message for a value of the wrong kind.
    fn otherwise(&self, found: &Located, kind: &ValueKind) -> String {
        // The place is found by searching the text for each problem.
        if self.problems.is_full() {
            return String::new();
        }
        let expected = expected(kind);
        let written = written(self.text, found.place);
        let (found, hint) = match (&found.value, kind) {
            (Value::Null, _) => ("nothing".to_owned(), String::new()),
            (Value::Bool(_) | Value::Integer(_) | Value::Float(_), ValueKind::Text(_)) => {
                let what = match found.value {
                    Value::Bool(_) => "truth value",
                    _ => "number",
                };
                let hint = format!(": put it in quotes, as \"{written}\"");
                (format!("the {what} {written}"), hint)
            }
            (Value::Bool(_), _) => (format!("the truth value {written}"), String::new()),
            (Value::Integer(_) | Value::Float(_), _) => {
                (format!("the number {written}"), String::new())
            }
            (Value::Text(text), kind) => {
                let hint = match kind {
                    ValueKind::Object(record) => only_required(record)
                        .map_or(String::new(), |name| {
                            format!(": write it as `{name}: {written}`")
                        }),
                    _ if written.starts_with(['"', '\'']) && fits_unquoted(text, kind) => {
                        ": leave the quotes out".to_owned()
                    }
                    _ => String::new(),
                };
                (format!("the text {}", shown(text)), hint)
            }
            (Value::List(_), _) => ("a list".to_owned(), String::new()),
            (Value::Object(_), _) => ("an object".to_owned(), String::new()),
        };
        format!("expected {expected}, found {found}{hint}")
    }
}

fn empty(kind: &ValueKind) -> Json {
    match kind {
        ValueKind::Text(_) => json!(""),
        ValueKind::Flag => json!(false),
        ValueKind::Size => json!(0),
        ValueKind::List(_) => json!([]),
        ValueKind::Object(_) => json!({}),
    }
}

fn expected(kind: &ValueKind) -> &'static str {
    match kind {
        ValueKind::Text(form) => form.is,
        ValueKind::Flag => "true or false",
        ValueKind::Size => "a number of GiB",
        ValueKind::List(_) => "a list",
        ValueKind::Object(_) => "an object",
    }
}

/// The one member that has to be there.
fn only_required(record: &RecordSchema) -> Option<&'static str> {
    let mut required = record.fields.iter().filter(|field| field.is_required);
    match (required.next(), required.next()) {
        (Some(field), None) => Some(field.name),
        _ => None,
    }
}

fn fits_unquoted(text: &str, kind: &ValueKind) -> bool {
    let plain = located_yaml::v1_1::read(text).map(|it| it.value);
    match kind {
        ValueKind::Flag => matches!(plain, Ok(Value::Bool(_))),
        ValueKind::Size => matches!(plain, Ok(Value::Integer(_))),
        _ => false,
    }
}

fn join(path: &str, name: &str) -> String {
    match path {
        "" => name.to_owned(),
        path => format!("{path}.{name}"),
    }
}

/// A name, in quotes where it is no plain one.
fn named(name: &str) -> String {
    let of_name = |it: char| it.is_alphanumeric() || "-_".contains(it);
    if name.chars().all(of_name) && name.len() <= SHOWN {
        name.to_owned()
    } else {
        shown(name)
    }
}

/// The word at that place.
fn written(text: &str, place: Position) -> String {
    let line = text.lines().nth(place.line - 1).unwrap_or_default();
    line.chars()
        .skip(place.column - 1)
        .take_while(|it| !it.is_whitespace() && !",]}".contains(*it))
        .take(SHOWN)
        .collect()
}

/// The beginning of a text, in quotes.
fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{:?}…", &text[..end]),
        None => format!("{text:?}"),
    }
}
