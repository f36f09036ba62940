//! The main job through published ports.

use std::time::Instant;

use anyhow::Result;
use system_tests::pod::{Engine, Pod};

use crate::{Trials, say};

pub(crate) fn add(trials: &mut Trials) {
    trials.add("journey::a_cluster_is_installed", a_cluster_is_installed);
    trials.add_long("journey::ten_times_in_a_row", ten_times_in_a_row);
}

async fn a_cluster_is_installed(engine: Engine) -> Result<()> {
    let began = Instant::now();
    let mut pod = Pod::up(&engine).await?;
    let ready = began.elapsed();
    let began = Instant::now();
    pod.installed_in_spite_of(async |_| Ok(())).await?;
    say(&format!(
        "started, with content, and ready after {:.1} s; installed {:.1} s later",
        ready.as_secs_f64(),
        began.elapsed().as_secs_f64()
    ));
    pod.down().await
}

/// Each in a pod of its own, to rule out luck.
async fn ten_times_in_a_row(engine: Engine) -> Result<()> {
    for _ in 0..10 {
        a_cluster_is_installed(engine.clone()).await?;
    }
    Ok(())
}
