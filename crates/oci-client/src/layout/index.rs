//! The list of a layout's images. What others have written into it stays.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;

use model::Error;
use serde_json::value::{RawValue, to_raw_value};

use super::{failed, read};
use oci::{Descriptor, Digest, Manifest};

pub(super) const FILE: &str = "index.json";
const MANIFESTS: &str = "manifests";
/// Source: OCI image-spec, image-index.md.
const SCHEMA_VERSION: u64 = 2;
/// What the next list is written to.
const NEXT_FILE: &str = "index.json.next";
/// Units: bytes. Largest list: some hundred thousand images.
const LIMIT_BYTES: u64 = 64 << 20;
/// The annotation by which an entry is told from others.
const NAME: &str = "org.opencontainers.image.ref.name";

/// Such a list. What is not changed keeps its text.
#[derive(Debug, Clone, Default)]
pub(crate) struct Index {
    manifests: Vec<Entry>,
    others: BTreeMap<String, Box<RawValue>>,
}

/// An image of the list, with all that is said of it.
#[derive(Debug, Clone)]
struct Entry {
    descriptor: Descriptor,
    whole: Box<RawValue>,
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
        Self::parse(&bytes)
            .map_err(|e| Error::invalid("image layout", format!("{}: {e}", path.display())))
    }

    /// As [`Self::read`], of a folder that may have no list yet.
    pub(crate) fn read_or_empty(folder: &Path) -> Result<Self, Error> {
        match Self::read(folder) {
            Err(Error::NotFound { .. }) => Ok(Self::default()),
            read => read,
        }
    }

    fn parse(bytes: &[u8]) -> serde_json::Result<Self> {
        let mut others: BTreeMap<String, Box<RawValue>> = serde_json::from_slice(bytes)?;
        let listed = others.remove(MANIFESTS);
        let listed: Vec<Box<RawValue>> = match &listed {
            Some(listed) => serde_json::from_str(listed.get())?,
            None => Vec::new(),
        };
        let entry = |whole: Box<RawValue>| {
            let descriptor = serde_json::from_str(whole.get())?;
            Ok(Entry { descriptor, whole })
        };
        Ok(Self {
            manifests: listed
                .into_iter()
                .map(entry)
                .collect::<serde_json::Result<_>>()?,
            others,
        })
    }

    fn to_vec(&self) -> serde_json::Result<Vec<u8>> {
        let entries: Vec<_> = self.manifests.iter().map(|entry| &entry.whole).collect();
        let mut members: BTreeMap<&str, &RawValue> = BTreeMap::new();
        let (version, entries) = (to_raw_value(&SCHEMA_VERSION)?, to_raw_value(&entries)?);
        members.insert("schemaVersion", &version);
        members.extend(
            self.others
                .iter()
                .map(|(name, value)| (name.as_str(), &**value)),
        );
        members.insert(MANIFESTS, &entries);
        serde_json::to_vec(&members)
    }

    /// Takes the place of the list in the folder, whole or not at all.
    ///
    /// Blocking. Errors: Internal and Conflict – the disk does not take it.
    pub(super) fn write(&self, folder: &Path) -> Result<(), Error> {
        let next = folder.join(NEXT_FILE);
        let write = || -> io::Result<()> {
            let mut file = File::create(&next)?;
            file.write_all(&self.to_vec()?)?;
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
    ///
    /// Errors: none that a descriptor can have.
    pub(super) fn set(&mut self, name: &str, manifest: &Manifest) -> serde_json::Result<()> {
        let mut descriptor = manifest.descriptor();
        descriptor.annotations = Some([(NAME.to_owned(), name.to_owned())].into());
        let whole = to_raw_value(&descriptor)?;
        self.take(|own, _| own == name);
        self.manifests.push(Entry { descriptor, whole });
        Ok(())
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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

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
        let mut index = Index::parse(foreign.to_string().as_bytes()).unwrap();
        index.set("acme/tool:v1", &manifest("1")).unwrap();
        assert!(index.take(|name, _| name == "acme/tool:v1"));
        let written: Value = serde_json::from_slice(&index.to_vec().unwrap()).unwrap();
        assert_eq!(written, foreign);
    }

    #[test]
    fn a_name_has_one_image() {
        let mut index = Index::default();
        let (one, two) = (manifest("1"), manifest("2"));
        index.set("acme/tool:v1", &one).unwrap();
        index.set("acme/tool:v1", &two).unwrap();
        index.set("tool:v1", &one).unwrap();
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
