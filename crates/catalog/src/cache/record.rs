//! Rows of the tables in a cache: fixed width, little-endian.

/// Some bytes of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ByteRange {
    /// From the beginning of the file.
    pub(super) offset: u64,
    /// Units: bytes.
    pub(super) length: u64,
}

/// A text among the [`texts`](super::texts).
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

/// Something of fixed width.
pub(super) trait TableRow: Sized {
    /// Units: bytes.
    const WIDTH: usize;

    /// Reads it off `bytes`, which are at least so many.
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
        /// The frame of a `Bundle` and what the channel says of it; `common` completes it.
        own: ByteRange,
        /// What the bundle is in all channels, but for the text of its ClusterServiceVersion at the end.
        common: ByteRange,
        /// That text, which lies in `common`.
        csv: ByteRange,
        /// Framed `ChannelEntry`s: the entry itself, then one for each skip.
        provides: ByteRange,
        /// Of that: the entry itself.
        itself: u64,
        /// The same, with those skips only that are entries of the channel. Empty where it is not the head.
        latest: ByteRange,
    }

    /// What entries replace or skip; sorted by name.
    Replaced {
        name: TextRef,
        /// Of the list of entries, in their order.
        by: Rows,
    }

    /// An API that bundles provide; sorted by group, version and kind.
    Provided {
        group: TextRef,
        version: TextRef,
        kind: TextRef,
        /// Of the list of entries, in their order.
        by: Rows,
        /// The same, heads only.
        latest: Rows,
    }

    /// Documents of a schema that authors have made themselves; sorted by schema and package.
    Custom {
        schema: TextRef,
        package: TextRef,
        /// Framed `Struct`s.
        reply: ByteRange,
    }

    /// A document, in the order of the files.
    Line {
        schema: TextRef,
        package: TextRef,
        name: TextRef,
        file: TextRef,
        number: u64,
        /// Without its newline.
        json: ByteRange,
    }
}

impl ByteRange {
    /// Units: bytes.
    pub fn length(self) -> u64 {
        self.length
    }

    /// So many of its bytes, from `first` on; those that it has.
    #[must_use]
    pub fn part(self, first: u64, length: u64) -> Self {
        let first = first.min(self.length);
        Self {
            offset: self.offset.saturating_add(first),
            length: length.min(self.length - first),
        }
    }

    /// Where it ends; a damaged one may end behind everything.
    pub(super) fn end(self) -> u64 {
        self.offset.saturating_add(self.length)
    }

    /// Moved on by `base`.
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
    fn a_part_stays_inside() {
        let span = |offset, length| ByteRange { offset, length };
        let whole = span(100, 10);
        assert_eq!(whole.part(0, 10), whole);
        assert_eq!(whole.part(3, 4), span(103, 4));
        assert_eq!(whole.part(8, 40), span(108, 2));
        assert_eq!(whole.part(40, 4), span(110, 0));
    }

    #[test]
    fn rows_come_back_as_they_went() {
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
