//! Members that override the generated install-config, as an object like the file.

use serde_json::{Map, Value};

use crate::schema::override_paths;

/// Paths whose values hold credentials: neither exported nor shown.
const SECRET: &[&[&str]] = &[
    &["controlPlane", "fencing"],
    &["platform", "baremetal", "hosts"],
    &["platform", "nutanix", "prismCentral"],
    &["platform", "vsphere", "password"],
    &["platform", "vsphere", "username"],
    &["platform", "vsphere", "vcenters"],
];

/// Sets the value at a path.
pub(crate) fn set(overrides: &mut Map<String, Value>, path: &[&str], value: Value) {
    let Some((last, above)) = path.split_last() else {
        return;
    };
    let mut members = overrides;
    for name in above {
        let inner = members.entry(*name).or_insert_with(|| Map::new().into());
        if !inner.is_object() {
            *inner = Map::new().into();
        }
        let Value::Object(inner) = inner else { return };
        members = inner;
    }
    members.insert((*last).to_owned(), value);
}

/// The value at a path.
pub(crate) fn get<'a>(overrides: &'a Map<String, Value>, path: &[&str]) -> Option<&'a Value> {
    let (first, below) = path.split_first()?;
    let value = overrides.get(*first)?;
    below.iter().try_fold(value, |value, name| value.get(name))
}

/// Removes the value at a path, and objects above it that it leaves empty.
pub(crate) fn remove(overrides: &mut Map<String, Value>, path: &[&str]) -> Option<Value> {
    let (first, below) = path.split_first()?;
    if below.is_empty() {
        return overrides.remove(*first);
    }
    let inner = overrides.get_mut(*first)?.as_object_mut()?;
    let removed = remove(inner, below);
    if inner.is_empty() {
        overrides.remove(*first);
    }
    removed
}

/// The overrides that the file has members for.
pub(crate) fn declarable(overrides: &Map<String, Value>) -> Map<String, Value> {
    let mut found = Map::new();
    for path in override_paths() {
        if let Some(value) = get(overrides, &path).filter(|value| !value.is_null()) {
            set(&mut found, &path, value.clone());
        }
    }
    found
}

/// The overrides without credentials.
pub(crate) fn without_secrets(overrides: &Map<String, Value>) -> Map<String, Value> {
    let mut shown = overrides.clone();
    for path in SECRET {
        remove(&mut shown, path);
    }
    shown
}

/// Whether the value at a path holds credentials.
pub(crate) fn is_secret(path: &[&str]) -> bool {
    SECRET.contains(&path)
}
