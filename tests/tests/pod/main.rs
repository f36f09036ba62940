//! The pod in containers: started, restarted, killed, frozen and removed, queried from outside.
//!
//! Its own `main`: the tests are ignored where no container engine is named.

mod backup;
mod database;
mod documented_pod;
mod install;
mod journey;
mod lifecycle;
mod name_server;
mod podman_compose;
mod replicas;
mod restart;
mod volumes;

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use libtest_mimic::{Arguments, Completion, Failed, Trial};
use system_tests::pod::Engine;
use tokio::runtime::Runtime;

/// The engine's socket; `cargo xtask test` sets it.
const HOST: &str = "DOCKER_HOST";
/// `cargo xtask test` runs these tests separately, after the images.
const APART: &str = "POD_TESTS_APART";
/// Concurrent tests.
const PODS: usize = 4;

fn main() -> Result<ExitCode> {
    let mut arguments = Arguments::from_args();
    // Each test has a pod of its own, which waits far more than it computes: two at a time left both cores idle.
    arguments.test_threads.get_or_insert(PODS);
    if std::env::var_os(APART).is_some() {
        return Ok(ExitCode::SUCCESS);
    }
    let is_there = std::env::var_os(HOST).is_some_and(|host| !host.is_empty());
    if !is_there && !arguments.list {
        say(
            "THE POD IS NOT TESTED: no container engine is named in DOCKER_HOST. `cargo xtask test` starts one.",
        );
    }
    let runtime = Arc::new(Runtime::new().context("starting the runtime")?);
    let mut trials = Trials {
        runtime,
        is_there,
        list: Vec::new(),
    };
    // The longest first: the last one has no neighbour.
    database::add(&mut trials);
    restart::add(&mut trials);
    podman_compose::add(&mut trials);
    documented_pod::add(&mut trials);
    replicas::add(&mut trials);
    journey::add(&mut trials);
    volumes::add(&mut trials);
    lifecycle::add(&mut trials);
    backup::add(&mut trials);
    install::add(&mut trials);
    if is_there && !arguments.list {
        trials.runtime.block_on(async {
            let engine = Engine::connect().await?;
            engine
                .sweep()
                .await
                .context("removing what older runs have left")
        })?;
    }
    Ok(libtest_mimic::run(&arguments, trials.list).exit_code())
}

/// The tests.
struct Trials {
    runtime: Arc<Runtime>,
    is_there: bool,
    list: Vec<Trial>,
}

impl Trials {
    /// A test.
    fn add<F>(&mut self, name: &str, test: impl FnOnce(Engine) -> F + Send + 'static)
    where
        F: Future<Output = Result<()>>,
    {
        self.push(name, false, test);
    }

    /// A long test: run by `cargo xtask test --full`.
    fn add_long<F>(&mut self, name: &str, test: impl FnOnce(Engine) -> F + Send + 'static)
    where
        F: Future<Output = Result<()>>,
    {
        self.push(name, true, test);
    }

    fn push<F>(
        &mut self,
        name: &str,
        is_long: bool,
        test: impl FnOnce(Engine) -> F + Send + 'static,
    ) where
        F: Future<Output = Result<()>>,
    {
        let (runtime, is_there) = (self.runtime.clone(), self.is_there);
        let run = move || {
            if !is_there {
                return Ok(Completion::ignored_with("no container engine"));
            }
            let done = runtime.block_on(async { test(Engine::connect().await?).await });
            done.map(|()| Completion::Completed)
                .map_err(|error: anyhow::Error| Failed::from(format!("{error:#}")))
        };
        self.list
            .push(Trial::ignorable_test(name, run).with_ignored_flag(is_long));
    }
}

#[expect(clippy::print_stdout, reason = "measurements and what is left out")]
fn say(text: &str) {
    println!("{text}");
}
