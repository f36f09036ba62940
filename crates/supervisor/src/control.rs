//! Runtime control: hot reload of the user's variables, and stop files.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use service::{Error, ResultExt as _};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::child::DesiredState;
use crate::environment::{Environment, changed_at};
use crate::event::{SupervisorEvent, SupervisorObserver};
use crate::service_name::ServiceName;

/// Interval of file checks. Polling works on every kind of mount.
const INTERVAL: Duration = Duration::from_millis(500);

/// Desired state of each service.
pub(crate) struct Control {
    environment: Environment,
    observer: SupervisorObserver,
    /// Of the user's variables, before the services read them: changes during the start count, too.
    changed_at: Option<SystemTime>,
    wanted: BTreeMap<ServiceName, watch::Sender<DesiredState>>,
}

impl Control {
    /// All services run, except those with a stop file.
    pub(crate) fn new(environment: Environment, observer: SupervisorObserver) -> Self {
        let wanted = environment
            .services()
            .map(|name| {
                let run = !environment.directory.stop_file(name).exists();
                (name, watch::channel(DesiredState { run, generation: 0 }).0)
            })
            .collect();
        Self {
            changed_at: changed_at(environment.env_file.as_deref()),
            environment,
            observer,
            wanted,
        }
    }

    /// Desired state of `name`, with its changes.
    pub(crate) fn of(&self, name: ServiceName) -> watch::Receiver<DesiredState> {
        self.wanted[&name].subscribe()
    }

    /// Services that have to run now.
    pub(crate) fn running(&self) -> impl Iterator<Item = ServiceName> {
        self.wanted
            .iter()
            .filter(|(_, wanted)| wanted.borrow().run)
            .map(|(name, _)| *name)
    }

    /// Watches for changes until it is dropped.
    ///
    /// Errors: the signal handler cannot be installed.
    pub(crate) async fn watch(self) -> Result<(), Error> {
        let mut hangup = signal(SignalKind::hangup()).doing("installing the handler of SIGHUP")?;
        let file = self.environment.env_file.clone();
        let mut seen = self.changed_at;
        loop {
            let is_signalled = tokio::select! {
                _ = hangup.recv() => true,
                () = tokio::time::sleep(INTERVAL) => false,
            };
            let now = changed_at(file.as_deref());
            // An editor may remove the file for a moment: a missing file is no change.
            if is_signalled || (now.is_some() && now != seen) {
                seen = now;
                self.restart_for_variables();
            }
            self.apply_stop_files();
        }
    }

    fn restart_for_variables(&self) {
        (self.observer)(SupervisorEvent::VariablesChanged);
        for (name, wanted) in &self.wanted {
            if name.follows_env_file() {
                wanted.send_modify(|wanted| wanted.generation += 1);
            }
        }
    }

    fn apply_stop_files(&self) {
        for (name, wanted) in &self.wanted {
            let run = !self.environment.directory.stop_file(*name).exists();
            wanted.send_if_modified(|wanted| {
                let is_changed = wanted.run != run;
                if is_changed {
                    (self.observer)(SupervisorEvent::StopFile {
                        service: *name,
                        path: self.environment.directory.stop_file(*name),
                        exists: !run,
                    });
                    wanted.run = run;
                }
                is_changed
            });
        }
    }
}
