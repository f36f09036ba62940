//! State machines as data: rules, their selection, and drawings of a table.
//!
//! The first rule that fits wins. A rule runs no code besides its guard over plain facts: its effects are
//! named data, which the caller applies.

use std::fmt::{Debug, Display, Write};

/// One rule of a state machine over statuses `S`, triggers `O`, facts `F` and named effects `E`.
pub struct TransitionRule<S: 'static, O, F, E: 'static> {
    /// Name in drawings and tests.
    pub name: &'static str,
    /// The trigger.
    pub on: O,
    /// The source statuses.
    pub from: &'static [S],
    /// The guard.
    pub when: fn(&F) -> bool,
    /// The destination.
    pub to: To<S, F>,
    /// The status text; none keeps the present one.
    pub info: Option<fn(&F) -> String>,
    /// The effects.
    pub then: &'static [E],
    /// The reason, for readers.
    pub doc: &'static str,
}

/// Destination of a rule.
pub enum To<S, F> {
    /// The status stays.
    Stay,
    /// The next status.
    Go(S),
    /// The trigger is refused.
    Refuse(fn(&F) -> model::Error),
}

/// The first rule that fits; a table may have several parts.
pub fn find<'table, S, O, F, E>(
    table: &'table [&'table [TransitionRule<S, O, F, E>]],
    on: &O,
    from: &S,
    facts: &F,
) -> Option<&'table TransitionRule<S, O, F, E>>
where
    S: PartialEq,
    O: PartialEq,
{
    table
        .iter()
        .copied()
        .flatten()
        .find(|rule| rule.on == *on && rule.from.contains(from) && (rule.when)(facts))
}

/// The `statuses` with a rule of this trigger, for a refusal.
pub fn sources<S, O, F, E>(
    table: &[&[TransitionRule<S, O, F, E>]],
    on: &O,
    statuses: &[S],
) -> String
where
    S: PartialEq + Display,
    O: PartialEq,
{
    let rules = || table.iter().copied().flatten();
    let has_rule = |status: &&S| rules().any(|rule| rule.on == *on && rule.from.contains(*status));
    joined(statuses.iter().filter(has_rule).map(ToString::to_string))
}

/// The table as Markdown, one line per row in the order in which rows are tried.
pub fn markdown<S, O, F, E>(table: &[&[TransitionRule<S, O, F, E>]]) -> String
where
    S: Display,
    O: Debug,
    E: Debug,
{
    let mut text =
        String::from("| on | rule | from | to | then | why |\n|---|---|---|---|---|---|\n");
    for rule in table.iter().copied().flatten() {
        let to = match &rule.to {
            To::Stay => "(stays)".to_owned(),
            To::Go(status) => status.to_string(),
            To::Refuse(_) => "(refused)".to_owned(),
        };
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "| {:?} | {} | {} | {to} | {} | {} |",
            rule.on,
            rule.name,
            joined(rule.from.iter().map(ToString::to_string)),
            joined(rule.then.iter().map(|effect| format!("{effect:?}"))),
            rule.doc,
        );
    }
    text
}

/// The table as a Mermaid state diagram; rows that stay or refuse draw no arrow.
pub fn mermaid<S, O, F, E>(table: &[&[TransitionRule<S, O, F, E>]]) -> String
where
    S: Display,
    O: Debug,
{
    let mut text = String::from("stateDiagram-v2\n");
    for rule in table.iter().copied().flatten() {
        let To::Go(to) = &rule.to else { continue };
        for from in rule.from {
            let _ = writeln!(text, "    {} --> {}: {}", node(from), node(to), rule.name);
        }
    }
    text
}

fn joined(items: impl Iterator<Item = String>) -> String {
    items.collect::<Vec<_>>().join(", ")
}

/// Mermaid takes no hyphen in a state's name.
fn node(status: &impl Display) -> String {
    status.to_string().replace('-', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    static TABLE: &[&[TransitionRule<&str, u8, bool, u8>]] = &[&[
        TransitionRule {
            name: "up",
            on: 1,
            from: &["low-one", "mid"],
            when: |ready| *ready,
            to: To::Go("high"),
            info: None,
            then: &[7],
            doc: "because",
        },
        TransitionRule {
            name: "wait",
            on: 1,
            from: &["low-one"],
            when: |_| true,
            to: To::Stay,
            info: None,
            then: &[],
            doc: "not yet",
        },
    ]];

    #[test]
    fn first_fitting_row_wins() {
        assert_eq!(
            find(TABLE, &1, &"low-one", &true).map(|rule| rule.name),
            Some("up")
        );
        assert_eq!(
            find(TABLE, &1, &"low-one", &false).map(|rule| rule.name),
            Some("wait")
        );
        assert!(find(TABLE, &1, &"mid", &false).is_none());
        assert!(find(TABLE, &2, &"mid", &true).is_none());
    }

    #[test]
    fn tables_are_drawn() {
        assert!(markdown(TABLE).contains("| 1 | up | low-one, mid | high | 7 | because |"));
        assert_eq!(
            mermaid(TABLE),
            "stateDiagram-v2\n    low_one --> high: up\n    mid --> high: up\n"
        );
    }
}
