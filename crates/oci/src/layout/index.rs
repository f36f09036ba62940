//! The list of a layout's images. What others have written into it stays.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;

use model::Error;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{failed, read};
use crate::{Descriptor, Digest, Manifest};

const FILE: &str = "index.json";
/// What the next list is written to.
const NEXT_FILE: &str = "index.json.next";
/// Units: bytes. Largest list: some hundred thousand images.
const LIMIT_BYTES: u64 = 64 << 20;
/// The annotation by which an entry is told from others.
const NAME: &str = "org.opencontainers.image.ref.name";

/// Such a list.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Index {
    #[serde(default = "version")]
    schema_version: u64,
    #[serde(default)]
    manifests: Vec<Entry>,
    #[serde(flatten)]
    others: Map<String, Value>,
}

/// An image of the list, with all that is said of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "Value", into = "Value")]
struct Entry {
    descriptor: Descriptor,
    whole: Value,
}

impl TryFrom<Value> for Entry {
    type Error = serde_json::Error;

    fn try_from(whole: Value) -> Result<Self, serde_json::Error> {
        let descriptor = Descriptor::deserialize(&whole)?;
        Ok(Self { descriptor, whole })
    }
}

impl From<Entry> for Value {
    fn from(entry: Entry) -> Self {
        entry.whole
    }
}

impl Entry {
    fn name(&self) -> Option<&str> {
        let annotations = self.descriptor.annotations.as_ref()?;
        annotations.get(NAME).map(String::as_str)
    }
}

impl Index {
    /// The list of the folder.
    ///
    /// Blocking. Errors: NotFound – no such folder; Invalid – no list.
    pub(crate) fn read(folder: &Path) -> Result<Self, Error> {
        let path = folder.join(FILE);
        let bytes = read(&path, LIMIT_BYTES)?;
        serde_json::from_slice(&bytes)
            .map_err(|e| Error::invalid("image layout", format!("{}: {e}", path.display())))
    }

    /// As [`Self::read`], of a folder that may have no list yet.
    pub(crate) fn read_or_empty(folder: &Path) -> Result<Self, Error> {
        match Self::read(folder) {
            Err(Error::NotFound { .. }) => Ok(Self {
                schema_version: version(),
                manifests: Vec::new(),
                others: Map::new(),
            }),
            read => read,
        }
    }

    /// Takes the place of the list in the folder, whole or not at all.
    ///
    /// Blocking. Errors: Internal and Conflict – the disk does not take it.
    pub(super) fn write(&self, folder: &Path) -> Result<(), Error> {
        let next = folder.join(NEXT_FILE);
        let write = || -> io::Result<()> {
            let mut file = File::create(&next)?;
            file.write_all(&serde_json::to_vec(self)?)?;
            file.sync_all()?;
            fs::rename(&next, folder.join(FILE))
        };
        write().map_err(|e| failed(&next, e))
    }

    /// Those that people mean by `name`: some tools write the whole reference, others the tag alone. All, for nothing.
    pub(crate) fn called(&self, name: Option<&str>) -> impl Iterator<Item = &Descriptor> {
        let is_exact = name.is_some_and(|name| self.named(name).is_some());
        let is_meant = move |entry: &&Entry| {
            let Some(name) = name else { return true };
            let own = entry.name().unwrap_or_default();
            let before = own.strip_suffix(name);
            before.is_some_and(|it| it.is_empty() || (!is_exact && it.ends_with([':', '/'])))
        };
        let meant = self.manifests.iter().filter(is_meant);
        meant.map(|entry| &entry.descriptor)
    }

    /// The image with exactly that name.
    pub(crate) fn named(&self, name: &str) -> Option<&Descriptor> {
        let mut entries = self.manifests.iter();
        let found = entries.find(|entry| entry.name() == Some(name));
        found.map(|entry| &entry.descriptor)
    }

    /// The names of all images that have one.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.manifests.iter().filter_map(Entry::name)
    }

    /// Gives `manifest` the name, which another image may have had.
    pub(super) fn set(&mut self, name: &str, manifest: &Manifest) {
        self.take(|own, _| own == name);
        let mut descriptor = manifest.descriptor();
        descriptor.annotations = Some([(NAME.to_owned(), name.to_owned())].into());
        let whole = json!(descriptor);
        self.manifests.push(Entry { descriptor, whole });
    }

    /// Takes those out whose name and digest are meant; whether there were any.
    pub(super) fn take(&mut self, is_meant: impl Fn(&str, &Digest) -> bool) -> bool {
        let before = self.manifests.len();
        let is_meant = |entry: &Entry| {
            let name = entry.name();
            name.is_some_and(|name| is_meant(name, &entry.descriptor.digest))
        };
        self.manifests.retain(|entry| !is_meant(entry));
        self.manifests.len() < before
    }
}

/// Source: OCI image-spec, image-index.md.
fn version() -> u64 {
    2
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(text: &str) -> Manifest {
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.index.v1+json",
            "manifests": [],
            "annotations": { "a": text },
        });
        Manifest::parse(manifest.to_string().into(), None).unwrap()
    }

    #[test]
    fn what_others_wrote_stays() {
        let digest = Digest::sha256(b"");
        let foreign = json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.index.v1+json",
            "manifests": [{ "digest": digest, "size": 0, "urls": ["u"], "platform": { "os": "linux", "variant": "v8" } }],
            "annotations": { "x": "y" },
        });
        let mut index: Index = serde_json::from_value(foreign.clone()).unwrap();
        index.set("acme/tool:v1", &manifest("1"));
        assert!(index.take(|name, _| name == "acme/tool:v1"));
        assert_eq!(serde_json::to_value(&index).unwrap(), foreign);
    }

    #[test]
    fn a_name_has_one_image() {
        let mut index = Index::read_or_empty(Path::new("/nowhere")).unwrap();
        let (one, two) = (manifest("1"), manifest("2"));
        index.set("acme/tool:v1", &one);
        index.set("acme/tool:v1", &two);
        index.set("tool:v1", &one);
        assert_eq!(index.named("acme/tool:v1").unwrap().digest, two.digest);
        assert_eq!(index.names().count(), 2);
        let called = |name| index.called(name).map(|it| &it.digest).collect::<Vec<_>>();
        assert_eq!(called(Some("tool:v1")), [&one.digest]);
        assert_eq!(called(Some("v1")), [&two.digest, &one.digest]);
        assert!(called(Some("ool:v1")).is_empty());
        assert_eq!(called(None).len(), 2);
        assert!(!index.take(|_, digest| *digest == Digest::sha256(b"")));
        assert!(index.take(|_, digest| *digest == one.digest));
        assert_eq!(index.names().collect::<Vec<_>>(), ["acme/tool:v1"]);
    }
}
