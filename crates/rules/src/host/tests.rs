//! The table is sound: every row can fire, nothing falls through, every status can be reached.

use std::collections::BTreeSet;

use model::cluster::ClusterStatus;
use model::host::{HostStage, HostStatus};

use super::facts::{ClusterInputs, Facts, ProgressReport, StageMove};
use super::table::TABLE;
use super::trigger::On;
use crate::InstallationPolicy;
use crate::fixtures::{discovering, now};
use crate::hardware::check_outcome::CheckOutcome;
use crate::table::{self, To};

/// Statuses without a rule: those of older databases.
const FOREIGN: &[HostStatus] = &[HostStatus::Disabled, HostStatus::DisabledUnbound];
/// Statuses that no rule enters: those of new hosts, and one that only the peer's Kubernetes API enters.
const ENTRIES: [HostStatus; 3] = [
    HostStatus::Discovering,
    HostStatus::DiscoveringUnbound,
    HostStatus::Reclaiming,
];

/// A small generator: the same facts on every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % sides
    }

    fn flip(&mut self) -> bool {
        self.roll(2) == 0
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.roll(from.len())]
    }

    fn facts(&mut self) -> Facts {
        let base = Facts::of(
            &discovering(0),
            None,
            ClusterInputs::default(),
            &InstallationPolicy::default(),
            now(),
        );
        let results = [
            CheckOutcome::Unknown,
            CheckOutcome::Good,
            CheckOutcome::Failed,
        ];
        let steps = [
            StageMove::Forward,
            StageMove::Same,
            StageMove::Back,
            StageMove::Foreign,
        ];
        let stage = self.pick(HostStage::ALL);
        Facts {
            day2: self.roll(4) == 0,
            cluster: Some(self.pick(ClusterStatus::ALL)),
            connected: self.flip(),
            role_valid: self.flip(),
            inventory: self.flip(),
            inventory_truncated: self.flip(),
            hardware_ok: self.flip(),
            input_ok: self.flip(),
            vsphere_ok: self.flip(),
            sufficient: self.flip(),
            disk_speed: self.pick(&results),
            images: self.pick(&results),
            stage: self.flip().then_some(stage),
            stage_expired: self.flip(),
            stage_stale: self.flip(),
            prepare_expired: self.flip(),
            start_expired: self.flip(),
            action_expired: self.flip(),
            reclaim_expired: self.flip(),
            cluster_needs_it: self.flip(),
            soft_timeouts: self.flip(),
            logs_overdue: self.flip(),
            report: Some(ProgressReport {
                stage: self.pick(HostStage::ALL),
                info: String::new(),
                step: self.pick(&steps),
            }),
            ..base
        }
    }
}

#[test]
fn every_row_fires_for_some_facts() {
    let mut dice = Dice(7);
    let mut silent: BTreeSet<&str> = TABLE
        .iter()
        .copied()
        .flatten()
        .map(|rule| rule.name)
        .collect();
    assert_eq!(
        silent.len(),
        TABLE.iter().copied().flatten().count(),
        "names are unique"
    );
    for _ in 0..20_000 {
        let facts = dice.facts();
        for rule in TABLE
            .iter()
            .copied()
            .flatten()
            .filter(|rule| (rule.when)(&facts))
        {
            let fired = rule.from.iter().any(|from| {
                table::find(TABLE, &rule.on, from, &facts)
                    .is_some_and(|found| found.name == rule.name)
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
    let mut dice = Dice(11);
    for _ in 0..2_000 {
        let facts = dice.facts();
        for status in HostStatus::ALL
            .iter()
            .filter(|status| !FOREIGN.contains(status))
        {
            let rule = table::find(TABLE, &On::Refresh, status, &facts)
                .unwrap_or_else(|| panic!("{status} falls through with {facts:?}"));
            assert!(!matches!(rule.to, To::Refuse(_)), "{}", rule.name);
        }
    }
}

#[test]
fn every_status_can_be_reached() {
    let mut reached = BTreeSet::from(ENTRIES);
    loop {
        let more: BTreeSet<HostStatus> = TABLE
            .iter()
            .copied()
            .flatten()
            .filter(|rule| rule.from.iter().any(|from| reached.contains(from)))
            .filter_map(|rule| match rule.to {
                To::Go(to) => Some(to),
                To::Stay | To::Refuse(_) => None,
            })
            .filter(|to| !reached.contains(to))
            .collect();
        if more.is_empty() {
            break;
        }
        reached.extend(more);
    }
    // Resetting is a status of older databases, which rows still lead out of.
    let missing: Vec<&HostStatus> = HostStatus::ALL
        .iter()
        .filter(|status| !reached.contains(status) && !FOREIGN.contains(status))
        .filter(|status| **status != HostStatus::Resetting)
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn the_table_is_drawn() {
    let text = table::markdown(TABLE);
    assert_eq!(
        text.lines().count(),
        TABLE.iter().copied().flatten().count() + 2
    );
    assert!(table::mermaid(TABLE).contains("discovering --> known: all blocking validations pass"));
}
