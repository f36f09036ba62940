//! Editing of documents; untouched members stay verbatim.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::value::RawValue;

use crate::csv::to_json;
use crate::schema::decode::{decode, is_same_folded};

/// Members of a document by name.
pub(super) struct Members<'a>(BTreeMap<String, &'a RawValue>);

impl<'a> Members<'a> {
    /// `None` when the JSON is not an object.
    pub(super) fn new(json: &'a str) -> Option<Self> {
        serde_json::from_str(json).ok().map(Self)
    }

    /// The document with a member replaced, in the normal form.
    pub(super) fn with(&self, name: &str, value: &impl Serialize) -> String {
        let value = RawValue::from_string(to_json(value)).expect("records are written as JSON");
        let mut members: BTreeMap<&str, &RawValue> = self
            .0
            .iter()
            .map(|(name, value)| (name.as_str(), *value))
            .collect();
        let key = self.key(name).unwrap_or(name);
        members.insert(key, &value);
        to_json(&members)
    }

    /// Items of the list `name` that satisfy `condition`.
    pub(super) fn items<T: serde::Deserialize<'a>>(
        &self,
        name: &str,
        condition: impl Fn(&T) -> bool,
    ) -> Vec<&'a RawValue> {
        let list = self.key(name).and_then(|key| self.0.get(key));
        let items: Vec<&'a RawValue> = list
            .and_then(|list| serde_json::from_str(list.get()).ok())
            .unwrap_or_default();
        let is_wanted = |item: &'a RawValue| decode(item.get()).is_ok_and(|item| condition(&item));
        items.into_iter().filter(|item| is_wanted(item)).collect()
    }

    fn key(&self, name: &str) -> Option<&str> {
        let keys = || self.0.keys().map(String::as_str);
        let folded = || keys().find(|key| is_same_folded(name, key));
        keys().find(|key| *key == name).or_else(folded)
    }
}
