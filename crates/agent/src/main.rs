//! The discovery agent's program.

use std::path::Path;
use std::process::ExitCode;

use agent::{AgentArgs, Error, HostFiles};
use clap::Parser as _;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Name of the program that prints the inventory, as in the peer's image.
const INVENTORY: &str = "inventory";
/// Name of the program that copies the agent out of its image.
const COPY: &str = "cp";

fn main() -> ExitCode {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .init();
    match start() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{}", error.chain());
            ExitCode::FAILURE
        }
    }
}

fn start() -> Result<(), Error> {
    let mut arguments = std::env::args_os();
    let program = arguments.next().unwrap_or_default();
    let has_name = |name: &str| Path::new(&program).file_name().is_some_and(|it| it == name);
    if has_name(COPY) {
        return agent::copy(arguments);
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Error::io("starting", error))?;
    let is_inventory = has_name(INVENTORY)
        || arguments
            .next()
            .is_some_and(|argument| argument == INVENTORY);
    if is_inventory {
        let text = runtime.block_on(agent::inventory_text(&HostFiles::default()))?;
        #[expect(clippy::print_stdout, reason = "the output of this program")]
        {
            println!("{text}");
        }
        return Ok(());
    }
    runtime.block_on(agent::run(&AgentArgs::parse()))
}
