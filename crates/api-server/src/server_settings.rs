//! Settings as the command line needs them: listeners, limits, and consistency checks.

use std::net::SocketAddr;
use std::path::Path;

use model::Error;
use service::limits::Limit;
use service::program::ServerSettings;
use service::server::Listen;
use service::settings::{CommaList, Problem, Setting as _};
use service::tls::{CertificateFiles, CertificateSetting, TlsConfig};

use crate::auth::{KeyTexts, LocalKeys};
use crate::limits;
use crate::settings::{AuthType, BaseUrl, FileBackend, Settings, SslMode};

/// Optional mount of a live boot image.
const LIVE_ISO: &str = "/data/livecd.iso";
/// Optional mount of coreos-installer.
const COREOS_INSTALLER: &str = "/data/coreos-installer";
/// Offset and magic of the volume descriptor of an ISO image.
const ISO_MAGIC: (u64, &[u8]) = (0x8001, b"CD001");

/// TLS of the API, if it is served so.
fn tls(settings: &Settings) -> Option<TlsConfig> {
    let files = [&settings.https_cert_file, &settings.https_key_file];
    let [Some(cert), Some(key)] = files.map(Clone::clone) else {
        return None;
    };
    settings
        .serve_https
        .then(|| CertificateFiles { cert, key }.into())
}

impl ServerSettings for Settings {
    fn listen(&self) -> Vec<Listen> {
        let tls = tls(self);
        let address = SocketAddr::new(self.api_listen_address, self.api_listen_port);
        vec![Listen {
            unsent_bytes: Some(limits::UNSENT_BYTES),
            ..Listen::new(address, tls)
                .with(&self.http)
                .at(&self.base_url())
                .at(&self.callback_url())
        }]
    }

    fn certificates(&self) -> Vec<CertificateSetting> {
        let served = tls(self);
        let served =
            served.map(|it| CertificateSetting::pair(it, "HTTPS_CERT_FILE", "HTTPS_KEY_FILE"));
        let of_mirrors = Some(&self.mirror_ca_path).filter(|path| path.exists());
        let of_bucket = self.s3_ca_file.as_ref();
        let of_database = self.db_ca_file.as_ref();
        let trusted = [
            ("SERVICE_CA_CERT_PATH", self.service_ca_cert_path.as_ref()),
            ("MIRROR_CA_PATH", of_mirrors),
            (
                "JWKS_CA_FILE",
                self.jwks_ca_file
                    .as_ref()
                    .filter(|_| self.jwks_url.is_some()),
            ),
            ("BMC_CA_FILE", self.bmc_ca_file.as_ref()),
            (
                "S3_CA_FILE",
                of_bucket.filter(|_| self.storage == FileBackend::S3),
            ),
            (
                "DB_CA_FILE",
                of_database.filter(|_| self.db_sslmode != SslMode::Disable),
            ),
        ];
        let trusted = trusted.map(|(name, path)| CertificateSetting::trusted(name, path));
        served
            .into_iter()
            .chain(trusted.into_iter().flatten())
            .collect()
    }

    fn data_folders(&self) -> Vec<&Path> {
        vec![&self.work_dir]
    }

    fn limits(&self) -> Vec<Limit> {
        limits::limits(self)
    }

    fn remarks(&self) -> Vec<Problem> {
        let offer = self.offer();
        let missing = offer.missing_platform_versions();
        let remark = |(selector, version): (&str, &str)| {
            let text = format!(
                "{selector}: RELEASE_IMAGES has no release {version:?} of its architectures, or IGNORED_OPENSHIFT_VERSIONS rules it out: it is not offered"
            );
            Problem::new("PLATFORM_VERSIONS", text)
        };
        missing.map(remark).collect()
    }

    fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut report = |variable: &str, text: String| problems.push(Problem::new(variable, text));
        if self.serve_https {
            for (variable, file) in [
                ("HTTPS_CERT_FILE", &self.https_cert_file),
                ("HTTPS_KEY_FILE", &self.https_key_file),
            ] {
                match file {
                    None => report(
                        variable,
                        "requires a PEM file while SERVE_HTTPS is true".to_owned(),
                    ),
                    Some(path) => readable(path).unwrap_or_else(|text| report(variable, text)),
                }
            }
        }
        if let Some(path) = &self.audit_log_file
            && !path.parent().is_some_and(Path::is_dir)
        {
            let text = format!("{} is in no folder that exists", path.display());
            report("AUDIT_LOG_FILE", text);
        }
        if let Some(path) = &self.service_ca_cert_path {
            readable(path).unwrap_or_else(|text| report("SERVICE_CA_CERT_PATH", text));
        }
        if let Some(path) = &self.bmc_ca_file {
            readable(path).unwrap_or_else(|text| report("BMC_CA_FILE", text));
        }
        if self.service_base_url.is_none()
            && let Err(text) = BaseUrl::parse(&self.base_url())
        {
            report(
                "ASSISTED_SERVICE_HOST",
                format!("{} is not a URL: {text}", self.base_url()),
            );
        }
        problems_of_auth(self, &mut report);
        if self.service_fqdn.contains([':', '/']) {
            report(
                "SERVICE_FQDN",
                format!(
                    "{:?} is not a plain name, as in installer.example.com",
                    self.service_fqdn
                ),
            );
        }
        for text in unknown::<model::validations::HostValidationId>(&self.disabled_host_validations)
        {
            report("DISABLED_HOST_VALIDATIONS", text);
        }
        for text in
            unknown::<model::validations::ClusterValidationId>(&self.disabled_cluster_validations)
        {
            report("DISABLED_CLUSTER_VALIDATIONS", text);
        }
        for text in unknown::<model::steps::StepType>(&self.disabled_steps) {
            report("DISABLED_STEPS", text);
        }
        problems_of_os_images(self, &mut report);
        if let Some(path) = &self.release_keyring
            && let Err(error) = preparation::keyring(path)
        {
            report("RELEASE_KEYRING", error.chain());
        }
        if let Err((variable, reason)) = crate::app::remote_services(self) {
            report(variable, reason);
        }
        problems_of_database(self, &mut report);
        crate::file_storage::problems(self, &mut report);
        if let Err(text) = mounted_iso(Path::new(LIVE_ISO)) {
            report("/data/livecd.iso", text);
        }
        if let Err(text) = mounted_program(Path::new(COREOS_INSTALLER)) {
            report("/data/coreos-installer", text);
        }
        problems
    }
}

fn problems_of_os_images(settings: &Settings, report: &mut impl FnMut(&str, String)) {
    if settings.os_images_file.is_some() {
        let text = "is removed: set OS_IMAGES to the content of the file, or leave both empty to offer the live images in the registry";
        report("OS_IMAGES_FILE", text.to_owned());
    }
    if !settings.release_images.0.is_empty() && settings.os_images.0.is_empty() {
        let text = "is empty: RELEASE_IMAGES need base images for discovery";
        report("OS_IMAGES", text.to_owned());
    }
}

fn problems_of_database(settings: &Settings, report: &mut impl FnMut(&str, String)) {
    if let Some(path) = &settings.db_ca_file {
        readable(path).unwrap_or_else(|text| report("DB_CA_FILE", text));
    } else if matches!(settings.db_sslmode, SslMode::VerifyCa | SslMode::VerifyFull) {
        report(
            "DB_CA_FILE",
            "requires a PEM file while DB_SSLMODE is verify-ca or verify-full".to_owned(),
        );
    }
    if settings.db_max_open_connections < 4 {
        report(
            "DB_MAX_OPEN_CONNECTIONS",
            "requires at least 4 connections".to_owned(),
        );
    }
}

fn problems_of_auth(settings: &Settings, report: &mut impl FnMut(&str, String)) {
    let texts = KeyTexts::of(settings);
    let requires_private = settings.auth_type == AuthType::Local;
    let requires_keys = requires_private || settings.auth_type == AuthType::AgentInstallerLocal;
    for (variable, required, text) in [
        ("EC_PUBLIC_KEY_PEM", requires_keys, texts.public),
        ("EC_PRIVATE_KEY_PEM", requires_private, texts.private),
    ] {
        if required && text.is_empty() {
            let text = "requires a key: `atoll token keys` prints a pair".to_owned();
            report(variable, text);
        }
    }
    if matches!(settings.auth_type, AuthType::Oidc | AuthType::Rhsso) {
        let sources = [
            !settings.jwks_cert.is_empty(),
            settings.jwks_file.is_some(),
            settings.jwks_url.is_some(),
        ];
        if sources.into_iter().filter(|is_set| *is_set).count() != 1 {
            let text = "exactly one of JWKS_CERT, JWKS_FILE and JWKS_URL is required".to_owned();
            report("AUTH_TYPE", text);
        }
        if !texts.public.is_empty() && texts.private.is_empty() {
            report(
                "EC_PRIVATE_KEY_PEM",
                "requires the key of EC_PUBLIC_KEY_PEM".to_owned(),
            );
        }
    }
    if settings.auth_type == AuthType::Oidc {
        for (variable, text) in [
            ("OIDC_ISSUER", &settings.oidc_issuer),
            ("OIDC_AUDIENCE", &settings.oidc_audience),
        ] {
            if text.is_empty() {
                report(variable, "is required while AUTH_TYPE is oidc".to_owned());
            }
        }
    }
    if !texts.public.is_empty()
        && let Err(error) = LocalKeys::parse(&texts)
    {
        let (variable, reason) = match error {
            Error::Invalid { field, reason } => (field, reason),
            other => ("EC_PUBLIC_KEY_PEM".to_owned(), other.to_string()),
        };
        report(&variable, reason);
    }
}

fn unknown<T>(list: &CommaList) -> Vec<String>
where
    T: std::str::FromStr<Err = model::UnknownValue>,
{
    list.iter()
        .filter_map(|text| text.parse::<T>().err().map(|error| error.to_string()))
        .collect()
}

fn readable(path: &Path) -> Result<(), String> {
    std::fs::File::open(path)
        .map(drop)
        .map_err(|error| format!("{}: {error}", path.display()))
}

/// Checks that a mounted boot image is an ISO image.
fn mounted_iso(path: &Path) -> Result<(), String> {
    use std::io::{Read as _, Seek as _, SeekFrom};
    if !path.exists() {
        return Ok(());
    }
    let report = |error: std::io::Error| format!("is mounted but cannot be read: {error}");
    let mut file = std::fs::File::open(path).map_err(report)?;
    let mut magic = [0; ISO_MAGIC.1.len()];
    file.seek(SeekFrom::Start(ISO_MAGIC.0)).map_err(report)?;
    match file.read_exact(&mut magic) {
        Ok(()) if magic == ISO_MAGIC.1 => Ok(()),
        _ => Err("is mounted but is not an ISO image: mount the live boot image there".to_owned()),
    }
}

/// Checks that a mounted coreos-installer is executable. Nothing is mounted in a folder that this server may not enter.
fn mounted_program(path: &Path) -> Result<(), String> {
    use std::os::unix::fs::PermissionsExt as _;
    if !path.exists() {
        return Ok(());
    }
    match path.metadata() {
        Err(error) => Err(format!("is mounted but cannot be read: {error}")),
        Ok(metadata) if metadata.is_file() && metadata.permissions().mode() & 0o111 != 0 => Ok(()),
        Ok(_) => Err("is mounted but is not an executable file".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_valid() {
        assert!(Settings::default().problems().is_empty());
    }

    #[test]
    fn problems_are_reported_together() {
        let settings = Settings {
            serve_https: true,
            service_fqdn: "http://x".to_owned(),
            disabled_steps: CommaList(vec!["dance".to_owned()]),
            release_keyring: Some("/nowhere/keys".into()),
            os_images_file: Some("/images/os-images.json".into()),
            ..Settings::default()
        };
        assert_eq!(settings.problems().len(), 6, "{:?}", settings.problems());
    }

    #[test]
    fn authentication_needs_its_keys() {
        let variables = |settings: &Settings| -> Vec<String> {
            let problems = settings.problems().into_iter();
            problems.map(|problem| problem.variable).collect()
        };
        let of = |auth_type: AuthType| Settings {
            auth_type,
            ..Settings::default()
        };
        let keys = ["EC_PUBLIC_KEY_PEM", "EC_PRIVATE_KEY_PEM"];
        assert_eq!(variables(&of(AuthType::Local)), keys);
        assert_eq!(variables(&of(AuthType::AgentInstallerLocal)), keys[..1]);
        let issuer = ["AUTH_TYPE", "OIDC_ISSUER", "OIDC_AUDIENCE"];
        assert_eq!(variables(&of(AuthType::Oidc)), issuer);
        assert_eq!(variables(&of(AuthType::Rhsso)), issuer[..1]);
        let rhsso = Settings {
            jwks_cert: "{}".to_owned(),
            ..of(AuthType::Rhsso)
        };
        assert_eq!(variables(&rhsso), [""; 0]);
        let malformed = Settings {
            ec_public_key_pem: "-----".to_owned(),
            ..Settings::default()
        };
        assert_eq!(variables(&malformed), keys[..1]);
    }

    #[test]
    fn mounted_programs_must_be_executable() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(mounted_program(file.path()).is_err());
        assert!(mounted_program(Path::new("/proc/self/exe")).is_ok());
        // As below a folder of another user, the path cannot be looked up.
        assert!(mounted_program(&file.path().join("coreos-installer")).is_ok());
    }

    #[test]
    fn mounted_boot_images_must_be_iso() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(mounted_iso(file.path()).is_err());
        assert!(mounted_iso(Path::new("/nowhere/livecd.iso")).is_ok());
    }
}
