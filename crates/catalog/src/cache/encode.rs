//! Replies about one package, as they will be sent.

use std::collections::{BTreeMap, HashMap};

use prost::Message;

use super::custom;
use super::record::Span;
use crate::api::{self, GroupVersionKind};
use crate::content::{Bundle, Channel, Package};
use crate::schema::{Entry, Gvk, is_core};
use crate::{Document, Problems};

/// Units: bytes. What stands before each message on the wire: whether it is compressed, and its length.
pub(super) const FRAME: usize = 5;

/// A group of documents, encoded. Places are from the beginning of `bytes`.
#[derive(Debug, Default)]
pub(super) struct Encoded {
    pub(super) bytes: Vec<u8>,
    pub(super) package: Option<EncodedPackage>,
    /// Messages of each schema, in the order of the files.
    pub(super) customs: Vec<(String, Span)>,
}

#[derive(Debug)]
pub(super) struct EncodedPackage {
    pub(super) name: String,
    pub(super) default_channel: String,
    pub(super) reply: Span,
    pub(super) channels: Vec<EncodedChannel>,
    /// By the number of the bundle, without repetitions.
    pub(super) provided: Vec<Vec<[String; 3]>>,
}

#[derive(Debug)]
pub(super) struct EncodedChannel {
    pub(super) name: String,
    pub(super) head: usize,
    pub(super) entries: Vec<EncodedEntry>,
}

#[derive(Debug)]
pub(super) struct EncodedEntry {
    pub(super) name: String,
    pub(super) replaces: String,
    pub(super) skips: Vec<String>,
    /// The number of the bundle.
    pub(super) bundle: usize,
    pub(super) own: Span,
    pub(super) common: Span,
    /// What it takes in lists: what the channel says of it, and what of `common` is listed.
    pub(super) listed: [Span; 2],
    pub(super) provides: Span,
    pub(super) itself: u64,
    pub(super) latest: Span,
}

/// Where a bundle lies.
#[derive(Clone, Copy)]
struct Common {
    whole: Span,
    /// Without what it installs, where clients can pull that.
    listed: Span,
}

impl Encoded {
    /// Checks and encodes the documents of one group.
    ///
    /// Errors: everything that is wrong with them.
    pub(super) fn new(documents: &[Document]) -> Result<Self, Problems> {
        let package = Package::assemble(documents)?;
        let mut encoded = Self::default();
        encoded.package = package.map(|package| encoded.package(&package));
        encoded.customs(documents);
        Ok(encoded)
    }

    fn package(&mut self, package: &Package<'_>) -> EncodedPackage {
        let reply = self.framed(&reply(package));
        let commons: Vec<_> = package
            .bundles
            .iter()
            .map(|bundle| self.common(bundle, package))
            .collect();
        let numbers: HashMap<&str, usize> = package
            .bundles
            .iter()
            .enumerate()
            .map(|(number, bundle)| (bundle.name, number))
            .collect();
        let mut channels = Vec::with_capacity(package.channels.len());
        for channel in &package.channels {
            let mut entries = Vec::with_capacity(channel.entries.len());
            for entry in &channel.entries {
                let number = numbers[&*entry.name];
                entries.push(self.entry(package.name, channel, entry, (number, commons[number])));
            }
            let head = &channel.head().name;
            channels.push(EncodedChannel {
                name: channel.name.to_owned(),
                head: entries
                    .iter()
                    .position(|entry| entry.name == **head)
                    .unwrap_or_default(),
                entries,
            });
        }
        EncodedPackage {
            name: package.name.to_owned(),
            default_channel: package.default_channel.to_string(),
            reply,
            channels,
            provided: package.bundles.iter().map(provided).collect(),
        }
    }

    /// What a bundle is, whatever the channel: first what it installs, then what lists have of it, too.
    fn common(&mut self, bundle: &Bundle<'_>, package: &Package<'_>) -> Common {
        let contents = bundle.contents(package);
        let installed = self.add(&api::Bundle {
            csv_json: contents.csv_json().to_owned(),
            object: contents.objects().to_vec(),
            ..api::Bundle::default()
        });
        drop(contents);
        let described = self.add(&described(bundle, package.name));
        let whole = Span {
            length: installed.length + described.length,
            ..installed
        };
        let listed = if bundle.image.is_empty() {
            whole
        } else {
            described
        };
        Common { whole, listed }
    }

    fn entry(
        &mut self,
        package: &str,
        channel: &Channel<'_>,
        entry: &Entry<'_>,
        (number, common): (usize, Common),
    ) -> EncodedEntry {
        let placed = api::Bundle {
            channel_name: channel.name.to_owned(),
            skip_range: entry.skip_range.to_string(),
            ..api::Bundle::default()
        };
        let skips: Vec<String> = entry.skips.iter().map(ToString::to_string).collect();
        let followed = api::Bundle {
            replaces: entry.replaces.to_string(),
            skips: skips.clone(),
            ..api::Bundle::default()
        };
        let length = placed.encoded_len() + span_length(common.whole);
        let frame = self.add_bytes(&frame(length));
        let placed = self.add(&placed);
        let own = frame.with(placed);
        let followed = self.add(&followed);
        let listed = [placed.with(followed), common.listed];

        let link = |replaces: &str| api::ChannelEntry {
            package_name: package.to_owned(),
            channel_name: channel.name.to_owned(),
            bundle_name: entry.name.to_string(),
            replaces: replaces.to_owned(),
        };
        let itself = self.framed(&link(&entry.replaces));
        let others = || skips.iter().filter(|skip| **skip != *entry.replaces);
        let provides = others().fold(itself, |all, skip| all.with(self.framed(&link(skip))));
        let mut latest = Span::default();
        if channel.head().name == entry.name {
            latest = self.framed(&link(&entry.replaces));
            for skip in others().filter(|skip| channel.entry(skip).is_some()) {
                latest = latest.with(self.framed(&link(skip)));
            }
        }
        EncodedEntry {
            name: entry.name.to_string(),
            replaces: entry.replaces.to_string(),
            skips,
            bundle: number,
            own,
            common: common.whole,
            listed,
            provides,
            itself: itself.length,
            latest,
        }
    }

    fn customs(&mut self, documents: &[Document]) {
        let mut customs: BTreeMap<&str, Vec<&Document>> = BTreeMap::new();
        for document in documents
            .iter()
            .filter(|document| !is_core(&document.schema))
        {
            customs.entry(&document.schema).or_default().push(document);
        }
        for (schema, documents) in customs {
            let mut all = self.add_bytes(&[]);
            for document in documents {
                let message = custom::encode(&document.json);
                let frame = self.add_bytes(&frame(message.len()));
                all = all.with(frame.with(self.add_bytes(&message)));
            }
            self.customs.push((schema.to_owned(), all));
        }
    }

    fn framed(&mut self, message: &impl Message) -> Span {
        let frame = self.add_bytes(&frame(message.encoded_len()));
        frame.with(self.add(message))
    }

    fn add(&mut self, message: &impl Message) -> Span {
        let offset = self.bytes.len() as u64;
        message.encode(&mut self.bytes).expect("a vector grows");
        let length = self.bytes.len() as u64 - offset;
        Span { offset, length }
    }

    fn add_bytes(&mut self, bytes: &[u8]) -> Span {
        let offset = self.bytes.len() as u64;
        self.bytes.extend_from_slice(bytes);
        let length = bytes.len() as u64;
        Span { offset, length }
    }
}

impl Span {
    /// Both, where `next` begins where this one ends.
    fn with(self, next: Self) -> Self {
        Self {
            length: self.length + next.length,
            ..self
        }
    }
}

/// What stands before a message of `length` that is not compressed.
pub(super) fn frame(length: usize) -> [u8; FRAME] {
    // No message of 4 GiB can be made: its document would be longer than any that is read.
    let length = u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes();
    [0, length[0], length[1], length[2], length[3]]
}

fn span_length(span: Span) -> usize {
    usize::try_from(span.length).unwrap_or(usize::MAX)
}

fn reply(package: &Package<'_>) -> api::Package {
    let channels = package.channels.iter().map(|channel| api::Channel {
        name: channel.name.to_owned(),
        csv_name: channel.head().name.to_string(),
        deprecation: deprecation(channel.deprecation.as_deref()),
    });
    api::Package {
        name: package.name.to_owned(),
        channels: channels.collect(),
        default_channel_name: package.default_channel.to_string(),
        deprecation: deprecation(package.deprecation.as_deref()),
    }
}

fn described(bundle: &Bundle<'_>, package: &str) -> api::Bundle {
    let dependencies = bundle.dependencies.iter().map(|one| api::Dependency {
        r#type: one.kind.to_owned(),
        value: one.value.to_string(),
    });
    let properties = bundle.served_properties().map(|one| api::Property {
        r#type: one.kind.to_string(),
        value: one.value().to_owned(),
    });
    api::Bundle {
        csv_name: bundle.name.to_owned(),
        package_name: package.to_owned(),
        bundle_path: bundle.image.to_string(),
        provided_apis: bundle.provided_apis.iter().map(api).collect(),
        required_apis: bundle.required_apis.iter().map(api).collect(),
        version: bundle.version_text.to_string(),
        dependencies: dependencies.collect(),
        properties: properties.collect(),
        deprecation: deprecation(bundle.deprecation.as_deref()),
        ..api::Bundle::default()
    }
}

fn api(gvk: &Gvk<'_>) -> GroupVersionKind {
    GroupVersionKind {
        group: gvk.group.to_string(),
        version: gvk.version.to_string(),
        kind: gvk.kind.to_string(),
        plural: String::new(),
    }
}

fn provided(bundle: &Bundle<'_>) -> Vec<[String; 3]> {
    let apis = bundle.provided_apis.iter();
    let mut apis: Vec<_> = apis
        .map(|gvk| [&gvk.group, &gvk.version, &gvk.kind].map(ToString::to_string))
        .collect();
    apis.sort_unstable();
    apis.dedup();
    apis
}

fn deprecation(message: Option<&str>) -> Option<api::Deprecation> {
    let message = message?.to_owned();
    Some(api::Deprecation { message })
}
