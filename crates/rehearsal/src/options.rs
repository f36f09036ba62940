//! The way of playing.

use std::time::Duration;

use host_sim::Pace;

/// Time without any change after which a state counts as final. Units: simulated time.
const QUIET: Duration = Duration::from_mins(7);
/// The same in real time, at least: servers judge clusters every 10 seconds.
const QUIET_MIN: Duration = Duration::from_secs(30);

/// The way of playing.
#[derive(Debug, Clone)]
pub struct PlayOptions {
    /// Relation of simulated to real time.
    pub pace: Pace,
    /// Time without any change after which a state counts as final. It is counted in readings of the cluster, which a busy
    /// server delays as it delays the hosts.
    pub quiet: Duration,
    /// Whether the server makes files without an installer.
    pub has_dummy_files: bool,
    /// Whether the clusters are removed at the end.
    pub removes: bool,
    /// Number of installations, each with a name and hosts of its own.
    pub copies: usize,
    /// Installations at the same time.
    pub at_once: usize,
}

impl PlayOptions {
    /// One installation, which is removed at the end.
    pub fn at(pace: Pace) -> Self {
        Self {
            pace,
            quiet: Self::quiet(pace, QUIET_MIN),
            has_dummy_files: false,
            removes: true,
            copies: 1,
            at_once: 1,
        }
    }

    /// Time without any change that suits a pace, in real time at least `least`.
    pub fn quiet(pace: Pace, least: Duration) -> Duration {
        pace.real(QUIET).max(least)
    }
}
