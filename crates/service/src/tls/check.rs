//! A check of the files of certificates that settings name, before a server starts.

use std::path::{Path, PathBuf};

use net::{pem, trust};
use rustls::pki_types::CertificateDer;
use tokio::runtime::Runtime;

use super::certified_name;
use super::files::{TlsFiles, content, of_file};
use super::loader::Loader;
use super::served::Doubt;
use super::tls_config::{CertificateFiles, Certificates, TlsConfig};
use crate::clock;
use crate::settings::Problem;

/// Files of certificates that a server opens, with the variables that name them.
#[derive(Debug, Clone)]
pub enum CertificateSetting {
    /// Certificates that a listener serves.
    Served {
        /// TLS of the listener.
        tls: TlsConfig,
        /// Variable of the certificate or of the list.
        certificate: &'static str,
        /// Variable of the key, if there is one.
        key: &'static str,
        /// Variable of the authorities of client certificates, if there is one.
        clients: &'static str,
    },
    /// Authorities of other servers, or of a protocol's certificates.
    Trusted {
        /// Variable of the file.
        variable: String,
        /// PEM file of the authorities.
        path: PathBuf,
    },
}

impl CertificateSetting {
    /// Certificate and key of a listener without client certificates.
    pub fn pair(tls: TlsConfig, certificate: &'static str, key: &'static str) -> Self {
        Self::Served {
            tls,
            certificate,
            key,
            clients: certificate,
        }
    }

    /// The authorities at `path`, if the variable is set.
    pub fn trusted(variable: impl Into<String>, path: Option<&PathBuf>) -> Option<Self> {
        path.map(|path| Self::Trusted {
            variable: variable.into(),
            path: path.clone(),
        })
    }
}

/// Findings of a check.
#[derive(Debug, Default)]
pub(crate) struct CertificateCheck {
    /// Files that cannot be used.
    pub(crate) problems: Vec<Problem>,
    /// Certificates that others refuse at this time, options without effect, and names that a certificate lacks.
    pub(crate) remarks: Vec<Problem>,
}

/// Checks the files of `settings` as at the start of a server.
pub(crate) fn check(settings: &[CertificateSetting]) -> CertificateCheck {
    let mut found = CertificateCheck::default();
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = match builder.build() {
        Ok(runtime) => runtime,
        Err(error) => {
            let reason = format!("starting the runtime: {error}");
            found.problems.push(Problem::new("--check-config", reason));
            return found;
        }
    };
    for setting in settings {
        match setting {
            CertificateSetting::Trusted { variable, path } => {
                found.check_authorities(&runtime, variable, path);
            }
            CertificateSetting::Served {
                tls,
                certificate,
                key,
                clients,
            } => {
                let before = found.problems.len();
                if let Certificates::Files(files) = &tls.certificates {
                    found.check_files(&runtime, files, [certificate, key]);
                }
                let authorities = tls.clients.iter().flat_map(|it| &it.authorities);
                for path in authorities {
                    found.check_authorities(&runtime, clients, path);
                }
                // A file that is reported already makes the whole unusable, too.
                if found.problems.len() == before {
                    found.check_served(&runtime, tls, certificate);
                }
            }
        }
    }
    found
}

impl CertificateCheck {
    fn check_authorities(&mut self, runtime: &Runtime, variable: &str, path: &Path) {
        let text = match runtime.block_on(content(path)) {
            Ok(text) => text,
            Err(reason) => return self.problems.push(Problem::new(variable, reason)),
        };
        match trust::authorities(&text) {
            Ok(authorities) => self.remark_on_authorities(variable, path, &authorities),
            Err(reason) => {
                let reason = of_file(path, &reason);
                self.problems.push(Problem::new(variable, reason));
            }
        }
        if pem::has_private_key(&text) {
            let reason = "it has a private key, which does not belong among trusted certificates";
            let reason = of_file(path, &reason);
            self.remarks.push(Problem::new(variable, reason));
        }
    }

    fn remark_on_authorities(
        &mut self,
        variable: &str,
        path: &Path,
        authorities: &[CertificateDer<'_>],
    ) {
        let now = clock::now();
        let ends = authorities.iter().filter_map(certified_name::expiry);
        for end in ends.filter(|end| *end <= now) {
            let text = format!("a certificate {}", Doubt::Expired(end));
            self.remarks
                .push(Problem::new(variable, of_file(path, &text)));
        }
    }

    /// Reads certificate and key each, so that both are reported.
    fn check_files(
        &mut self,
        runtime: &Runtime,
        CertificateFiles { cert, key }: &CertificateFiles,
        [of_cert, of_key]: [&str; 2],
    ) {
        let read = |path: &Path| runtime.block_on(content(path));
        let in_file = |path: &Path, reason: String| of_file(path, &reason);
        let certificates = read(cert).and_then(|text| {
            let found = pem::certificates(&text);
            found.map(drop).map_err(|reason| in_file(cert, reason))
        });
        let private = read(key).and_then(|text| {
            let found = pem::private_key(&text);
            found.map(drop).map_err(|reason| in_file(key, reason))
        });
        for (variable, result) in [(of_cert, certificates), (of_key, private)] {
            let problem = result.err().map(|reason| Problem::new(variable, reason));
            self.problems.extend(problem);
        }
    }

    fn check_served(&mut self, runtime: &Runtime, config: &TlsConfig, variable: &str) {
        let loader = Loader {
            config: config.clone(),
            speaks_http2: true,
        };
        let files = runtime.block_on(TlsFiles::read(config));
        let loaded = match files.and_then(|files| loader.load(&files, None)) {
            Ok(loaded) => loaded,
            Err(reason) => return self.problems.push(Problem::new(variable, reason)),
        };
        let as_problem = |reason: String| Problem::new(variable, reason);
        let reasons = loaded.failures.into_iter().map(|failure| failure.reason);
        self.problems.extend(reasons.map(as_problem));
        for one in &loaded.served {
            let cert = one.entry.bundle.display();
            for option in &one.entry.options.ignored {
                let remark = format!("{cert}: option `{option}` has no effect");
                self.remarks.push(as_problem(remark));
            }
            for doubt in one.identity.iter().flat_map(|it| &it.doubts) {
                let text = format!("{cert}: the certificate {doubt}: clients will refuse it");
                self.remarks.push(as_problem(text));
            }
        }
    }
}
