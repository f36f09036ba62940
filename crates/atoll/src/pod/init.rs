//! `atoll pod init`: the folder of the pod.

use std::net::{IpAddr, Ipv6Addr};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, json};
use service::Error;

use super::configmap::SETTINGS;
use crate::file::{folder, set_mode, write_atomic};
use crate::secrets::{REGISTRY_USER, SecretFiles, registry_names};
use crate::terminal;

/// Placeholder of the host name in the settings template.
const HOST: &str = "<host>";
/// Host name of the registry's container.
const REGISTRY: &str = "registry";
const REGISTRY_PORT: u16 = 5000;
/// Registry credentials in the format of container tools (auth.json).
const LOGINS: &str = "registry-logins.json";
/// Mode of the secrets folder. Its files are readable, since containers run as other users.
const ENGINE_ONLY: u32 = 0o700;
/// Mode of the settings, which may hold a password; only the engine's user reads them.
const OWN: u32 = 0o600;
const READABLE: u32 = 0o644;
const OPEN: u32 = 0o755;

/// Placeholder of the folder's path in templates.
const DIR: &str = "<dir>";

const TEMPLATE_OF_SETTINGS: &str = include_str!("../../../../deploy/atoll.env");
/// Files that name the images of this version, with their templates.
const OF_VERSION: [(&str, &str); 3] = [
    ("compose.yaml", include_str!("../../../../compose.yaml")),
    ("pod.yml", include_str!("../../../../deploy/pod.yml")),
    (
        "catalog.yml",
        include_str!("../../../../deploy/catalog.yml"),
    ),
];

/// Arguments of `atoll pod init`.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct PodInitArgs {
    /// Host name or IP address of this host for users and booting machines
    #[arg(long, value_name = "NAME", value_parser = parse_host)]
    host: String,
    /// Target folder
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,
}

/// Writes files that are missing or of another version, and prints the next steps.
///
/// Errors: files that cannot be written.
pub(crate) fn run(arguments: &PodInitArgs) -> Result<(), Error> {
    let dir = &arguments.dir;
    folder(dir, OPEN)?;
    let own = std::path::absolute(dir)
        .map_err(|e| Error::new(format!("reading {}", dir.display()), e))?;
    for (name, template) in OF_VERSION {
        let text = template.replace(DIR, &own.display().to_string());
        write_newest(&dir.join(name), &text)?;
    }
    let settings = TEMPLATE_OF_SETTINGS.replace(HOST, &in_url(&arguments.host));
    write_settings(&dir.join(SETTINGS), &settings)?;
    for name in ["catalogs", "images"] {
        folder(&dir.join(name), OPEN)?;
    }
    let secrets = secrets(dir, &arguments.host)?;
    terminal::print(&format!(
        "Registry: {}:{REGISTRY_PORT}, user {REGISTRY_USER}, password in {}, certificate {}.\n\
         Next: put boot images into {}, name them and the releases in {}, then `podman-compose up -d`.",
        in_url(&arguments.host),
        secrets.registry_password.display(),
        secrets.tls.cert.display(),
        dir.join("images").display(),
        dir.join(SETTINGS).display(),
    ));
    Ok(())
}

fn secrets(dir: &Path, host: &str) -> Result<SecretFiles, Error> {
    let folder_of_secrets = dir.join("secrets");
    folder(&folder_of_secrets, ENGINE_ONLY)?;
    set_mode(&folder_of_secrets, ENGINE_ONLY)?;
    let secrets =
        SecretFiles::in_folder(&folder_of_secrets, folder_of_secrets.join("registry.crt"));
    let names = registry_names(&[host.to_owned(), REGISTRY.to_owned()]);
    secrets.ensure(&names, READABLE)?;
    write_logins(&folder_of_secrets.join(LOGINS), &secrets, &names)?;
    Ok(secrets)
}

/// Writes the credentials of the registry under each of its `names`. An existing file is kept: it may have others.
fn write_logins(path: &Path, secrets: &SecretFiles, names: &[String]) -> Result<(), Error> {
    if path.exists() {
        return Ok(());
    }
    let password = &secrets.registry_password;
    let password = std::fs::read_to_string(password)
        .map_err(|e| Error::new(format!("reading {}", password.display()), e))?;
    let login = STANDARD.encode(format!("{REGISTRY_USER}:{}", password.trim_end()));
    let login = json!({ "auth": login });
    let address = |name: &String| format!("{}:{REGISTRY_PORT}", in_url(name));
    let logins: Map<_, _> = names
        .iter()
        .map(|name| (address(name), login.clone()))
        .collect();
    let text = format!("{:#}\n", json!({ "auths": logins }));
    write_atomic(path, text.as_bytes(), READABLE)
}

/// Writes a file of this version; another one is kept as `.old`, since users may have changed it.
fn write_newest(path: &Path, text: &str) -> Result<(), Error> {
    let shown = path.display();
    let is_there = match read(path)? {
        Some(found) if found == text.as_bytes() => return Ok(()),
        found => found.is_some(),
    };
    if is_there {
        let old = format!("{shown}.old");
        std::fs::rename(path, &old).map_err(|e| Error::new(format!("renaming {shown}"), e))?;
        terminal::print(&format!("{shown} differed and was renamed to {old}."));
    }
    write_atomic(path, text.as_bytes(), READABLE)?;
    terminal::print(&format!("{shown} written."));
    Ok(())
}

/// Writes the settings unless they exist.
fn write_settings(path: &Path, text: &str) -> Result<(), Error> {
    let shown = path.display();
    match read(path)? {
        None => {
            write_atomic(path, text.as_bytes(), OWN)?;
            terminal::print(&format!("{shown} written."));
        }
        Some(found) if found != text.as_bytes() => {
            terminal::print(&format!("{shown} kept."));
        }
        Some(_) => {}
    }
    Ok(())
}

fn read(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    match std::fs::read(path) {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::new(format!("reading {}", path.display()), error)),
    }
}

/// Parses a DNS name or IP address for URLs and certificates.
fn parse_host(text: &str) -> Result<String, String> {
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    let is_name = bare.len() <= 253
        && bare.split('.').all(|label| {
            (1..=63).contains(&label.len())
                && !label.starts_with('-')
                && !label.ends_with('-')
                && label
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
        });
    if is_name || bare.parse::<IpAddr>().is_ok() {
        Ok(bare.to_owned())
    } else {
        Err("expected a DNS name or an IP address, without scheme and port".to_owned())
    }
}

/// Host part of a URL: IPv6 addresses get brackets.
fn in_url(host: &str) -> String {
    if host.parse::<Ipv6Addr>().is_ok() {
        format!("[{host}]")
    } else {
        host.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn init(dir: &Path, host: &str) {
        let arguments = PodInitArgs {
            host: host.to_owned(),
            dir: dir.to_owned(),
        };
        run(&arguments).unwrap();
    }

    /// `.env` is read by both, and a service whose `OS_IMAGES_FILE` is missing does not start.
    #[test]
    fn both_readers_of_the_list_of_boot_images_have_its_folder() {
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
    fn hosts_are_names_or_addresses() {
        for right in ["atoll.example.org", "10.0.0.1", "fd00::1", "[fd00::1]", "a"] {
            parse_host(right).unwrap();
        }
        for wrong in [
            "", "http://a", "a:8090", "a b", "-a", "a..b", "a/b", "<host>",
        ] {
            parse_host(wrong).unwrap_err();
        }
    }

    #[test]
    fn all_placeholders_are_replaced() {
        let dir = tempfile::tempdir().unwrap();
        init(dir.path(), "fd00::1");
        let settings = fs::read_to_string(dir.path().join(SETTINGS)).unwrap();
        assert!(settings.contains("SERVICE_BASE_URL=http://[fd00::1]:8090\n"));
        for name in ["compose.yaml", "pod.yml", "catalog.yml", SETTINGS] {
            let text = fs::read_to_string(dir.path().join(name)).unwrap();
            assert!(!text.contains(HOST) && !text.contains(DIR), "{text}");
        }
        for name in ["secrets/registry.crt", "images", "catalogs"] {
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
        for address in ["[fd00::1]:5000", "registry:5000", "127.0.0.1:5000"] {
            let found = &logins["auths"][address]["auth"];
            assert_eq!(*found, STANDARD.encode(&login), "{address}");
        }
        fs::write(dir.path().join("secrets/registry-logins.json"), "{}").unwrap();
        init(dir.path(), "fd00::1");
        assert_eq!(read("secrets/registry-logins.json"), "{}");
    }

    #[test]
    fn existing_secrets_and_settings_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        init(dir.path(), "one.example");
        let secret = dir.path().join("secrets/database-password");
        let made = fs::read(&secret).unwrap();
        fs::write(dir.path().join(SETTINGS), "MINE=1\n").unwrap();
        init(dir.path(), "two.example");
        assert_eq!(fs::read(&secret).unwrap(), made);
        let settings = fs::read_to_string(dir.path().join(SETTINGS)).unwrap();
        assert_eq!(settings, "MINE=1\n");
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
