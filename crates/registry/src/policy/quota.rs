//! Usage of a quota's repositories together: each content counts once.
//!
//! A full count starts it, additions are added to it; removals show at the next full count, which happens before a
//! request is refused.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use blob_store::{ContentStore as _, StoreError};
use oci::{Digest, Repository};
use tokio::sync::Mutex as AsyncMutex;

use super::{Policy, Quota, matches};
use crate::storage::Store;

/// Contents that are listed at once.
const PAGE: usize = 256;
/// Age of a full count that is reused: repeated refusals cause no more counting.
const FRESH: Duration = Duration::from_secs(10);
/// Bytes that the repositories of a quota hold.
const USED_METRIC: &str = "atoll_registry_quota_used_bytes";
/// Bytes that they may hold.
const LIMIT_METRIC: &str = "atoll_registry_quota_limit_bytes";

/// Usage by quota.
#[derive(Debug, Default)]
pub(crate) struct Quotas {
    accounts: Mutex<Accounts>,
    /// Held during a full count.
    counting: AsyncMutex<()>,
}

#[derive(Debug, Default)]
struct Accounts {
    /// The one that the others belong to.
    policy: Option<Arc<Policy>>,
    counted_at: Option<Instant>,
    each: Vec<Account>,
}

/// Units: bytes.
#[derive(Debug, Clone, Copy, Default)]
struct Account {
    used: u64,
    /// On its way.
    reserved: u64,
}

/// Room for content on its way. Dropped, it is free again.
#[derive(Debug)]
pub(crate) struct Reservation<'a> {
    quotas: &'a Quotas,
    policy: Arc<Policy>,
    of: Vec<usize>,
    bytes: u64,
}

/// A quota that is exhausted.
#[derive(Debug)]
pub(crate) struct Exceeded {
    pub(crate) repositories: String,
    /// Units: bytes.
    pub(crate) limit: u64,
    /// Units: bytes.
    pub(crate) used: u64,
    /// Units: bytes.
    pub(crate) wanted: u64,
}

impl Quotas {
    /// Reserves `bytes` of content in `repository`; content that the quota's repositories have already needs none.
    ///
    /// Errors: of the store. The inner ones: a quota is exhausted.
    pub(crate) async fn reserve(
        &self,
        store: &Store,
        policy: Arc<Policy>,
        repository: &Repository,
        content: Option<&Digest>,
        bytes: u64,
    ) -> Result<Result<Reservation<'_>, Exceeded>, StoreError> {
        let mut of = policy.quotas_of(repository);
        if let (Some(content), false) = (content, of.is_empty()) {
            let holders = store.holders(content).await?;
            of.retain(|&index| !policy.quotas[index].is_of_any(&holders));
        }
        if of.is_empty() {
            let none = Vec::new();
            return Ok(Ok(Reservation::new(self, policy, none, 0)));
        }
        self.count(store, &policy, None).await?;
        let mut tried = self.try_reserve(&policy, &of, bytes);
        if tried.is_err() {
            self.count(store, &policy, Some(FRESH)).await?;
            tried = self.try_reserve(&policy, &of, bytes);
        }
        Ok(tried.map(|()| Reservation::new(self, policy, of, bytes)))
    }

    /// Every quota with its usage.
    pub(crate) async fn usage(
        &self,
        store: &Store,
        policy: &Arc<Policy>,
    ) -> Result<Vec<Exceeded>, StoreError> {
        self.count(store, policy, Some(FRESH)).await?;
        let accounts = self.accounts();
        let quotas = policy.quotas.iter().zip(&accounts.each);
        Ok(quotas
            .map(|(quota, account)| quota.with(account, 0))
            .collect())
    }

    fn accounts(&self) -> MutexGuard<'_, Accounts> {
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn try_reserve(&self, policy: &Arc<Policy>, of: &[usize], bytes: u64) -> Result<(), Exceeded> {
        let mut accounts = self.accounts();
        // The policy has changed meanwhile: the next full count includes this content.
        if !accounts.is_of(policy) {
            return Ok(());
        }
        for &index in of {
            let (quota, account) = (&policy.quotas[index], &accounts.each[index]);
            let held = account.used.saturating_add(account.reserved);
            if held.saturating_add(bytes) > quota.limit.0 {
                return Err(quota.with(account, bytes));
            }
        }
        for &index in of {
            accounts.each[index].reserved += bytes;
        }
        Ok(())
    }

    /// Counts everything, unless that was done for this policy; with `fresh`, at most that long ago.
    async fn count(
        &self,
        store: &Store,
        policy: &Arc<Policy>,
        fresh: Option<Duration>,
    ) -> Result<(), StoreError> {
        if self.accounts().is_known(policy, fresh) {
            return Ok(());
        }
        let _turn = self.counting.lock().await;
        if self.accounts().is_known(policy, fresh) {
            return Ok(());
        }
        let began = Instant::now();
        let used = held(store, &policy.quotas).await?;
        let mut accounts = self.accounts();
        if !accounts.is_of(policy) {
            accounts.each = vec![Account::default(); used.len()];
            accounts.policy = Some(Arc::clone(policy));
        }
        for (account, used) in accounts.each.iter_mut().zip(used) {
            account.used = used;
        }
        accounts.counted_at = Some(began);
        accounts.export();
        Ok(())
    }
}

impl Accounts {
    fn is_of(&self, policy: &Arc<Policy>) -> bool {
        let own = self.policy.as_ref();
        own.is_some_and(|own| Arc::ptr_eq(own, policy))
    }

    fn is_known(&self, policy: &Arc<Policy>, fresh: Option<Duration>) -> bool {
        let is_fresh = |counted_at: Instant| fresh.is_none_or(|fresh| counted_at.elapsed() < fresh);
        self.is_of(policy) && self.counted_at.is_some_and(is_fresh)
    }

    fn export(&self) {
        let Some(policy) = &self.policy else { return };
        for (quota, account) in policy.quotas.iter().zip(&self.each) {
            let (used, limit) = (account.used, quota.limit.0);
            #[expect(clippy::cast_precision_loss, reason = "a gauge is no account")]
            let (used, limit) = (used as f64, limit as f64);
            metrics::gauge!(USED_METRIC, "repositories" => quota.name()).set(used);
            metrics::gauge!(LIMIT_METRIC, "repositories" => quota.name()).set(limit);
        }
    }
}

impl<'a> Reservation<'a> {
    fn new(quotas: &'a Quotas, policy: Arc<Policy>, of: Vec<usize>, bytes: u64) -> Self {
        Self {
            quotas,
            policy,
            of,
            bytes,
        }
    }

    /// The content is there.
    pub(crate) fn used(self) {
        let mut accounts = self.quotas.accounts();
        if accounts.is_of(&self.policy) {
            for &index in &self.of {
                accounts.each[index].used += self.bytes;
            }
            accounts.export();
        }
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        let mut accounts = self.quotas.accounts();
        // Those of another policy know nothing of it.
        if accounts.is_of(&self.policy) {
            for &index in &self.of {
                let account = &mut accounts.each[index];
                account.reserved = account.reserved.saturating_sub(self.bytes);
            }
        }
    }
}

impl Policy {
    fn quotas_of(&self, repository: &Repository) -> Vec<usize> {
        let quotas = self.quotas.iter().enumerate();
        quotas
            .filter(|(_, quota)| matches(&quota.repositories, repository))
            .map(|(index, _)| index)
            .collect()
    }
}

impl Quota {
    fn is_of_any(&self, repositories: &[Repository]) -> bool {
        let mut repositories = repositories.iter();
        repositories.any(|repository| matches(&self.repositories, repository))
    }

    fn name(&self) -> String {
        let names: Vec<_> = self.repositories.iter().map(ToString::to_string).collect();
        names.join(" ")
    }

    fn with(&self, account: &Account, wanted: u64) -> Exceeded {
        Exceeded {
            repositories: self.name(),
            limit: self.limit.0,
            used: account.used + account.reserved,
            wanted,
        }
    }
}

/// Current usage of each quota. Units: bytes.
async fn held(store: &Store, quotas: &[Quota]) -> Result<Vec<u64>, StoreError> {
    let mut used = vec![0; quotas.len()];
    let mut after = None;
    loop {
        let page = store.contents(after.as_ref(), PAGE).await?;
        let Some(last) = page.last() else {
            return Ok(used);
        };
        after = Some(last.digest.clone());
        for content in page {
            let Some(size) = content.size else { continue };
            let holders = store.holders(&content.digest).await?;
            for (quota, used) in quotas.iter().zip(&mut used) {
                if quota.is_of_any(&holders) {
                    *used += size;
                }
            }
        }
        tokio::task::yield_now().await;
    }
}
