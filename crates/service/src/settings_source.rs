//! Settings that a running server reads again: at SIGHUP, and when their file changes.
//!
//! The environment of a process does not change, and overrides the file: only the settings of the file can change.

use std::marker::PhantomData;
use std::path::PathBuf;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::Error;
use crate::arguments::ServerArgs;
use crate::error::ResultExt as _;
use crate::loaded_settings::{LogSettings, ProcessSettings, load};
use crate::server_settings::ServerSettings;
use crate::settings::{self, Problems, Values};

/// How often the file is read. Polling works on every kind of mount, inotify does not.
const INTERVAL: Duration = Duration::from_secs(5);

/// Origin of the settings of a server.
pub struct SettingsSource<S> {
    arguments: ServerArgs,
    /// At the start of the server.
    values: Values,
    /// Content of the file when it was read last; absent without a readable file.
    text: Option<Vec<u8>>,
    settings: PhantomData<fn() -> S>,
}

/// Settings that were read again.
pub struct ReloadedSettings<S> {
    /// All settings, checked as at the start.
    pub settings: S,
    /// Upper-case names of the variables that differ from the start of the server.
    pub changed: Vec<String>,
}

impl<S: ServerSettings> SettingsSource<S> {
    pub(crate) fn new(arguments: &ServerArgs, values: Values, text: Option<Vec<u8>>) -> Self {
        Self {
            arguments: arguments.clone(),
            values,
            text,
            settings: PhantomData,
        }
    }

    /// Watches for SIGHUP and for changes of the file.
    ///
    /// Errors: the signal handler cannot be installed.
    ///
    /// Panics: outside a runtime.
    pub fn watch(self) -> Result<SettingsWatch<S>, Error> {
        let hangup = signal(SignalKind::hangup()).doing("installing signal handlers")?;
        Ok(SettingsWatch {
            source: self,
            hangup,
        })
    }

    fn read(&self) -> Result<ReloadedSettings<S>, Problems> {
        let loaded = load::<S>(&self.arguments)?;
        let names = settings::changed::<S>(&self.values, &loaded.values)
            .into_iter()
            .chain(settings::changed::<LogSettings>(
                &self.values,
                &loaded.values,
            ))
            .chain(settings::changed::<ProcessSettings>(
                &self.values,
                &loaded.values,
            ));
        Ok(ReloadedSettings {
            changed: names.collect(),
            settings: loaded.settings,
        })
    }
}

/// Watches the settings of a running server.
pub struct SettingsWatch<S> {
    source: SettingsSource<S>,
    hangup: Signal,
}

impl<S: ServerSettings> SettingsWatch<S> {
    /// The settings, read again after the next SIGHUP or change of the file.
    ///
    /// Errors: all problems of the settings, as at the start.
    pub async fn next(&mut self) -> Result<ReloadedSettings<S>, Problems> {
        loop {
            let is_signal = tokio::select! {
                _ = self.hangup.recv() => true,
                () = tokio::time::sleep(INTERVAL) => false,
            };
            let text = match self.source.arguments.file() {
                Some(file) => tokio::fs::read(PathBuf::from(file)).await.ok(),
                None => None,
            };
            let is_changed = text != self.source.text;
            self.source.text = text;
            if is_signal || is_changed {
                return self.source.read();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::HttpSettings;
    use crate::settings::FromValues as _;

    #[test]
    fn changed_variables_are_named_and_defaults_are_no_change() {
        let before = Values::from_pairs([("header_timeout", "30s"), ("idle_timeout", "1m")]);
        let after = Values::from_pairs([
            ("idle_timeout", ""),
            ("max_connections_per_client", "7"),
            ("write_timeout", "2m"),
            ("other", "x"),
        ]);
        let changed = settings::changed::<HttpSettings>(&before, &after);
        assert_eq!(changed, ["MAX_CONNECTIONS_PER_CLIENT", "IDLE_TIMEOUT"]);
        assert!(settings::changed::<HttpSettings>(&after, &after).is_empty());
        assert_eq!(HttpSettings::VARIABLES[0].field, "max_connections");
    }
}
