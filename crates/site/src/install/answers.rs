//! Answers of an installation: from a file, from the request, or from a dialogue.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::net::UdpSocket;
use std::path::Path;

use credentials::host_name;
use serde::Deserialize;
use serde_json::Value;
use service::settings::env_lines;
use service::{Error, ResultExt as _};
use url::Url;

use super::record::InstallRecord;
use super::request::{Dialogue, InstallRequest};
use crate::pod::SETTINGS;
use crate::pod::settings_files::DOMAIN_SETTING;

/// The setting with the host's name.
const BASE_URL: &str = "SERVICE_BASE_URL";
/// Units: bytes.
const ANSWERS_LIMIT_BYTES: u64 = 1 << 20;
/// An address of documentation (RFC 5737): no packet is sent, the kernel only looks up the route.
const ELSEWHERE: &str = "192.0.2.1:9";

/// All answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answers {
    /// Name of the host for users and machines.
    pub(super) host: String,
    /// Variables of `.env` and `proxy/proxy.env` that differ from the templates.
    pub(super) settings: Vec<(String, String)>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct AnswersFile {
    host: Option<String>,
    #[serde(default)]
    settings: BTreeMap<String, Value>,
}

impl Answers {
    /// Collects the answers: flags before the file, the file before the previous installation, and questions for the rest.
    ///
    /// Errors: a malformed file, a missing answer without a terminal.
    pub(super) fn collect(
        request: &InstallRequest,
        installed: Option<&InstallRecord>,
        dialogue: &dyn Dialogue,
    ) -> Result<Self, Error> {
        let file = match &request.answers {
            Some(path) => read(path)?,
            None => AnswersFile::default(),
        };
        let known = request.host.clone().or(file.host);
        let known = known.or_else(|| installed.map(|it| it.host.clone()));
        let host = match known.or_else(|| configured(&request.dir.join(SETTINGS))) {
            Some(host) => host,
            None => dialogue.host(own_address().or_else(machine_name).as_deref())?,
        };
        let host = host_name::host(&host).doing(|| format!("reading the host {host:?}"))?;
        let mut settings = Vec::new();
        for (name, value) in file.settings {
            let value = text(&value);
            let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            if !is_name || name.is_empty() || value.contains('\n') {
                let reason = "expected the name of a variable, and one line";
                return Err(Error::new(format!("reading the setting {name:?}"), reason));
            }
            settings.push((name, value));
        }
        Ok(Self { host, settings })
    }

    /// Whether they have a setting.
    pub(super) fn has(&self, name: &str) -> bool {
        self.settings.iter().any(|(own, _)| own == name)
    }

    /// The network domain, if it is among the settings: certificates are made for it.
    ///
    /// Errors: it is no name.
    pub(super) fn domain(&self) -> Result<Option<String>, Error> {
        let mut settings = self.settings.iter();
        let given = settings.find(|(name, value)| name == DOMAIN_SETTING && !value.is_empty());
        let domain = given
            .map(|(_, domain)| host_name::domain(domain))
            .transpose();
        domain.doing(|| format!("reading {DOMAIN_SETTING}"))
    }
}

/// Text of a variable: lists and objects are JSON there.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

fn read(path: &Path) -> Result<AnswersFile, Error> {
    let doing = || format!("reading {}", path.display());
    let file = fs::File::open(path).doing(doing)?;
    let mut text = String::new();
    let read = file.take(ANSWERS_LIMIT_BYTES + 1).read_to_string(&mut text);
    read.doing(doing)?;
    if text.len() as u64 > ANSWERS_LIMIT_BYTES {
        return Err(Error::new(
            doing(),
            format!("more than {ANSWERS_LIMIT_BYTES} bytes"),
        ));
    }
    serde_yaml::from_str(&text).doing(doing)
}

/// The host in existing settings, as after a restore.
fn configured(settings: &Path) -> Option<String> {
    let text = fs::read_to_string(settings).ok()?;
    let lines = env_lines(&text).ok()?;
    let (_, url) = lines.into_iter().find(|(name, _)| *name == BASE_URL)?;
    let host = Url::parse(url).ok()?.host_str()?.to_owned();
    Some(host)
}

/// The name of this machine.
fn machine_name() -> Option<String> {
    let system = rustix::system::uname();
    let name = system.nodename().to_str().ok()?;
    (!name.is_empty()).then(|| name.to_owned())
}

/// The address of the interface with the default route.
fn own_address() -> Option<String> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect(ELSEWHERE).ok()?;
    Some(socket.local_addr().ok()?.ip().to_string())
}

#[cfg(test)]
mod tests {
    use mirror::history::Pruning;

    use super::*;

    /// No answer to any question.
    struct Silent;

    impl Dialogue for Silent {
        fn host(&self, _: Option<&str>) -> Result<String, Error> {
            Err(Error::new(
                "asking for the host name",
                "there is no terminal",
            ))
        }

        fn allows_pruning(&self, _: &Pruning) -> Result<bool, Error> {
            Ok(false)
        }
    }

    fn collect(text: &str, host: Option<&str>) -> Result<Answers, String> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("answers.yaml");
        fs::write(&path, text).unwrap();
        let request = InstallRequest {
            bundle: "b".into(),
            dir: "d".into(),
            answers: Some(path),
            host: host.map(str::to_owned),
            key: None,
            only_load: false,
            login: false,
        };
        Answers::collect(&request, None, &Silent).map_err(|e| e.to_string())
    }

    #[test]
    fn settings_are_texts() {
        let text = "host: a.example\nsettings: {PUBLISH_API: 8091, OS_IMAGES: [{version: x}], DOMAIN: null, B: true}";
        let answers = collect(text, None).unwrap();
        let settings: BTreeMap<_, _> = answers.settings.into_iter().collect();
        assert_eq!(settings["PUBLISH_API"], "8091");
        assert_eq!(settings["OS_IMAGES"], r#"[{"version":"x"}]"#);
        assert_eq!((&*settings["DOMAIN"], &*settings["B"]), ("", "true"));
        assert_eq!(collect(text, Some("fd00::1")).unwrap().host, "fd00::1");
    }

    #[test]
    fn the_host_of_existing_settings_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(".env");
        assert_eq!(configured(&path), None);
        for (url, host) in [
            ("http://a.example:8090", "a.example"),
            ("http://[fd00::1]:8090", "[fd00::1]"),
        ] {
            fs::write(&path, format!("SERVICE_BASE_URL={url}\n")).unwrap();
            assert_eq!(configured(&path).as_deref(), Some(host));
        }
    }

    #[test]
    fn wrong_answers_are_refused() {
        for wrong in [
            "hosts: a",
            "host: http://a",
            "host: a\nsettings: {'A B': 1}",
            "host: a\nsettings: {A: \"x\\ny\"}",
        ] {
            collect(wrong, None).unwrap_err();
        }
        let large = format!("host: a{}", " ".repeat(1 << 20));
        assert!(collect(&large, None).unwrap_err().contains("more than"));
        assert!(collect(&large[..1 << 20], None).is_ok());
    }
}
