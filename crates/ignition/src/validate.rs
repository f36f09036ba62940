//! Ignition's validation, before a host boots with a configuration.
//! Source: coreos/ignition, config/v3_1/types to config/v3_3/types.

use std::collections::HashMap;

use crate::config::{IgnitionConfig, IgnitionFile, Mode, Resource, Unit};
use crate::{Error, data_url};

const UNIT_KINDS: &[&str] = &[
    "service",
    "socket",
    "device",
    "mount",
    "automount",
    "swap",
    "target",
    "path",
    "timer",
    "snapshot",
    "slice",
    "scope",
];

const SCHEMES: &[&str] = &["data", "http", "https", "tftp", "s3", "gs"];

/// The highest permission bits: set-user-id, set-group-id and sticky included.
const MODE_MAX: u32 = 0o7777;

impl IgnitionConfig {
    /// Checks the rules that the types do not express.
    ///
    /// Errors: `Invalid` for the first member that Ignition would refuse.
    pub fn validate(&self) -> Result<(), Error> {
        self.validate_references()?;
        self.validate_users()?;
        self.validate_storage()?;
        let mut names = Unique::default();
        for (index, unit) in self.systemd.units.iter().enumerate() {
            let at = format!("systemd.units[{index}]");
            names.add(&at, "name", &unit.name)?;
            validate_unit(&at, unit)?;
        }
        Ok(())
    }

    fn validate_references(&self) -> Result<(), Error> {
        let ignition = &self.ignition;
        for (index, merge) in ignition.config.merge.iter().enumerate() {
            validate_resource(&format!("ignition.config.merge[{index}]"), merge, true)?;
        }
        if let Some(replace) = &ignition.config.replace {
            validate_resource("ignition.config.replace", replace, true)?;
        }
        let authorities = &ignition.security.tls.certificate_authorities;
        for (index, authority) in authorities.iter().enumerate() {
            let at = format!("ignition.security.tls.certificateAuthorities[{index}]");
            validate_resource(&at, authority, true)?;
        }
        for (name, proxy) in [
            ("httpProxy", &ignition.proxy.http_proxy),
            ("httpsProxy", &ignition.proxy.https_proxy),
        ] {
            let Some(text) = proxy else { continue };
            let url = url::Url::parse(text).ok();
            if !url.is_some_and(|url| matches!(url.scheme(), "http" | "https")) {
                let reason = "not a URL that starts with http:// or https://";
                return Err(Error::invalid(format!("ignition.proxy.{name}"), reason));
            }
        }
        Ok(())
    }

    fn validate_users(&self) -> Result<(), Error> {
        let mut names = Unique::default();
        for (index, user) in self.passwd.users.iter().enumerate() {
            let at = format!("passwd.users[{index}]");
            if user.name.is_empty() {
                return Err(Error::invalid(format!("{at}.name"), "a user needs a name"));
            }
            names.add(&at, "name", &user.name)?;
        }
        Ok(())
    }

    fn validate_storage(&self) -> Result<(), Error> {
        let mut paths = Unique::default();
        for (index, directory) in self.storage.directories.iter().enumerate() {
            let at = format!("storage.directories[{index}]");
            validate_node(&mut paths, &at, &directory.path, directory.mode)?;
        }
        for (index, file) in self.storage.files.iter().enumerate() {
            let at = format!("storage.files[{index}]");
            validate_node(&mut paths, &at, &file.path, file.mode)?;
            validate_file(&at, file)?;
        }
        for (index, link) in self.storage.links.iter().enumerate() {
            let at = format!("storage.links[{index}]");
            validate_node(&mut paths, &at, &link.path, None)?;
            if link.target.as_deref().is_none_or(str::is_empty) {
                let reason = "a link needs a target";
                return Err(Error::invalid(format!("{at}.target"), reason));
            }
        }
        Ok(())
    }
}

/// Keys with the path of their first item.
#[derive(Default)]
struct Unique<'a>(HashMap<&'a str, String>);

impl<'a> Unique<'a> {
    fn add(&mut self, at: &str, member: &str, key: &'a str) -> Result<(), Error> {
        match self.0.insert(key, at.to_owned()) {
            None => Ok(()),
            Some(first) => Err(Error::invalid(
                format!("{at}.{member}"),
                format!("{key:?} is already used at {first}"),
            )),
        }
    }
}

fn validate_node<'a>(
    paths: &mut Unique<'a>,
    at: &str,
    path: &'a str,
    mode: Option<Mode>,
) -> Result<(), Error> {
    if !path.starts_with('/') {
        let reason = format!("{path:?} is not an absolute path");
        return Err(Error::invalid(format!("{at}.path"), reason));
    }
    if let Some(Mode(bits)) = mode
        && bits > MODE_MAX
    {
        let reason = format!(
            "{bits} is not a file mode; modes are decimal here, 0644 is written 420 and the highest is {MODE_MAX}"
        );
        return Err(Error::invalid(format!("{at}.mode"), reason));
    }
    paths.add(at, "path", path)
}

fn validate_file(at: &str, file: &IgnitionFile) -> Result<(), Error> {
    validate_resource(&format!("{at}.contents"), &file.contents, false)?;
    for (index, append) in file.append.iter().enumerate() {
        validate_resource(&format!("{at}.append[{index}]"), append, true)?;
    }
    if file.overwrite == Some(true) && file.contents.source.is_none() {
        let reason = "overwrite needs contents.source";
        return Err(Error::invalid(format!("{at}.overwrite"), reason));
    }
    if file.overwrite == Some(true) && !file.append.is_empty() {
        let reason = "a file that overwrites cannot append as well";
        return Err(Error::invalid(format!("{at}.append"), reason));
    }
    Ok(())
}

fn validate_resource(at: &str, resource: &Resource, needs_source: bool) -> Result<(), Error> {
    match resource.compression.as_deref() {
        None | Some("" | "gzip") => {}
        Some(other) => {
            let reason = format!("{other:?} is not supported, expected gzip or nothing");
            return Err(Error::invalid(format!("{at}.compression"), reason));
        }
    }
    if let Some(hash) = &resource.verification.hash {
        validate_hash(&format!("{at}.verification.hash"), hash)?;
    }
    let source_at = format!("{at}.source");
    match resource.source.as_deref() {
        None | Some("") if needs_source => Err(Error::invalid(source_at, "a URL is needed here")),
        None | Some("") => Ok(()),
        Some(source) if data_url::is_data_url(source) => data_url::decode(source)
            .map(|_| ())
            .map_err(|error| Error::invalid(source_at, error.to_string())),
        Some(source) => match url::Url::parse(source) {
            Ok(url) if SCHEMES.contains(&url.scheme()) => Ok(()),
            Ok(url) => Err(Error::invalid(
                source_at,
                format!(
                    "scheme {:?} is not supported, expected one of {}",
                    url.scheme(),
                    SCHEMES.join(", ")
                ),
            )),
            Err(error) => Err(Error::invalid(source_at, format!("not a URL: {error}"))),
        },
    }
}

fn validate_hash(at: &str, hash: &str) -> Result<(), Error> {
    let digits = match hash.split_once('-') {
        Some(("sha512", hex)) => Some((hex, 128)),
        Some(("sha256", hex)) => Some((hex, 64)),
        _ => None,
    };
    let is_valid = digits.is_some_and(|(hex, length)| {
        hex.len() == length && hex.bytes().all(|byte| byte.is_ascii_hexdigit())
    });
    if is_valid {
        return Ok(());
    }
    let reason = "expected sha512- and 128 hexadecimal digits, or sha256- and 64";
    Err(Error::invalid(at, reason))
}

fn validate_unit(at: &str, unit: &Unit) -> Result<(), Error> {
    let kind = unit.name.rsplit_once('.').map(|(_, kind)| kind);
    if !kind.is_some_and(|kind| UNIT_KINDS.contains(&kind)) || unit.name.contains('/') {
        let reason = format!(
            "{:?} is not the name of a unit, expected one that ends in .service, .socket, .mount, .timer or another kind of unit",
            unit.name
        );
        return Err(Error::invalid(format!("{at}.name"), reason));
    }
    let mut names = Unique::default();
    for (index, dropin) in unit.dropins.iter().enumerate() {
        let at = format!("{at}.dropins[{index}]");
        names.add(&at, "name", &dropin.name)?;
        let stem = dropin.name.strip_suffix(".conf");
        if stem.is_none_or(str::is_empty) || dropin.name.contains('/') {
            let reason = format!("{:?} does not end in .conf", dropin.name);
            return Err(Error::invalid(format!("{at}.name"), reason));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn problem(mut config: Value) -> String {
        config["ignition"]["version"] = json!("3.1.0");
        match IgnitionConfig::parse(config.to_string().as_bytes()) {
            Ok(_) => "none".to_owned(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn every_refusal_names_its_member() {
        let file = |file: Value| json!({"storage": {"files": [file]}});
        for (config, at) in [
            (file(json!({"path": "etc/x"})), "storage.files[0].path: "),
            (
                file(json!({"path": "/x", "mode": 10000})),
                "storage.files[0].mode: ",
            ),
            (
                file(json!({"path": "/x", "overwrite": true})),
                "storage.files[0].overwrite: ",
            ),
            (
                file(json!({"path": "/x", "contents": {"source": "data:,%"}})),
                "storage.files[0].contents.source: ",
            ),
            (
                file(json!({"path": "/x", "contents": {"source": "ftp://x"}})),
                "storage.files[0].contents.source: ",
            ),
            (
                file(json!({"path": "/x", "contents": {"source": "no url"}})),
                "storage.files[0].contents.source: ",
            ),
            (
                file(json!({"path": "/x", "contents": {"compression": "xz"}})),
                "storage.files[0].contents.compression: ",
            ),
            (
                file(json!({"path": "/x", "contents": {"verification": {"hash": "sha512-12"}}})),
                "storage.files[0].contents.verification.hash: ",
            ),
            (
                file(json!({"path": "/x", "append": [{}]})),
                "storage.files[0].append[0].source: ",
            ),
            (
                json!({"storage": {"files": [{"path": "/x"}], "directories": [{"path": "/x"}]}}),
                "storage.files[0].path: \"/x\" is already used at storage.directories[0]",
            ),
            (
                json!({"storage": {"links": [{"path": "/x"}]}}),
                "storage.links[0].target: ",
            ),
            (
                json!({"systemd": {"units": [{"name": "agent"}]}}),
                "systemd.units[0].name: ",
            ),
            (
                json!({"systemd": {"units": [{"name": "a.service"}, {"name": "a.service"}]}}),
                "systemd.units[1].name: ",
            ),
            (
                json!({"systemd": {"units": [{"name": "a.service", "dropins": [{"name": "x"}]}]}}),
                "systemd.units[0].dropins[0].name: ",
            ),
            (
                json!({"passwd": {"users": [{"name": ""}]}}),
                "passwd.users[0].name: ",
            ),
            (
                json!({"ignition": {"proxy": {"httpProxy": "proxy:3128"}}}),
                "ignition.proxy.httpProxy: ",
            ),
            (
                json!({"ignition": {"config": {"merge": [{}]}}}),
                "ignition.config.merge[0].source: ",
            ),
        ] {
            let text = problem(config.clone());
            assert!(text.starts_with(at), "{config}: {text}");
        }
    }

    #[test]
    fn sound_ones_pass() {
        for config in [
            json!({}),
            json!({"storage": {"files": [{"path": "/x", "mode": 4095, "contents": {"source": "https://h/x", "compression": "gzip", "verification": {"hash": format!("sha256-{}", "a".repeat(64))}}}]}}),
            json!({"ignition": {"config": {"replace": {"source": "data:,{}"}}, "proxy": {"httpsProxy": "http://p:1"}}}),
            json!({"systemd": {"units": [{"name": "getty@tty1.service", "enabled": true}]}}),
            json!({"storage": {"files": [{"path": "/x", "mode": null, "contents": null}]}}),
        ] {
            assert_eq!(problem(config), "none");
        }
    }
}
