//! Pages of records: as many rows as a bounded number of bytes holds.

use futures_util::{Stream, TryStreamExt as _};

use super::Error;

/// Texts of a page's rows; the last row may exceed it. Units: bytes.
pub(crate) const PAGE_BYTES: usize = 512 << 10;

/// Records of a page, in the order in which they were asked for.
#[derive(Debug)]
pub(crate) struct RecordPage<T> {
    /// Without those that are deleted by now.
    pub(crate) records: Vec<T>,
    /// Number of the ids, from the first on, that the page covers.
    pub(crate) covered: usize,
}

/// A row of a page.
pub(super) trait PagedRow {
    type Id: PartialEq;

    fn id(&self) -> Self::Id;

    /// Length of its texts. Units: bytes.
    fn length(&self) -> usize;
}

/// Reads the `rows` of `ids`, which are in the same order, until they fill a page. The rest of the answer is dropped row by
/// row when the connection is used next: ask for about as many as fit.
pub(super) async fn read<R: PagedRow, T>(
    rows: impl Stream<Item = Result<R, sqlx::Error>>,
    ids: &[R::Id],
    mut open: impl FnMut(R) -> Result<T, Error>,
) -> Result<RecordPage<T>, Error> {
    let mut rows = std::pin::pin!(rows);
    let (mut records, mut length) = (Vec::new(), 0);
    while let Some(row) = rows.try_next().await? {
        let id = row.id();
        length += row.length();
        records.push(open(row)?);
        if length >= PAGE_BYTES {
            let last = ids.iter().position(|asked| *asked == id);
            let covered = last.map_or(ids.len(), |last| last + 1);
            return Ok(RecordPage { records, covered });
        }
    }
    let covered = ids.len();
    Ok(RecordPage { records, covered })
}

impl<T> RecordPage<T> {
    /// The page with other records.
    pub(crate) fn with<U>(self, records: impl FnOnce(Vec<T>) -> Vec<U>) -> RecordPage<U> {
        RecordPage {
            records: records(self.records),
            covered: self.covered,
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::stream;

    use super::*;

    #[derive(Clone)]
    struct Row(i64, usize);

    impl PagedRow for Row {
        type Id = i64;

        fn id(&self) -> i64 {
            self.0
        }

        fn length(&self) -> usize {
            self.1
        }
    }

    async fn page(rows: &[Row], last_id: i64) -> (Vec<i64>, usize) {
        let rows = stream::iter(rows.iter().cloned().map(Ok));
        let ids: Vec<i64> = (1..=last_id).collect();
        let page = read(rows, &ids, |row| Ok(row.0)).await.unwrap();
        (page.records, page.covered)
    }

    #[tokio::test]
    async fn a_page_ends_at_its_bytes_or_with_the_ids() {
        let half = PAGE_BYTES / 2;
        assert_eq!(page(&[], 0).await, (vec![], 0));
        assert_eq!(
            page(&[Row(1, half), Row(3, half - 1)], 4).await,
            (vec![1, 3], 4)
        );
        let long = [Row(2, half), Row(3, half), Row(4, 1)];
        assert_eq!(page(&long, 4).await, (vec![2, 3], 3));
        assert_eq!(page(&[Row(1, 3 * half), Row(2, 1)], 2).await, (vec![1], 1));
    }
}
