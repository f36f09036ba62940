//! From keys of Butane to members of Ignition: names, contents and texts from local files.

use located_yaml::Position;
use located_yaml::v1_2::{ConfigMember, ConfigNode};

use super::files::FileReader;
use super::keys::{self, KeyKind, is_optional_record, is_same};
use super::node::{set, text};
use super::resource::{AutoCompression, encode, escape};
use super::spec::ButaneSpec;
use crate::config::SpecVersion;
use crate::path::NodePath;
use crate::problem::{ProblemClass, ProblemList};
use crate::schema::{
    CLEVIS_CUSTOM, CONFIG, DROPIN, ObjectSchema, PARTITION, PASSWD_USER, REFERENCE, RESOURCE, UNIT,
    ValueKind,
};

/// Required texts that Ignition does not write when they are missing, since this version.
const OPTIONAL_SINCE_3_3: [&str; 2] = ["level", "target"];

/// Translates the objects of a document, which was checked.
pub(super) struct Desugarer<'d, 'f> {
    pub(super) spec: &'static ButaneSpec,
    pub(super) compression: AutoCompression,
    pub(super) files: &'d mut FileReader<'f>,
    pub(super) problems: &'d mut ProblemList,
}

impl Desugarer<'_, '_> {
    /// The configuration without the short forms of its root.
    pub(super) fn config(&mut self, root: &ConfigNode) -> ConfigNode {
        let mut config = self.object(root, &CONFIG, &NodePath::Root);
        let at = root.get("version").map_or(root.at, |version| version.at);
        let version = text("version", at, self.spec.ignition().as_str());
        set(
            super::node::member_mut(&mut config, "ignition", at),
            version,
        );
        config
    }

    /// The items of a list that has another place in Ignition.
    pub(super) fn items(
        &mut self,
        list: &ConfigNode,
        schema: &'static ObjectSchema,
        path: &NodePath<'_>,
    ) -> ConfigNode {
        let items = list.items().iter().enumerate();
        let items = items
            .map(|(index, item)| self.object(item, schema, &NodePath::Item(path, index)))
            .collect();
        ConfigNode::list(list.at, items)
    }

    fn object(
        &mut self,
        node: &ConfigNode,
        schema: &'static ObjectSchema,
        path: &NodePath<'_>,
    ) -> ConfigNode {
        let mut members = Vec::with_capacity(node.members().len());
        for member in node.members() {
            let key = keys::key(schema, &member.name, self.spec);
            let Some(name) = key.and_then(|key| key.ignition) else {
                continue;
            };
            let path = NodePath::Member(path, &member.name);
            let value = match key.map(|key| key.kind) {
                Some(KeyKind::Value(ValueKind::Object(inner))) => {
                    self.object(&member.node, inner, &path)
                }
                Some(KeyKind::Value(ValueKind::Objects(inner))) => {
                    self.items(&member.node, inner, &path)
                }
                _ => member.node.clone(),
            };
            if !is_omitted(&value, name, schema, self.spec) {
                members.push(ConfigMember {
                    name: name.to_owned(),
                    at: member.at,
                    node: value,
                });
            }
        }
        self.add_required(&mut members, schema, node.at);
        let mut object = ConfigNode::object(node.at, members);
        if is_same(schema, &RESOURCE) || is_same(schema, &REFERENCE) {
            self.contents(node, &mut object, path);
        } else if is_same(schema, &UNIT) || is_same(schema, &DROPIN) {
            self.local_text(node, &mut object, path);
        } else if is_same(schema, &PASSWD_USER) {
            self.local_keys(node, &mut object, path);
        }
        object
    }

    /// Ignition's records write names and paths also when they are missing.
    fn add_required(
        &self,
        members: &mut Vec<ConfigMember>,
        schema: &'static ObjectSchema,
        at: Position,
    ) {
        let version = self.spec.ignition();
        let is_pin = is_same(schema, &CLEVIS_CUSTOM) && version == SpecVersion::V3_2;
        for row in schema.members {
            let is_text = matches!(row.kind, ValueKind::Text);
            let is_optional =
                version >= SpecVersion::V3_3 && OPTIONAL_SINCE_3_3.contains(&row.name);
            let is_missing = !members.iter().any(|member| member.name == row.name);
            if is_text && (row.is_required && !is_optional || is_pin) && is_missing {
                members.push(text(row.name, at, ""));
            }
        }
    }

    /// `inline` and `local`.
    fn contents(&mut self, node: &ConfigNode, object: &mut ConfigNode, path: &NodePath<'_>) {
        if let Some(inline) = node.get("inline") {
            let contents = inline.as_text().unwrap_or_default();
            if self.spec.fcos == 0 {
                set(object, text("source", inline.at, escape(contents)));
            } else {
                self.set_contents(object, contents.as_bytes(), inline.at);
            }
        }
        if let Some(local) = node.get("local")
            && let Some(contents) = self.read(local, &NodePath::Member(path, "local"))
        {
            self.set_contents(object, &contents, local.at);
        }
    }

    fn set_contents(&self, object: &mut ConfigNode, contents: &[u8], at: Position) {
        set_encoded(object, contents, self.compression, at);
    }

    /// `contents_local`
    fn local_text(&mut self, node: &ConfigNode, object: &mut ConfigNode, path: &NodePath<'_>) {
        let local = node.get("contents_local");
        let is_named = |local: &&ConfigNode| local.as_text().is_some_and(|path| !path.is_empty());
        let Some(local) = local.filter(is_named) else {
            return;
        };
        let path = NodePath::Member(path, "contents_local");
        if let Some(contents) = self.read_text(local, &path) {
            set(object, text("contents", local.at, contents));
        }
    }

    /// `ssh_authorized_keys_local`: each line that is not empty is a key.
    fn local_keys(&mut self, node: &ConfigNode, object: &mut ConfigNode, path: &NodePath<'_>) {
        const MEMBER: &str = "sshAuthorizedKeys";
        let Some(files) = node.get("ssh_authorized_keys_local") else {
            return;
        };
        let path = NodePath::Member(path, "ssh_authorized_keys_local");
        let mut keys = object
            .get(MEMBER)
            .map_or(&[][..], ConfigNode::items)
            .to_vec();
        for (index, file) in files.items().iter().enumerate() {
            let Some(lines) = self.read_text(file, &NodePath::Item(&path, index)) else {
                continue;
            };
            let lines = lines.replace("\r\n", "\n");
            let lines = lines.split('\n').filter(|line| !line.is_empty());
            keys.extend(lines.map(|line| ConfigNode::text(file.at, line)));
        }
        if !keys.is_empty() {
            let at = object.get(MEMBER).map_or(files.at, |keys| keys.at);
            set(
                object,
                ConfigMember::new(MEMBER, ConfigNode::list(at, keys)),
            );
        }
    }

    fn read_text(&mut self, file: &ConfigNode, path: &NodePath<'_>) -> Option<String> {
        let bytes = self.read(file, path)?;
        match String::from_utf8(bytes) {
            Ok(text) => Some(text),
            // As Go writes JSON.
            Err(error) => Some(String::from_utf8_lossy(error.as_bytes()).into_owned()),
        }
    }

    fn read(&mut self, file: &ConfigNode, path: &NodePath<'_>) -> Option<Vec<u8>> {
        let read = self.files.read(file.as_text().unwrap_or_default());
        read.map_err(|reason| {
            self.problems
                .add(ProblemClass::Refused, file.at, path, reason);
        })
        .ok()
    }
}

/// Sets source and compression of a resource; contents that the user compressed keep their compression.
pub(super) fn set_encoded(
    resource: &mut ConfigNode,
    contents: &[u8],
    compression: AutoCompression,
    at: Position,
) {
    let by_user = resource.get("compression").and_then(ConfigNode::as_text);
    let is_by_user = by_user.is_some_and(|compression| !compression.is_empty());
    let allowed = if is_by_user {
        AutoCompression::Off
    } else {
        compression
    };
    let encoded = encode(contents, allowed);
    if !is_by_user {
        let compression = if encoded.is_compressed { "gzip" } else { "" };
        set(resource, text("compression", at, compression));
    }
    set(resource, text("source", at, encoded.url));
}

/// Whether Ignition's records leave the value out: empty lists and objects, the number 0 of a partition, which means
/// the next free one.
fn is_omitted(
    value: &ConfigNode,
    name: &str,
    schema: &'static ObjectSchema,
    spec: &ButaneSpec,
) -> bool {
    use located_yaml::v1_2::NodeValue::{List, Object, Scalar};
    let is_kept = is_optional_record(schema, name, spec);
    match &value.value {
        Object(members) => members.is_empty() && !is_kept,
        List(items) => items.is_empty(),
        Scalar { .. } => {
            is_same(schema, &PARTITION) && name == "number" && value.as_integer() == Some(0)
        }
    }
}
