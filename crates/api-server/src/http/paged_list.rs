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

/// Ids of the first page.
const FIRST_PAGE: usize = 32;
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

/// The array of the records of `ids`, which `read` reads from the first on. A list of one page is a response like any other;
/// a longer one ends early, with its connection, when its database fails.
///
/// Errors: those of `read` for the first page.
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
    list.print_page(&mut text).await?;
    if list.ids.is_empty() {
        return Ok(EncodedJson(text).into_response());
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
        let page = (self.read)(asked).await?;
        self.ids.drain(..page.covered.min(self.ids.len()));
        let before = text.len();
        for record in &page.records {
            if std::mem::replace(&mut self.has_records, true) {
                text.push(b',');
            }
            serde_json::to_writer(&mut *text, record)
                .map_err(|error| Error::internal("writing a list", error))?;
        }
        let length = (text.len() - before).max(1);
        self.next = (page.covered * PAGE_BYTES / length).clamp(1, MAX_PAGE);
        if self.ids.is_empty() {
            text.push(b']');
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use axum::body::to_bytes;
    use axum::http::StatusCode;

    use super::*;

    /// A list of numbers whose odd ones are deleted; a page has four ids at most.
    async fn listed(count: u32) -> (Response, Arc<Mutex<Vec<usize>>>) {
        let pages = Arc::new(Mutex::new(Vec::new()));
        let seen = pages.clone();
        let read = move |ids: Vec<u32>| {
            seen.lock().unwrap().push(ids.len());
            let covered = ids.len().min(4);
            let records = ids.into_iter().take(4).filter(|id| id % 2 == 0).collect();
            std::future::ready(Ok(RecordPage { records, covered }))
        };
        let response = paged_list((0..count).collect(), read).await.unwrap();
        (response, pages)
    }

    #[tokio::test]
    async fn lists_are_whole_whatever_their_pages() {
        for count in [0, 1, 2, 4, 5, 8, 9, 100] {
            let (response, pages) = listed(count).await;
            assert_eq!(response.status(), StatusCode::OK);
            assert_eq!(response.headers()[CONTENT_TYPE], "application/json");
            assert_eq!(pages.lock().unwrap().len(), 1, "the rest waits");
            let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
            let list: Vec<u32> = serde_json::from_slice(&body).unwrap();
            assert!(list.into_iter().eq((0..count).step_by(2)), "{count}");
        }
    }

    #[tokio::test]
    async fn a_list_whose_database_fails_ends_with_an_error() {
        let mut pages = 0;
        let read = move |ids: Vec<u32>| {
            pages += 1;
            let records = ids.first().copied().into_iter().collect();
            let failed = Error::Unavailable {
                what: "the database",
                source: None,
            };
            std::future::ready(if pages < 3 {
                Ok(RecordPage {
                    records,
                    covered: 1,
                })
            } else {
                Err(failed)
            })
        };
        let response = paged_list((0..9).collect(), read).await.unwrap();
        assert!(to_bytes(response.into_body(), usize::MAX).await.is_err());
    }
}
