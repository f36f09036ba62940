//! Names and types of fields, by the schema.

use std::collections::HashMap;

use located_yaml::Position;
use located_yaml::v1_1::{Located, Value};

use super::finding::{FindingList, FindingSeverity, shown};
use super::schema::{self, FieldKind, FieldSupport, ObjectSchema, RecordField};
use super::scope::CheckScope;
use crate::{ApiGroups, NameForm, RecordNode, join};

pub(super) fn check(record: &RecordNode<'_>, _: &CheckScope<'_>, findings: &mut FindingList<'_>) {
    let schema = match record.kind() {
        ApiGroups::HOST => &schema::HOST,
        ApiGroups::MACHINE => &schema::MACHINE,
        ApiGroups::SECRET => &schema::SECRET,
        _ => return,
    };
    let mode = ShapeMode {
        hides_values: record.kind() == ApiGroups::SECRET,
        is_strict: false,
    };
    walk(record, schema, mode, findings);
}

/// The way in which a record is checked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ShapeMode {
    /// Whether no value is shown, because it may be a password.
    pub(crate) hides_values: bool,
    /// Whether unknown fields are errors. Those of a cluster's records are ignored by the cluster.
    pub(crate) is_strict: bool,
}

/// Checks a record by a schema.
pub(crate) fn walk(
    record: &RecordNode<'_>,
    schema: &ObjectSchema,
    mode: ShapeMode,
    findings: &mut FindingList<'_>,
) {
    let mut walk = ShapeWalk {
        record,
        findings,
        mode,
    };
    walk.object(record.root, schema, "");
}

struct ShapeWalk<'a, 'b> {
    record: &'a RecordNode<'a>,
    findings: &'a mut FindingList<'b>,
    mode: ShapeMode,
}

impl ShapeWalk<'_, '_> {
    fn value(&mut self, value: &Located, kind: &FieldKind, path: &str) {
        match (kind, &value.value) {
            (FieldKind::Any, _)
            | (FieldKind::Text | FieldKind::TextOr(_), Value::Text(_))
            | (FieldKind::Flag | FieldKind::FlagOrName(_), Value::Bool(_)) => {}
            (FieldKind::Name(_) | FieldKind::FlagOrName(_), Value::Text(name))
                if name.is_empty() => {}
            (FieldKind::Name(form) | FieldKind::FlagOrName(form), Value::Text(name)) => {
                self.name(*form, name, value.place, path);
            }
            (FieldKind::Choice(choices), Value::Text(text)) => {
                self.choice(choices, text, value.place, path);
            }
            (FieldKind::Whole(least), Value::Integer(number)) => {
                if number < least {
                    self.error(
                        value.place,
                        path,
                        format!("{number} is less than {least}"),
                        "",
                    );
                }
            }
            (FieldKind::List(kind), Value::List(list)) => {
                for (index, item) in list.iter().enumerate() {
                    self.value(item, kind, &format!("{path}[{index}]"));
                }
            }
            (FieldKind::Object(schema) | FieldKind::TextOr(schema), Value::Object(_)) => {
                self.object(value, schema, path);
            }
            (FieldKind::Texts, Value::Object(_)) => self.texts(value, path),
            _ => self.other(value, kind, path),
        }
    }

    fn object(&mut self, value: &Located, schema: &ObjectSchema, path: &str) {
        let Value::Object(members) = &value.value else {
            return self.other(value, &FieldKind::Texts, path);
        };
        self.duplicates(value, path);
        for member in members {
            let below = join(path, &member.name);
            match schema.fields.iter().find(|field| field.name == member.name) {
                None => self.unknown(schema, &member.name, member.place, &below),
                Some(_) if member.value.value == Value::Null => {}
                Some(field) => {
                    self.support(field, member.place, &below);
                    self.value(&member.value, &field.kind, &below);
                }
            }
        }
        let is_given = |name: &str| {
            let mut given = members.iter().filter(|member| member.name == name);
            given.any(|member| member.value.value != Value::Null)
        };
        for field in schema.fields {
            if field.is_required && !is_given(field.name) {
                let remedy = format!("add {}", expected(&field.kind));
                self.error(value.place, &join(path, field.name), "is missing", remedy);
            }
        }
    }

    fn texts(&mut self, value: &Located, path: &str) {
        self.duplicates(value, path);
        let Value::Object(members) = &value.value else {
            return;
        };
        for member in members
            .iter()
            .filter(|member| member.value.value != Value::Null)
        {
            self.value(&member.value, &FieldKind::Text, &join(path, &member.name));
        }
    }

    fn duplicates(&mut self, value: &Located, path: &str) {
        let Value::Object(members) = &value.value else {
            return;
        };
        let mut first: HashMap<&str, Position> = HashMap::new();
        for member in members {
            let line = first.get(&*member.name).map(|place| place.line);
            let Some(line) = line else {
                first.insert(&member.name, member.place);
                continue;
            };
            let reason = format!("is given twice, first in line {line}");
            let path = join(path, &member.name);
            self.error(member.place, &path, reason, "leave one of them out");
        }
    }

    fn support(&mut self, field: &RecordField, place: Position, path: &str) {
        match field.support {
            FieldSupport::Full => {}
            FieldSupport::Ignored(remedy) => {
                self.warning(place, path, "has no effect any more", remedy);
            }
            FieldSupport::Refused(remedy) => {
                self.error(
                    place,
                    path,
                    "is not supported any more, and refused",
                    remedy,
                );
            }
        }
    }

    fn unknown(&mut self, schema: &ObjectSchema, name: &str, place: Position, path: &str) {
        let names = schema.fields.iter().map(|field| field.name);
        let elsewhere = schema.elsewhere.iter().find(|(known, _)| *known == name);
        let remedy = match (elsewhere, self.findings.meant(name, names)) {
            (Some((_, there)), _) => format!("it belongs to {there}"),
            (None, Some(meant)) => format!("{meant} may be meant"),
            (None, None) => "remove it".to_owned(),
        };
        if self.mode.is_strict {
            self.error(place, path, "is not known", remedy);
        } else {
            self.warning(place, path, "is not known, and has no effect", remedy);
        }
    }

    fn name(&mut self, form: NameForm, name: &str, place: Position, path: &str) {
        if let Err(reason) = form.check(name) {
            let name = shown(name);
            self.error(
                place,
                path,
                format!("{name} is no name: it {reason}"),
                "rename it",
            );
        }
    }

    fn choice(&mut self, choices: &[&'static str], text: &str, place: Position, path: &str) {
        if choices.contains(&text) {
            return;
        }
        let remedy = match self.findings.meant(text, choices.iter().copied()) {
            Some(meant) => format!("write {meant}"),
            None => String::new(),
        };
        let reason = format!("{} is none of {}", shown(text), choices.join(", "));
        self.error(place, path, reason, remedy);
    }

    /// Reports a value of another type.
    fn other(&mut self, value: &Located, kind: &FieldKind, path: &str) {
        let expected = expected(kind);
        let is_text = matches!(
            kind,
            FieldKind::Text | FieldKind::TextOr(_) | FieldKind::Name(_) | FieldKind::Choice(_)
        );
        let quotes = if is_text { "put it in quotes" } else { "" };
        let (found, remedy) = match &value.value {
            Value::Null => ("nothing".to_owned(), ""),
            Value::Bool(flag) => (self.quoted("the truth value", flag), quotes),
            Value::Integer(number) => (self.quoted("the number", number), quotes),
            Value::Float(number) => (self.quoted("the number", number), quotes),
            Value::Text(text) => {
                let remedy = if is_unquoted(text, kind) {
                    "leave the quotes out"
                } else {
                    ""
                };
                (self.quoted("the text", format!("{text:.60?}")), remedy)
            }
            Value::List(_) => ("a list".to_owned(), ""),
            Value::Object(_) => ("an object".to_owned(), ""),
        };
        self.error(
            value.place,
            path,
            format!("expected {expected}, found {found}"),
            remedy,
        );
    }

    fn quoted(&self, noun: &str, value: impl std::fmt::Display) -> String {
        if self.mode.hides_values {
            noun.replacen("the ", "a ", 1)
        } else {
            format!("{noun} {value}")
        }
    }

    fn error(
        &mut self,
        place: Position,
        path: &str,
        reason: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.add(
            FindingSeverity::Error,
            place,
            path,
            [reason.into(), remedy.into()],
        );
    }

    fn warning(
        &mut self,
        place: Position,
        path: &str,
        reason: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.add(
            FindingSeverity::Warning,
            place,
            path,
            [reason.into(), remedy.into()],
        );
    }

    fn add(&mut self, severity: FindingSeverity, place: Position, path: &str, texts: [String; 2]) {
        let at = (place, path.to_owned());
        self.findings.add(severity, self.record, at, texts);
    }
}

fn expected(kind: &FieldKind) -> String {
    match kind {
        FieldKind::Text => "a text".to_owned(),
        FieldKind::Name(_) => "a name".to_owned(),
        FieldKind::Choice(choices) => format!("one of {}", choices.join(", ")),
        FieldKind::Flag => "true or false".to_owned(),
        FieldKind::TextOr(_) => "a text or an object".to_owned(),
        FieldKind::FlagOrName(_) => "true, false or a name".to_owned(),
        FieldKind::Whole(least) => format!("a whole number from {least} on"),
        FieldKind::List(_) => "a list".to_owned(),
        FieldKind::Object(_) | FieldKind::Texts => "an object".to_owned(),
        FieldKind::Any => "a value".to_owned(),
    }
}

/// Whether a text without quotes would be of the kind.
fn is_unquoted(text: &str, kind: &FieldKind) -> bool {
    match kind {
        FieldKind::Flag => ["true", "false"].contains(&text),
        FieldKind::Whole(least) => text.parse().is_ok_and(|number: i128| number >= *least),
        _ => false,
    }
}
