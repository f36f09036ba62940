//! What changes while everything runs: the user's variables, and files that keep a service stopped.

use std::collections::BTreeMap;
use std::time::Duration;

use service::Error;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use super::child::DesiredState;
use super::environment::{Environment, changed_at};
use super::service::ServiceName;
use crate::terminal;

/// How often files are looked at; polling works on every kind of mount.
const INTERVAL: Duration = Duration::from_millis(500);

/// What is wanted of each service.
pub(crate) struct Control {
    environment: Environment,
    wanted: BTreeMap<ServiceName, watch::Sender<DesiredState>>,
}

impl Control {
    /// Every service is wanted, except those that have a stop file.
    pub(crate) fn new(environment: Environment) -> Self {
        let wanted = environment
            .services()
            .map(|name| {
                let run = !environment.directory.stop_file(name).exists();
                (name, watch::channel(DesiredState { run, generation: 0 }).0)
            })
            .collect();
        Self {
            environment,
            wanted,
        }
    }

    /// What is wanted of `name`, now and later.
    pub(crate) fn of(&self, name: ServiceName) -> watch::Receiver<DesiredState> {
        self.wanted[&name].subscribe()
    }

    /// The services that are wanted now.
    pub(crate) fn running(&self) -> impl Iterator<Item = ServiceName> {
        self.wanted
            .iter()
            .filter(|(_, wanted)| wanted.borrow().run)
            .map(|(name, _)| *name)
    }

    /// Looks for changes, for ever.
    ///
    /// Errors: when the signal handler cannot be installed.
    pub(crate) async fn watch(self) -> Result<(), Error> {
        let mut hangup = signal(SignalKind::hangup())
            .map_err(|e| Error::new("installing the handler of SIGHUP", e))?;
        let file = self.environment.env_file.clone();
        let mut seen = changed_at(file.as_deref());
        loop {
            let is_asked = tokio::select! {
                _ = hangup.recv() => true,
                () = tokio::time::sleep(INTERVAL) => false,
            };
            let now = changed_at(file.as_deref());
            // An editor may remove the file for a moment: only a file that is there is new.
            if is_asked || (now.is_some() && now != seen) {
                seen = now;
                self.restart_for_variables();
            }
            self.follow_stop_files();
        }
    }

    fn restart_for_variables(&self) {
        terminal::print("The variables changed: starting api-server and image-service anew.");
        for (name, wanted) in &self.wanted {
            if name.follows_env_file() {
                wanted.send_modify(|wanted| wanted.generation += 1);
            }
        }
    }

    fn follow_stop_files(&self) {
        for (name, wanted) in &self.wanted {
            let run = !self.environment.directory.stop_file(*name).exists();
            wanted.send_if_modified(|wanted| {
                let is_changed = wanted.run != run;
                if is_changed {
                    let path = self.environment.directory.stop_file(*name);
                    let how = if run { "Starting" } else { "Stopping" };
                    let state = if run { "is gone" } else { "is there" };
                    terminal::print(&format!("{how} {name}: {} {state}.", path.display()));
                    wanted.run = run;
                }
                is_changed
            });
        }
    }
}
