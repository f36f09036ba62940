//! Certificates in files: keys, names, dates, and their authority.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use net::certificate::{self, CertificateSummary};
use rustls::pki_types::CertificateDer;

use super::findings::{SubjectFinding, SubjectProblem};
use crate::CheckStatus::{Failed, Warning};
use crate::site::{CertificateFile, SiteFacts};

const DAY: Duration = Duration::from_hours(24);
/// Certificates with less left are a warning.
const WARNING_DAYS: u32 = 30;

pub(super) async fn files(site: Arc<SiteFacts>) -> Vec<SubjectFinding> {
    let found = tokio::task::spawn_blocking(move || {
        let now = SystemTime::now();
        site.certificates
            .iter()
            .map(|file| check(file, now))
            .collect()
    });
    found.await.unwrap_or_default()
}

fn check(file: &CertificateFile, now: SystemTime) -> SubjectFinding {
    SubjectFinding::of(file.service.clone(), check_file(file, now))
}

fn check_file(file: &CertificateFile, now: SystemTime) -> Result<String, SubjectProblem> {
    let failed = |finding: String| (Failed, finding, file.renewal.clone());
    let shown = file.path.display().to_string();
    let chain =
        read(&file.path).map_err(|reason| failed(format!("{shown} cannot be read: {reason}")))?;
    let key_shown = file.key.display();
    let key = std::fs::read(&file.key)
        .map_err(|reason| failed(format!("{key_shown} cannot be read: {reason}")))?;
    certificate::check_key(&chain, &key).map_err(|reason| {
        failed(format!(
            "the key {key_shown} does not fit {shown}: {reason}"
        ))
    })?;
    check_chain(&CheckedChain {
        chain: &chain,
        shown: &shown,
        names: &file.names,
        authority: file.authority.as_deref(),
        renewal: &file.renewal,
        now,
    })
}

fn read(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let pem = std::fs::read(path).map_err(|e| e.to_string())?;
    certificate::of_pem(&pem).map_err(|e| e.to_string())
}

/// A chain, leaf first, and the demands on it.
pub(super) struct CheckedChain<'a> {
    pub(super) chain: &'a [CertificateDer<'static>],
    /// Its name in findings.
    pub(super) shown: &'a str,
    pub(super) names: &'a [String],
    pub(super) authority: Option<&'a Path>,
    pub(super) renewal: &'a str,
    pub(super) now: SystemTime,
}

/// Errors: a warning or a failure.
pub(super) fn check_chain(checked: &CheckedChain<'_>) -> Result<String, SubjectProblem> {
    let CheckedChain {
        chain, shown, now, ..
    } = *checked;
    let failed = |finding: String| (Failed, finding, checked.renewal.to_owned());
    let leaf = certificate::read(&chain[0])
        .map_err(|error| failed(format!("{shown} cannot be read: {error}")))?;
    if now < leaf.not_before {
        let remedy = "check the clock of this machine".to_owned();
        return Err((Failed, format!("{shown} is not valid yet"), remedy));
    }
    let Ok(left) = leaf.not_after.duration_since(now) else {
        return Err(failed(format!("{shown} has expired")));
    };
    let names = checked.names.iter().map(String::as_str);
    let missing: Vec<&str> = names.filter(|name| !leaf.has_name(name)).collect();
    if !missing.is_empty() {
        return Err(failed(format!("{shown} is not for {}", missing.join(", "))));
    }
    if let Some(authority) = checked.authority {
        check_authority(checked, authority, &leaf).map_err(failed)?;
    }
    let days = left.as_secs() / DAY.as_secs();
    let finding = format!("{shown} is valid for {days} more days");
    if left < DAY * WARNING_DAYS {
        Err((Warning, finding, checked.renewal.to_owned()))
    } else {
        Ok(finding)
    }
}

/// Errors: the finding.
fn check_authority(
    checked: &CheckedChain<'_>,
    authority: &Path,
    leaf: &CertificateSummary,
) -> Result<(), String> {
    let CheckedChain { chain, shown, .. } = checked;
    let path = authority.display();
    let roots = read(authority)
        .map_err(|reason| format!("the authority {path} cannot be read: {reason}"))?;
    // A self-signed one is trusted itself.
    if roots.contains(&chain[0]) {
        return Ok(());
    }
    let mut names = leaf.names.iter();
    let refused =
        names.find_map(|name| certificate::verify(chain, &roots, name, checked.now).err());
    match refused {
        Some(reason) => Err(format!(
            "clients that trust {path} refuse {shown}: {reason}"
        )),
        None => Ok(()),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::fs;

    use rcgen::{CertificateParams, DnType, IsCa, Issuer, KeyPair};

    use super::*;
    use crate::CheckStatus;

    /// An authority in `dir`, whose certificates for `names` start `start` days from now and last `days`.
    pub(in crate::checks) fn make(dir: &Path, names: &[&str], days: [i64; 2]) -> CertificateFile {
        let now = SystemTime::now();
        let at = |days: i64| {
            let size = DAY * u32::try_from(days.unsigned_abs()).unwrap();
            if days < 0 { now - size } else { now + size }
        };
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        params
            .distinguished_name
            .push(DnType::CommonName, "authority");
        let authority = dir.join("ca.crt");
        fs::write(&authority, params.self_signed(&key).unwrap().pem()).unwrap();
        let issuer = Issuer::new(params, key);
        let key = KeyPair::generate().unwrap();
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.not_before = at(days[0]).into();
        params.not_after = at(days[1]).into();
        let path = dir.join("leaf.pem");
        fs::write(&path, params.signed_by(&key, &issuer).unwrap().pem()).unwrap();
        let key_path = dir.join("leaf.key");
        fs::write(&key_path, key.serialize_pem()).unwrap();
        CertificateFile {
            service: "proxy".to_owned(),
            path,
            key: key_path,
            names: vec!["api.lab.example".to_owned()],
            authority: Some(authority),
            renewal: "renew it".to_owned(),
        }
    }

    #[test]
    fn broken_certificates_are_found() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        let (passed, warning, failed) = (
            CheckStatus::Passed,
            CheckStatus::Warning,
            CheckStatus::Failed,
        );
        for (names, days, status, expected) in [
            (["*.lab.example"], [-1, 60], passed, "59 more days"),
            (["*.lab.example"], [-1, 20], warning, "19 more days"),
            (["*.lab.example"], [-9, -1], failed, "has expired"),
            (["*.lab.example"], [2, 60], failed, "not valid yet"),
            (
                ["other.example"],
                [-1, 60],
                failed,
                "is not for api.lab.example",
            ),
        ] {
            let found = check(&make(dir, &names, days), SystemTime::now());
            assert_eq!(found.status, status, "{found:?}");
            assert!(found.finding.contains(expected), "{found:?}");
            assert_eq!(found.remedy.is_empty(), status == passed, "{found:?}");
        }
        let file = make(dir, &["api.lab.example"], [-1, 60]);
        let other = KeyPair::generate().unwrap().serialize_pem();
        for (key, expected) in [(other.as_str(), "does not fit"), ("no key", "does not fit")] {
            fs::write(&file.key, key).unwrap();
            let found = check(&file, SystemTime::now());
            assert!(found.finding.contains(expected), "{found:?}");
            assert_eq!(found.remedy, "renew it");
        }
        fs::remove_file(&file.key).unwrap();
        let found = check(&file, SystemTime::now());
        assert!(
            found.finding.contains("leaf.key cannot be read"),
            "{found:?}"
        );
        let file = make(dir, &["api.lab.example"], [-1, 60]);
        fs::rename(file.authority.as_ref().unwrap(), dir.join("gone")).unwrap();
        let found = check(&file, SystemTime::now());
        assert!(found.finding.contains("ca.crt cannot be read"), "{found:?}");
        let other = tempfile::tempdir().unwrap();
        make(other.path(), &["x"], [-1, 60]);
        fs::copy(other.path().join("ca.crt"), dir.join("ca.crt")).unwrap();
        let found = check(&file, SystemTime::now());
        assert!(found.finding.contains("refuse"), "{found:?}");
        let of_others = CertificateFile {
            authority: None,
            ..file.clone()
        };
        assert_eq!(check(&of_others, SystemTime::now()).status, passed);
        fs::remove_file(&file.path).unwrap();
        let found = check(&file, SystemTime::now());
        assert_eq!((found.status, found.remedy.as_str()), (failed, "renew it"));
    }
}
