//! Settings of a server, read by its arguments, and those of the process and its log.

use std::path::PathBuf;

use crate::arguments::ServerArgs;
use crate::server_settings::ServerSettings;
use crate::settings::{FromValues as _, Problem, Problems, Values};
use crate::tls;

crate::settings! {
    /// Settings of the log of every server.
    pub struct LogSettings {
        /// Filter of the log, as in `info` or `info,sqlx=warn`.
        log_level: String = "info",
    }
}

crate::settings! {
    /// Settings of the process of every server.
    pub struct ProcessSettings {
        /// User and group id that a server becomes when its container starts it as root.
        run_as_user: Option<u32> = "",
    }
}

/// Settings, and the texts that they come from.
pub(crate) struct LoadedSettings<S> {
    pub(crate) log: LogSettings,
    pub(crate) process: ProcessSettings,
    pub(crate) settings: S,
    pub(crate) remarks: Vec<Problem>,
    pub(crate) values: Values,
}

/// Reads and checks the settings; with `--check-config` their certificates, too.
///
/// Errors: all problems.
pub(crate) fn load<S: ServerSettings>(
    arguments: &ServerArgs,
) -> Result<LoadedSettings<S>, Problems> {
    let (mut loaded, mut problems) = parse::<S>(arguments)?;
    problems.add(loaded.settings.problems());
    loaded.remarks.extend(loaded.settings.remarks());
    if arguments.check_config {
        let found = tls::check(&loaded.settings.certificates());
        problems.add(found.problems);
        loaded.remarks.extend(found.remarks);
    }
    problems.none()?;
    Ok(loaded)
}

/// The settings without a check of their combinations: enough to print their limits.
pub(crate) fn read<S: ServerSettings>(
    arguments: &ServerArgs,
) -> Result<LoadedSettings<S>, Problems> {
    let (loaded, problems) = parse::<S>(arguments)?;
    problems.none()?;
    Ok(loaded)
}

fn parse<S: ServerSettings>(
    arguments: &ServerArgs,
) -> Result<(LoadedSettings<S>, Problems), Problems> {
    let file = arguments.file();
    let is_own = |file: &&PathBuf| {
        let extension = file.extension().unwrap_or_default();
        S::OWN_FILE.is_some() && (extension == "yml" || extension == "yaml")
    };
    let (own, lines) = match file {
        Some(file) if is_own(&file) => (Some(file), None),
        file => (None, file.map(PathBuf::as_path)),
    };
    let mut values = Values::read(lines)?;
    if let (Some(path), Some(variable)) = (own, S::OWN_FILE) {
        values.set(variable, &path.to_string_lossy());
    }
    for (name, text) in &arguments.overrides {
        values.set(name, text);
    }
    let (mut problems, mut remarks) = (Problems::default(), Vec::new());
    S::prepare(&mut values, &mut problems, &mut remarks);
    let log = LogSettings::read(&values, &mut problems);
    let process = ProcessSettings::read(&values, &mut problems);
    let settings = S::read(&values, &mut problems);
    let loaded = LoadedSettings {
        log,
        process,
        settings,
        remarks,
        values,
    };
    Ok((loaded, problems))
}
