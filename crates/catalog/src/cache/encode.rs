//! Encodes the replies of one package in wire format.

use std::collections::HashMap;

use prost::Message;
use prost::encoding::{WireType, encode_key, encode_varint};

use super::record::ByteRange;
use crate::api::{self, GroupVersionKind};
use crate::content::{Bundle, ChannelModel, Contents, CsvLocation, PackageModel};
use crate::schema::{ChannelEntry, Gvk};

/// gRPC frame header: compression flag and length. Units: bytes.
pub(super) const FRAME: usize = 5;
/// Fields of `Bundle` with its manifests. Source: `proto/registry.proto`.
const CSV_JSON: u32 = 4;
const OBJECT: u32 = 5;

/// Buffered bytes for the file. Ranges are relative to `base`.
#[derive(Debug, Default)]
pub(super) struct EncodeBuffer {
    pub(super) bytes: Vec<u8>,
    base: u64,
}

#[derive(Debug)]
pub(super) struct EncodedPackage {
    pub(super) name: String,
    pub(super) default_channel: String,
    pub(super) reply: ByteRange,
    pub(super) channels: Vec<EncodedChannel>,
    /// Provided APIs by bundle index, deduplicated.
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
    /// Index of the bundle.
    pub(super) bundle: usize,
    pub(super) own: ByteRange,
    pub(super) common: [ByteRange; 2],
    /// Parts for `ListBundles`: the channel's fields and the listed parts of `common`.
    pub(super) listed: [ByteRange; 3],
    pub(super) provides: ByteRange,
    pub(super) itself: u64,
    pub(super) latest: ByteRange,
}

/// Ranges of the channel-independent parts of a bundle.
#[derive(Debug, Clone, Copy)]
pub(super) struct CommonRanges {
    /// Full bundle. The CSV is sent twice and stored once: the second range is inside the first.
    whole: [ByteRange; 2],
    /// Bundle for lists: without its manifests when clients can pull them. Source: operator-registry,
    /// `pkg/cache/pkgs.go`.
    listed: [ByteRange; 2],
}

impl CommonRanges {
    pub(super) fn behind(self, base: u64) -> Self {
        Self {
            whole: self.whole.map(|span| span.behind(base)),
            listed: self.listed.map(|span| span.behind(base)),
        }
    }
}

impl EncodeBuffer {
    /// A buffer whose first byte goes to `base`.
    pub(super) fn at(base: u64) -> Self {
        let bytes = Vec::new();
        Self { bytes, base }
    }

    /// Appends the replies of a package; `commons` has the ranges of its bundles.
    pub(super) fn package(
        &mut self,
        package: &PackageModel<'_>,
        commons: &HashMap<String, CommonRanges>,
    ) -> EncodedPackage {
        let reply = self.framed(&reply(package).encode_to_vec());
        let mut channels = Vec::with_capacity(package.channels.len());
        for channel in &package.channels {
            let mut entries = Vec::with_capacity(channel.entries.len());
            for entry in &channel.entries {
                entries.push(self.entry(package, channel, entry, commons[&*entry.name]));
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

    /// Appends the channel-independent parts of a bundle: the listed fields, then its manifests.
    pub(super) fn common(&mut self, bundle: &Bundle<'_>, contents: &Contents) -> CommonRanges {
        let texts = contents.objects.iter().map(String::len).sum::<usize>();
        self.bytes.reserve(texts);
        let described = self.add(&described(bundle));
        let mut whole = described;
        let mut again = ByteRange::default();
        for (index, object) in contents.objects.iter().enumerate() {
            let (field, text) = self.text(OBJECT, object);
            whole = whole.with(field);
            if contents.csv == CsvLocation::Object(index) {
                again = text;
            }
        }
        match &contents.csv {
            CsvLocation::Nowhere => {}
            CsvLocation::Object(_) => whole = whole.with(self.field(CSV_JSON, again.length())),
            CsvLocation::Beside(csv) => whole = whole.with(self.text(CSV_JSON, csv).0),
        }
        let whole = [whole, again];
        let listed = if bundle.image.is_empty() {
            whole
        } else {
            [described, ByteRange::default()]
        };
        CommonRanges { whole, listed }
    }

    fn entry(
        &mut self,
        package: &PackageModel<'_>,
        channel: &ChannelModel<'_>,
        entry: &ChannelEntry<'_>,
        common: CommonRanges,
    ) -> EncodedEntry {
        let bundle = package
            .bundles
            .binary_search_by(|bundle| bundle.name.cmp(&entry.name));
        let bundle = bundle.unwrap_or_default();
        let deprecation_of = |bundle: &Bundle<'_>| deprecation(bundle.deprecation.as_deref());
        let placed = api::Bundle {
            channel_name: channel.name.to_owned(),
            skip_range: entry.skip_range.to_string(),
            deprecation: package.bundles.get(bundle).and_then(deprecation_of),
            ..api::Bundle::default()
        };
        let skips: Vec<String> = entry.skips.iter().map(ToString::to_string).collect();
        let followed = api::Bundle {
            replaces: entry.replaces.to_string(),
            skips: skips.clone(),
            ..api::Bundle::default()
        };
        let [whole, again] = common.whole;
        let length = placed.encoded_len() as u64 + whole.length() + again.length();
        let frame = self.add_bytes(&frame(length));
        let placed = self.add(&placed);
        let own = frame.with(placed);
        let followed = self.add(&followed);
        let [described, installed] = common.listed;
        let listed = [placed.with(followed), described, installed];

        let link = |replaces: &str| {
            let link = api::ChannelEntry {
                package_name: package.name.to_owned(),
                channel_name: channel.name.to_owned(),
                bundle_name: entry.name.to_string(),
                replaces: replaces.to_owned(),
            };
            link.encode_to_vec()
        };
        let itself = self.framed(&link(&entry.replaces));
        let others = || skips.iter().filter(|skip| **skip != *entry.replaces);
        let provides = others().fold(itself, |all, skip| all.with(self.framed(&link(skip))));
        let mut latest = ByteRange::default();
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
            bundle,
            own,
            common: common.whole,
            listed,
            provides,
            itself: itself.length,
            latest,
        }
    }

    /// Appends a message with its frame.
    pub(super) fn framed(&mut self, message: &[u8]) -> ByteRange {
        let frame = self.add_bytes(&frame(message.len() as u64));
        frame.with(self.add_bytes(message))
    }

    fn add(&mut self, message: &impl Message) -> ByteRange {
        self.add_by(|out| message.encode(out).expect("a vector grows"))
    }

    fn add_bytes(&mut self, bytes: &[u8]) -> ByteRange {
        self.add_by(|out| out.extend_from_slice(bytes))
    }

    /// Appends a string field; returns the ranges of the field and of its content.
    fn text(&mut self, number: u32, text: &str) -> (ByteRange, ByteRange) {
        let begun = self.field(number, text.len() as u64);
        let text = self.add_bytes(text.as_bytes());
        (begun.with(text), text)
    }

    /// Appends the tag and length of a string field.
    fn field(&mut self, number: u32, length: u64) -> ByteRange {
        self.add_by(|out| {
            encode_key(number, WireType::LengthDelimited, out);
            encode_varint(length, out);
        })
    }

    fn add_by(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> ByteRange {
        let before = self.bytes.len() as u64;
        write(&mut self.bytes);
        ByteRange {
            offset: self.base + before,
            length: self.bytes.len() as u64 - before,
        }
    }
}

impl ByteRange {
    /// Joins two adjacent ranges.
    pub(super) fn with(self, next: Self) -> Self {
        Self {
            length: self.length + next.length,
            ..self
        }
    }
}

/// Frame header of an uncompressed message.
pub(super) fn frame(length: u64) -> [u8; FRAME] {
    // Messages stay below 4 GiB: documents are limited when they are read.
    let length = u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes();
    [0, length[0], length[1], length[2], length[3]]
}

fn reply(package: &PackageModel<'_>) -> api::Package {
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

fn described(bundle: &Bundle<'_>) -> api::Bundle {
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
        package_name: bundle.package.to_owned(),
        bundle_path: bundle.image.to_string(),
        provided_apis: bundle.provided_apis.iter().map(api).collect(),
        required_apis: bundle.required_apis.iter().map(api).collect(),
        version: bundle.version_text.to_string(),
        dependencies: dependencies.collect(),
        properties: properties.collect(),
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
