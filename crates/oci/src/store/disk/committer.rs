//! The one thread that changes a store, so that every change is checked against what really is there.
//!
//! Changes that wait together are made together: written to the folder, promised by one sync of the journal, shown
//! by one transaction of the index, acknowledged. From time to time the medium catches up, and the journal starts
//! anew.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use tokio::sync::oneshot;

use super::adopt;
use super::change::Order;
use super::files::{self, Prepared};
use super::index::{Index, Tables};
use super::journal::{self, Journal};
use super::layout::Layout;
use crate::Repository;
use crate::store::{Result, StoreError};

/// Changes that are made together at the most.
const BATCH_LIMIT: usize = 128;
/// Units: bytes. A journal of this length is replayed in about a second after a crash.
const JOURNAL_LIMIT_BYTES: u64 = 16 << 20;
/// Nobody changes anything for this long: a good time to let the medium catch up.
const IDLE: Duration = Duration::from_secs(2);
/// While the medium catches up.
const LOOK: Duration = Duration::from_millis(20);
const DOING: &str = "changing the storage folder";

/// What the thread works on, and readers look at.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) layout: Layout,
    pub(super) index: Index,
}

/// What the thread is asked for.
enum Job {
    Commit(Order, oneshot::Sender<Result<()>>),
    /// The folder has something else of this repository than the index.
    Adopt(Repository),
}

/// The thread; it ends with this value.
#[derive(Debug)]
pub(super) struct Committer {
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Committer {
    /// Makes the changes that a crash has left in `old` files of the journal, and starts.
    pub(super) fn start(shared: Arc<Shared>, journal: Journal, old: Vec<PathBuf>) -> Result<Self> {
        let mut work = Work {
            shared,
            journal,
            old,
            catching_up: None,
            is_behind: false,
        };
        work.replay()?;
        let (jobs, queue) = channel();
        let thread = std::thread::Builder::new()
            .name("store-commit".to_owned())
            .spawn(move || work.run(&queue))
            .map_err(StoreError::io(DOING))?;
        Ok(Self {
            jobs: Some(jobs),
            thread: Some(thread),
        })
    }

    /// Makes a change; visible and durable when it answers.
    pub(super) async fn commit(&self, order: Order) -> Result<()> {
        let (done, answer) = oneshot::channel();
        self.send(Job::Commit(order, done))?;
        answer.await.unwrap_or_else(|_| Err(ended()))
    }

    /// Takes over what is in the folder of a repository.
    pub(super) fn adopt(&self, repository: Repository) -> Result<()> {
        self.send(Job::Adopt(repository))
    }

    fn send(&self, job: Job) -> Result<()> {
        let jobs = self.jobs.as_ref().ok_or_else(ended)?;
        jobs.send(job).map_err(|_| ended())
    }
}

impl Drop for Committer {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // What it panicked with has been printed.
            thread.join().ok();
        }
    }
}

fn ended() -> StoreError {
    StoreError::io(DOING)(io::Error::other("the store has ended"))
}

struct Work {
    shared: Arc<Shared>,
    journal: Journal,
    /// Files of the journal before the one that is written; they go when the medium has caught up.
    old: Vec<PathBuf>,
    /// Syncs the medium.
    catching_up: Option<JoinHandle<io::Result<()>>>,
    /// Something was promised by the journal and could not be made.
    is_behind: bool,
}

/// A change whose check it has passed.
struct Accepted {
    order: Order,
    prepared: Prepared,
    done: oneshot::Sender<Result<()>>,
}

impl Work {
    fn run(&mut self, queue: &Receiver<Job>) {
        loop {
            let wait = if self.catching_up.is_some() {
                LOOK
            } else {
                IDLE
            };
            match queue.recv_timeout(wait) {
                Ok(first) => {
                    let others = queue.try_iter().take(BATCH_LIMIT - 1);
                    self.make(std::iter::once(first).chain(others).collect());
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            let is_idle = wait == IDLE;
            told(self.catch_up(is_idle));
        }
        // Whoever has the folder next may know nothing of a journal.
        told(self.end());
    }

    fn end(&mut self) -> Result<()> {
        // What was under way, then what came meanwhile.
        self.finish_to_catch_up()?;
        self.begin_to_catch_up(true)?;
        self.finish_to_catch_up()
    }

    fn make(&mut self, jobs: Vec<Job>) {
        let mut orders = Vec::new();
        for job in jobs {
            match job {
                Job::Commit(order, done) => orders.push((order, done)),
                Job::Adopt(repository) => {
                    if let Err(error) = self.adopt(&repository) {
                        let error = model::error::chain(&error);
                        tracing::error!(repo.name = %repository, error, "the folder was not read again");
                    }
                }
            }
        }
        if !orders.is_empty() {
            self.commit(orders);
        }
    }

    fn adopt(&self, repository: &Repository) -> Result<()> {
        let update = self.shared.index.update()?;
        adopt::repository(&self.shared.layout, &mut update.tables()?, repository)?;
        update.commit()
    }

    fn commit(&mut self, orders: Vec<(Order, oneshot::Sender<Result<()>>)>) {
        let mut accepted = Vec::new();
        let made = self.try_commit(orders, &mut accepted);
        for Accepted { done, .. } in accepted {
            // Who asked may have gone away: the change is made all the same.
            done.send(match &made {
                Ok(()) => Ok(()),
                Err(error) => Err(again(error)),
            })
            .ok();
        }
    }

    fn try_commit(
        &mut self,
        orders: Vec<(Order, oneshot::Sender<Result<()>>)>,
        accepted: &mut Vec<Accepted>,
    ) -> Result<()> {
        let failed = || StoreError::io(DOING);
        if self.is_behind {
            self.replay()?;
        }
        let shared = Arc::clone(&self.shared);
        let update = shared.index.update()?;
        {
            let mut tables = update.tables()?;
            for (mut order, done) in orders {
                match self.accept(&mut tables, &mut order) {
                    Ok(prepared) => accepted.push(Accepted {
                        order,
                        prepared,
                        done,
                    }),
                    Err(error) => drop(done.send(Err(error))),
                }
            }
        }
        if accepted.is_empty() {
            return Ok(());
        }
        self.journal
            .append(accepted.iter().map(|accepted| &accepted.order))
            .map_err(failed())?;
        self.is_behind = true;
        for accepted in accepted {
            std::mem::take(&mut accepted.prepared)
                .place(&shared.layout)
                .map_err(failed())?;
        }
        update.commit()?;
        self.is_behind = false;
        Ok(())
    }

    fn accept(&self, tables: &mut Tables<'_>, order: &mut Order) -> Result<Prepared> {
        tables.check(order)?;
        let prepared = files::prepare(&self.shared.layout, order).map_err(StoreError::io(DOING))?;
        tables.apply(order)?;
        Ok(prepared)
    }

    /// Makes everything that the journal promises, perhaps again.
    fn replay(&mut self) -> Result<()> {
        let failed = || StoreError::io("reading the journal");
        let own = (self.journal.length() > 0).then(|| self.journal.path());
        for file in self.old.iter().cloned().chain(own) {
            let update = self.shared.index.update()?;
            {
                let mut tables = update.tables()?;
                for order in journal::read(&file).map_err(failed())? {
                    self.remake(&mut tables, &order.map_err(failed())?)?;
                }
            }
            update.commit()?;
        }
        self.is_behind = false;
        Ok(())
    }

    fn remake(&self, tables: &mut Tables<'_>, order: &Order) -> Result<()> {
        let layout = &self.shared.layout;
        match files::prepare(layout, order) {
            Ok(prepared) => prepared.place(layout).map_err(StoreError::io(DOING))?,
            // Removed by a later change.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(StoreError::io(DOING)(error)),
        }
        tables.apply(order)
    }

    /// Lets the medium catch up where it is time, and ends the files of the journal that it has caught up with.
    fn catch_up(&mut self, is_idle: bool) -> Result<()> {
        match &self.catching_up {
            None => self.begin_to_catch_up(is_idle),
            Some(syncing) if syncing.is_finished() => self.finish_to_catch_up(),
            Some(_) => Ok(()),
        }
    }

    fn finish_to_catch_up(&mut self) -> Result<()> {
        let failed = || StoreError::io("syncing the storage folder");
        let Some(syncing) = self.catching_up.take() else {
            return Ok(());
        };
        let synced = syncing
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("panicked")));
        synced.map_err(failed())?;
        self.shared.index.sync(now())?;
        for file in std::mem::take(&mut self.old) {
            journal::remove(&file).map_err(failed())?;
        }
        Ok(())
    }

    fn begin_to_catch_up(&mut self, is_idle: bool) -> Result<()> {
        let failed = || StoreError::io("syncing the storage folder");
        let length = self.journal.length();
        let is_time =
            length >= JOURNAL_LIMIT_BYTES || is_idle && (length > 0 || !self.old.is_empty());
        if !is_time || self.is_behind {
            return Ok(());
        }
        if length > 0 {
            self.old.push(self.journal.rotate().map_err(failed())?);
        }
        let folder = File::open(self.shared.layout.root()).map_err(failed())?;
        let syncing = std::thread::Builder::new()
            .name("store-sync".to_owned())
            .spawn(move || Ok(rustix::fs::syncfs(folder)?))
            .map_err(failed())?;
        self.catching_up = Some(syncing);
        Ok(())
    }
}

fn told(result: Result<()>) {
    if let Err(error) = result {
        let error = model::error::chain(&error);
        tracing::error!(error, "the journal cannot be emptied, which is tried again");
    }
}

/// The same failure, for everybody whose change was made together with others.
fn again(error: &StoreError) -> StoreError {
    match error {
        StoreError::Io { doing, source } => StoreError::Io {
            doing,
            source: io::Error::new(source.kind(), source.to_string()),
        },
        error => StoreError::io(DOING)(io::Error::other(error.to_string())),
    }
}

/// Units: nanoseconds since 1970.
pub(super) fn now() -> u64 {
    nanos(SystemTime::now())
}

/// Units: nanoseconds since 1970.
pub(super) fn nanos(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |since| {
            u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
        })
}
