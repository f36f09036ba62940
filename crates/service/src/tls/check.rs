//! A check of certificates before they are served.

use super::TlsConfig;
use tokio::runtime::Runtime;

use super::files::TlsFiles;
use super::loader::Loader;
use super::served::Doubt;

/// Findings of a check.
#[derive(Debug, Default)]
pub(crate) struct CertificateCheck {
    /// Certificates that cannot be used, or that clients refuse at this time.
    pub(crate) problems: Vec<String>,
    /// Options without effect, and names that a certificate lacks.
    pub(crate) remarks: Vec<String>,
}

/// Checks the files of `config` as at the start of a server.
pub(crate) fn check(config: &TlsConfig) -> CertificateCheck {
    let mut found = CertificateCheck::default();
    let loader = Loader {
        config: config.clone(),
        speaks_http2: true,
    };
    let files = runtime().and_then(|runtime| runtime.block_on(TlsFiles::read(config)));
    let loaded = files.and_then(|files| loader.load(&files, None));
    let loaded = match loaded {
        Ok(loaded) => loaded,
        Err(reason) => {
            found.problems.push(reason);
            return found;
        }
    };
    let reasons = loaded.failures.into_iter().map(|failure| failure.reason);
    found.problems.extend(reasons);
    for one in &loaded.served {
        let cert = one.entry.bundle.display();
        for option in &one.entry.options.ignored {
            let remark = format!("{cert}: option `{option}` has no effect");
            found.remarks.push(remark);
        }
        for doubt in one.identity.iter().flat_map(|it| &it.doubts) {
            let text = format!("{cert}: the certificate {doubt}: clients will refuse it");
            match doubt {
                Doubt::LacksName(_) => found.remarks.push(text),
                Doubt::Expired(_) | Doubt::NotYetValid(_) => found.problems.push(text),
            }
        }
    }
    found
}

/// For files only, before that of the server.
fn runtime() -> Result<Runtime, String> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder
        .build()
        .map_err(|e| format!("starting the runtime: {e}"))
}
