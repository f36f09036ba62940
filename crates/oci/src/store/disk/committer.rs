//! The one thread that changes a store, so that every change is checked against what really is there.
//!
//! Changes that wait together are made together: written to the folder, promised by one sync of the journal, shown
//! by one transaction of the index, acknowledged. From time to time the medium catches up, and the journal starts
//! anew.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use tokio::sync::oneshot;

use super::adoption::{self, Adoption};
use super::change::{Change, Order};
use super::files::{self, Prepared};
use super::index::Index;
use super::journal::{self, Journal};
use super::layout::Layout;
use super::quarantine::{self, Condemned};
use super::tables::Tables;
use super::{adopt, compare};
use crate::store::verified::Verified;
use crate::store::{Result, StoreError};
use crate::{Digest, Repository};

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
    pub(super) verified: Verified,
    /// How far the index is known to have what the folder has.
    pub(super) adoption: Adoption,
    /// Something in the folder could not be read: nothing may be taken for garbage.
    pub(super) is_unsure: AtomicBool,
}

/// What the thread is asked for.
pub(super) enum Job {
    Commit(Order, oneshot::Sender<Result<()>>),
    /// The folder may have something else of this repository than the index; whether it had.
    Adopt(Repository, oneshot::Sender<Result<bool>>),
    /// Content, unless a repository has it; what was removed.
    RemoveContent(Vec<Digest>, oneshot::Sender<Vec<Digest>>),
    /// A repository without content; whether it was one.
    RemoveIfEmpty {
        repository: Repository,
        is_dry: bool,
        done: oneshot::Sender<bool>,
    },
    /// Damaged content; whether it was taken away.
    Quarantine(Condemned, oneshot::Sender<Result<bool>>),
}

/// The thread; it ends with this value.
#[derive(Debug)]
pub(super) struct Committer {
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
    /// Compares the folder with the index, which may take as long as there is much.
    adopting: Option<JoinHandle<()>>,
    shared: Arc<Shared>,
}

impl Committer {
    /// Makes the changes in the `old` files of the journal again, if the folder `may_miss` some of them, and starts.
    pub(super) fn start(
        shared: Arc<Shared>,
        journal: Journal,
        old: Vec<PathBuf>,
        may_miss: bool,
    ) -> Result<Self> {
        let mut work = Work {
            shared,
            journal,
            old,
            catching_up: None,
            is_behind: false,
        };
        if may_miss {
            work.replay()?;
        }
        quarantine::recall(&work.shared)?;
        let shared = Arc::clone(&work.shared);
        let (jobs, queue) = channel();
        let thread = std::thread::Builder::new()
            .name("store-commit".to_owned())
            .spawn(move || work.run(&queue))
            .map_err(StoreError::io(DOING))?;
        let adopting = (!shared.adoption.is_done())
            .then(|| {
                let (shared, jobs) = (Arc::clone(&shared), jobs.clone());
                std::thread::Builder::new()
                    .name("store-adopt".to_owned())
                    .spawn(move || adoption::run(&shared, &jobs))
            })
            .transpose()
            .map_err(StoreError::io(DOING))?;
        Ok(Self {
            jobs: Some(jobs),
            thread: Some(thread),
            adopting,
            shared,
        })
    }

    /// Makes a change; visible and durable when it answers.
    pub(super) async fn commit(&self, order: Order) -> Result<()> {
        let (done, answer) = oneshot::channel();
        self.send(Job::Commit(order, done))?;
        answer.await.unwrap_or_else(|_| Err(ended()))
    }

    /// Makes changes together, each of which may fail by itself. Blocks.
    pub(super) fn commit_all(
        &self,
        orders: impl Iterator<Item = Order>,
    ) -> Result<Vec<Result<()>>> {
        let mut answers = Vec::new();
        for order in orders {
            let (done, answer) = oneshot::channel();
            self.send(Job::Commit(order, done))?;
            answers.push(answer);
        }
        let answer =
            |answer: oneshot::Receiver<_>| answer.blocking_recv().unwrap_or_else(|_| Err(ended()));
        Ok(answers.into_iter().map(answer).collect())
    }

    /// Removes content that no repository has; what was removed. Blocks.
    pub(super) fn remove_content(&self, digests: Vec<Digest>) -> Result<Vec<Digest>> {
        let (done, answer) = oneshot::channel();
        self.send(Job::RemoveContent(digests, done))?;
        answer.blocking_recv().map_err(|_| ended())
    }

    /// Removes a repository without content; whether it was one. Blocks.
    pub(super) fn remove_if_empty(&self, repository: Repository, is_dry: bool) -> Result<bool> {
        let (done, answer) = oneshot::channel();
        self.send(Job::RemoveIfEmpty {
            repository,
            is_dry,
            done,
        })?;
        answer.blocking_recv().map_err(|_| ended())
    }

    /// Takes damaged content away; whether it was still what was looked at. Blocks.
    pub(super) fn quarantine(&self, condemned: Condemned) -> Result<bool> {
        let (done, answer) = oneshot::channel();
        self.send(Job::Quarantine(condemned, done))?;
        answer.blocking_recv().unwrap_or_else(|_| Err(ended()))
    }

    /// Makes the index agree with the folder about a repository, as long as that is not certain. Blocks.
    pub(super) fn settle(&self, repository: &Repository) -> Result<bool> {
        adoption::settle(&self.shared, self.jobs()?, repository)
    }

    /// Compares a repository with the folder in any case; whether it differed. Blocks.
    pub(super) fn refresh(&self, repository: &Repository) -> Result<bool> {
        adoption::refresh(&self.shared, self.jobs()?, repository)
    }

    fn jobs(&self) -> Result<&Sender<Job>> {
        self.jobs.as_ref().ok_or_else(ended)
    }

    fn send(&self, job: Job) -> Result<()> {
        self.jobs()?.send(job).map_err(|_| ended())
    }
}

impl Drop for Committer {
    fn drop(&mut self) {
        self.shared.adoption.stop();
        self.jobs = None;
        // What they panicked with has been printed.
        for thread in [self.adopting.take(), self.thread.take()] {
            thread.map(JoinHandle::join);
        }
    }
}

pub(super) fn ended() -> StoreError {
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
            let is_idle = match queue.recv_timeout(wait) {
                Ok(first) => {
                    let others = queue.try_iter().take(BATCH_LIMIT - 1);
                    self.make(std::iter::once(first).chain(others).collect());
                    false
                }
                Err(RecvTimeoutError::Timeout) => true,
                Err(RecvTimeoutError::Disconnected) => break,
            };
            told(self.catch_up(is_idle));
        }
        if !self.is_behind
            && let Err(error) = self.journal.end()
        {
            tracing::warn!(%error, "the next start makes the last changes again");
        }
    }

    fn make(&mut self, jobs: Vec<Job>) {
        let mut orders = Vec::new();
        for job in jobs {
            match job {
                Job::Commit(order, done) => orders.push((order, done)),
                Job::Adopt(repository, done) => {
                    done.send(self.adopt(&repository)).ok();
                }
                Job::RemoveContent(mut digests, done) => {
                    digests.retain(|digest| is_told(self.remove_content(digest)));
                    is_told(self.forget_unused(&digests));
                    done.send(digests).ok();
                }
                Job::RemoveIfEmpty {
                    repository,
                    is_dry,
                    done,
                } => {
                    done.send(is_told(self.remove_if_empty(&repository, is_dry)))
                        .ok();
                }
                Job::Quarantine(condemned, done) => {
                    done.send(self.quarantine(&condemned)).ok();
                }
            }
        }
        if !orders.is_empty() {
            self.commit(orders);
        }
    }

    fn quarantine(&mut self, condemned: &Condemned) -> Result<bool> {
        if self.is_behind {
            self.replay()?;
        }
        quarantine::take(&self.shared, condemned)
    }

    /// Here, no change is half made: what differs now was changed by others.
    fn adopt(&mut self, repository: &Repository) -> Result<bool> {
        if self.is_behind {
            self.replay()?;
        }
        let Shared {
            layout, adoption, ..
        } = &*self.shared;
        if !compare::differs(&self.shared, repository)? {
            return Ok(false);
        }
        let update = self.shared.index.update()?;
        adopt::repository(layout, &mut update.tables()?, repository, || {
            !adoption.is_stopped()
        })?;
        update.commit()?;
        Ok(true)
    }

    /// Not journalled: what was not removed after a crash is found again.
    fn remove_content(&self, digest: &Digest) -> Result<bool> {
        if self.is_behind || self.shared.index.snapshot()?.is_used(digest)? {
            return Ok(false);
        }
        let data = self.shared.layout.data(digest);
        let folder = data.parent().unwrap_or(&data);
        files::remove(&self.shared.layout, folder).map_err(StoreError::io("removing garbage"))?;
        Ok(true)
    }

    /// A failure leaves rows of what is not there, which mean nothing.
    fn forget_unused(&self, digests: &[Digest]) -> Result<bool> {
        let update = self.shared.index.update()?;
        update.tables()?.forget_unused(digests)?;
        update.commit()?;
        Ok(true)
    }

    fn remove_if_empty(&self, repository: &Repository, is_dry: bool) -> Result<bool> {
        let layout = &self.shared.layout;
        let update = self.shared.index.update()?;
        {
            let mut tables = update.tables()?;
            // What could not be read, or came meanwhile, has links all the same.
            let has_links = adopt::has_links(layout, repository)?;
            if self.is_behind || has_links || !tables.is_empty(repository)? {
                return Ok(false);
            }
            tables.forget(repository)?;
        }
        if is_dry {
            return Ok(true);
        }
        let folders = [layout.manifests(repository), layout.layers(repository)];
        for folder in folders.iter().filter(|folder| folder.is_dir()) {
            files::remove(layout, folder).map_err(StoreError::io("removing garbage"))?;
        }
        // Those that are not empty stay: uploads are under way, or other repositories lie below.
        for folder in [layout.uploads(repository), layout.repository(repository)] {
            std::fs::remove_dir(folder).ok();
        }
        update.commit()?;
        Ok(true)
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
                .place(&shared.layout, &shared.verified)
                .map_err(failed())?;
        }
        update.commit()?;
        self.is_behind = false;
        Ok(())
    }

    fn accept(&self, tables: &mut Tables<'_>, order: &mut Order) -> Result<Prepared> {
        tables.check(order)?;
        let Shared {
            layout, verified, ..
        } = &*self.shared;
        if files::is_too_young(layout, &order.change).map_err(StoreError::io(DOING))? {
            return Err(StoreError::Renewed);
        }
        let prepared = files::prepare(layout, verified, order).map_err(|error| {
            match &order.change {
                // Seen a moment ago, and collected since.
                Change::AddBlob { blob, .. } if error.kind() == io::ErrorKind::NotFound => {
                    StoreError::UnknownBlob(blob.told().clone())
                }
                _ => StoreError::io(DOING)(error),
            }
        })?;
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
        let Shared {
            layout, verified, ..
        } = &*self.shared;
        match files::prepare(layout, verified, order) {
            Ok(prepared) => prepared
                .place(layout, verified)
                .map_err(StoreError::io(DOING))?,
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
        self.shared.index.sync()?;
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

/// Whether it was done; why it could not be is logged.
fn is_told(result: Result<bool>) -> bool {
    result.unwrap_or_else(|error| {
        let error = model::error::chain(&error);
        tracing::error!(error, "garbage stays");
        false
    })
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
