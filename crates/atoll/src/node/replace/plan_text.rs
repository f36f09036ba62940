//! A plan as a screen.

use model::node_replacement::{ReplacementKind, ReplacementStepState};
use replacement::{NodePlace, ReplacementPlan, StepUndo};

use crate::catalog::table::table;

/// The plan for people.
pub(super) fn screen(plan: &ReplacementPlan) -> String {
    let case = &plan.case;
    let order = match case.kind {
        ReplacementKind::Failed => "failed: its member leaves, then the new one joins",
        ReplacementKind::Unwanted => {
            "healthy and unwanted: the new member joins, then this one leaves"
        }
    };
    let mut facts = vec![format!("{} {order}", place(&case.old))];
    if case.new == case.old {
        facts.push("new node: the same name and address".to_owned());
    } else {
        facts.push(format!("new node: {}", place(&case.new)));
    }
    let records = [("Machine", &case.machine), ("BareMetalHost", &case.host)];
    let records = records.map(|(kind, name)| match name {
        Some(name) => format!("{kind} {name}"),
        None => format!("no {kind}"),
    });
    facts.push(format!("records: {}", records.join(", ")));
    let others: Vec<_> = case
        .lost
        .iter()
        .filter(|node| **node != case.old.name)
        .map(String::as_str)
        .collect();
    if !others.is_empty() {
        facts.push(format!(
            "lost as well, replaced later: {}",
            others.join(", ")
        ));
    }
    let spare = if plan.fewest_voters < 3 {
        ": meanwhile no other control node may fail or be rebooted"
    } else {
        ""
    };
    facts.push(format!(
        "etcd: {} of {} voters healthy, at fewest {} voters{spare}",
        plan.voters.healthy, plan.voters.voters, plan.fewest_voters
    ));
    let rows: Vec<_> = plan
        .steps
        .iter()
        .map(|step| {
            let state = match step.state {
                ReplacementStepState::Finished => "finished",
                ReplacementStepState::Done => "done already",
                ReplacementStepState::Started => "begun",
                ReplacementStepState::Planned if step.only_waits => "waits",
                ReplacementStepState::Planned => "planned",
            };
            let undo = match step.undo {
                StepUndo::Nothing => "nothing to undo".to_owned(),
                StepUndo::By(undo) => format!("undone by: {undo}"),
                StepUndo::Stays => "stays; run the command again".to_owned(),
            };
            [step.title.to_owned(), state.to_owned(), undo]
        })
        .collect();
    let mut parts = vec![
        facts.join("\n"),
        table(["STEP", "STATE", "AFTER A STOP"], &rows),
    ];
    if !plan.closed.is_empty() {
        let closed = plan.closed.iter().map(|refusal| {
            let wait = if refusal.may_open {
                "waits"
            } else {
                "needs you"
            };
            format!("{wait}: {}", refusal.reason)
        });
        let closed: Vec<_> = closed.collect();
        parts.push(format!(
            "The next step cannot begin:\n{}",
            closed.join("\n")
        ));
    }
    parts.join("\n\n")
}

fn place(place: &NodePlace) -> String {
    format!("{} ({})", place.name, place.address)
}
