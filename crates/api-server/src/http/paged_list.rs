//! Lists in JSON that are read from the database in pages while their client takes them: of the longest, too, one page
//! is in memory, and no connection waits for a client.

use std::collections::VecDeque;

use axum::body::{Body, Bytes};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use futures_util::stream;
use model::Error;
use serde::Serialize;
use service::server::StreamMemory;

use super::encoded_json::EncodedJson;
use super::error::ApiError;
use crate::db::{PAGE_BYTES, RecordPage};

/// Ids of the first page: more may be rows of megabytes, which are sent and dropped where they do not fit.
const FIRST_PAGE: usize = 8;
/// Ids of a page whose records are short.
const MAX_PAGE: usize = 1024;
/// Of a list that is not read: a page of records, and their text. Units: bytes.
const HELD_BYTES: usize = 2 * PAGE_BYTES;

struct PagedList<I, F> {
    ids: VecDeque<I>,
    read: F,
    /// Ids of the next page.
    next: usize,
    has_records: bool,
}

/// The array of the records of `ids`, which `read` reads from the first on. A list up to [`PAGE_BYTES`] is a response like
/// any other; a longer one ends early, with its connection, when its database fails.
///
/// Errors: those of `read` for these first bytes.
pub(super) async fn paged_list<I, T, F, R>(ids: Vec<I>, read: F) -> Result<Response, ApiError>
where
    I: Clone + Send + 'static,
    T: Serialize,
    F: FnMut(Vec<I>) -> R + Send + 'static,
    R: Future<Output = Result<RecordPage<T>, Error>> + Send,
{
    let mut list = PagedList {
        ids: ids.into(),
        read,
        next: FIRST_PAGE,
        has_records: false,
    };
    let mut text = vec![b'['];
    loop {
        list.print_page(&mut text).await?;
        if list.ids.is_empty() {
            return Ok(EncodedJson(text).into_response());
        }
        if text.len() >= PAGE_BYTES {
            break;
        }
    }
    let rest = stream::try_unfold(Some(list), async |list| {
        let Some(mut list) = list else {
            return Ok(None);
        };
        let mut text = Vec::new();
        list.print_page(&mut text).await.inspect_err(|error| {
            tracing::warn!(%error, "a list ends early");
        })?;
        let list = (!list.ids.is_empty()).then_some(list);
        Ok::<_, Error>(Some((Bytes::from(text), list)))
    });
    let first = stream::once(std::future::ready(Ok(Bytes::from(text))));
    let body = Body::from_stream(futures_util::StreamExt::chain(first, rest));
    let mut response = ([(CONTENT_TYPE, "application/json")], body).into_response();
    response.extensions_mut().insert(StreamMemory(HELD_BYTES));
    Ok(response)
}

impl<I, F> PagedList<I, F> {
    /// Appends the next page, and the end of the array after the last one.
    async fn print_page<T, R>(&mut self, text: &mut Vec<u8>) -> Result<(), Error>
    where
        I: Clone,
        T: Serialize,
        F: FnMut(Vec<I>) -> R,
        R: Future<Output = Result<RecordPage<T>, Error>>,
    {
        let asked: Vec<I> = self.ids.iter().take(self.next).cloned().collect();
        let count = asked.len();
        let page = (self.read)(asked).await?;
        self.ids.drain(..page.covered.min(self.ids.len()));
        // By the rows read, not by those shown: the caller may see none of them.
        self.next = match page.covered {
            covered if covered < count => covered.max(1),
            _ => (2 * count).clamp(1, MAX_PAGE),
        };
        for record in &page.records {
            if std::mem::replace(&mut self.has_records, true) {
                text.push(b',');
            }
            serde_json::to_writer(&mut *text, record)
                .map_err(|error| Error::internal("writing a list", error))?;
        }
        if self.ids.is_empty() {
            text.push(b']');
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use axum::body::{HttpBody as _, to_bytes};
    use axum::http::StatusCode;

    use super::*;

    /// A list of texts whose odd ones are not shown; a page covers four ids at most.
    async fn listed(count: usize, length: usize) -> (Response, Arc<Mutex<Vec<usize>>>) {
        let pages = Arc::new(Mutex::new(Vec::new()));
        let seen = pages.clone();
        let read = move |ids: Vec<usize>| {
            seen.lock().unwrap().push(ids.len());
            let covered = ids.len().min(4);
            let shown = ids.into_iter().take(4).filter(|id| id % 2 == 0);
            let records = shown.map(|id| format!("{id:length$}")).collect();
            std::future::ready(Ok(RecordPage { records, covered }))
        };
        let response = paged_list((0..count).collect(), read).await.unwrap();
        (response, pages)
    }

    #[tokio::test]
    async fn lists_are_whole_whatever_their_pages() {
        for count in [0, 1, 2, 4, 5, 8, 9, 100] {
            for length in [1, PAGE_BYTES / 16] {
                let (response, pages) = listed(count, length).await;
                assert_eq!(response.status(), StatusCode::OK);
                assert_eq!(response.headers()[CONTENT_TYPE], "application/json");
                let is_whole = response.body().size_hint().exact().is_some();
                assert_eq!(is_whole, length == 1 || count <= 32, "{count} of {length}");
                if !is_whole {
                    assert_eq!(pages.lock().unwrap().len(), 8, "the rest waits");
                }
                let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
                let list: Vec<String> = serde_json::from_slice(&body).unwrap();
                let numbers = list
                    .iter()
                    .map(|text| text.trim().parse::<usize>().unwrap());
                assert!(numbers.eq((0..count).step_by(2)), "{count}");
                // A full page is followed by one of as many ids, or by one that tries for more.
                assert!(pages.lock().unwrap().iter().all(|ids| *ids <= 8));
            }
        }
    }

    /// A list of texts of that length, whose database fails at the third page.
    async fn failing(length: usize) -> Result<Response, ApiError> {
        let mut pages = 0;
        let read = move |_: Vec<u32>| {
            pages += 1;
            let failed = Error::Unavailable {
                what: "the database",
                source: None,
            };
            let page = RecordPage {
                records: vec!["x".repeat(length)],
                covered: 1,
            };
            std::future::ready(if pages < 3 { Ok(page) } else { Err(failed) })
        };
        paged_list((0..9).collect(), read).await
    }

    #[tokio::test]
    async fn a_list_whose_database_fails_ends_with_an_error() {
        assert!(failing(1).await.is_err(), "nothing was sent");
        let begun = failing(PAGE_BYTES).await.unwrap();
        assert!(to_bytes(begun.into_body(), usize::MAX).await.is_err());
    }
}
