//! Bytes in memory that wait for clients: responses that are not read.
//!
//! A response that is in memory as a whole counts from when it is made until its last byte is handed to the socket. Equal
//! responses are made one, and memory that several share counts once, for the server and for each client. Of streams, those
//! count that say how much they hold ([`StreamMemory`]); others hold a chunk at a time.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use axum::body::Body;
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use bytes::Bytes;
use http::header;
use hyper::body::{Body as HttpBody, Frame, SizeHint};

use super::clients::ClientKey;
use super::quota::Exceeded;
use super::refusals;
use crate::sendfile;
use crate::shared_body::{Allocation, BodyPiece, Fingerprint, SharedBody};

/// Smallest response that counts: one of a connection, beside its send buffer, may be shorter. Units: bytes.
const MIN_COUNTED: u64 = 16 << 10;
/// Memory of a response that is compressed while it is sent. Units: bytes.
const COMPRESSOR_BYTES: usize = 320 << 10;

/// The responses that wait for clients of a server; shared by its clones.
#[derive(Debug, Clone)]
pub(super) struct WaitingBytes(Arc<WaitingTable>);

#[derive(Debug)]
struct WaitingTable {
    /// Units: bytes; 0: no limit.
    max: usize,
    /// Units: bytes; 0: no limit.
    max_per_client: usize,
    usage: Mutex<WaitingUsage>,
}

#[derive(Debug, Default)]
struct WaitingUsage {
    server: HeldMemory,
    /// Only clients that responses wait for.
    by_client: HashMap<ClientKey, HeldMemory>,
    /// The newest body of each fingerprint that waits, and the number of its responses.
    bodies: HashMap<Fingerprint, (SharedBody, usize)>,
}

/// Memory that responses hold.
#[derive(Debug, Default)]
struct HeldMemory {
    /// Units: bytes.
    bytes: usize,
    /// Each allocation with the number of its responses.
    allocations: HashMap<Allocation, usize>,
    /// Memory of the responses with the number of those that have as much.
    lengths: BTreeMap<usize, usize>,
}

/// The responses that wait for the client of a request; an extension of every request.
#[derive(Debug, Clone)]
pub(crate) struct ClientWaiting {
    waiting: WaitingBytes,
    client: ClientKey,
}

/// A response whose memory is held, until it is dropped.
#[derive(Debug)]
pub(super) struct WaitingMemory {
    of: ClientWaiting,
    response: HeldResponse,
}

/// Memory of a response.
#[derive(Debug)]
struct HeldResponse {
    body: SharedBody,
    fingerprint: Fingerprint,
    /// Memory beside that of the body. Units: bytes.
    unshared: usize,
    /// All of it. Units: bytes.
    bytes: usize,
}

/// Memory of a stream that is not read, in an extension of its response. Units: bytes.
#[derive(Debug, Clone, Copy)]
pub struct StreamMemory(pub usize);

/// Marks responses that were counted before a layer that may compress them.
#[derive(Debug, Clone, Copy)]
struct CountedBeforeCompression;

/// Middleware below a layer that compresses responses: it counts them before their bodies are hidden in that layer's.
pub async fn count_before_compression(request: Request, next: Next) -> Response {
    let waiting = request.extensions().get::<ClientWaiting>().cloned();
    let is_safe = request.method().is_safe();
    let mut response = next.run(request).await;
    if let Some(waiting) = waiting {
        response = waiting.count_body(response, is_safe);
        response.extensions_mut().insert(CountedBeforeCompression);
    }
    response
}

impl WaitingBytes {
    /// At most `max` bytes in all and `max_per_client` of each client; 0: no limit.
    pub(super) fn new(max: usize, max_per_client: usize) -> Self {
        Self(Arc::new(WaitingTable {
            max,
            max_per_client,
            usage: Mutex::default(),
        }))
    }

    /// The responses that wait for `client`.
    pub(super) fn of(&self, client: ClientKey) -> ClientWaiting {
        let waiting = self.clone();
        ClientWaiting { waiting, client }
    }

    fn lock(&self) -> MutexGuard<'_, WaitingUsage> {
        self.0.usage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientWaiting {
    /// Counts a response, unless that was done below a layer that compresses: then only the memory of that layer. That, and
    /// the memory of a stream, is for the caller to keep with the response.
    pub(super) fn count(
        &self,
        mut response: Response,
        is_safe: bool,
    ) -> (Response, Option<WaitingMemory>) {
        let extensions = response.extensions_mut();
        let stream = extensions.remove::<StreamMemory>();
        let stream = stream.filter(|StreamMemory(bytes)| *bytes as u64 >= MIN_COUNTED);
        let is_counted = extensions.get::<CountedBeforeCompression>().is_some();
        let is_compressed = response.headers().contains_key(header::CONTENT_ENCODING);
        let compressor = (is_counted && is_compressed).then_some(COMPRESSOR_BYTES);
        let unshared = stream.map_or(0, |StreamMemory(bytes)| bytes) + compressor.unwrap_or(0);
        if unshared == 0 {
            let response = if is_counted {
                response
            } else {
                self.count_body(response, is_safe)
            };
            return (response, None);
        }
        match self.hold(SharedBody::new(Vec::new()), unshared) {
            Ok(memory) => (response, Some(memory)),
            Err(exceeded) => {
                let is_done = !is_safe && response.status().is_success();
                (refusals::too_many_waiting_bytes(exceeded, is_done), None)
            }
        }
    }

    /// A refusal, if there is no room for another stream that holds `bytes`.
    pub(crate) fn refusal(&self, bytes: usize) -> Option<Response> {
        let held = self.hold(SharedBody::new(Vec::new()), bytes);
        held.err()
            .map(|exceeded| refusals::too_many_waiting_bytes(exceeded, false))
    }

    /// Counts a response that is in memory as a whole; others pass.
    fn count_body(&self, response: Response, is_safe: bool) -> Response {
        if response.body().size_hint().lower() < MIN_COUNTED {
            return response;
        }
        let (mut head, body) = response.into_parts();
        let body = match whole(body, head.extensions.remove()) {
            Ok(body) => body,
            Err(stream) => return Response::from_parts(head, stream),
        };
        match self.hold(body, 0) {
            Ok(memory) => {
                let body = memory.response.body.clone();
                Response::from_parts(head, body.guarded(memory))
            }
            Err(exceeded) => {
                let is_done = !is_safe && head.status.is_success();
                refusals::too_many_waiting_bytes(exceeded, is_done)
            }
        }
    }

    /// Holds the memory of `body`, or of an equal one, and `unshared` bytes.
    ///
    /// Errors: the limit that is reached.
    fn hold(&self, body: SharedBody, unshared: usize) -> Result<WaitingMemory, Exceeded> {
        let WaitingTable {
            max,
            max_per_client,
            ..
        } = *self.waiting.0;
        let mut response = HeldResponse::new(body, unshared);
        let mut usage = self.waiting.lock();
        if let Some((known, _)) = usage.bodies.get(&response.fingerprint)
            && *known == response.body
        {
            response.body = known.clone();
        }
        let of_client = usage.by_client.get(&self.client);
        if of_client.is_some_and(|held| held.is_exceeded_by(&response, max_per_client)) {
            return Err(Exceeded::Client);
        }
        if usage.server.is_exceeded_by(&response, max) {
            return Err(Exceeded::Total);
        }
        usage.server.hold(&response);
        let of_client = usage.by_client.entry(self.client).or_default();
        of_client.hold(&response);
        let newest = usage.bodies.entry(response.fingerprint);
        let newest = newest.or_insert_with(|| (response.body.clone(), 0));
        if !newest.0.is_same(&response.body) {
            *newest = (response.body.clone(), 0);
        }
        newest.1 += 1;
        drop(usage);
        let of = self.clone();
        Ok(WaitingMemory { of, response })
    }
}

impl Drop for WaitingMemory {
    fn drop(&mut self) {
        let (response, mut usage) = (&self.response, self.of.waiting.lock());
        usage.server.release(response);
        if let Entry::Occupied(mut of_client) = usage.by_client.entry(self.of.client) {
            of_client.get_mut().release(response);
            if of_client.get().lengths.is_empty() {
                of_client.remove();
            }
        }
        if let Entry::Occupied(mut newest) = usage.bodies.entry(response.fingerprint)
            && newest.get().0.is_same(&response.body)
        {
            newest.get_mut().1 -= 1;
            if newest.get().1 == 0 {
                newest.remove();
            }
        }
    }
}

impl HeldResponse {
    fn new(body: SharedBody, unshared: usize) -> Self {
        let lengths = body.allocations().map(|(_, length)| length);
        Self {
            fingerprint: body.fingerprint(),
            bytes: unshared + lengths.sum::<usize>(),
            body,
            unshared,
        }
    }
}

impl HeldMemory {
    /// Whether `response` is too much for `max` bytes. The longest response is exempt: a client that reads it is not kept
    /// from others meanwhile.
    fn is_exceeded_by(&self, response: &HeldResponse, max: usize) -> bool {
        let is_new = |allocation: &Allocation| !self.allocations.contains_key(allocation);
        let new = response.body.allocations().filter(is_new);
        let new: usize = new.map(|(_, length)| length).sum();
        let longest = self
            .lengths
            .last_key_value()
            .map_or(0, |(length, _)| *length);
        let exempt = longest.max(response.bytes);
        max > 0 && (self.bytes + response.unshared + new).saturating_sub(exempt) > max
    }

    fn hold(&mut self, response: &HeldResponse) {
        self.bytes += response.unshared;
        *self.lengths.entry(response.bytes).or_default() += 1;
        for allocation in response.body.allocations() {
            let holders = self.allocations.entry(allocation).or_default();
            *holders += 1;
            if *holders == 1 {
                self.bytes += allocation.1;
            }
        }
    }

    fn release(&mut self, response: &HeldResponse) {
        self.bytes -= response.unshared;
        if let Some(count) = self.lengths.get_mut(&response.bytes) {
            *count -= 1;
            if *count == 0 {
                self.lengths.remove(&response.bytes);
            }
        }
        for allocation in response.body.allocations() {
            if let Some(holders) = self.allocations.get_mut(&allocation) {
                *holders -= 1;
                if *holders == 0 {
                    self.allocations.remove(&allocation);
                    self.bytes -= allocation.1;
                }
            }
        }
    }
}

/// The body, if it is in memory as a whole: in pieces that its response names, or in one.
fn whole(mut body: Body, pieces: Option<SharedBody>) -> Result<SharedBody, Body> {
    let Some(length) = body.size_hint().exact() else {
        return Err(body);
    };
    // A layer may have replaced the body since.
    if let Some(pieces) = pieces.filter(|pieces| pieces.length() == length) {
        return Ok(pieces);
    }
    let mut context = Context::from_waker(Waker::noop());
    let Poll::Ready(first) = Pin::new(&mut body).poll_frame(&mut context) else {
        return Err(body);
    };
    let bytes = first
        .as_ref()
        .and_then(|first| first.as_ref().ok()?.data_ref());
    let is_whole = |bytes: &&Bytes| bytes.len() as u64 == length && !sendfile::is_part(bytes);
    match bytes.filter(is_whole) {
        Some(bytes) => Ok(SharedBody::new(vec![BodyPiece::Plain(bytes.clone())])),
        None => Err(Body::new(BegunBody { first, body })),
    }
}

/// A stream whose first frame was taken.
struct BegunBody {
    first: Option<Result<Frame<Bytes>, axum::Error>>,
    body: Body,
}

impl HttpBody for BegunBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        match self.first.take() {
            Some(first) => Poll::Ready(Some(first)),
            None => Pin::new(&mut self.body).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_none() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let first = self
            .first
            .as_ref()
            .and_then(|first| first.as_ref().ok()?.data_ref());
        let first = first.map_or(0, Bytes::len) as u64;
        let rest = self.body.size_hint();
        let mut hint = SizeHint::new();
        hint.set_lower(rest.lower() + first);
        if let Some(upper) = rest.upper() {
            hint.set_upper(upper + first);
        }
        hint
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use futures_util::stream;

    use super::*;

    fn client(last: u8) -> ClientKey {
        IpAddr::from(Ipv4Addr::new(192, 0, 2, last)).into()
    }

    /// A body of `byte`, in memory of its own; its table of pieces counts, too.
    fn body(byte: u8, length: usize) -> SharedBody {
        SharedBody::new(vec![vec![byte; length].into()])
    }

    fn table() -> usize {
        body(0, 0).allocations().map(|(_, length)| length).sum()
    }

    // limit: bytes that wait for clients
    // share: bytes that wait for clients
    // limit: bytes that wait for a client
    #[test]
    fn bytes_that_wait_are_limited_per_client_and_in_all() {
        let waiting = WaitingBytes::new(300 + 3 * table(), 200 + 2 * table());
        let [first, second] = [1, 2].map(|last| waiting.of(client(last)));
        let _longest = first.hold(body(1, 100), 0).unwrap();
        let _another = first.hold(body(2, 100), 0).unwrap();
        let at_bound = first.hold(body(3, 100), 0).unwrap();
        assert_eq!(first.hold(body(4, 1), 0).unwrap_err(), Exceeded::Client);
        let _others = second.hold(body(4, 100), 0).unwrap();
        assert_eq!(second.hold(body(5, 1), 0).unwrap_err(), Exceeded::Total);
        drop(at_bound);
        assert!(second.hold(body(5, 1), 0).is_ok());
    }

    #[test]
    fn the_longest_response_is_exempt() {
        let waiting = WaitingBytes::new(0, 200 + 2 * table());
        let first = waiting.of(client(1));
        let _short = first.hold(body(1, 100), 0).unwrap();
        let _longest = first.hold(body(2, 1000), 0).unwrap();
        let _at_bound = first.hold(body(3, 100), 0).unwrap();
        assert_eq!(first.hold(body(4, 1), 0).unwrap_err(), Exceeded::Client);
        assert_eq!(first.hold(body(4, 5000), 0).unwrap_err(), Exceeded::Client);
    }

    #[test]
    fn equal_responses_count_once() {
        let waiting = WaitingBytes::new(0, 0);
        let held: Vec<_> = (0..100)
            .map(|last| waiting.of(client(last % 2)).hold(body(7, 1000), 0).unwrap())
            .collect();
        assert_eq!(waiting.lock().server.bytes, 1000 + table());
        assert_eq!(waiting.lock().by_client[&client(1)].bytes, 1000 + table());
        let other = waiting.of(client(1)).hold(body(8, 1000), 0).unwrap();
        assert_eq!(waiting.lock().server.bytes, 2 * (1000 + table()));
        drop(held);
        assert_eq!(waiting.lock().server.bytes, 1000 + table());
        drop(other);
        let usage = waiting.lock();
        assert_eq!(
            (
                usage.server.bytes,
                usage.by_client.len(),
                usage.bodies.len()
            ),
            (0, 0, 0)
        );
        assert!(usage.server.allocations.is_empty());
    }

    #[test]
    fn bodies_with_common_pieces_share_them() {
        let waiting = WaitingBytes::new(0, 0);
        let pieces = [vec![1; 500], vec![2; 600], vec![3; 700]].map(BodyPiece::from);
        let of = |chosen: &[usize]| {
            let pieces = chosen.iter().map(|at| pieces[*at].clone());
            waiting
                .of(client(1))
                .hold(SharedBody::new(pieces.collect()), 0)
                .unwrap()
        };
        let first = of(&[0, 1]);
        let both = (first, of(&[1, 2]));
        let tables = 2 * size_of::<[BodyPiece; 2]>();
        assert_eq!(waiting.lock().server.bytes, 500 + 600 + 700 + tables);
        drop(both);
        assert_eq!(waiting.lock().server.bytes, 0);
    }

    #[tokio::test]
    async fn responses_in_memory_count_and_streams_pass() {
        let waiting = WaitingBytes::new(0, 0);
        let counted = async |response: Response| {
            let (response, _) = waiting.of(client(1)).count(response, true);
            let counted = waiting.lock().server.bytes;
            let read = axum::body::to_bytes(response.into_body(), usize::MAX).await;
            (counted, read.unwrap().len())
        };
        let long = vec![7; 20_000];
        assert_eq!(
            counted(Response::new(long.clone().into())).await,
            (20_000 + table(), 20_000)
        );
        assert_eq!(waiting.lock().server.bytes, 0, "it was read");
        let pieces = SharedBody::new(vec![long.clone().into(), long.clone().into()]);
        let tables = size_of::<[BodyPiece; 2]>();
        assert_eq!(
            counted(axum::response::IntoResponse::into_response(pieces)).await,
            (40_000 + tables, 40_000)
        );
        let chunks = stream::iter([long.clone(), long].map(Ok::<_, std::io::Error>));
        assert_eq!(
            counted(Response::new(Body::from_stream(chunks))).await,
            (0, 40_000)
        );
        let short = vec![7; (16 << 10) - 1];
        assert_eq!(
            counted(Response::new(short.into())).await,
            (0, (16 << 10) - 1)
        );
    }
}
