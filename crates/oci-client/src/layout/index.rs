//! The index of a layout. Members and entries of other tools stay.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;

use model::Error;
use serde_json::value::{RawValue, to_raw_value};

use super::files::{failed, read};
use oci::{Descriptor, Digest, Manifest};

pub(super) const FILE: &str = "index.json";
const MANIFESTS: &str = "manifests";
/// Source: OCI image-spec, image-index.md.
const SCHEMA_VERSION: u64 = 2;
/// Temporary name of the next index.
const NEXT_FILE: &str = "index.json.next";
/// Largest index: some hundred thousand images. Units: bytes.
const LIMIT_BYTES: u64 = 64 << 20;
/// The annotation with the name of an entry.
const NAME: &str = "org.opencontainers.image.ref.name";

/// The parsed index. Unchanged members keep their text.
#[derive(Debug, Clone, Default)]
pub(crate) struct Index {
    manifests: Vec<Entry>,
    others: BTreeMap<String, Box<RawValue>>,
}

/// An entry, with the members that are not parsed.
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
    /// Reads the index of the folder.
    ///
    /// Blocking. Errors: NotFound – no such folder; Invalid – not an index.
    pub(crate) fn read(folder: &Path) -> Result<Self, Error> {
        let path = folder.join(FILE);
        let bytes = read(&path, LIMIT_BYTES)?;
        Self::parse(&bytes)
            .map_err(|e| Error::invalid("image layout", format!("{}: {e}", path.display())))
    }

    /// As [`Self::read`]; empty for a folder without an index.
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

    /// Replaces the index of the folder atomically.
    ///
    /// Blocking. Errors: Internal and Conflict – the disk refuses it.
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

    /// Images whose name is `name` or ends with it: some tools write the whole reference, others the tag alone. All,
    /// without a name.
    pub(crate) fn matching(&self, name: Option<&str>) -> impl Iterator<Item = &Descriptor> {
        let is_exact = name.is_some_and(|name| self.named(name).is_some());
        let is_matching = move |entry: &&Entry| {
            let Some(name) = name else { return true };
            let own = entry.name().unwrap_or_default();
            let before = own.strip_suffix(name);
            before.is_some_and(|it| it.is_empty() || (!is_exact && it.ends_with([':', '/'])))
        };
        let matching = self.manifests.iter().filter(is_matching);
        matching.map(|entry| &entry.descriptor)
    }

    /// The image with exactly that name.
    pub(crate) fn named(&self, name: &str) -> Option<&Descriptor> {
        let mut entries = self.manifests.iter();
        let found = entries.find(|entry| entry.name() == Some(name));
        found.map(|entry| &entry.descriptor)
    }

    /// The names of all named images.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.manifests.iter().filter_map(Entry::name)
    }

    /// Names `manifest`; another image loses the name.
    ///
    /// Errors: none that a descriptor can have.
    pub(super) fn set(&mut self, name: &str, manifest: &Manifest) -> serde_json::Result<()> {
        let mut descriptor = manifest.descriptor();
        descriptor.annotations = Some([(NAME.to_owned(), name.to_owned())].into());
        let whole = to_raw_value(&descriptor)?;
        self.remove(|own, _| own == name);
        self.manifests.push(Entry { descriptor, whole });
        Ok(())
    }

    /// Removes the entries that `is_selected` accepts, by name and digest; whether there were any.
    pub(super) fn remove(&mut self, is_selected: impl Fn(&str, &Digest) -> bool) -> bool {
        let before = self.manifests.len();
        self.manifests.retain(|entry| {
            let name = entry.name();
            !name.is_some_and(|name| is_selected(name, &entry.descriptor.digest))
        });
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
        assert!(index.remove(|name, _| name == "acme/tool:v1"));
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
        let matching = |name| {
            index
                .matching(name)
                .map(|it| &it.digest)
                .collect::<Vec<_>>()
        };
        assert_eq!(matching(Some("tool:v1")), [&one.digest]);
        assert_eq!(matching(Some("v1")), [&two.digest, &one.digest]);
        assert!(matching(Some("ool:v1")).is_empty());
        assert_eq!(matching(None).len(), 2);
        assert!(!index.remove(|_, digest| *digest == Digest::sha256(b"")));
        assert!(index.remove(|_, digest| *digest == one.digest));
        assert_eq!(index.names().collect::<Vec<_>>(), ["acme/tool:v1"]);
    }
}
