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
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::oneshot;

use super::adoption::{self, Adoption};
use super::change::{Change, Order};
use super::files::{self, Prepared};
use super::index::Index;
use super::journal::{self, Journal};
use super::layout::Layout;
use super::quarantine::{self, Condemned};
use super::reserve::Reserve;
use super::tables::Tables;
use super::writable::{Writable, WriteSide};
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
/// Between attempts to recover: the first, and the longest.
const RETRY: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(4));
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
    pub(super) write_side: WriteSide,
    pub(super) reserve: Reserve,
    /// Nothing is ever changed: why.
    pub(super) read_only: Option<String>,
}

impl Shared {
    /// Makes the index durable, except where nothing is changed.
    pub(super) fn sync_index(&self) -> Result<()> {
        if self.read_only.is_some() {
            return Ok(());
        }
        self.index.sync(&self.layout.temporary())
    }
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
    /// Starts; what an earlier process promised is made before, if the medium lets it. A folder that cannot be changed
    /// yet is opened for changes as soon as it can be.
    ///
    /// Errors: Damaged – another process has the folder open.
    pub(super) fn start(shared: Arc<Shared>, writable: Result<Writable>) -> Result<Self> {
        let mut work = Work {
            shared,
            journal: None,
            exclusive: None,
            old: Vec::new(),
            catching_up: None,
            is_behind: false,
            is_doubtful: false,
            must_recall: false,
            retry: RETRY.0,
            last_complaint: String::new(),
            tended: Instant::now(),
        };
        if work.shared.read_only.is_none() {
            let started = writable
                .map(|writable| work.take_over(writable))
                .and_then(|()| work.recover());
            match started {
                // Reads are served from what is there.
                Err(error) if error.is_full() => work.shared.write_side.note(&Err(error)),
                started => started?,
            }
        }
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
    /// Nothing: the folder could not be opened for changes yet.
    journal: Option<Journal>,
    /// Held as long as changes may be made.
    exclusive: Option<File>,
    /// Files of the journal before the one that is written; they go when the medium has caught up.
    old: Vec<PathBuf>,
    /// Syncs the medium.
    catching_up: Option<JoinHandle<io::Result<()>>>,
    /// Something was promised by the journal and could not be made.
    is_behind: bool,
    /// The medium may have lost what the folder shows: the replay writes everything again.
    is_doubtful: bool,
    /// The index may not agree with the quarantine.
    must_recall: bool,
    /// Until the next attempt to recover.
    retry: Duration,
    /// Why the journal could not be emptied, as it was logged last.
    last_complaint: String,
    /// When the reserve was looked after.
    tended: Instant,
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
            let is_broken = self.shared.write_side.broken().is_some();
            let wait = if self.catching_up.is_some() {
                LOOK
            } else if is_broken {
                self.retry
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
            if self.shared.read_only.is_some() {
                continue;
            }
            if is_idle && is_broken {
                self.retry = (self.retry * 2).min(RETRY.1);
                let recovered = self.recover();
                self.note(&recovered);
            }
            self.tend();
            let caught_up = self.catch_up(is_idle);
            self.complain(caught_up);
        }
        let Some(journal) = self.journal.take() else {
            return;
        };
        // Else the next start reads again what changed last, and does not know what was freed.
        if let Err(error) = self.shared.sync_index() {
            let error = model::error::chain(&error);
            tracing::warn!(error, "the index is not synced; the next start compares it");
        }
        if !self.is_behind
            && !self.is_doubtful
            && let Err(error) = journal.end()
        {
            tracing::warn!(%error, "the next start makes the last changes again");
        }
    }

    fn note(&mut self, outcome: &Result<()>) {
        if outcome.is_ok() {
            self.retry = RETRY.0;
        }
        self.shared.write_side.note(outcome);
    }

    /// Takes the reserve again once there is room for it.
    fn tend(&mut self) {
        if self.shared.reserve.is_released() && self.tended.elapsed() >= IDLE / 2 {
            self.tended = Instant::now();
            if self.journal.is_some() && self.shared.reserve.take().is_ok() {
                tracing::info!("the disk has room again");
            }
        }
    }

    /// Logs why the journal cannot be emptied, once for each reason.
    fn complain(&mut self, caught_up: Result<()>) {
        let error = caught_up
            .err()
            .map_or(String::new(), |error| model::error::chain(&error));
        if !error.is_empty() && error != self.last_complaint {
            tracing::error!(error, "the journal cannot be emptied, which is tried again");
        }
        self.last_complaint = error;
    }

    /// Makes whatever was promised before, and all that keeps changes from being made now, good again.
    fn recover(&mut self) -> Result<()> {
        if self.journal.is_none() {
            let writable = Writable::open(&self.shared.layout)?;
            self.take_over(writable);
        }
        if self.shared.index.has_failed() {
            let Shared { layout, index, .. } = &*self.shared;
            index.rebuild(|fresh| fill(layout, fresh))?;
            self.is_behind = true;
            self.must_recall = true;
        }
        if let Some(journal) = &mut self.journal {
            journal.mend().map_err(StoreError::io(DOING))?;
        }
        if self.is_behind {
            self.replay()
                .or_else(|error| self.with_reserve(error, Self::replay))?;
        }
        if self.must_recall {
            quarantine::recall(&self.shared)?;
            self.must_recall = false;
        }
        Ok(())
    }

    /// Does it once more with the room of the reserve, if that is what it failed for.
    fn with_reserve(
        &mut self,
        error: StoreError,
        again: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        if error.is_full() && self.shared.reserve.release() {
            again(self)
        } else {
            Err(error)
        }
    }

    /// Continues where the last process ended.
    fn take_over(&mut self, writable: Writable) {
        let (journal, old, may_miss, exclusive) = writable.into_parts();
        self.exclusive = Some(exclusive);
        self.old = old;
        self.journal = Some(journal);
        if self.shared.reserve.take().is_err() {
            tracing::warn!(
                "the disk is nearly full: there is no room for the reserve, so nothing can be added"
            );
        }
        self.is_behind = may_miss;
        self.must_recall = true;
    }

    fn make(&mut self, jobs: Vec<Job>) {
        let mut orders = Vec::new();
        for job in jobs {
            match job {
                Job::Commit(order, done) => orders.push((order, done)),
                Job::Adopt(repository, done) => {
                    done.send(self.adopt(&repository)).ok();
                }
                Job::RemoveContent(_, done) if self.shared.read_only.is_some() => {
                    done.send(Vec::new()).ok();
                }
                Job::RemoveContent(mut digests, done) => {
                    digests.retain(|digest| is_told(self.remove_content(digest)));
                    is_told(self.forget_unused(&digests));
                    done.send(digests).ok();
                }
                Job::RemoveIfEmpty { done, .. } if self.shared.read_only.is_some() => {
                    done.send(false).ok();
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
        self.may_change()?;
        self.recover()?;
        quarantine::take(&self.shared, condemned)
    }

    /// Here, no change is half made: what differs now was changed by others.
    fn adopt(&mut self, repository: &Repository) -> Result<bool> {
        // A folder that cannot be changed is read all the same.
        if self.is_behind && self.journal.is_some() {
            self.recover()?;
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

    /// Errors: the folder is never changed.
    fn may_change(&self) -> Result<()> {
        match &self.shared.read_only {
            Some(why) => Err(StoreError::ReadOnly(why.clone())),
            None => Ok(()),
        }
    }

    fn commit(&mut self, orders: Vec<(Order, oneshot::Sender<Result<()>>)>) {
        if let Err(refused) = self.may_change() {
            return refuse(orders, &refused);
        }
        let recovered = self.recover();
        if let Err(error) = &recovered {
            refuse(orders, error);
            return self.note(&recovered);
        }
        let mut accepted = Vec::new();
        let made = self.try_commit(orders, &mut accepted);
        self.note(&made);
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
        self.append(accepted)?;
        self.is_behind = true;
        let placed = accepted
            .iter_mut()
            .map(|accepted| std::mem::take(&mut accepted.prepared))
            .try_for_each(|prepared| prepared.place(&shared.layout, &shared.verified))
            .map_err(StoreError::io(DOING));
        // Without a commit the index has none of it; two updates at once would wait for each other.
        let shown = placed.and_then(|()| update.commit());
        if let Err(error) = shown {
            tracing::warn!(
                error = model::error::chain(&error),
                "changes are made again from the journal"
            );
            // The journal has them: what failed for a moment only, or for lack of room, can still be made good.
            return self
                .replay()
                .or_else(|error| self.with_reserve(error, Self::replay));
        }
        self.is_behind = false;
        Ok(())
    }

    /// Promises changes. Deletions may use the reserve.
    fn append(&mut self, accepted: &[Accepted]) -> Result<()> {
        let append = |work: &mut Self| {
            let orders = accepted.iter().map(|accepted| &accepted.order);
            let journal = work.journal.as_mut().ok_or_else(ended)?;
            journal.append(orders).map_err(StoreError::io(DOING))
        };
        let removes = accepted
            .iter()
            .any(|accepted| !accepted.order.change.adds());
        append(self).or_else(|error| {
            if removes {
                self.with_reserve(error, append)
            } else {
                Err(error)
            }
        })
    }

    fn accept(&self, tables: &mut Tables<'_>, order: &mut Order) -> Result<Prepared> {
        tables.check(order)?;
        if order.change.adds() && self.shared.reserve.is_released() {
            return Err(full());
        }
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
        let own = self.journal.iter().filter(|journal| journal.length() > 0);
        let own: Vec<_> = own.map(Journal::path).collect();
        // What nobody has verified is written again if the journal has it.
        let verified = if self.is_doubtful {
            &Verified::default()
        } else {
            &self.shared.verified
        };
        for file in self.old.iter().cloned().chain(own) {
            let update = self.shared.index.update()?;
            {
                let mut tables = update.tables()?;
                for order in journal::read(&file).map_err(failed())? {
                    self.remake(&mut tables, verified, &order.map_err(failed())?)?;
                }
            }
            update.commit()?;
        }
        self.is_behind = false;
        self.is_doubtful = false;
        Ok(())
    }

    fn remake(&self, tables: &mut Tables<'_>, verified: &Verified, order: &Order) -> Result<()> {
        let layout = &self.shared.layout;
        match files::prepare(layout, verified, order) {
            Ok(prepared) => prepared
                .place(layout, &self.shared.verified)
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
        if let Err(error) = synced {
            // The kernel tells of a lost page once; the next sync would succeed without it. So everything is written
            // again before the journal may go.
            self.is_doubtful = true;
            self.is_behind = true;
            return Err(failed()(error));
        }
        self.shared.sync_index()?;
        // Oldest first, each durable before the next: a replay of later files without these would be fine, one of
        // these alone would undo what came later.
        while let Some(file) = self.old.first() {
            journal::remove(file).map_err(failed())?;
            self.old.remove(0);
        }
        Ok(())
    }

    fn begin_to_catch_up(&mut self, is_idle: bool) -> Result<()> {
        let failed = || StoreError::io("syncing the storage folder");
        if is_idle && self.is_behind && self.journal.is_some() {
            self.recover()?;
        }
        let Some(journal) = &mut self.journal else {
            return Ok(());
        };
        let length = journal.length();
        let has_work = length > 0 || !self.old.is_empty() || self.shared.index.is_frozen();
        let is_time = length >= JOURNAL_LIMIT_BYTES || is_idle && has_work;
        if !is_time || self.is_behind {
            return Ok(());
        }
        if length > 0 {
            self.old.push(journal.rotate().map_err(failed())?);
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

fn refuse(orders: Vec<(Order, oneshot::Sender<Result<()>>)>, why: &StoreError) {
    for (_, done) in orders {
        done.send(Err(again(why))).ok();
    }
}

/// Reads the whole folder into an empty index.
fn fill(layout: &Layout, index: &Index) -> Result<()> {
    for repository in adopt::repositories(layout, || true)? {
        let update = index.update()?;
        adopt::repository(layout, &mut update.tables()?, &repository, || true)?;
        update.commit()?;
    }
    Ok(())
}

/// There is room for deletions only.
pub(super) fn full() -> StoreError {
    let why = "the disk has only its reserve left, which is for deletions";
    StoreError::io(DOING)(io::Error::new(io::ErrorKind::StorageFull, why))
}

/// The same failure, for everybody whose change was made together with others.
fn again(error: &StoreError) -> StoreError {
    match error {
        StoreError::Io { doing, source } => StoreError::Io {
            doing,
            source: io::Error::new(source.kind(), source.to_string()),
        },
        StoreError::ReadOnly(why) => StoreError::ReadOnly(why.clone()),
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
