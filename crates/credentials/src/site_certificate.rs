//! The wildcard certificate of a domain, and the list that names it for the proxy.

use std::fmt;
use std::path::{Path, PathBuf};

use service::Error;
use service::file::{self, rewrite_atomic};

use crate::certificate::SiteAuthority;

/// Content of a new list, before its entry. Source: HAProxy, `crt-list`.
const LIST_HEAD: &str = "\
# Certificates of the proxy, in the format of HAProxy's crt-list: one PEM file a line, leaf first, with its key.
# Relative paths are relative to this file. The first one is the default.
";
const PUBLIC: u32 = 0o644;
/// Longer validities are refused by browsers. Units: days.
pub const LEAF_DAYS: u32 = 398;

/// Files of a domain's certificate.
#[derive(Debug)]
pub struct SiteFiles {
    /// Certificate, intermediate authorities and key.
    pub bundle: PathBuf,
    /// Names the bundle for the proxy.
    pub list: PathBuf,
    name: String,
}

/// A certificate as it should be.
#[derive(Debug)]
pub struct SiteCertificate<'a> {
    /// It is for this name and the names directly below it.
    pub domain: &'a str,
    /// Further names.
    pub names: &'a [String],
    /// Validity in days.
    pub days: u32,
    /// Whether a fresh one is replaced, too.
    pub renew: bool,
    /// Mode of a new bundle.
    pub mode: u32,
}

/// The outcome for the bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BundleState {
    /// It did not exist.
    Created,
    /// It was old, or for other names.
    Renewed,
    /// It is fresh.
    Kept,
}

impl fmt::Display for BundleState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Created => "created",
            Self::Renewed => "renewed",
            Self::Kept => "kept, more than a third of its lifetime is left",
        })
    }
}

impl SiteFiles {
    /// Files of `domain` in `folder`.
    pub fn in_folder(folder: &Path, domain: &str) -> Self {
        let name = format!("{domain}.pem");
        Self {
            bundle: folder.join(&name),
            list: folder.join("crt-list.txt"),
            name,
        }
    }

    /// Makes a missing or old certificate, and adds it to the list.
    ///
    /// Errors: files that cannot be read or written; names that `authority` may not sign for.
    pub fn ensure(
        &self,
        authority: &SiteAuthority,
        wanted: &SiteCertificate<'_>,
    ) -> Result<BundleState, Error> {
        let mut names = vec![format!("*.{}", wanted.domain), wanted.domain.to_owned()];
        for name in wanted.names {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        let found = file::read(&self.bundle)?;
        let state = match found {
            None => BundleState::Created,
            Some(found) if !wanted.renew && authority.is_fresh(&found, &names) => BundleState::Kept,
            Some(_) => BundleState::Renewed,
        };
        if state != BundleState::Kept {
            let signed = authority.sign(&names, wanted.days)?;
            // One file, so that a reader never has a certificate with another one's key.
            let text = format!("{}{}", signed.cert, signed.key);
            rewrite_atomic(&self.bundle, text.as_bytes(), wanted.mode)?;
        }
        // The bundle first: every entry of the list exists.
        self.ensure_listed()?;
        Ok(state)
    }

    fn ensure_listed(&self) -> Result<(), Error> {
        let found = file::read(&self.list)?;
        let found = found.map(|found| String::from_utf8_lossy(&found).into_owned());
        let mut text = found.unwrap_or_else(|| LIST_HEAD.to_owned());
        // Options and filters may follow the path.
        let entries = text.lines().filter_map(|line| {
            let (path, _) = line.split_once(['#', '[']).unwrap_or((line, ""));
            path.split_whitespace().next()
        });
        let is_ours = |path: &str| {
            let path = path.trim_start_matches("./");
            path == self.name || Path::new(path) == self.bundle
        };
        if entries.into_iter().any(is_ours) {
            return Ok(());
        }
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&self.name);
        text.push('\n');
        rewrite_atomic(&self.list, text.as_bytes(), PUBLIC)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    const DOMAIN: &str = "lab.example";

    fn wanted(names: &[String], days: u32) -> SiteCertificate<'_> {
        SiteCertificate {
            domain: DOMAIN,
            names,
            days,
            renew: false,
            mode: 0o600,
        }
    }

    #[test]
    fn fresh_certificates_are_kept_and_old_ones_renewed() {
        let folder = tempfile::tempdir().unwrap();
        let authority = SiteAuthority::ensure(folder.path(), DOMAIN, &[]).unwrap();
        let files = SiteFiles::in_folder(folder.path(), DOMAIN);
        let ensure = |wanted: &SiteCertificate<'_>| files.ensure(&authority, wanted).unwrap();
        let read = || fs::read(&files.bundle).unwrap();

        assert_eq!(ensure(&wanted(&[], 398)), BundleState::Created);
        let first = read();
        assert_eq!(ensure(&wanted(&[], 30)), BundleState::Kept);
        assert_eq!(read(), first);
        let renewing = SiteCertificate {
            renew: true,
            ..wanted(&[], 2)
        };
        assert_eq!(ensure(&renewing), BundleState::Renewed);
        // Half of it is left: it is dated back by a day.
        assert_eq!(ensure(&wanted(&[], 2)), BundleState::Kept);

        let more = ["api.deep.lab.example".to_owned()];
        assert_eq!(ensure(&wanted(&more, 2)), BundleState::Renewed);
        assert_eq!(ensure(&wanted(&more, 2)), BundleState::Kept);
        fs::write(&files.bundle, "damaged").unwrap();
        assert_eq!(ensure(&wanted(&more, 2)), BundleState::Renewed);
    }

    #[test]
    fn a_renewed_bundle_keeps_its_mode_and_needs_the_key_only_then() {
        let folder = tempfile::tempdir().unwrap();
        let authority = SiteAuthority::ensure(folder.path(), DOMAIN, &[]).unwrap();
        let files = SiteFiles::in_folder(folder.path(), DOMAIN);
        files.ensure(&authority, &wanted(&[], 9)).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let key = folder.path().join("ca.key");
        assert_eq!((mode(&files.bundle), mode(&key)), (0o600, 0o600));
        fs::set_permissions(&files.bundle, fs::Permissions::from_mode(0o644)).unwrap();

        let elsewhere = folder.path().join("elsewhere");
        fs::rename(&key, &elsewhere).unwrap();
        let state = files.ensure(&authority, &wanted(&[], 9)).unwrap();
        assert_eq!(state, BundleState::Kept);
        let renewing = SiteCertificate {
            renew: true,
            ..wanted(&[], 9)
        };
        let error = files.ensure(&authority, &renewing).unwrap_err().to_string();
        assert!(error.contains("ca.key"), "{error}");
        fs::rename(&elsewhere, &key).unwrap();
        files.ensure(&authority, &renewing).unwrap();
        assert_eq!(mode(&files.bundle), 0o644);
    }

    #[test]
    fn entries_of_others_stay_in_the_list() {
        let folder = tempfile::tempdir().unwrap();
        let authority = SiteAuthority::ensure(folder.path(), DOMAIN, &[]).unwrap();
        let files = SiteFiles::in_folder(folder.path(), DOMAIN);
        let list = || fs::read_to_string(&files.list).unwrap();
        files.ensure(&authority, &wanted(&[], 9)).unwrap();
        assert!(list().starts_with('#') && list().ends_with("\nlab.example.pem\n"));
        fs::write(&files.list, "other.pem [alpn h2]\n#lab.example.pem").unwrap();
        for _ in 0..2 {
            files.ensure(&authority, &wanted(&[], 9)).unwrap();
            assert_eq!(
                list(),
                "other.pem [alpn h2]\n#lab.example.pem\nlab.example.pem\n"
            );
        }
        fs::write(&files.list, "./lab.example.pem [alpn h2] *.lab.example\n").unwrap();
        files.ensure(&authority, &wanted(&[], 9)).unwrap();
        assert_eq!(list().lines().count(), 1);
    }
}
