//! Settings of a server, as its command line needs them.

use std::path::Path;

use crate::limits::Limit;
use crate::logs;
use crate::server::Listen;
use crate::settings::{FromValues, Problem, Problems, Values};
use crate::tls::CertificateSetting;

/// Settings of a server, as the command line needs them.
pub trait ServerSettings: FromValues {
    /// Where the server listens.
    fn listen(&self) -> Vec<Listen>;

    /// Problems of variables that parse: combinations, files that must exist.
    fn problems(&self) -> Vec<Problem> {
        Vec::new()
    }

    /// Parts of the settings without effect.
    fn remarks(&self) -> Vec<Problem> {
        Vec::new()
    }

    /// Certificates that `--check-config` checks: all files of them that the server opens. Of a list, a server starts
    /// without those that cannot be used, as long as there is another.
    fn certificates(&self) -> Vec<CertificateSetting> {
        Vec::new()
    }

    /// The server's own limits, beside those of every server.
    fn limits(&self) -> Vec<Limit> {
        Vec::new()
    }

    /// Folders that the server writes, which may be mounts.
    fn data_folders(&self) -> Vec<&Path> {
        Vec::new()
    }

    /// The variable, in lower case, of a file in a form of the server's own: `--config` may name that file too.
    const OWN_FILE: Option<&'static str> = None;

    /// Translates the server's own forms of files and variables before the settings are read; those without effect
    /// become remarks.
    fn prepare(_values: &mut Values, _problems: &mut Problems, _remarks: &mut Vec<Problem>) {}

    /// Level and format of the log, where the server has settings of its own for them.
    fn log(&self) -> (Option<&str>, logs::LogFormat) {
        (None, logs::LogFormat::default())
    }
}
