//! The main job on real input, driven from outside over HTTP as a user would: content, cluster, image,
//! simulated hosts, installation, credentials.
//!
//! It uses `atoll.json` and the public HTTP operations alone.

mod breakage;
mod client;
mod console;
mod content;
mod credentials;
mod image;
mod journey;
mod machines;
mod stages;
mod state;
mod watch;

pub use console::Console;
pub use content::{ContentOffer, DemoContent};
pub use image::find_coreos_installer;
pub use journey::{Break, Journey, JourneyOptions};
pub use state::{AtollState, DemoRegistry};
