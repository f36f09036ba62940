//! `proxy/proxy.env`: the settings of the reverse proxy, in a folder that its container mounts.
//!
//! The proxy takes over changes of a file, but not of its environment, which overrides the file. So none of these settings is in
//! `.env`, which compose passes as environment. Earlier versions had some there: they are moved.

use std::path::{Path, PathBuf};

use service::Error;
use service::env_file;
use service::file::read;
use service::file::rewrite_atomic;
use service::settings::env_lines;

use super::configmap::SETTINGS;
use super::settings_files::{DOMAIN, DOMAIN_SETTING, write_settings};
use crate::event::{SiteEvent, SiteObserver};

/// The file, in the pod's folder.
pub(crate) const PROXY_SETTINGS: &str = "proxy/proxy.env";
/// Its folder.
pub(crate) const PROXY_FOLDER: &str = "proxy";
pub(super) const TEMPLATE: &str = include_str!("../../../../deploy/proxy.env");
const READABLE: u32 = 0o644;
const OWN: u32 = 0o600;

/// Whether a setting belongs into the file of the proxy: the template has it, perhaps as a comment.
pub(crate) fn is_of_proxy(name: &str) -> bool {
    TEMPLATE.lines().any(|line| {
        let line = line.strip_prefix("# ").unwrap_or(line);
        line.split_once('=').is_some_and(|(own, _)| own == name)
    })
}

/// Settings for `.env` and those for the file of the proxy.
type Parts = [Vec<(String, String)>; 2];

/// Sets variables in the file that each belongs to.
///
/// Errors: a file cannot be read or written.
pub(crate) fn set(dir: &Path, values: &[(String, String)]) -> Result<(), Error> {
    let [of_proxy, others]: Parts = values
        .iter()
        .cloned()
        .partition(|(name, _)| is_of_proxy(name))
        .into();
    env_file::set(&dir.join(SETTINGS), &others)?;
    env_file::set(&dir.join(PROXY_SETTINGS), &of_proxy)
}

/// Writes the file unless it exists, with the settings that an earlier version had in `.env`.
///
/// Errors: files that cannot be read or written.
pub(super) fn ensure(dir: &Path, domain: &str, observe: SiteObserver<'_>) -> Result<(), Error> {
    let path = dir.join(PROXY_SETTINGS);
    let own = dir.join(SETTINGS);
    let settings = read(&own)?.unwrap_or_default();
    let settings = String::from_utf8_lossy(&settings);
    let lines = env_lines(&settings).unwrap_or_default();
    let moved: Vec<(String, String)> = lines
        .into_iter()
        .filter(|(name, _)| is_of_proxy(name))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    // Of an empty variable the default counts, as in compose.yaml of earlier versions.
    let mut values: Vec<_> = moved
        .iter()
        .filter(|(_, value)| !value.is_empty())
        .cloned()
        .collect();
    values.retain(|(name, _)| name != DOMAIN_SETTING);
    let text = env_file::with_values(&TEMPLATE.replace(DOMAIN, domain), &values);
    write_settings(&path, &text, READABLE, observe)?;
    if moved.is_empty() {
        return Ok(());
    }
    // After the file: it has the values then.
    rewrite_atomic(&own, without(&settings).as_bytes(), OWN)?;
    let names: Vec<_> = moved.iter().map(|(name, _)| name.as_str()).collect();
    observe(SiteEvent::ProxySettingsMoved {
        names: &names,
        from: &own,
        to: &path,
    });
    Ok(())
}

/// The text of `.env` with the settings of the proxy as comments.
fn without(settings: &str) -> String {
    let line = |line: &str| match line.split_once('=') {
        Some((name, _)) if is_of_proxy(name.trim()) => format!("# In {PROXY_SETTINGS}: {line}\n"),
        _ => format!("{line}\n"),
    };
    settings.lines().map(line).collect()
}

/// Path of the file in which the pod of `dir` has its network domain.
pub(super) fn with_domain(dir: &Path) -> PathBuf {
    let path = dir.join(PROXY_SETTINGS);
    // Before the first run of this version.
    if path.exists() {
        path
    } else {
        dir.join(SETTINGS)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use service::settings::{FromValues as _, Values};

    use super::*;
    use crate::pod::folder::{NewPod, TEMPLATE_OF_SETTINGS, names, prepare};

    /// Makes a folder; returns the text of `.env`, and that of the file of the proxy.
    fn init(dir: &Path, domain: Option<&str>) -> [String; 2] {
        let domain = domain.map(str::to_owned);
        let pod = NewPod {
            host: "192.0.2.7".to_owned(),
            domain,
            dir: dir.to_owned(),
            login: false,
        };
        prepare(&pod, &|_| {}).unwrap();
        [SETTINGS, PROXY_SETTINGS].map(|name| fs::read_to_string(dir.join(name)).unwrap())
    }

    #[test]
    fn the_template_has_all_that_a_running_proxy_takes_over() {
        // The default is the mounted list.
        let others = proxy::RELOADED
            .into_iter()
            .filter(|name| *name != "CERTIFICATE_LIST");
        for name in others {
            assert!(is_of_proxy(name), "{name}");
        }
        for name in ["ACCESS_LOG", "STATUS_PAGE_PORT"] {
            assert!(is_of_proxy(name), "{name}");
        }
        for name in ["PUBLISH_HTTPS", "OS_IMAGES", "", "# HSTS", "HSTS "] {
            assert!(!is_of_proxy(name), "{name}");
        }
        let lines = env_lines(TEMPLATE).unwrap();
        let lines = lines
            .iter()
            .map(|(name, value)| (name.to_ascii_lowercase(), *value));
        let values: Vec<_> = lines.collect();
        let values = values.iter().map(|(name, value)| (name.as_str(), *value));
        let settings = proxy::Settings::from_values(&Values::from_pairs(values)).unwrap();
        // The registry differs from the defaults of the program.
        assert_eq!(settings.forwards, proxy::Settings::default().forwards);
        assert_eq!(settings.site.registry_address.port, 5000);
    }

    #[test]
    fn no_setting_of_the_file_is_in_the_environment() {
        let compose = include_str!("../../../../compose.yaml");
        let compose: serde_json::Value = serde_yaml::from_str(compose).unwrap();
        let proxy = &compose["services"]["proxy"];
        assert_eq!(proxy["command"][1], "/etc/atoll/proxy.env");
        for name in proxy["environment"].as_object().unwrap().keys() {
            assert!(!is_of_proxy(name), "{name}");
        }
        let settings = env_lines(TEMPLATE_OF_SETTINGS).unwrap();
        assert!(settings.iter().all(|(name, _)| !is_of_proxy(name)));
        // Kubernetes' file has the same values, and no domain.
        let kubernetes = env_lines(include_str!("../../../../deploy/kubernetes/base/proxy.env"));
        let own = TEMPLATE.replace(DOMAIN, "");
        assert_eq!(kubernetes.unwrap(), env_lines(&own).unwrap());
    }

    #[test]
    fn settings_of_an_earlier_version_are_moved() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        fs::write(
            dir.join(SETTINGS),
            "# mine\nNETWORK_DOMAIN=known.example\nAPI_HOST=one\nHSTS=off\nREDIRECT_HTTPS_PORT=\nPUBLISH_HTTPS=8443\n",
        )
        .unwrap();
        let [settings, of_proxy] = init(dir, None);
        let expected = "# mine\n# In proxy/proxy.env: NETWORK_DOMAIN=known.example\n# In proxy/proxy.env: API_HOST=one\n\
                        # In proxy/proxy.env: HSTS=off\n# In proxy/proxy.env: REDIRECT_HTTPS_PORT=\nPUBLISH_HTTPS=8443\n";
        let allowed = names("192.0.2.7", "known.example").join(",");
        assert_eq!(settings, format!("{expected}ALLOWED_HOSTS={allowed}\n"));
        let lines = env_lines(&of_proxy).unwrap();
        for line in [
            ("NETWORK_DOMAIN", "known.example"),
            ("API_HOST", "one"),
            ("WEB_HOST", "web"),
            ("HSTS", "off"),
            ("REDIRECT_HTTPS_PORT", "443"),
        ] {
            assert!(lines.contains(&line), "{line:?}: {of_proxy}");
        }
        assert!(dir.join("secrets/proxy/known.example.pem").exists());

        // The file is kept; a line in `.env` has no effect.
        fs::write(
            dir.join(PROXY_SETTINGS),
            "NETWORK_DOMAIN=own.known.example\n",
        )
        .unwrap();
        fs::write(dir.join(SETTINGS), "HSTS=on\n").unwrap();
        let [settings, of_proxy] = init(dir, None);
        let allowed = names("192.0.2.7", "own.known.example").join(",");
        let expected = format!("# In proxy/proxy.env: HSTS=on\nALLOWED_HOSTS={allowed}\n");
        assert_eq!(settings, expected);
        assert_eq!(of_proxy, "NETWORK_DOMAIN=own.known.example\n");
        assert!(dir.join("secrets/proxy/own.known.example.pem").exists());
    }

    #[test]
    fn containers_may_read_the_file_and_answers_are_put_into_it() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        init(dir, Some("lab.example"));
        let mode = |name: &str| fs::metadata(dir.join(name)).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(PROXY_FOLDER), mode(PROXY_SETTINGS)), (0o755, 0o644));
        let values = [
            ("HSTS", "off"),
            ("PUBLISH_HTTPS", "8443"),
            ("ACCESS_LOG", "true"),
        ];
        let values = values.map(|(name, value)| (name.to_owned(), value.to_owned()));
        set(dir, &values).unwrap();
        let [settings, of_proxy] = init(dir, None);
        assert!(settings.contains("\nPUBLISH_HTTPS=8443\n") && !settings.contains("\nHSTS="));
        assert!(of_proxy.contains("\nACCESS_LOG=true\n") && of_proxy.ends_with("\nHSTS=off\n"));
        assert!(of_proxy.contains("\nNETWORK_DOMAIN=lab.example\n"));
        assert_eq!(mode(PROXY_SETTINGS), 0o644);
    }
}
