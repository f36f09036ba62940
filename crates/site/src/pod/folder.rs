//! The folder of the pod: its files, settings, secrets and certificates are made, and kept where they are there.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use api_server::Settings;
use credentials::certificate::SiteAuthority;
use credentials::host_name::{self, in_url};
use credentials::log_in;
use credentials::secrets::{LOGINS, SecretFiles, registry_names};
use credentials::site_certificate::LEAF_DAYS;
use credentials::site_certificate::{SiteCertificate, SiteFiles};
use net::certificate;
use service::env_file;
use service::file::{folder, read, set_mode, write_atomic};
use service::settings::env_lines;
use service::{Error, ResultExt as _};

use super::configmap::SETTINGS;
use super::proxy_settings::{self, PROXY_FOLDER};
use super::settings_files::{DOMAIN, DOMAIN_SETTING, write_settings};
use crate::event::{SiteEvent, SiteObserver};

/// Placeholder of the host name in the settings template.
const HOST: &str = "<host>";
/// Placeholder of the names of the site in the settings template.
const NAMES: &str = "<names>";
/// The setting of the names of the site.
const NAMES_SETTING: &str = "ALLOWED_HOSTS";
/// Network domain of hosts without a name in a domain. Source: ICANN reserves `internal` for private networks.
const DEFAULT_DOMAIN: &str = "atoll.internal";
/// Host name of the registry's container.
pub(crate) const REGISTRY: &str = "registry";
/// Port of the registry.
pub const REGISTRY_PORT: u16 = 5000;
/// The setting of its port on this host.
const PUBLISHED: &str = "PUBLISH_REGISTRY";
/// Folder of the proxy's certificates.
pub const PROXY: &str = "secrets/proxy";
/// Folders for settings of the proxy and for content of the site; the proxy serves the files of the last one.
const FOLDERS: [&str; 7] = [
    PROXY_FOLDER,
    "archives",
    "catalogs",
    "images",
    "downloads",
    "downloads/pub",
    "downloads/pub/downloads",
];
/// Mode of the secrets folder. Its files are readable, since containers run as other users.
const ENGINE_ONLY: u32 = 0o700;
/// Mode of the settings, which may hold a password; only the engine's user reads them.
const OWN: u32 = 0o600;
const READABLE: u32 = 0o644;
const OPEN: u32 = 0o755;

/// Placeholder of the folder's path in templates.
pub(super) const DIR: &str = "<dir>";

pub(super) const TEMPLATE_OF_SETTINGS: &str = include_str!("../../../../deploy/atoll.env");
/// Files that name the images of this version, with their templates.
pub(super) const OF_VERSION: [(&str, &str); 3] = [
    ("compose.yaml", include_str!("../../../../compose.yaml")),
    ("pod.yml", include_str!("../../../../deploy/pod.yml")),
    (
        "catalog.yml",
        include_str!("../../../../deploy/catalog.yml"),
    ),
];

/// A pod as it is wanted.
#[derive(Debug, Clone)]
pub struct NewPod {
    /// Host name or IP address of this host for users and booting machines.
    pub host: String,
    /// Network domain; none for that of the folder, or of the host.
    pub domain: Option<String>,
    /// The pod's folder.
    pub dir: PathBuf,
    /// Whether callers are authenticated from now on.
    pub login: bool,
}

/// Rights of the users. Not `Debug`: the link is a secret.
#[derive(Clone)]
pub struct PodAccess {
    /// In words.
    pub rights: &'static str,
    /// Logs the first administrator in, once.
    pub link: Option<String>,
}

/// Rights of the users of the pod in `dir`, and with `login` the link of the first administrator.
///
/// Errors: settings that cannot be read.
pub fn access(dir: &Path, login: bool) -> Result<PodAccess, Error> {
    let path = dir.join(SETTINGS);
    let settings = Settings::load(Some(&path));
    let settings = settings.doing("reading the settings")?;
    let (user, hours) = (log_in::ADMINISTRATOR, log_in::LINK_HOURS);
    let link = || log_in::link(&settings, user, hours, &log_in::page_url(&path)?);
    Ok(PodAccess {
        rights: settings.auth_type.access(),
        link: login.then(link).transpose()?,
    })
}

/// Files of a pod that have been made or were there.
#[derive(Debug)]
pub struct PreparedPod {
    /// Network domain.
    pub domain: String,
    pub secrets: SecretFiles,
    pub authority: SiteAuthority,
}

/// Writes files that are missing or of another version.
///
/// Errors: files that cannot be written.
pub fn prepare(pod: &NewPod, observe: SiteObserver<'_>) -> Result<PreparedPod, Error> {
    let dir = &pod.dir;
    folder(dir, OPEN)?;
    let own = std::path::absolute(dir).doing(|| format!("reading {}", dir.display()))?;
    for (name, template) in OF_VERSION {
        let text = template.replace(DIR, &own.display().to_string());
        write_newest(&dir.join(name), &text, observe)?;
    }
    let domain = domain(pod)?;
    let names = names(&pod.host, &domain).join(",");
    let settings = TEMPLATE_OF_SETTINGS
        .replace(HOST, &in_url(&pod.host))
        .replace(DOMAIN, &domain)
        .replace(NAMES, &names);
    add_names(&dir.join(SETTINGS), &names, observe)?;
    write_settings(&dir.join(SETTINGS), &settings, OWN, observe)?;
    if pod.login {
        log_in::enable(&dir.join(SETTINGS))?;
    }
    for name in FOLDERS {
        folder(&dir.join(name), OPEN)?;
    }
    proxy_settings::ensure(dir, &domain, observe)?;
    let (secrets, authority) = secrets(dir, &pod.host, &domain, observe)?;
    Ok(PreparedPod {
        domain,
        secrets,
        authority,
    })
}

/// Names of the site for browsers and programs; addresses need none.
pub(super) fn names(host: &str, domain: &str) -> Vec<String> {
    let machine = rustix::system::uname();
    let machine = machine.nodename().to_string_lossy().to_ascii_lowercase();
    let below = format!("*.{domain}");
    let mut names = Vec::new();
    for name in [host, &machine, domain, &below] {
        let is_address = name.parse::<IpAddr>().is_ok();
        if !is_address && !name.is_empty() && names.iter().all(|known| known != name) {
            names.push(name.to_owned());
        }
    }
    names
}

/// Adds the names of the site to settings of an earlier version: without them, users of names would be refused.
fn add_names(path: &Path, names: &str, observe: SiteObserver<'_>) -> Result<(), Error> {
    let Some(found) = read(path)? else {
        return Ok(());
    };
    let found = String::from_utf8_lossy(&found);
    let known = env_lines(&found).unwrap_or_default();
    if known.iter().any(|(name, _)| *name == NAMES_SETTING) {
        return Ok(());
    }
    env_file::set(path, &[(NAMES_SETTING.to_owned(), names.to_owned())])?;
    let setting = NAMES_SETTING;
    observe(SiteEvent::NamesAdded {
        setting,
        names,
        path,
    });
    Ok(())
}

/// The network domain: given, or of existing settings, or of the host.
fn domain(pod: &NewPod) -> Result<String, Error> {
    if let Some(domain) = &pod.domain {
        return Ok(domain.clone());
    }
    known_domain(&pod.dir, &pod.host)
}

/// The network domain of existing settings, or of the host.
fn known_domain(dir: &Path, host: &str) -> Result<String, Error> {
    let path = proxy_settings::with_domain(dir);
    let settings = read(&path)?.unwrap_or_default();
    let settings = String::from_utf8_lossy(&settings);
    let mut lines = env_lines(&settings).unwrap_or_default().into_iter();
    let known = lines.find(|(name, value)| *name == DOMAIN_SETTING && !value.is_empty());
    if let Some((_, domain)) = known {
        return host_name::domain(domain)
            .doing(|| format!("reading {DOMAIN_SETTING} in {}", path.display()));
    }
    Ok(host_name::domain(host).unwrap_or_else(|_| DEFAULT_DOMAIN.to_owned()))
}

fn secrets(
    dir: &Path,
    host: &str,
    domain: &str,
    observe: SiteObserver<'_>,
) -> Result<(SecretFiles, SiteAuthority), Error> {
    let folder_of_secrets = dir.join("secrets");
    folder(&folder_of_secrets, ENGINE_ONLY)?;
    set_mode(&folder_of_secrets, ENGINE_ONLY)?;
    let of_domain = format!("{REGISTRY}.{domain}");
    let names = registry_names(&[host.to_owned(), REGISTRY.to_owned(), of_domain.clone()]);
    let authority = certificates(&dir.join(PROXY), domain, &names)?;
    let secrets =
        SecretFiles::in_folder(&folder_of_secrets, folder_of_secrets.join("registry.crt"));
    secrets.ensure(&names, READABLE, Some(&authority))?;
    warn_of_missing_names(&secrets, &names, observe)?;
    add_logins(dir, &secrets, &names, of_domain)?;
    Ok((secrets, authority))
}

/// The authority of the pod, which signs for the registry's `names`, too, and the proxy's certificate.
fn certificates(dir: &Path, domain: &str, names: &[String]) -> Result<SiteAuthority, Error> {
    folder(dir, OPEN)?;
    // The folder is mounted into the proxy's container.
    SiteAuthority::keep_key_apart(dir)?;
    let authority = SiteAuthority::ensure(dir, domain, names)?;
    let wanted = SiteCertificate {
        domain,
        names: &[],
        days: LEAF_DAYS,
        renew: false,
        mode: READABLE,
    };
    SiteFiles::in_folder(dir, domain).ensure(&authority, &wanted)?;
    Ok(authority)
}

/// A certificate of an older version, or the site's own, is kept; it may lack names.
fn warn_of_missing_names(
    secrets: &SecretFiles,
    names: &[String],
    observe: SiteObserver<'_>,
) -> Result<(), Error> {
    let path = &secrets.tls.cert;
    let Some(found) = read(path)? else {
        return Ok(());
    };
    let leaf = certificate::of_pem(&found).and_then(|chain| certificate::read(&chain[0]));
    let leaf = leaf.doing(|| format!("reading {}", path.display()))?;
    let missing: Vec<&str> = names
        .iter()
        .map(String::as_str)
        .filter(|name| !leaf.has_name(name))
        .collect();
    if !missing.is_empty() {
        observe(SiteEvent::NamesMissing {
            certificate: path,
            key: &secrets.tls.key,
            names: &missing,
        });
    }
    Ok(())
}

/// Adds the registry's login at each of its addresses to the file of logins, where the services find it.
///
/// Errors: files that cannot be read or written.
pub(crate) fn complete_logins(dir: &Path, host: &str) -> Result<(), Error> {
    let folder = dir.join("secrets");
    let secrets = SecretFiles::in_folder(&folder, folder.join("registry.crt"));
    let of_domain = format!("{REGISTRY}.{}", known_domain(dir, host)?);
    let names = registry_names(&[host.to_owned(), REGISTRY.to_owned(), of_domain.clone()]);
    add_logins(dir, &secrets, &names, of_domain)
}

fn add_logins(
    dir: &Path,
    secrets: &SecretFiles,
    names: &[String],
    of_domain: String,
) -> Result<(), Error> {
    let at = |port: u16| {
        let addresses = names.iter().map(move |name| (name, port));
        addresses.map(|(name, port)| format!("{}:{port}", in_url(name)))
    };
    let mut addresses: Vec<String> = at(REGISTRY_PORT).collect();
    addresses.extend(at(published_registry(dir)?));
    // The proxy's port 443.
    addresses.push(of_domain);
    secrets.write_logins(&dir.join("secrets").join(LOGINS), &addresses, READABLE)
}

/// The port of the registry on this host.
fn published_registry(dir: &Path) -> Result<u16, Error> {
    let settings = read(&dir.join(SETTINGS))?.unwrap_or_default();
    let settings = String::from_utf8_lossy(&settings);
    let mut lines = env_lines(&settings).unwrap_or_default().into_iter().rev();
    let published = lines.find(|(name, _)| *name == PUBLISHED);
    let port = published.and_then(|(_, value)| value.rsplit(':').next()?.parse().ok());
    Ok(port.unwrap_or(REGISTRY_PORT))
}

/// Writes a file of this version; another one is kept as `.old`, since users may have changed it.
fn write_newest(path: &Path, text: &str, observe: SiteObserver<'_>) -> Result<(), Error> {
    let is_there = match read(path)? {
        Some(found) if found == text.as_bytes() => return Ok(()),
        found => found.is_some(),
    };
    if is_there {
        let mut old = path.as_os_str().to_owned();
        old.push(".old");
        let old = Path::new(&old);
        std::fs::rename(path, old).doing(|| format!("renaming {}", path.display()))?;
        observe(SiteEvent::Renamed { path, old });
    }
    write_atomic(path, text.as_bytes(), READABLE)?;
    observe(SiteEvent::Written(path));
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use credentials::secrets::REGISTRY_USER;
    use serde_json::{Value, json};

    use super::*;
    use crate::pod::proxy_settings::PROXY_SETTINGS;

    fn init(dir: &Path, host: &str) {
        try_init(dir, host).unwrap();
    }

    fn try_init(dir: &Path, host: &str) -> Result<PreparedPod, Error> {
        let pod = NewPod {
            host: host.to_owned(),
            domain: None,
            dir: dir.to_owned(),
            login: false,
        };
        prepare(&pod, &|_| {})
    }

    /// The image service serves them, and the checks of the API server open them.
    #[test]
    fn both_readers_of_boot_images_have_their_folder() {
        let [(_, compose), (_, pod), _] = OF_VERSION;
        let compose: serde_json::Value = serde_yaml::from_str(compose).unwrap();
        let pod = pod.split("\n---").find(|text| text.contains("kind: Pod"));
        let pod: serde_json::Value = serde_yaml::from_str(pod.unwrap()).unwrap();
        let containers = pod["spec"]["containers"].as_array().unwrap();
        for service in ["api-server", "image-service"] {
            let volumes = compose["services"][service]["volumes"].as_array().unwrap();
            assert!(
                volumes
                    .iter()
                    .any(|volume| volume == "./images:/images:ro,z"),
                "{service}"
            );
            let container = containers
                .iter()
                .find(|container| container["name"] == service);
            let mounts = container.unwrap()["volumeMounts"].as_array().unwrap();
            assert!(
                mounts.iter().any(|mount| mount["mountPath"] == "/images"),
                "{service}"
            );
        }
    }

    #[test]
    fn all_placeholders_are_replaced() {
        let dir = tempfile::tempdir().unwrap();
        init(dir.path(), "fd00::1");
        let settings = fs::read_to_string(dir.path().join(SETTINGS)).unwrap();
        assert!(settings.contains("SERVICE_BASE_URL=http://[fd00::1]:8090\n"));
        for name in [
            "compose.yaml",
            "pod.yml",
            "catalog.yml",
            SETTINGS,
            PROXY_SETTINGS,
        ] {
            let text = fs::read_to_string(dir.path().join(name)).unwrap();
            let placeholders = [HOST, DIR, DOMAIN];
            assert!(placeholders.iter().all(|one| !text.contains(one)), "{text}");
        }
        let of_proxy = fs::read_to_string(dir.path().join(PROXY_SETTINGS)).unwrap();
        for line in [
            "NETWORK_DOMAIN=atoll.internal",
            "API_HOST=api",
            "WEB_HOST=web",
            "SERVICE_HOST=service",
        ] {
            assert!(of_proxy.lines().any(|one| one == line), "{line}");
        }
        for name in [
            "secrets/registry.crt",
            "secrets/proxy/ca.crt",
            "secrets/proxy/atoll.internal.pem",
            "secrets/proxy/crt-list.txt",
            "images",
            "catalogs",
            "downloads/pub/downloads",
        ] {
            assert!(dir.path().join(name).exists(), "{name}");
        }
    }

    #[test]
    fn credentials_cover_every_name_of_the_registry() {
        let dir = tempfile::tempdir().unwrap();
        init(dir.path(), "fd00::1");
        let read = |name: &str| fs::read_to_string(dir.path().join(name)).unwrap();
        let logins: serde_json::Value =
            serde_json::from_str(&read("secrets/registry-logins.json")).unwrap();
        let login = format!("{REGISTRY_USER}:{}", read("secrets/registry-password"));
        for address in [
            "[fd00::1]:5000",
            "registry:5000",
            "127.0.0.1:5000",
            "registry.atoll.internal:5000",
            "registry.atoll.internal",
        ] {
            let found = &logins["auths"][address]["auth"];
            assert_eq!(*found, STANDARD.encode(&login), "{address}");
        }
        // Another port, and logins of others, which stay.
        let settings =
            read(SETTINGS).replace("PUBLISH_REGISTRY=5000", "PUBLISH_REGISTRY=[::]:5443");
        fs::write(dir.path().join(SETTINGS), settings).unwrap();
        let own =
            json!({"auths": {"quay.io": {"auth": "a"}, "registry:5000": {"auth": "b"}}, "x": 1});
        fs::write(
            dir.path().join("secrets/registry-logins.json"),
            own.to_string(),
        )
        .unwrap();
        init(dir.path(), "fd00::1");
        let all: Value = serde_json::from_str(&read("secrets/registry-logins.json")).unwrap();
        assert_eq!(
            (&all["auths"]["quay.io"]["auth"], &all["x"]),
            (&json!("a"), &json!(1))
        );
        assert_eq!(all["auths"]["registry:5000"]["auth"], "b");
        for address in ["[fd00::1]:5443", "127.0.0.1:5443", "[fd00::1]:5000"] {
            assert_eq!(
                all["auths"][address]["auth"],
                STANDARD.encode(&login),
                "{address}"
            );
        }
        for wrong in ["{", "[]", r#"{"auths": []}"#] {
            fs::write(dir.path().join("secrets/registry-logins.json"), wrong).unwrap();
            let error = try_init(dir.path(), "fd00::1").unwrap_err().to_string();
            assert!(error.contains("registry-logins.json"), "{error}");
            assert_eq!(read("secrets/registry-logins.json"), wrong);
        }
    }

    #[test]
    fn the_domain_is_given_or_known_or_of_the_host() {
        let dir = tempfile::tempdir().unwrap();
        let domain = |host: &str, domain: Option<&str>| {
            super::domain(&NewPod {
                host: host.to_owned(),
                domain: domain.map(ToOwned::to_owned),
                dir: dir.path().to_owned(),
                login: false,
            })
        };
        assert_eq!(
            domain("Host.lab.example", None).unwrap(),
            "host.lab.example"
        );
        for host in ["192.0.2.1", "fd00::1", "host"] {
            assert_eq!(domain(host, None).unwrap(), DEFAULT_DOMAIN);
        }
        fs::write(dir.path().join(SETTINGS), "NETWORK_DOMAIN=known.example\n").unwrap();
        assert_eq!(domain("h.example", None).unwrap(), "known.example");
        assert_eq!(domain("h.example", Some("a.b")).unwrap(), "a.b");
        fs::write(dir.path().join(SETTINGS), "NETWORK_DOMAIN=wrong\n").unwrap();
        let error = domain("h.example", None).unwrap_err().to_string();
        assert!(error.contains(DOMAIN_SETTING), "{error}");
    }

    #[test]
    fn the_authority_signs_for_all_names_of_the_registry() {
        let dir = tempfile::tempdir().unwrap();
        init(dir.path(), "192.0.2.7");
        let read = |name: &str| fs::read(dir.path().join(name)).unwrap();
        let roots = certificate::of_pem(&read("secrets/proxy/ca.crt")).unwrap();
        let chain = certificate::of_pem(&read("secrets/registry.crt")).unwrap();
        let now = std::time::SystemTime::now();
        for name in [
            "192.0.2.7",
            "registry",
            "registry.atoll.internal",
            "localhost",
            "127.0.0.1",
            "::1",
        ] {
            certificate::verify(&chain, &roots, name, now).unwrap();
        }
        let chain = certificate::of_pem(&read("secrets/proxy/atoll.internal.pem")).unwrap();
        certificate::verify(&chain, &roots, "api.atoll.internal", now).unwrap();
        let first = read("secrets/registry.crt");
        init(dir.path(), "192.0.2.7");
        assert_eq!(read("secrets/registry.crt"), first);
        // Renewed for another host below the domain, and kept when it is the site's own.
        init(dir.path(), "host.atoll.internal");
        assert_ne!(read("secrets/registry.crt"), first);
        let own = credentials::certificate::self_signed(&["mine".to_owned()]).unwrap();
        fs::write(dir.path().join("secrets/registry.crt"), &own.cert).unwrap();
        init(dir.path(), "host.atoll.internal");
        assert_eq!(read("secrets/registry.crt"), own.cert.as_bytes());
    }

    #[test]
    fn the_key_of_the_authority_is_in_no_mounted_folder() {
        let dir = tempfile::tempdir().unwrap();
        init(dir.path(), "192.0.2.7");
        let read = |name: &str| fs::read(dir.path().join(name)).unwrap();
        let bundle = "secrets/proxy/atoll.internal.pem";
        let (key, first) = (read("secrets/ca/ca.key"), read(bundle));
        // As an older version left it.
        let path = |name: &str| dir.path().join(name);
        fs::rename(path("secrets/ca/ca.key"), path("secrets/proxy/ca.key")).unwrap();
        fs::remove_dir(path("secrets/ca")).unwrap();
        init(dir.path(), "192.0.2.7");
        assert_eq!(read("secrets/ca/ca.key"), key);
        assert_eq!(read(bundle), first);
        // An authority of the site in the place of the first one.
        let own = path("own");
        SiteAuthority::ensure(&own, "atoll.internal", &[]).unwrap_err();
        fs::create_dir(&own).unwrap();
        SiteAuthority::ensure(
            &own,
            "atoll.internal",
            &["192.0.2.7".to_owned(), REGISTRY.to_owned()],
        )
        .unwrap();
        for name in ["ca.crt", "ca.key"] {
            fs::copy(own.join(name), path("secrets/proxy").join(name)).unwrap();
        }
        fs::remove_file(path(bundle)).unwrap();
        init(dir.path(), "192.0.2.7");
        assert_eq!(
            read("secrets/ca/ca.key"),
            fs::read(own.join("ca.key")).unwrap()
        );
        assert_eq!(read("secrets/ca/ca.key.old"), key);

        assert!(!path("secrets/proxy/ca.key").exists());
        let key = Path::new("<dir>/secrets/ca/ca.key");
        for source in mounted() {
            assert!(!key.starts_with(&source), "{} is mounted", source.display());
        }
    }

    /// Files and folders that the templates mount.
    fn mounted() -> Vec<PathBuf> {
        let [(_, compose), (_, pod), (_, catalog)] = OF_VERSION;
        let mut sources = Vec::new();
        let compose: serde_json::Value = serde_yaml::from_str(compose).unwrap();
        for service in compose["services"].as_object().unwrap().values() {
            let volumes = service["volumes"].as_array().into_iter().flatten();
            let volumes = volumes.map(|volume| volume.as_str().unwrap());
            sources.extend(volumes.map(|volume| volume.split(':').next().unwrap()));
        }
        let secrets = compose["secrets"].as_object().unwrap().values();
        sources.extend(secrets.map(|secret| secret["file"].as_str().unwrap()));
        let mut sources: Vec<_> = sources
            .into_iter()
            .filter_map(|source| source.strip_prefix("./"))
            .map(|source| Path::new(DIR).join(source))
            .collect();
        for text in [pod, catalog] {
            for document in text.split("\n---") {
                let document: serde_json::Value = serde_yaml::from_str(document).unwrap();
                let volumes = document["spec"]["volumes"].as_array().into_iter().flatten();
                let paths = volumes.filter_map(|volume| volume["hostPath"]["path"].as_str());
                sources.extend(paths.map(PathBuf::from));
            }
        }
        let has_certificates = Path::new(DIR).join(PROXY);
        assert_eq!(
            sources.iter().filter(|it| **it == has_certificates).count(),
            2
        );
        sources
    }

    #[test]
    fn the_names_of_the_site_are_those_that_users_call_it_by() {
        let machine = rustix::system::uname()
            .nodename()
            .to_string_lossy()
            .to_ascii_lowercase();
        let of_name = names("atoll.example.org", "example.org");
        assert_eq!(
            of_name,
            [
                "atoll.example.org",
                &machine,
                "example.org",
                "*.example.org"
            ]
        );
        let of_address = names("192.0.2.7", "atoll.internal");
        assert_eq!(of_address, [&machine, "atoll.internal", "*.atoll.internal"]);
    }

    #[test]
    fn existing_secrets_and_settings_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        init(dir.path(), "one.example");
        let secret = dir.path().join("secrets/database-password");
        let made = fs::read(&secret).unwrap();
        fs::write(dir.path().join(SETTINGS), "MINE=1\n").unwrap();
        init(dir.path(), "one.example");
        assert_eq!(fs::read(&secret).unwrap(), made);
        let settings = || fs::read_to_string(dir.path().join(SETTINGS)).unwrap();
        let names = names("one.example", "one.example").join(",");
        assert_eq!(settings(), format!("MINE=1\nALLOWED_HOSTS={names}\n"));
        fs::write(dir.path().join(SETTINGS), "ALLOWED_HOSTS=mine.example\n").unwrap();
        init(dir.path(), "one.example");
        assert_eq!(settings(), "ALLOWED_HOSTS=mine.example\n");
    }

    #[test]
    fn a_changed_file_is_replaced_and_kept_as_old() {
        let dir = tempfile::tempdir().unwrap();
        init(dir.path(), "a");
        let read = |name: &str| fs::read_to_string(dir.path().join(name)).unwrap();
        let newest = read("compose.yaml");
        fs::write(dir.path().join("compose.yaml"), "# mine\n").unwrap();
        init(dir.path(), "a");
        assert_eq!(read("compose.yaml"), newest);
        assert_eq!(read("compose.yaml.old"), "# mine\n");
        init(dir.path(), "a");
        assert_eq!(read("compose.yaml.old"), "# mine\n");
        assert!(!dir.path().join("pod.yml.old").exists());
    }

    #[test]
    fn containers_may_read_secrets_and_other_users_may_not() {
        let dir = tempfile::tempdir().unwrap();
        // Created by hand with a too open mode.
        fs::create_dir(dir.path().join("secrets")).unwrap();
        init(dir.path(), "a");
        let mode = |name: &str| {
            let metadata = fs::metadata(dir.path().join(name)).unwrap();
            metadata.permissions().mode() & 0o777
        };
        assert_eq!(mode("secrets"), 0o700);
        assert_eq!(mode("secrets/database-password"), 0o644);
        assert_eq!(mode("secrets/proxy/atoll.internal.pem"), 0o644);
        assert_eq!(mode("secrets/ca"), 0o700);
        assert_eq!(mode("secrets/ca/ca.key"), 0o600);
        assert_eq!(mode(SETTINGS), 0o600);
    }

    #[test]
    fn the_images_are_of_this_version() {
        let [compose, pod, catalog] = OF_VERSION.map(|(_, text)| text);
        for (text, least) in [
            (compose, 7),
            (pod, 5),
            (catalog, 1),
            (TEMPLATE_OF_SETTINGS, 1),
        ] {
            let images: Vec<&str> = text
                .split("localhost/atoll/")
                .skip(1)
                .map(|rest| rest.split(['}', '\n', ' ']).next().unwrap())
                .collect();
            assert!(images.len() >= least, "{images:?}");
            for image in images {
                assert!(
                    image.ends_with(concat!(":", env!("CARGO_PKG_VERSION"))),
                    "{image}"
                );
            }
        }
    }
}
