//! How far a run is.

use std::convert::Infallible;
use std::time::Duration;

use ::mirror::progress::{Amount, Phase, Progress};
use service::Error;

use crate::terminal;

/// How often it is told how far the run is.
const TICK: Duration = Duration::from_millis(500);
/// How many ticks pass between lines where nobody sees the same line change.
const TICKS_A_LINE: u32 = 20;

/// Does `work`, and tells how far it is meanwhile.
///
/// Errors: those of the work; no runtime can be had.
pub(in crate::mirror) fn watched<W>(
    doing: &str,
    work: impl FnOnce(Progress) -> W,
) -> Result<(), Error>
where
    W: Future<Output = Result<(), model::Error>>,
{
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|e| Error::new(doing, e))?;
    let progress = Progress::default();
    let whole = async {
        tokio::select! {
            done = work(progress.clone()) => done,
            never = watch(&progress) => match never {},
        }
    };
    let done = runtime.block_on(whole);
    terminal::progress("");
    done.map_err(|e| Error::new(doing, e.chain()))
}

/// Tells how far the run is until it is dropped.
async fn watch(progress: &Progress) -> Infallible {
    let (mut last, mut ticks) = (None::<Phase>, 0_u32);
    loop {
        tokio::time::sleep(TICK).await;
        let Some((phase, whole, done)) = progress.now() else {
            continue;
        };
        let line = line(phase, whole, done);
        terminal::progress(&line);
        ticks += 1;
        if !terminal::is_watched() && (last != Some(phase) || ticks >= TICKS_A_LINE) {
            terminal::problem(&line);
            ticks = 0;
        }
        last = Some(phase);
    }
}

fn line(phase: Phase, whole: Amount, done: Amount) -> String {
    let items = format!("{}: {} of {}", phase.as_str(), done.items, whole.items);
    if whole.bytes == 0 {
        return items;
    }
    let (done, whole) = (terminal::mib(done.bytes), terminal::mib(whole.bytes));
    format!("{items}, {done} of {whole}")
}
