//! The table is sound: every row can fire, nothing falls through, every status can be reached.

use std::collections::BTreeSet;

use model::cluster::{ClusterStatus, FinalizingStage};

use super::facts::{Facts, Judged};
use super::table::TABLE;
use super::trigger::On;
use crate::InstallationPolicy;
use crate::fixtures::{now, snapshot};
use crate::table::{self, To};

/// The same facts on every run: each bit of `seed` is one claim.
fn facts(seed: u32) -> Facts {
    let base = Facts::of(
        &snapshot(1, 0),
        Judged::default(),
        &InstallationPolicy::default(),
        now(),
    );
    let bit = |at: u32| seed >> at & 1 == 1;
    let text = |at: u32| {
        if bit(at) {
            "node-1".to_owned()
        } else {
            String::new()
        }
    };
    Facts {
        input_missing: bit(0),
        ready: bit(1),
        prepared: bit(2),
        preparation_failed: bit(3),
        prepare_expired: bit(4),
        hosts_prepared: bit(5),
        hosts_failed_preparing: text(6),
        hosts_left_preparing: text(7),
        hosts_pending_action: text(8),
        hosts_pending_reset: text(19),
        hosts_pending_retry: text(20),
        can_install: bit(9),
        can_finalize: bit(10),
        hosts_ended: bit(11),
        installation_expired: bit(12),
        finalizing_expired: bit(13),
        finalizing_stage_expired: bit(14),
        finalizing_stage: bit(15).then_some(FinalizingStage::AddingRouterCa),
        soft_timeouts: bit(16),
        kubeconfig: bit(17),
        builtin_available: bit(17),
        olm_ended: bit(17),
        logs_overdue: bit(18),
        ..base
    }
}

fn seeds() -> impl Iterator<Item = u32> {
    (0..20_000_u32).map(|at| at.wrapping_mul(2_654_435_761) >> 7)
}

#[test]
fn every_row_fires_for_some_facts() {
    let mut silent: BTreeSet<&str> = TABLE
        .iter()
        .copied()
        .flatten()
        .map(|rule| rule.name)
        .collect();
    for facts in seeds().map(facts) {
        for rule in TABLE
            .iter()
            .copied()
            .flatten()
            .filter(|rule| (rule.when)(&facts))
        {
            let fired = rule.from.iter().any(|from| {
                table::find(TABLE, &rule.on, from, &facts)
                    .is_some_and(|found| std::ptr::eq(found, rule))
            });
            if fired {
                silent.remove(rule.name);
            }
        }
        if silent.is_empty() {
            return;
        }
    }
    panic!("rows that never fire: {silent:?}");
}

#[test]
fn a_refresh_never_falls_through_nor_is_refused() {
    for facts in seeds().take(2_000).map(facts) {
        for status in ClusterStatus::ALL {
            let rule = table::find(TABLE, &On::Refresh, status, &facts)
                .unwrap_or_else(|| panic!("{status} falls through with {facts:?}"));
            assert!(!matches!(rule.to, To::Refuse(_)), "{}", rule.name);
        }
    }
}

#[test]
fn every_status_can_be_reached() {
    // Clusters start in one of these.
    let mut reached = BTreeSet::from([
        ClusterStatus::Insufficient,
        ClusterStatus::AddingHosts,
        ClusterStatus::Unmonitored,
    ]);
    for _ in ClusterStatus::ALL {
        let more: Vec<ClusterStatus> = TABLE
            .iter()
            .copied()
            .flatten()
            .filter(|rule| rule.from.iter().any(|from| reached.contains(from)))
            .filter_map(|rule| match rule.to {
                To::Go(to) => Some(to),
                To::Stay | To::Refuse(_) => None,
            })
            .collect();
        reached.extend(more);
    }
    assert_eq!(reached.len(), ClusterStatus::ALL.len(), "{reached:?}");
}
