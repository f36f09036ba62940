//! `--login`: callers of the installer API are authenticated by tokens, which one step sets up.

use std::path::Path;

use api_server::Settings;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::KeyPair;
use service::env_file;
use service::file::read;
use service::settings::env_lines;
use service::{Error, ResultExt as _};
use url::Url;

use crate::secrets::password;

/// The first administrator.
pub const ADMINISTRATOR: &str = "admin";
/// Validity of a log-in link. Units: hours.
pub const LINK_HOURS: u32 = 24;
/// The setting of the authentication.
pub const AUTH_TYPE: &str = "AUTH_TYPE";
/// Its value with tokens of this installation.
const LOCAL: &str = "local";
/// The setting of the key of sessions.
pub const SESSION_KEY: &str = "SESSION_KEY";

/// Settings of the authentication, with new keys.
///
/// Errors: the keys cannot be made.
pub fn new_settings() -> Result<Vec<(String, String)>, Error> {
    let mut settings = vec![
        (AUTH_TYPE.to_owned(), LOCAL.to_owned()),
        (SESSION_KEY.to_owned(), password()),
    ];
    let keys = new_keys()?;
    settings.extend(keys.map(|(name, text)| (name.to_owned(), text)));
    Ok(settings)
}

/// Variables and their texts: PEM in base64, since a line of a file of settings has no line breaks.
pub fn new_keys() -> Result<[(&'static str, String); 2], Error> {
    let pair = KeyPair::generate();
    let pair = pair.doing("generating a pair of keys")?;
    Ok([
        ("EC_PUBLIC_KEY_PEM", STANDARD.encode(pair.public_key_pem())),
        ("EC_PRIVATE_KEY_PEM", STANDARD.encode(pair.serialize_pem())),
    ])
}

/// Sets the authentication up in a file of settings. Keys that it has are kept.
///
/// Errors: the file cannot be read or written; it has another authentication.
pub fn enable(path: &Path) -> Result<(), Error> {
    let text = read(path)?.unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let known = env_lines(&text).unwrap_or_default();
    let value = |wanted: &str| {
        let mut lines = known.iter().rev();
        lines.find_map(|(name, value)| (*name == wanted).then_some(*value))
    };
    let kind = value(AUTH_TYPE).unwrap_or_default();
    if !matches!(kind, "" | "none" | LOCAL) {
        let doing = format!("setting up log-ins in {}", path.display());
        let reason = format!("{AUTH_TYPE} is {kind}, which has log-ins already: leave --login out");
        return Err(Error::new(doing, reason));
    }
    let mut missing = new_settings()?;
    missing.retain(|(name, _)| name == AUTH_TYPE || value(name).is_none_or(str::is_empty));
    env_file::set(path, &missing)
}

/// A link to the web UI at `base` that logs the user of that name in, once.
///
/// Errors: the settings have no keys.
pub fn link(settings: &Settings, user: &str, hours: u32, base: &str) -> Result<String, Error> {
    let code = api_server::log_in_code(settings, user, hours)?;
    Ok(format!("{}/login?code={code}", base.trim_end_matches('/')))
}

/// URL of the web UI, by the settings of a pod.
///
/// Errors: the file cannot be read, or names no host.
pub fn page_url(path: &Path) -> Result<String, Error> {
    let doing = || format!("reading {}", path.display());
    let text = std::fs::read_to_string(path).doing(doing)?;
    let known = env_lines(&text).unwrap_or_default();
    let value = |wanted: &str| {
        let mut lines = known.iter().rev();
        let found = lines.find_map(|(name, value)| (*name == wanted).then_some(*value));
        found.filter(|value| !value.is_empty())
    };
    if let Some(url) = value("WEBUI_BASE_URL") {
        return Ok(url.to_owned());
    }
    let base = value("SERVICE_BASE_URL").and_then(|url| Url::parse(url).ok());
    let mut url = base.ok_or_else(|| {
        Error::new(
            doing(),
            "neither WEBUI_BASE_URL nor SERVICE_BASE_URL is a URL: use --url",
        )
    })?;
    let port = value("PUBLISH_WEBUI").unwrap_or("8080");
    let port = port.rsplit(':').next().and_then(|port| port.parse().ok());
    // Plain HTTP, as the pod publishes it.
    url.set_port(port).ok();
    url.set_path("");
    Ok(url.as_str().trim_end_matches('/').to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn file(text: &str) -> (tempfile::TempDir, std::path::PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(".env");
        fs::write(&path, text).unwrap();
        (dir, path)
    }

    #[test]
    fn log_ins_are_set_up_once() {
        let (_dir, path) = file("AUTH_TYPE=none\nSERVICE_BASE_URL=http://atoll.example:8090\n");
        enable(&path).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        for name in [
            "AUTH_TYPE=local",
            "EC_PUBLIC_KEY_PEM=",
            "EC_PRIVATE_KEY_PEM=",
            "SESSION_KEY=",
        ] {
            assert_eq!(text.matches(name).count(), 1, "{text}");
        }
        enable(&path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
        let settings = Settings::load(Some(&path)).unwrap();
        let link = link(&settings, ADMINISTRATOR, 1, &page_url(&path).unwrap()).unwrap();
        assert!(
            link.starts_with("http://atoll.example:8080/login?code=ey"),
            "{link}"
        );
    }

    #[test]
    fn users_of_a_provider_are_kept() {
        let (_dir, path) = file("AUTH_TYPE=oidc\n");
        let error = enable(&path).unwrap_err();
        assert!(
            model::error::chain(&error).contains("AUTH_TYPE is oidc"),
            "{error}"
        );
    }

    #[test]
    fn the_page_has_the_published_port() {
        for (text, url) in [
            (
                "SERVICE_BASE_URL=http://[fd00::1]:8090/\nPUBLISH_WEBUI=127.0.0.1:81\n",
                "http://[fd00::1]:81",
            ),
            (
                "SERVICE_BASE_URL=http://a:8090\nWEBUI_BASE_URL=https://ui.example\n",
                "https://ui.example",
            ),
        ] {
            let (_dir, path) = file(text);
            assert_eq!(page_url(&path).unwrap(), url);
        }
        let (_dir, path) = file("A=1\n");
        assert!(page_url(&path).is_err());
    }
}
