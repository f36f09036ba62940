//! Go's decoding rules: members match by name, else case-insensitively; `null` is the zero value.

use std::fmt;
use std::iter;

use serde::de::value::{MapDeserializer, SeqDeserializer, StrDeserializer};
use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess,
    Unexpected, Visitor,
};
use serde::forward_to_deserialize_any;

/// Decodes a record from JSON.
///
/// Errors: the mismatch, with its path.
/// Source: `encoding/json` of Go, package documentation of `Unmarshal`.
pub(crate) fn decode<'de, T: Deserialize<'de>>(json: &'de str) -> Result<T, String> {
    let mut json = serde_json::Deserializer::from_str(json);
    T::deserialize(Lenient(&mut json)).map_err(|e| without_position(&e.to_string()))
}

/// Removes the position: it counts in rewritten text.
fn without_position(text: &str) -> String {
    let end = text.rfind(" at line ").unwrap_or(text.len());
    text[..end].to_owned()
}

struct Lenient<D>(D);

/// Zero value that `null` decodes to.
#[derive(Clone, Copy)]
enum Zero {
    Text,
    Bool,
    Number,
    List,
    Map,
    Struct(&'static [&'static str]),
}

struct Forgiving<V> {
    visitor: V,
    zero: Zero,
}

macro_rules! forgiving {
    ($($method:ident => $zero:expr,)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
            self.0.deserialize_any(Forgiving { visitor, zero: $zero })
        })*
    };
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Lenient<D> {
    type Error = D::Error;

    forgiving! {
        deserialize_bool => Zero::Bool,
        deserialize_i8 => Zero::Number,
        deserialize_i16 => Zero::Number,
        deserialize_i32 => Zero::Number,
        deserialize_i64 => Zero::Number,
        deserialize_u8 => Zero::Number,
        deserialize_u16 => Zero::Number,
        deserialize_u32 => Zero::Number,
        deserialize_u64 => Zero::Number,
        deserialize_f32 => Zero::Number,
        deserialize_f64 => Zero::Number,
        deserialize_str => Zero::Text,
        deserialize_string => Zero::Text,
        deserialize_seq => Zero::List,
        deserialize_map => Zero::Map,
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        let zero = Zero::Struct(fields);
        self.0.deserialize_any(Forgiving { visitor, zero })
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_any(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_option(Optional(visitor))
    }

    /// `RawValue` is decoded through here.
    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_newtype_struct(name, visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_ignored_any(visitor)
    }

    forward_to_deserialize_any! {
        char bytes byte_buf unit unit_struct tuple tuple_struct enum identifier i128 u128
    }
}

struct Optional<V>(V);

impl<'de, V: Visitor<'de>> Visitor<'de> for Optional<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(f)
    }

    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        self.0.visit_none()
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        self.0.visit_none()
    }

    fn visit_some<D: Deserializer<'de>>(self, value: D) -> Result<V::Value, D::Error> {
        self.0.visit_some(Lenient(value))
    }
}

macro_rules! passed_on {
    ($($method:ident: $type:ty,)*) => {
        $(fn $method<E: Error>(self, value: $type) -> Result<V::Value, E> {
            self.visitor.$method(value)
        })*
    };
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Forgiving<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.visitor.expecting(f)
    }

    passed_on! {
        visit_bool: bool,
        visit_i64: i64,
        visit_u64: u64,
        visit_f64: f64,
        visit_str: &str,
        visit_borrowed_str: &'de str,
        visit_string: String,
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        let nothing = iter::empty::<((), ())>();
        match self.zero {
            Zero::Text => self.visitor.visit_str(""),
            Zero::Bool => self.visitor.visit_bool(false),
            Zero::Number => self.visitor.visit_u64(0),
            Zero::List => self
                .visitor
                .visit_seq(SeqDeserializer::new(iter::empty::<()>())),
            Zero::Map | Zero::Struct(_) => self.visitor.visit_map(MapDeserializer::new(nothing)),
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<V::Value, A::Error> {
        if matches!(self.zero, Zero::Struct(_)) {
            return Err(Error::invalid_type(Unexpected::Seq, &self.visitor));
        }
        self.visitor.visit_seq(Items { items, index: 0 })
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<V::Value, A::Error> {
        match self.zero {
            Zero::Struct(fields) => self.visitor.visit_map(Members {
                all: members,
                fields,
                field: "",
            }),
            _ => self.visitor.visit_map(Pairs(members)),
        }
    }
}

struct Seed<S>(S);

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Seed<S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<S::Value, D::Error> {
        self.0.deserialize(Lenient(value))
    }
}

struct Items<A> {
    items: A,
    index: usize,
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Items<A> {
    type Error = A::Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, A::Error> {
        let index = self.index;
        self.index += 1;
        self.items
            .next_element_seed(Seed(seed))
            .map_err(|e| Error::custom(format_args!("[{index}]: {e}")))
    }
}

/// Members of a map with arbitrary names.
struct Pairs<A>(A);

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Pairs<A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, A::Error> {
        self.0.next_key_seed(seed)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.0.next_value_seed(Seed(seed))
    }
}

/// Members of a struct; unknown ones are skipped.
struct Members<A> {
    all: A,
    fields: &'static [&'static str],
    field: &'static str,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Members<A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, A::Error> {
        while let Some(found) = self.all.next_key_seed(Field(self.fields))? {
            if let Some(field) = found {
                self.field = field;
                return seed.deserialize(StrDeserializer::new(field)).map(Some);
            }
            self.all.next_value::<IgnoredAny>()?;
        }
        Ok(None)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        let field = self.field;
        self.all
            .next_value_seed(Seed(seed))
            .map_err(|e| Error::custom(format_args!("{field}: {e}")))
    }
}

struct Field(&'static [&'static str]);

impl<'de> DeserializeSeed<'de> for Field {
    type Value = Option<&'static str>;

    fn deserialize<D: Deserializer<'de>>(self, key: D) -> Result<Self::Value, D::Error> {
        key.deserialize_str(self)
    }
}

impl Visitor<'_> for Field {
    type Value = Option<&'static str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a member")
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<Self::Value, E> {
        let exact = self.0.iter().find(|field| **field == key);
        let folded = || self.0.iter().find(|field| is_same_folded(field, key));
        Ok(exact.or_else(folded).copied())
    }
}

/// Whether a key equals a name under case folding. Two letters beyond ASCII fold into ASCII.
pub(crate) fn is_same_folded(name: &str, key: &str) -> bool {
    let fold = |c: char| match c {
        'ſ' => 's',
        '\u{212a}' => 'k',
        c => c.to_ascii_lowercase(),
    };
    name.chars().map(fold).eq(key.chars().map(fold))
}
