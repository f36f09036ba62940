//! Settings as the command line needs them: listener, log, limits, and their translation from distribution's file.

use std::path::Path;

use service::limits::Limit;
use service::logs;
use service::program::ServerSettings;
use service::server::Listen;
use service::settings::{Problem, Problems, Values};
use service::tls::CertificateSetting;

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

    fn certificates(&self) -> Vec<CertificateSetting> {
        let served = self.tls().map(|tls| CertificateSetting::Served {
            tls,
            certificate: "REGISTRY_HTTP_TLS_CERTIFICATE",
            key: "REGISTRY_HTTP_TLS_KEY",
            clients: "REGISTRY_HTTP_TLS_CLIENTCAS",
        });
        let of_tokens = self.registry_auth_token_rootcertbundle.as_ref();
        let of_bucket = self.registry_storage_s3_cafile.as_ref();
        let of_bucket = of_bucket.filter(|_| self.driver() == Driver::S3);
        let single = self.registry_proxy_cafile.as_ref();
        let single = single.filter(|_| self.registry_proxy_remoteurl.is_some());
        let trusted = [
            ("REGISTRY_AUTH_TOKEN_ROOTCERTBUNDLE", of_tokens),
            ("REGISTRY_STORAGE_S3_CAFILE", of_bucket),
            ("REGISTRY_PROXY_CAFILE", single),
        ];
        let trusted = trusted.map(|(name, path)| CertificateSetting::trusted(name, path));
        let upstreams = self.registry_proxy_upstreams.0.iter().enumerate();
        let of_upstreams = upstreams.map(|(index, upstream)| {
            let variable = format!("REGISTRY_PROXY_UPSTREAMS_{index}_CAFILE");
            CertificateSetting::trusted(variable, upstream.cafile.as_ref())
        });
        let all = [served].into_iter().chain(trusted).chain(of_upstreams);
        all.flatten().collect()
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
