//! Settings as the command line needs them: listener, log, limits, and their translation from distribution's file.

use std::path::Path;

use service::limits::Limit;
use service::logs;
use service::program::ServerSettings;
use service::server::Listen;
use service::settings::{Problem, Problems, Values};

use crate::settings::{Driver, OWN_FILE, Settings, distribution};

impl ServerSettings for Settings {
    const OWN_FILE: Option<&'static str> = Some(OWN_FILE);

    fn prepare(values: &mut Values, problems: &mut Problems, remarks: &mut Vec<Problem>) {
        distribution::prepare(values, problems, remarks);
    }

    fn log(&self) -> (Option<&str>, logs::LogFormat) {
        let format = self.registry_log_formatter.map(|formatter| formatter.0);
        let level = self.registry_log_level.map(|level| level.0);
        (level, format.unwrap_or_default())
    }

    fn listen(&self) -> Vec<Listen> {
        let tls = self.tls();
        let speaks_http2 =
            !self.registry_http_http2_disabled && (tls.is_some() || self.registry_http_h2c_enabled);
        vec![Listen {
            speaks_http2,
            drain: self.registry_http_draintimeout,
            ..Listen::new(self.registry_http_addr.0, tls)
                .with(&self.http)
                .at(self.registry_http_host.as_deref().unwrap_or_default())
        }]
    }

    fn problems(&self) -> Vec<Problem> {
        self.all_problems()
    }

    fn data_folders(&self) -> Vec<&Path> {
        match self.driver() {
            Driver::Filesystem => vec![&self.registry_storage_filesystem_rootdirectory],
            Driver::S3 => Vec::new(),
        }
    }

    fn limits(&self) -> Vec<Limit> {
        let mut limits = crate::auth::limits();
        limits.push(crate::gc::limit());
        limits.extend(crate::http::limits());
        limits
    }
}
