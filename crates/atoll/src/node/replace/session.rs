//! A run of the command: its connections, its lease, and the replacement it is about.

use std::fs;
use std::future;
use std::os::unix::fs::MetadataExt as _;

use chrono::{DateTime, Utc};
use etcd::EtcdCluster;
use kubernetes::{ClusterLease, KubernetesCluster, LeaseTerms, REPAIR_LEASE};
use model::node_replacement::{NodeReplacementPlan, ReplacementState};
use replacement::{
    NodeBmcs, OpenReplacement, ProgressPublisher, ReplacementCase, ReplacementObserver as _,
    ReplacementProgress, ReplacementRequest, ReplacementStore, ReplacementWorld, RunEvent,
    StepPatience, abort, drop_learner, observe, observe_with, open_case, plan, publish_changes,
    publish_last, run,
};
use serde_json::Value;
use service::{Error, ResultExt as _, clock};
use supervisor::account::{self, Account};

use super::arguments::NodeReplaceArgs;
use super::printer::ProgressPrinter;
use super::records::MachineRecords;
use super::{machines, plan_text};
use crate::node::etcd::observe_elected;
use crate::terminal;

/// Renewals of the lease within its duration.
const RENEWALS: u32 = 4;

/// Connections and journals.
pub(super) struct ReplacementSession {
    cluster: KubernetesCluster,
    etcd: EtcdCluster,
    store: ReplacementStore,
    /// As `alice@bastion`.
    person: String,
    patience: StepPatience,
}

impl ReplacementSession {
    /// Errors: kubeconfig, etcd's records or the folder cannot be used; another process has the folder.
    pub(super) async fn open(arguments: &NodeReplaceArgs) -> Result<Self, Error> {
        let cluster = arguments.cluster.connect().await?;
        let etcd = arguments.etcd.connect(&arguments.cluster).await?;
        let store = ReplacementStore::open(&arguments.state);
        Ok(Self {
            cluster,
            etcd,
            store: store.doing(|| format!("opening {}", arguments.state.display()))?,
            person: person(),
            patience: StepPatience {
                limit: std::time::Duration::from_mins(arguments.step_limit),
                ..StepPatience::default()
            },
        })
    }

    /// Shows the plan.
    pub(super) async fn plan(self, arguments: &NodeReplaceArgs) -> Result<(), Error> {
        let (own, others): (Vec<_>, Vec<_>) = self
            .unfinished()?
            .partition(|(_, progress)| progress.request.node == arguments.node);
        let own = own.into_iter().next();
        let (progress, open) = if let Some((id, progress)) = own {
            (progress, Some(self.resume(&id)?))
        } else {
            let request = self.request(arguments);
            let case = self.case(&request).await?;
            (ReplacementProgress::new(request, case), None)
        };
        let records = self.records(arguments, &progress.case, open.as_ref());
        let records = records.await?;
        let machines = machines::of_records(&records, &arguments.boot)?;
        let view = observe(&self.world(&machines), Some(&progress.case)).await;
        let view = view.doing("planning the replacement")?;
        let others: Vec<_> = others.into_iter().map(|(id, _)| id).collect();
        let plan = plan(&progress, &view, &others);
        if arguments.format.is_json() {
            let json = serde_json::to_string_pretty(&NodeReplacementPlan::from(&plan));
            terminal::print(&json.doing("writing JSON")?);
        } else {
            terminal::print(&plan_text::screen(&plan));
        }
        Ok(())
    }

    /// Begins, continues or ends the replacement, while this command has the cluster's lease.
    pub(super) async fn perform(self, arguments: &NodeReplaceArgs) -> Result<(), Error> {
        let holder = format!("{}, process {}", self.person, std::process::id());
        let (cluster, terms) = (&self.cluster, LeaseTerms::default());
        let lease = ClusterLease::take(cluster, &REPAIR_LEASE, &holder, terms).await;
        let mut lease = lease.doing("taking the lease of repairs")?;
        // Cut at any point, a run is continued by the next one.
        let ended = tokio::select! {
            ended = self.act(arguments) => ended,
            lost = keep(&mut lease) => Err(Error::new("keeping the lease of repairs", lost)),
        };
        terminal::clear_progress();
        if let Err(error) = lease.release().await {
            terminal::notice(&format!("the lease of repairs ends by itself: {error}"));
        }
        ended
    }

    async fn act(&self, arguments: &NodeReplaceArgs) -> Result<(), Error> {
        let doing = || format!("replacing {}", arguments.node);
        let (mut replacement, machines) = self.prepare(arguments).await?;
        let by_hand = machines::instructions(&machines, &replacement.progress().case.new);
        let progress = replacement.progress();
        let mut printer = ProgressPrinter::new(progress.window, by_hand);
        let mut publisher = ProgressPublisher::new(&replacement.id, progress, clock::now());
        let reports = publisher.reports();
        let mut observer = |event: RunEvent<'_>, now: DateTime<Utc>| {
            publisher.on_event(event, now)?;
            printer.on_event(event, now)
        };
        let world = self.world(&machines);
        let (open, store) = (&mut replacement, &self.store);
        let acting = async {
            if arguments.abort {
                abort(open, store, world, &mut observer).await
            } else if arguments.drop_learner {
                let dropped = drop_learner(open, store, world, &mut observer).await;
                dropped.map(drop)
            } else {
                run(open, store, world, &mut observer).await
            }
        };
        let ended = tokio::select! {
            ended = acting => ended,
            never = publish_changes(&self.cluster, reports.clone()) => match never {},
        };
        if let Err(error) = publish_last(&self.cluster, &reports).await {
            terminal::notice(&format!(
                "the cluster shows an earlier progress of the replacement: {error}"
            ));
        }
        ended.map_err(|error| {
            let journal = arguments.state.join(&replacement.id);
            let reason = format!(
                "{error}. Run the command again to continue; the journal is {}",
                journal.display()
            );
            Error::new(doing(), reason)
        })
    }

    /// The unfinished replacement of the node, or a new one, with its machines.
    async fn prepare(
        &self,
        arguments: &NodeReplaceArgs,
    ) -> Result<(OpenReplacement, NodeBmcs), Error> {
        let mut known = self.unfinished()?;
        let unfinished = known.find(|(_, progress)| progress.request.node == arguments.node);
        match unfinished {
            Some((id, progress)) => self.proceed(arguments, &id, &progress).await,
            None if arguments.abort || arguments.drop_learner => {
                let reason = "there is no unfinished replacement of this node";
                Err(Error::new(format!("replacing {}", arguments.node), reason))
            }
            None => self.begin(arguments).await,
        }
    }

    /// Unfinished replacements by their ids.
    fn unfinished(&self) -> Result<impl Iterator<Item = (String, ReplacementProgress)>, Error> {
        let known = self.store.list();
        let known = known.doing("reading the journals")?;
        let is_unfinished =
            |it: &(String, ReplacementProgress)| it.1.state == ReplacementState::Unfinished;
        Ok(known.into_iter().filter(is_unfinished))
    }

    async fn begin(
        &self,
        arguments: &NodeReplaceArgs,
    ) -> Result<(OpenReplacement, NodeBmcs), Error> {
        let request = self.request(arguments);
        let case = self.case(&request).await?;
        let records = self.records(arguments, &case, None).await?;
        let machines = machines::of_records(&records, &arguments.boot)?;
        let given: &[Value] = match &arguments.wish.records {
            Some(_) => &records.new,
            None => &[],
        };
        let begun = self.store.begin(request, case, given, clock::now());
        Ok((
            begun.doing(|| format!("replacing {}", arguments.node))?,
            machines,
        ))
    }

    async fn proceed(
        &self,
        arguments: &NodeReplaceArgs,
        id: &str,
        progress: &ReplacementProgress,
    ) -> Result<(OpenReplacement, NodeBmcs), Error> {
        let doing = || format!("replacing {}", arguments.node);
        let request = self.request(arguments);
        if let Some(difference) = difference(&request, &progress.request) {
            let reason = format!(
                "{id} is unfinished and has another {difference}: continue it without options, or end it with --abort"
            );
            return Err(Error::new(doing(), reason));
        }
        let mut replacement = self.resume(id)?;
        if let (Some(by), None) = (
            &request.confirmed_off_by,
            &progress.request.confirmed_off_by,
        ) {
            let confirmed = replacement.confirm_off(by, clock::now());
            confirmed.doing(doing)?;
        }
        let case = &progress.case;
        let records = self.records(arguments, case, Some(&replacement)).await?;
        let machines = machines::of_records(&records, &arguments.boot)?;
        Ok((replacement, machines))
    }

    fn resume(&self, id: &str) -> Result<OpenReplacement, Error> {
        let replacement = self.store.resume(id);
        replacement.doing(|| format!("continuing {id}"))
    }

    fn request(&self, arguments: &NodeReplaceArgs) -> ReplacementRequest {
        arguments.wish.request(&arguments.node, &self.person)
    }

    async fn case(&self, request: &ReplacementRequest) -> Result<ReplacementCase, Error> {
        let doing = || format!("replacing {}", request.node);
        let machines = machines::none()?;
        // The API does not answer without a leader of etcd: it is observed afterwards.
        let elected = observe_elected(&self.etcd).await;
        let elected = future::ready(Ok(elected.doing(doing)?));
        let view = observe_with(elected, &self.world(&machines), None).await;
        let view = view.doing(doing)?;
        open_case(request, &view).doing(doing)
    }

    async fn records(
        &self,
        arguments: &NodeReplaceArgs,
        case: &ReplacementCase,
        open: Option<&OpenReplacement>,
    ) -> Result<MachineRecords, Error> {
        let file = arguments.wish.records.as_deref();
        MachineRecords::read(&self.cluster, case, open, file).await
    }

    fn world<'a>(&'a self, machines: &'a NodeBmcs) -> ReplacementWorld<'a> {
        ReplacementWorld {
            etcd: &self.etcd,
            kubernetes: &self.cluster,
            hardware: machines,
            now: &clock::now,
            patience: self.patience,
        }
    }
}

/// The member in which a wish differs from the journal's, where it says something at all.
fn difference(wish: &ReplacementRequest, journaled: &ReplacementRequest) -> Option<&'static str> {
    if wish.new.is_some() && wish.new != journaled.new {
        return Some("new node");
    }
    if wish.is_unwanted && !journaled.is_unwanted {
        return Some("kind: its node has failed");
    }
    if !wish.also_lost.is_empty() && wish.also_lost != journaled.also_lost {
        return Some("list of lost nodes");
    }
    (wish.skips_snapshot && !journaled.skips_snapshot).then_some("decision about the snapshot")
}

/// Renews the lease until it is lost.
async fn keep(lease: &mut ClusterLease) -> model::Error {
    loop {
        tokio::time::sleep(lease.duration() / RENEWALS).await;
        // Other errors pass: the API may be away in the middle of a repair.
        if let Err(lost @ model::Error::Conflict { .. }) = lease.renew().await {
            return lost;
        }
    }
}

/// The person that runs the command, for journals and leases: as logged in, also with sudo.
fn person() -> String {
    let login = fs::read_to_string("/proc/self/loginuid").ok();
    let login = login.and_then(|text| text.trim().parse::<u32>().ok());
    let own = || fs::metadata("/proc/self").map(|own| own.uid()).ok();
    let uid = login.filter(|uid| *uid != u32::MAX).or_else(own);
    let passwd = account::passwd().unwrap_or_default();
    let user = uid.and_then(|uid| Account::with_uid(&passwd, uid));
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let user = user.map_or_else(|| "unknown".to_owned(), |account| account.name);
    format!("{user}@{}", host.trim())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn wish() -> ReplacementRequest {
        ReplacementRequest {
            node: "control-2".to_owned(),
            new: None,
            is_unwanted: false,
            confirmed_off_by: None,
            also_lost: BTreeSet::new(),
            skips_snapshot: false,
        }
    }

    #[test]
    fn a_run_that_continues_says_the_same_or_nothing() {
        let new = replacement::NodePlace {
            name: "control-4".to_owned(),
            address: "192.0.2.14".parse().unwrap(),
        };
        let journaled = ReplacementRequest {
            new: Some(new.clone()),
            is_unwanted: true,
            ..wish()
        };
        assert_eq!(difference(&wish(), &journaled), None);
        assert_eq!(difference(&journaled, &journaled), None);
        assert_eq!(difference(&journaled, &wish()), Some("new node"));
        let lost = ReplacementRequest {
            also_lost: BTreeSet::from(["control-3".to_owned()]),
            ..wish()
        };
        assert_eq!(difference(&lost, &wish()), Some("list of lost nodes"));
        let skips = ReplacementRequest {
            skips_snapshot: true,
            ..wish()
        };
        assert!(difference(&skips, &wish()).is_some());
        assert_eq!(difference(&wish(), &skips), None);
    }
}
