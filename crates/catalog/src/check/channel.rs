//! Validation of a channel's upgrade graph.

use super::ProblemReport;
use crate::graph::{self, ChainEnd, Flaw};
use crate::range::Range;
use crate::schema::ChannelEntry;
use crate::{DocumentOrigin, Rule};

/// Finds the channel's head, and the rule that ends its replaces chain. Source: `alpha/model/model.go`,
/// `Channel.Validate`.
pub(crate) fn check_channel(
    name: &str,
    entries: &[ChannelEntry<'_>],
    origin: &DocumentOrigin,
    report: &mut ProblemReport<'_>,
) -> Option<(usize, ChainEnd)> {
    for entry in entries {
        check_entry(name, entry, origin, report);
    }
    if entries.is_empty() {
        let text = format!("invalid channel {name:?}: channel must contain at least one bundle");
        report.add(Rule::ChannelEntries, origin, text);
        return None;
    }
    match graph::chain(entries) {
        Ok(chain) => chain.first().map(|head| (*head, ChainEnd::BeforeSkipped)),
        Err(flaw @ Flaw::Stranded(_))
            if let Ok(chain) = graph::chain_to(entries, ChainEnd::AtLast) =>
        {
            let text = format!("invalid channel {name:?}: {flaw}");
            report.add(Rule::Stranded, origin, text);
            chain.first().map(|head| (*head, ChainEnd::AtLast))
        }
        Err(flaw) => {
            let rule = match flaw {
                Flaw::NoHead | Flaw::Heads(_) => Rule::ChannelHead,
                Flaw::Cycle(_) => Rule::ReplacesCycle,
                Flaw::Stranded(_) => Rule::Stranded,
            };
            report.refuse(rule, origin, format!("invalid channel {name:?}: {flaw}"));
            None
        }
    }
}

fn check_entry(
    channel: &str,
    entry: &ChannelEntry<'_>,
    origin: &DocumentOrigin,
    report: &mut ProblemReport<'_>,
) {
    let named = format!(
        "invalid channel {channel:?}: invalid bundle {:?}",
        entry.name
    );
    for (index, skip) in entry.skips.iter().enumerate() {
        if skip.is_empty() {
            report.add(
                Rule::Skips,
                origin,
                format!("{named}: skip[{index}] is empty"),
            );
        }
    }
    if let Err(e) = entry.skip_range.parse::<Range>() {
        let text = format!("{named}: invalid skipRange {:?}: {e}", entry.skip_range);
        report.add(Rule::SkipRange, origin, text);
    }
}
