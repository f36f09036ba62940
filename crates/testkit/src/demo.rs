//! The main job on real input, driven from outside over HTTP as a user would: content, cluster, image,
//! simulated hosts, installation, credentials.
//!
//! Nothing here knows the services from inside; what it learns of them comes from `atoll.json` and from their answers.

mod breakage;
mod client;
mod console;
mod content;
mod credentials;
mod image;
mod journey;
mod machines;
mod state;
mod watch;

pub use console::Console;
pub use content::Content;
pub use image::find_coreos_installer;
pub use journey::{Break, Journey, Options};
pub use state::{Registry, State};
