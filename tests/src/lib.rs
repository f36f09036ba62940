//! For tests of the whole system: an installation for each test, faults, and what has to survive them.
//!
//! Everything is driven from outside, as users and machines do it: the real `atoll up`, its children by their
//! process numbers, the pod's containers through their engine, HTTP. What a test starts ends with it, also when it fails.

mod api;
mod distribution;
mod download;
mod installation;
mod journey;
mod ledger;
pub mod pod;
pub mod process;
mod scratch;
mod snapshot;
mod wait;

pub use api::{Answer, Api, client};
pub use distribution::Distribution;
pub use download::{Download, Whole, image_url};
pub use installation::{Installation, State};
pub use journey::{Stage, installed_in_spite_of};
pub use ledger::Ledger;
pub use scratch::{Scratch, free_ports};
pub use snapshot::Snapshot;
pub use wait::until;
