//! The deserialiser of a trace: gives each type a placeholder, and notes the kind that the type requested.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::de::value::StrDeserializer;
use serde::de::{
    DeserializeSeed, Deserializer, Error as _, IntoDeserializer, MapAccess, SeqAccess, Visitor,
};
use serde_json::{Map, Value, json};

use crate::wire::VALUES_MARK;

pub(super) type Records = BTreeMap<&'static str, Value>;
/// Formats of texts by their paths.
pub(super) type Formats = BTreeMap<String, TextFormat>;

/// Placeholder of a text whose format is unknown: no format accepts it.
const NO_FORMAT: &str = "-";

/// Format of a text, from the error about its placeholder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TextFormat {
    Values(Vec<String>),
    Uuid,
    DateTime,
}

impl TextFormat {
    pub(super) fn of(error: &ProbeError) -> Self {
        if let Some(values) = error.0.strip_prefix(VALUES_MARK) {
            return Self::Values(values.split('\n').map(str::to_owned).collect());
        }
        if error.0.contains("UUID") {
            return Self::Uuid;
        }
        Self::DateTime
    }

    fn placeholder(&self) -> &str {
        match self {
            Self::Values(values) => values.first().map_or("", String::as_str),
            Self::Uuid => "00000000-0000-0000-0000-000000000000",
            Self::DateTime => "0001-01-01T00:00:00Z",
        }
    }

    fn schema(&self) -> Value {
        match self {
            Self::Values(values) => json!({ "type": "string", "enum": values }),
            Self::Uuid => json!({ "type": "string", "format": "uuid" }),
            Self::DateTime => json!({ "type": "string", "format": "date-time" }),
        }
    }
}

/// Error of a placeholder.
#[derive(Debug)]
pub(super) struct ProbeError(String);

impl ProbeError {
    /// The member whose absence is the error.
    pub(super) fn missing(&self) -> Option<String> {
        let rest = self.0.strip_prefix("missing field `")?;
        rest.split('`').next().map(str::to_owned)
    }
}

impl fmt::Display for ProbeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ProbeError {}

impl serde::de::Error for ProbeError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        // The alternate form of an unknown value is its closed set.
        Self(format!("{message:#}"))
    }
}

/// State of one trace.
pub(super) struct Tracer<'a> {
    formats: &'a Formats,
    records: RefCell<Records>,
    last_text: RefCell<String>,
}

impl<'a> Tracer<'a> {
    pub(super) fn new(formats: &'a Formats) -> Self {
        Self {
            formats,
            records: RefCell::default(),
            last_text: RefCell::default(),
        }
    }

    /// Path of the last text that got a placeholder.
    pub(super) fn last_text(&self) -> String {
        self.last_text.borrow().clone()
    }

    pub(super) fn into_records(self) -> Records {
        self.records.into_inner()
    }
}

/// Members that the outermost record gets.
#[derive(Clone, Copy)]
pub(super) enum Given<'a> {
    All,
    Only(&'a BTreeSet<String>),
}

/// A value in the trace; its schema goes to `found`.
pub(super) struct Probe<'a> {
    tracer: &'a Tracer<'a>,
    given: Given<'a>,
    path: String,
    found: &'a mut Value,
}

impl<'a> Probe<'a> {
    pub(super) fn new(tracer: &'a Tracer<'a>, given: Given<'a>, found: &'a mut Value) -> Self {
        Self {
            tracer,
            given,
            path: String::new(),
            found,
        }
    }

    fn inner<'b>(tracer: &'b Tracer<'b>, path: String, found: &'b mut Value) -> Probe<'b> {
        Probe {
            tracer,
            given: Given::All,
            path,
            found,
        }
    }

    fn note(self, schema: Value) {
        *self.found = schema;
    }
}

macro_rules! plain {
    ($($method:ident => $visit:ident($value:expr), $kind:literal;)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ProbeError> {
            self.note(json!({ "type": $kind }));
            visitor.$visit($value)
        })*
    };
}

impl<'de> Deserializer<'de> for Probe<'_> {
    type Error = ProbeError;

    plain! {
        deserialize_bool => visit_bool(false), "boolean";
        deserialize_i8 => visit_i8(0), "integer";
        deserialize_i16 => visit_i16(0), "integer";
        deserialize_i32 => visit_i32(0), "integer";
        deserialize_i64 => visit_i64(0), "integer";
        deserialize_u8 => visit_u8(0), "integer";
        deserialize_u16 => visit_u16(0), "integer";
        deserialize_u32 => visit_u32(0), "integer";
        deserialize_u64 => visit_u64(0), "integer";
        deserialize_f32 => visit_f32(0.0), "number";
        deserialize_f64 => visit_f64(0.0), "number";
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ProbeError> {
        self.note(json!({}));
        visitor.visit_unit()
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ProbeError> {
        let format = self.tracer.formats.get(&self.path);
        self.tracer.last_text.replace(self.path.clone());
        self.note(format.map_or(json!({ "type": "string" }), TextFormat::schema));
        visitor.visit_str(format.map_or(NO_FORMAT, TextFormat::placeholder))
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ProbeError> {
        self.deserialize_string(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ProbeError> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, ProbeError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ProbeError> {
        let mut items = json!({});
        let path = format!("{}[]", self.path);
        let item = Some(Probe::inner(self.tracer, path, &mut items));
        let value = visitor.visit_seq(OneItem(item))?;
        self.note(json!({ "type": "array", "items": items }));
        Ok(value)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ProbeError> {
        let members = MemberProbe {
            probe: &self,
            names: &["*"],
            at: 0,
            schemas: Map::new(),
        };
        let (value, mut schemas) = members.visit(visitor)?;
        let inner = schemas.remove("*").unwrap_or_default();
        self.note(json!({ "type": "object", "additionalProperties": inner }));
        Ok(value)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ProbeError> {
        let members = MemberProbe {
            probe: &self,
            names: fields,
            at: 0,
            schemas: Map::new(),
        };
        let (value, schemas) = members.visit(visitor)?;
        let record = json!({ "type": "object", "properties": schemas });
        self.tracer.records.borrow_mut().insert(name, record);
        let reference = format!("#/components/schemas/{name}");
        self.note(json!({ "$ref": reference }));
        Ok(value)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ProbeError> {
        let Some(first) = variants.first() else {
            return Err(ProbeError::custom(format_args!("{name} has no variants")));
        };
        self.note(json!({ "type": "string", "enum": variants }));
        let first: StrDeserializer<'_, ProbeError> = (*first).into_deserializer();
        visitor.visit_enum(first)
    }

    serde::forward_to_deserialize_any! {
        char bytes byte_buf unit unit_struct tuple tuple_struct identifier ignored_any
    }
}

/// One item of a list.
struct OneItem<'a>(Option<Probe<'a>>);

impl<'de> SeqAccess<'de> for OneItem<'_> {
    type Error = ProbeError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, ProbeError> {
        self.0.take().map(|item| seed.deserialize(item)).transpose()
    }
}

/// Members of a record or a map, in their order.
struct MemberProbe<'a> {
    probe: &'a Probe<'a>,
    names: &'a [&'static str],
    at: usize,
    schemas: Map<String, Value>,
}

impl MemberProbe<'_> {
    fn visit<'de, V: Visitor<'de>>(
        mut self,
        visitor: V,
    ) -> Result<(V::Value, Map<String, Value>), ProbeError> {
        let value = visitor.visit_map(&mut self)?;
        Ok((value, self.schemas))
    }
}

impl<'de> MapAccess<'de> for MemberProbe<'_> {
    type Error = ProbeError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, ProbeError> {
        let given = |name: &str| match self.probe.given {
            Given::All => true,
            Given::Only(names) => names.contains(name),
        };
        while self.names.get(self.at).is_some_and(|name| !given(name)) {
            self.at += 1;
        }
        let Some(name) = self.names.get(self.at) else {
            return Ok(None);
        };
        let key: StrDeserializer<'_, ProbeError> = (*name).into_deserializer();
        seed.deserialize(key).map(Some)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<T::Value, ProbeError> {
        let name = self.names.get(self.at).copied().unwrap_or_default();
        self.at += 1;
        let mut schema = json!({});
        let path = format!("{}.{name}", self.probe.path);
        let value = seed.deserialize(Probe::inner(self.probe.tracer, path, &mut schema))?;
        self.schemas.insert(name.to_owned(), schema);
        Ok(value)
    }
}
