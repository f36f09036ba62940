//! A keyfile of NetworkManager: sections of keys, and the id of its connection.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};

use sha1::{Digest as _, Sha1};
use uuid::{Builder, Uuid};

use crate::state::Interface;

/// A connection profile as a file.
#[derive(Debug)]
pub(crate) struct Keyfile {
    /// Name of the connection and of the file.
    pub(crate) id: String,
    /// In the order of the file.
    pub(crate) sections: Vec<KeyfileSection>,
}

/// A section; keys are sorted.
#[derive(Debug)]
pub(crate) struct KeyfileSection {
    name: &'static str,
    keys: BTreeMap<String, String>,
}

impl KeyfileSection {
    pub(crate) fn new(name: &'static str) -> Self {
        Self {
            name,
            keys: BTreeMap::new(),
        }
    }

    pub(crate) fn set(&mut self, key: impl Into<String>, value: impl Display) {
        self.keys.insert(key.into(), value.to_string());
    }

    pub(crate) fn set_some(&mut self, key: &str, value: Option<impl Display>) {
        if let Some(value) = value {
            self.set(key, value);
        }
    }

    /// A list; an empty one is left out.
    pub(crate) fn set_list(&mut self, key: &str, values: &[String]) {
        if !values.is_empty() {
            self.set(key, values.join(";"));
        }
    }

    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.keys.get(key).map(String::as_str)
    }

    pub(crate) fn is_named(&self, name: &str) -> bool {
        self.name == name
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }
}

impl Keyfile {
    /// The file. The connection precedes those that the initrd generates for every NIC. Source: assisted-service,
    /// pkg/staticnetworkconfig/generator.go, formatNMConnection.
    ///
    /// Errors: a control character, which would end the line, or a name that is no file name.
    pub(crate) fn text(&self) -> Result<String, String> {
        if self.id.is_empty() || self.id.starts_with('.') || self.id.contains('/') {
            return Err(format!("{:?} cannot be a file name", self.id));
        }
        let mut text = String::new();
        for section in &self.sections {
            if !text.is_empty() {
                text.push('\n');
            }
            let _ = writeln!(text, "[{}]", section.name);
            for (key, value) in &section.keys {
                // The value may be a password.
                if key.chars().chain(value.chars()).any(char::is_control) {
                    let key: String = key.chars().filter(|it| !it.is_control()).collect();
                    return Err(format!("{key} holds a control character"));
                }
                let _ = writeln!(text, "{key}={}", escaped(value));
            }
            if section.name == "connection" {
                text.push_str("autoconnect-priority=1\n");
            }
        }
        Ok(text)
    }
}

/// The value as GLib reads it: a backslash begins an escape, and blanks in front are no part of it. nmstate writes values
/// as they are, so that the identity `CORP\user` of 802.1X makes a keyfile that does not load.
fn escaped(value: &str) -> Cow<'_, str> {
    if !value.contains('\\') && !value.starts_with(' ') {
        return Cow::Borrowed(value);
    }
    let rest = value.trim_start_matches(' ');
    let blanks = "\\s".repeat(value.len() - rest.len());
    Cow::Owned(blanks + &rest.replace('\\', "\\\\"))
}

/// The id that nmstate gives a connection, which is the same on each host and at each boot.
pub(crate) fn stable_uuid(interface: &Interface) -> Uuid {
    uuid_of(interface.kind.word(), &interface.name)
}

/// The id of an interface by its kind and name.
pub(crate) fn uuid_of(kind: &str, name: &str) -> Uuid {
    // Version 5 by RFC 9562: the feature of the crate would bring a second SHA-1.
    let hash = Sha1::new_with_prefix(Uuid::NAMESPACE_URL.as_bytes())
        .chain_update(format!("{kind}://{name}"))
        .finalize();
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash[..16]);
    Builder::from_sha1_bytes(bytes).into_uuid()
}
