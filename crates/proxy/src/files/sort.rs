//! Order of a listing, as its query names it.

use std::cmp::Ordering;

use super::folder::FolderEntry;

/// Column that a listing is sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SortBy {
    Name,
    Size,
    Time,
}

/// Order of the folders, and of the files after them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SortOrder {
    pub(super) by: SortBy,
    pub(super) is_descending: bool,
}

impl SortBy {
    /// Its text in a query.
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Size => "size",
            Self::Time => "time",
        }
    }
}

impl SortOrder {
    /// The order of `sort=name|size|time&order=asc|desc`; anything else is ignored.
    pub(super) fn parse(query: Option<&str>) -> Self {
        let mut order = Self {
            by: SortBy::Name,
            is_descending: false,
        };
        for pair in query.unwrap_or_default().split('&') {
            match pair {
                "sort=name" => order.by = SortBy::Name,
                "sort=size" => order.by = SortBy::Size,
                "sort=time" => order.by = SortBy::Time,
                "order=asc" => order.is_descending = false,
                "order=desc" => order.is_descending = true,
                _ => {}
            }
        }
        order
    }

    /// Compares two names and their entries; equal sizes and times by the names.
    pub(super) fn compare(
        self,
        (name, entry): (&[u8], &FolderEntry),
        (other_name, other): (&[u8], &FolderEntry),
    ) -> Ordering {
        let order = match self.by {
            SortBy::Name => Ordering::Equal,
            SortBy::Size => entry.size.cmp(&other.size),
            SortBy::Time => entry.modified.cmp(&other.modified),
        };
        let order = order.then_with(|| name.cmp(other_name));
        if self.is_descending {
            order.reverse()
        } else {
            order
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_name_the_order() {
        for (query, by, is_descending) in [
            (None, SortBy::Name, false),
            (Some("sort=size&order=desc"), SortBy::Size, true),
            (Some("order=asc&sort=time"), SortBy::Time, false),
            (Some("sort=other&x&order="), SortBy::Name, false),
        ] {
            let expected = SortOrder { by, is_descending };
            assert_eq!(SortOrder::parse(query), expected, "{query:?}");
        }
    }
}
