//! Table rows of a cache: fixed width, little-endian.

/// A byte range of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ByteRange {
    /// From the start of the file. Units: bytes.
    pub(super) offset: u64,
    /// Units: bytes.
    pub(super) length: u64,
}

/// A string in the [string table](super::string_table).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) struct TextRef {
    pub(super) offset: u32,
    pub(super) length: u32,
}

/// Consecutive rows of another table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Rows {
    pub(super) first: u32,
    pub(super) count: u32,
}

/// A record of fixed width.
pub(super) trait TableRow: Sized {
    /// Units: bytes.
    const WIDTH: usize;

    /// Reads the row off the front of `bytes`, which has at least `WIDTH`.
    fn take(bytes: &mut &[u8]) -> Self;
    fn put(&self, to: &mut Vec<u8>);
}

macro_rules! numbers {
    ($($number:ty),*) => {
        $(impl TableRow for $number {
            const WIDTH: usize = size_of::<$number>();

            fn take(bytes: &mut &[u8]) -> Self {
                let (own, rest) = bytes.split_at(Self::WIDTH);
                *bytes = rest;
                Self::from_le_bytes(own.try_into().expect("it was split off at this width"))
            }

            fn put(&self, to: &mut Vec<u8>) {
                to.extend_from_slice(&self.to_le_bytes());
            }
        })*
    };
}

numbers!(u32, u64);

macro_rules! rows {
    ($($(#[doc = $doc:literal])* $name:ident { $($(#[doc = $about:literal])* $field:ident: $kind:ty,)* })*) => {
        $(
            $(#[doc = $doc])*
            #[derive(Debug, Clone, Copy, PartialEq, Eq)]
            pub(super) struct $name {
                $($(#[doc = $about])* pub(super) $field: $kind,)*
            }
        )*
        $(fields!($name { $($field: $kind,)* });)*
    };
}

macro_rules! fields {
    ($name:ident { $($field:ident: $kind:ty,)* }) => {
        impl TableRow for $name {
            const WIDTH: usize = 0 $(+ <$kind as TableRow>::WIDTH)*;

            fn take(bytes: &mut &[u8]) -> Self {
                Self { $($field: TableRow::take(bytes),)* }
            }

            fn put(&self, to: &mut Vec<u8>) {
                $(self.$field.put(to);)*
            }
        }
    };
}

fields!(ByteRange {
    offset: u64,
    length: u64,
});
fields!(TextRef {
    offset: u32,
    length: u32,
});
fields!(Rows {
    first: u32,
    count: u32,
});

rows! {
    /// A package; sorted by name.
    Package {
        name: TextRef,
        channels: Rows,
        default_channel: TextRef,
        /// The framed `Package`.
        reply: ByteRange,
    }

    /// A channel; those of a package sorted by name.
    Channel {
        name: TextRef,
        package: u32,
        entries: Rows,
        /// A row of the entries.
        head: u32,
    }

    /// A bundle in a channel; those of a channel sorted by name.
    Entry {
        bundle: TextRef,
        channel: u32,
        /// Frame header and channel fields of a `Bundle`; `common` completes it.
        own: ByteRange,
        /// Channel-independent fields, without the content of `csvJson` at the end.
        common: ByteRange,
        /// Content of `csvJson`, a range inside `common`.
        csv: ByteRange,
        /// Framed `ChannelEntry`s: the entry itself, then one for each skip.
        provides: ByteRange,
        /// Length of the first of these, the entry itself. Units: bytes.
        itself: u64,
        /// The same, with skips that are entries of the channel only. Empty unless the entry is the head.
        latest: ByteRange,
    }

    /// A replaced or skipped name; sorted by name.
    Replaced {
        name: TextRef,
        /// Range of the list of entries, ordered.
        by: Rows,
    }

    /// An API that bundles provide; sorted by group, version and kind.
    Provided {
        group: TextRef,
        version: TextRef,
        kind: TextRef,
        /// Range of the list of entries, ordered.
        by: Rows,
        /// The same, channel heads only.
        latest: Rows,
    }

    /// Custom documents; sorted by schema and package.
    Custom {
        schema: TextRef,
        package: TextRef,
        /// Framed `Struct`s.
        reply: ByteRange,
    }

    /// A document, in walk order.
    Line {
        schema: TextRef,
        package: TextRef,
        name: TextRef,
        file: TextRef,
        number: u64,
        /// The JSON without its newline.
        json: ByteRange,
    }
}

impl ByteRange {
    /// Units: bytes.
    pub fn length(self) -> u64 {
        self.length
    }

    /// The sub-range of `length` bytes from `first`, clipped.
    #[must_use]
    pub fn part(self, first: u64, length: u64) -> Self {
        let first = first.min(self.length);
        Self {
            offset: self.offset.saturating_add(first),
            length: length.min(self.length - first),
        }
    }

    /// End offset; beyond the file in damaged rows.
    pub(super) fn end(self) -> u64 {
        self.offset.saturating_add(self.length)
    }

    /// Shifted by `base`.
    pub(super) fn behind(self, base: u64) -> Self {
        Self {
            offset: self.offset + base,
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sub_ranges_are_clipped() {
        let span = |offset, length| ByteRange { offset, length };
        let whole = span(100, 10);
        assert_eq!(whole.part(0, 10), whole);
        assert_eq!(whole.part(3, 4), span(103, 4));
        assert_eq!(whole.part(8, 40), span(108, 2));
        assert_eq!(whole.part(40, 4), span(110, 0));
    }

    #[test]
    fn rows_round_trip() {
        let text = |offset| TextRef { offset, length: 9 };
        let line = Line {
            schema: text(1),
            package: text(2),
            name: text(3),
            file: text(4),
            number: 5,
            json: ByteRange {
                offset: 1 << 40,
                length: 7,
            },
        };
        let mut bytes = Vec::new();
        line.put(&mut bytes);
        assert_eq!(bytes.len(), Line::WIDTH);
        let mut rest = &bytes[..];
        assert_eq!(Line::take(&mut rest), line);
        assert!(rest.is_empty());
    }
}
