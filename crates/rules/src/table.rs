//! State machines as data: what a row is, how one is chosen, how a table is drawn.
//!
//! The first row that fits wins. A row never runs code of its own beyond looking at plain facts: what it does is
//! named data, carried out by whoever walks the table.

use std::fmt::{Debug, Display, Write};

/// One row of a state machine over statuses `S`, occasions `O`, facts `F` and named effects `E`.
pub struct Rule<S: 'static, O, F, E: 'static> {
    /// What the row is called in drawings and tests.
    pub name: &'static str,
    /// The occasion on which it is looked at.
    pub on: O,
    /// The statuses it starts from.
    pub from: &'static [S],
    /// Whether it fits.
    pub when: fn(&F) -> bool,
    /// Where it leads.
    pub to: To<S, F>,
    /// The status text; none keeps the one there is.
    pub info: Option<fn(&F) -> String>,
    /// What happens besides.
    pub then: &'static [E],
    /// Why, for a person.
    pub doc: &'static str,
}

/// Where a row leads.
pub enum To<S, F> {
    /// The status stays.
    Stay,
    /// This one comes next.
    Go(S),
    /// The occasion is refused.
    Refuse(fn(&F) -> model::Error),
}

/// The first row that fits; a table may be written in parts.
pub fn find<'table, S, O, F, E>(
    table: &'table [&'table [Rule<S, O, F, E>]],
    on: &O,
    from: &S,
    facts: &F,
) -> Option<&'table Rule<S, O, F, E>>
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

/// The table as Markdown, one line per row in the order in which rows are tried.
pub fn markdown<S, O, F, E>(table: &[&[Rule<S, O, F, E>]]) -> String
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
pub fn mermaid<S, O, F, E>(table: &[&[Rule<S, O, F, E>]]) -> String
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

    static TABLE: &[&[Rule<&str, u8, bool, u8>]] = &[&[
        Rule {
            name: "up",
            on: 1,
            from: &["low-one", "mid"],
            when: |ready| *ready,
            to: To::Go("high"),
            info: None,
            then: &[7],
            doc: "because",
        },
        Rule {
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
