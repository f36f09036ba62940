//! Certificates in files: names, dates, and their authority.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use net::certificate;

use super::SubjectFinding;
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
    let failed = |finding: String| SubjectFinding::failed(file.service, finding, &file.renewal);
    let read = |path: &std::path::Path| {
        let pem = std::fs::read(path).map_err(|e| e.to_string())?;
        certificate::of_pem(&pem).map_err(|e| e.to_string())
    };
    let shown = file.path.display();
    let chain = match read(&file.path) {
        Ok(chain) => chain,
        Err(reason) => return failed(format!("{shown} cannot be read: {reason}")),
    };
    let leaf = match certificate::read(&chain[0]) {
        Ok(leaf) => leaf,
        Err(error) => return failed(format!("{shown} cannot be read: {error}")),
    };
    if now < leaf.not_before {
        let finding = format!("{shown} is not valid yet");
        return SubjectFinding::failed(file.service, finding, "check the clock of this machine");
    }
    let Ok(left) = leaf.not_after.duration_since(now) else {
        return failed(format!("{shown} has expired"));
    };
    let missing: Vec<&str> = file
        .names
        .iter()
        .map(String::as_str)
        .filter(|name| !leaf.has_name(name))
        .collect();
    if !missing.is_empty() {
        return failed(format!("{shown} is not for {}", missing.join(", ")));
    }
    let authority = file.authority.display();
    let roots = match read(&file.authority) {
        Ok(roots) => roots,
        Err(reason) => {
            return failed(format!(
                "the authority {authority} cannot be read: {reason}"
            ));
        }
    };
    // A self-signed one is trusted itself.
    if !roots.contains(&chain[0]) {
        let mut names = leaf.names.iter();
        let refused = names.find_map(|name| certificate::verify(&chain, &roots, name, now).err());
        if let Some(reason) = refused {
            return failed(format!(
                "clients that trust {authority} refuse {shown}: {reason}"
            ));
        }
    }
    let days = left.as_secs() / DAY.as_secs();
    let finding = format!("{shown} is valid for {days} more days");
    if left < DAY * WARNING_DAYS {
        SubjectFinding::warning(file.service, finding, &file.renewal)
    } else {
        SubjectFinding::passed(file.service, finding)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use rcgen::{CertificateParams, DnType, IsCa, Issuer, KeyPair};

    use super::*;
    use crate::CheckStatus;

    /// An authority in `dir`, whose certificates for `names` start `start` days from now and last `days`.
    fn make(dir: &Path, names: &[&str], days: [i64; 2]) -> CertificateFile {
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
        CertificateFile {
            service: "proxy",
            path,
            names: vec!["api.lab.example".to_owned()],
            authority,
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
        fs::rename(&file.authority, dir.join("gone")).unwrap();
        let found = check(&file, SystemTime::now());
        assert!(found.finding.contains("ca.crt cannot be read"), "{found:?}");
        let other = tempfile::tempdir().unwrap();
        make(other.path(), &["x"], [-1, 60]);
        fs::copy(other.path().join("ca.crt"), &file.authority).unwrap();
        let found = check(&file, SystemTime::now());
        assert!(found.finding.contains("refuse"), "{found:?}");
        fs::remove_file(&file.path).unwrap();
        let found = check(&file, SystemTime::now());
        assert_eq!((found.status, found.remedy.as_str()), (failed, "renew it"));
    }
}
