//! Streams of events: one reader for each process follows the table, and all streams share its events.
//!
//! Invariant: a stream that is resumed with the mark of its last event gets every later event; those that were committed
//! out of order it may get twice.

mod settled;

use std::sync::Arc;
use std::time::Instant;

use futures_util::stream::{self, Stream};
use model::Error;
use model::events::Event;
use service::server::{ClientAddress, Exceeded, Holder, OpenStream, StreamQuota};
use tokio::sync::{Mutex, Notify, broadcast};

use self::settled::SettledIds;
use crate::auth::Caller;
use crate::db::{Database, EventFilter, events, tx};

/// Events that a slow stream may lag behind before it reads from the database. Each takes about 500 bytes.
const LAG: usize = 1024;
/// Events read in one statement.
const PAGE: i64 = 500;
/// Ids below the newest in which the first query looks for transactions that still run.
const WINDOW: i64 = 1000;

/// An event, and the mark that resumes a stream after it.
#[derive(Debug, Clone)]
pub(crate) struct StreamedEvent {
    /// Every event up to this id was sent before.
    pub(crate) mark: i64,
    pub(crate) event: Arc<Event>,
}

/// The streams of this process.
#[derive(Debug)]
pub(crate) struct EventStreams {
    db: Database,
    /// Wakes the reader.
    pub(crate) wake: Notify,
    quota: StreamQuota,
    /// None after the shutdown.
    reader: Mutex<Option<Reader>>,
}

#[derive(Debug)]
struct Reader {
    ids: SettledIds,
    sender: broadcast::Sender<StreamedEvent>,
}

/// A stream's place: events up to `last` were sent.
struct EventStream {
    streams: Arc<EventStreams>,
    filter: EventFilter,
    last: i64,
    /// Events to be sent from the database first, the next one last.
    replay: Vec<StreamedEvent>,
    /// The end of the replay by id, and ids above it.
    until: (i64, Vec<i64>),
    live: broadcast::Receiver<StreamedEvent>,
    open: OpenStream,
}

impl EventStreams {
    /// Streams of one client or user.
    pub(crate) fn share(max: usize) -> usize {
        (max / 4).max(1)
    }

    /// At most `max` streams, and a share of them for each client or user.
    pub(super) fn new(db: Database, max: usize) -> Self {
        Self {
            db,
            wake: Notify::new(),
            quota: StreamQuota::new(max.max(1), Self::share(max)),
            reader: Mutex::new(Some(Reader {
                ids: SettledIds::default(),
                sender: broadcast::Sender::new(LAG),
            })),
        }
    }

    /// Ends all streams.
    pub(crate) async fn close(&self) {
        self.reader.lock().await.take();
    }

    /// Events that match the filter, from now on, or all later than the mark `resumed`.
    ///
    /// Errors: Unavailable – too many streams, the database, shutdown.
    pub(crate) async fn open(
        self: &Arc<Self>,
        client: ClientAddress,
        caller: &Caller,
        filter: EventFilter,
        resumed: Option<i64>,
    ) -> Result<impl Stream<Item = StreamedEvent> + use<>, Error> {
        // A user of an issuer is one at any number of addresses.
        let holder = match caller {
            Caller::User(user) => Holder::user(&user.name),
            _ => client.into(),
        };
        let open = self.quota.open(holder);
        let open = open.map_err(|exceeded| Error::Unavailable {
            what: match exceeded {
                Exceeded::Total => "one more event stream: MAX_EVENT_STREAMS are open",
                Exceeded::Client => {
                    "one more event stream: this client has a quarter of MAX_EVENT_STREAMS"
                }
            },
            source: None,
        })?;
        let (live, until) = self.subscribe().await?;
        let stream = EventStream {
            streams: Arc::clone(self),
            filter,
            // A mark of another database may be far beyond.
            last: resumed.map_or(until.0, |mark| mark.min(until.0)),
            replay: Vec::new(),
            until: resumed.map_or_else(Default::default, |_| until),
            live,
            open,
        };
        Ok(stream::unfold(stream, EventStream::next))
    }

    /// Reads new events for the streams of this process. Returns whether events are missing that may still appear.
    ///
    /// Errors: those of the database; nothing is lost, the next call reads them.
    pub(crate) async fn read_new(&self) -> Result<bool, Error> {
        let mut reader = self.reader.lock().await;
        let Some(reader) = reader.as_mut() else {
            return Ok(false);
        };
        if reader.sender.receiver_count() == 0 {
            return Ok(false);
        }
        while self.read_page(reader).await? {}
        Ok(reader.ids.has_gaps())
    }

    /// Reads and sends a page; returns whether it was full.
    async fn read_page(&self, reader: &mut Reader) -> Result<bool, Error> {
        let (settled, above) = (reader.ids.settled(), reader.ids.above());
        let (page, running) = tx("read new events", async || {
            let mut connection = self.db.pool()?.acquire().await?;
            events::after(&mut connection, settled, &above, PAGE).await
        })
        .await?;
        let is_full = is_full(&page);
        let new: Vec<i64> = page.iter().map(|(id, _)| *id).collect();
        reader.ids.advance(&new, running, Instant::now());
        for (id, event) in page {
            let mark = id.min(reader.ids.settled());
            let event = Arc::new(event);
            // Without receivers, it is not needed.
            reader.sender.send(StreamedEvent { mark, event }).ok();
        }
        Ok(is_full)
    }

    /// A receiver of all events from now on, and the ids that were read before: the settled one, and those above it.
    async fn subscribe(
        &self,
    ) -> Result<(broadcast::Receiver<StreamedEvent>, (i64, Vec<i64>)), Error> {
        let mut reader = self.reader.lock().await;
        let reader = reader.as_mut().ok_or(Error::Unavailable {
            what: "the event stream: the server stops",
            source: None,
        })?;
        if reader.sender.receiver_count() == 0 {
            let newest = tx("find newest event", async || {
                let mut connection = self.db.pool()?.acquire().await?;
                events::newest(&mut connection).await
            })
            .await?;
            reader.ids = SettledIds::after(newest.saturating_sub(WINDOW).max(0));
            // Without receivers yet: this only finds the ids that are taken.
            while self.read_page(reader).await? {}
        }
        let until = (reader.ids.settled(), reader.ids.above());
        Ok((reader.sender.subscribe(), until))
    }
}

fn is_full<T>(page: &[T]) -> bool {
    i64::try_from(page.len()).unwrap_or(PAGE) >= PAGE
}

impl EventStream {
    /// The next event; none at shutdown, when the database is away during a replay, or when the stream ends for one of
    /// another client: the client resumes.
    async fn next(mut self) -> Option<(StreamedEvent, Self)> {
        loop {
            if self.open.is_evicted() {
                return None;
            }
            if let Some(event) = self.replay.pop() {
                return Some((event, self));
            }
            if self.last < self.until.0 || !self.until.1.is_empty() {
                self.read_replay().await.ok()?;
                continue;
            }
            let received = tokio::select! {
                received = self.live.recv() => received,
                () = self.open.evicted() => return None,
            };
            match received {
                Ok(one) => {
                    self.last = one.mark;
                    if self.filter.matches(&one.event) {
                        return Some((one, self));
                    }
                }
                Err(broadcast::error::RecvError::Lagged(_)) => {
                    (self.live, self.until) = self.streams.subscribe().await.ok()?;
                }
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
    }

    async fn read_replay(&mut self) -> Result<(), Error> {
        let settled = self.until.0;
        let page = tx("replay events", async || {
            let mut connection = self.streams.db.pool()?.acquire().await?;
            let above = &self.until.1;
            events::replay(
                &mut connection,
                &self.filter,
                self.last,
                settled,
                above,
                PAGE,
            )
            .await
        })
        .await?;
        match page.last() {
            Some((id, _)) if is_full(&page) => self.last = *id,
            _ => {
                self.last = settled;
                self.until.1.clear();
            }
        }
        let marked = page.into_iter().map(|(id, event)| StreamedEvent {
            mark: id.min(settled),
            event: Arc::new(event),
        });
        self.replay = marked.rev().collect();
        Ok(())
    }
}
