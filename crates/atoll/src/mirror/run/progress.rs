//! Progress output of a run.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use ::mirror::progress::{Amount, Phase, RunProgress};
use clap::ValueEnum;
use model::size::mib;
use serde_json::json;
use service::{Error, ResultExt as _};

use super::error::RunError;
use crate::terminal;

/// Interval of progress updates.
const TICK: Duration = Duration::from_millis(500);
/// Ticks between progress lines without a terminal.
const TICKS_A_LINE: u32 = 20;
/// Window of the transfer rate. Units: ticks. Ten seconds smooth it.
const TICKS_OF_RATE: usize = 20;
const SECONDS_A_MINUTE: u64 = 60;

/// Progress output format.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(in crate::mirror) enum ProgressFormat {
    /// One updated line on a terminal, single lines elsewhere
    #[default]
    Lines,
    /// JSON objects on standard error, one per line
    Json,
}

/// Runs `work` and prints its progress.
///
/// Errors: those of `work`; the runtime cannot be started.
pub(in crate::mirror) fn with_progress<W, E>(
    doing: &str,
    form: ProgressFormat,
    work: impl FnOnce(RunProgress) -> W,
) -> Result<(), Error>
where
    W: Future<Output = Result<(), E>>,
    E: Into<RunError>,
{
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .doing(doing)?;
    let progress = RunProgress::default();
    let whole = async {
        tokio::select! {
            done = work(progress.clone()) => done,
            never = show_progress(&progress, ProgressPrinter::new(form)) => match never {},
        }
    };
    let done = runtime.block_on(whole);
    terminal::clear_progress();
    done.map_err(|e| Error::new(doing, e.into()))
}

/// Prints progress until it is dropped.
async fn show_progress(progress: &RunProgress, mut printer: ProgressPrinter) -> Infallible {
    loop {
        tokio::time::sleep(TICK).await;
        printer.tick(progress);
    }
}

/// Prints the progress of a run, twice a second.
#[derive(Debug, Default)]
pub(crate) struct ProgressPrinter {
    form: ProgressFormat,
    last: Option<Phase>,
    /// Since the last line.
    ticks: u32,
    rate: Rate,
}

impl ProgressPrinter {
    fn new(form: ProgressFormat) -> Self {
        Self {
            form,
            ..Self::default()
        }
    }

    /// Prints the progress after another half second.
    pub(crate) fn tick(&mut self, progress: &RunProgress) {
        let Some((phase, whole, done)) = progress.now() else {
            return;
        };
        let is_new = self.last != Some(phase);
        if is_new {
            self.rate = Rate::default();
        }
        let speed = self.rate.after(done.bytes);
        self.last = Some(phase);
        if self.form == ProgressFormat::Json {
            terminal::line(&document(phase, whole, done, speed));
            return;
        }
        let line = line(phase, whole, done, speed);
        terminal::progress(&line);
        self.ticks += 1;
        if !terminal::shows_progress() && (is_new || self.ticks >= TICKS_A_LINE) {
            terminal::notice(&line);
            self.ticks = 0;
        }
    }
}

/// Sliding window of transferred bytes.
#[derive(Debug, Default)]
struct Rate(VecDeque<u64>);

impl Rate {
    /// Transfer rate after another tick. Units: bytes per second.
    fn after(&mut self, bytes: u64) -> u64 {
        self.0.push_back(bytes);
        if self.0.len() > TICKS_OF_RATE {
            self.0.pop_front();
        }
        let first = self.0.front().copied().unwrap_or_default();
        let ticks = self.0.len().saturating_sub(1).max(1) as u64;
        let a_second = 1000 / u64::try_from(TICK.as_millis()).unwrap_or(1000).max(1);
        bytes.saturating_sub(first) * a_second / ticks
    }
}

/// Estimated time left, unless the rate is zero. Units: seconds.
fn seconds_left(whole: Amount, done: Amount, speed: u64) -> Option<u64> {
    whole.bytes.saturating_sub(done.bytes).checked_div(speed)
}

fn line(phase: Phase, whole: Amount, done: Amount, speed: u64) -> String {
    let items = format!("{}: {} of {}", phase.as_str(), done.items, whole.items);
    if whole.bytes == 0 {
        return items;
    }
    let left = seconds_left(whole, done, speed).map_or(String::new(), |seconds| {
        let (minutes, seconds) = (seconds / SECONDS_A_MINUTE, seconds % SECONDS_A_MINUTE);
        format!(", {}/s, {minutes}:{seconds:02} left", mib(speed))
    });
    let (done, whole) = (mib(done.bytes), mib(whole.bytes));
    format!("{items}, {done} of {whole}{left}")
}

fn document(phase: Phase, whole: Amount, done: Amount, speed: u64) -> String {
    let document = json!({
        "phase": phase.as_str(),
        "items": done.items,
        "itemsTotal": whole.items,
        "bytes": done.bytes,
        "bytesTotal": whole.bytes,
        "bytesPerSecond": speed,
        "secondsLeft": seconds_left(whole, done, speed),
    });
    document.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn amount(items: u64, bytes: u64) -> Amount {
        Amount { items, bytes }
    }

    #[test]
    fn progress_shows_rate_and_time_left() {
        let mut rate = Rate::default();
        assert_eq!(rate.after(0), 0);
        assert_eq!(rate.after(MIB), 2 * MIB);
        let speed = rate.after(2 * MIB);
        assert_eq!(speed, 2 * MIB);
        let (whole, done) = (amount(9, 200 * MIB), amount(1, 2 * MIB));
        let printed = line(Phase::Packing, whole, done, speed);
        assert_eq!(
            printed,
            "packing: 1 of 9, 2.0 MiB of 200.0 MiB, 2.0 MiB/s, 1:39 left"
        );
        let printed = line(Phase::Packing, whole, done, 0);
        assert_eq!(printed, "packing: 1 of 9, 2.0 MiB of 200.0 MiB");
        let printed = line(Phase::Surveying, amount(9, 0), amount(1, 0), 0);
        assert_eq!(printed, "surveying: 1 of 9");
        let printed: serde_json::Value =
            serde_json::from_str(&document(Phase::Packing, whole, done, speed)).unwrap();
        assert_eq!(
            (&printed["secondsLeft"], &printed["itemsTotal"]),
            (&json!(99), &json!(9))
        );
    }

    #[test]
    fn rate_ignores_ticks_outside_its_window() {
        let mut rate = Rate::default();
        for _ in 0..TICKS_OF_RATE {
            rate.after(0);
        }
        for tick in 1..TICKS_OF_RATE as u64 {
            rate.after(tick * MIB);
        }
        assert_eq!(rate.after(TICKS_OF_RATE as u64 * MIB), 2 * MIB);
    }
}
