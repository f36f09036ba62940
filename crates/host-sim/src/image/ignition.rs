//! Reader of Ignition configs: files, units, the pointer to the machine config server.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::percent_decode_str;
use serde_json::Value;
use std::io::Read;

use crate::Error;

/// Largest file content that is inflated.
const CONTENT_LIMIT: u64 = 64 << 20;

/// The text of a file that the config carries in itself; `None` when it has no such file.
///
/// Errors: `Invalid` – the file's source is not a data URL or cannot be decoded.
pub fn embedded_text(config: &Value, path: &str) -> Result<Option<String>, Error> {
    let Some(file) = list(&config["storage"]["files"]).find(|file| file["path"] == path) else {
        return Ok(None);
    };
    let source = file["contents"]["source"].as_str().unwrap_or("data:,");
    let mut bytes = data_url(source)
        .map_err(|reason| Error::invalid(format!("ignition file {path}"), reason))?;
    if file["contents"]["compression"] == "gzip" {
        let mut inflated = Vec::new();
        flate2::read::GzDecoder::new(bytes.as_slice())
            .take(CONTENT_LIMIT)
            .read_to_end(&mut inflated)
            .map_err(|e| {
                Error::invalid(
                    format!("ignition file {path}"),
                    format!("cannot be inflated: {e}"),
                )
            })?;
        bytes = inflated;
    }
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

/// The contents of a systemd unit that is enabled or at least present.
pub(super) fn unit<'a>(config: &'a Value, name: &str) -> Option<&'a Value> {
    list(&config["systemd"]["units"]).find(|unit| unit["name"] == name)
}

/// Checks a host's own ignition: parses, names the host, and points at the machine config server if it has to.
///
/// Errors: `Invalid` – names the failed check.
pub fn check_host(bytes: &[u8], has_pointer: bool) -> Result<String, Error> {
    let what = "the host ignition";
    let config = parse(what, bytes)?;
    let hostname = embedded_text(&config, "/etc/hostname")?
        .map(|text| text.trim().to_owned())
        .filter(|name| !name.is_empty())
        .ok_or_else(|| {
            Error::invalid(
                what,
                "it has no /etc/hostname: the host would come up nameless",
            )
        })?;
    if has_pointer {
        let pointer = list(&config["ignition"]["config"]["merge"])
            .chain([&config["ignition"]["config"]["append"][0]])
            .find_map(|entry| entry["source"].as_str());
        match pointer {
            Some(source) if source.starts_with("https://") || source.starts_with("http://") => {
                if !source.contains("/config/") {
                    return Err(Error::invalid(
                        what,
                        format!("its pointer {source:?} names no machine config pool"),
                    ));
                }
            }
            Some(source) => {
                return Err(Error::invalid(
                    what,
                    format!("its pointer {source:?} is no web address"),
                ));
            }
            None => {
                return Err(Error::invalid(
                    what,
                    "it points at no further config: the host would never join",
                ));
            }
        }
    }
    Ok(hostname)
}

/// Checks the bootstrap ignition: parses, and has the units and secrets that start a control plane.
///
/// Errors: `Invalid` – names the missing part.
pub fn check_bootstrap(bytes: &[u8]) -> Result<(), Error> {
    let what = "bootstrap.ign";
    let config = parse(what, bytes)?;
    for name in ["bootkube.service", "approve-csr.service"] {
        if unit(&config, name).is_none() {
            return Err(Error::invalid(
                what,
                format!("it has no unit {name}: no control plane would start"),
            ));
        }
    }
    let pull_secret = embedded_text(&config, "/root/.docker/config.json")?.ok_or_else(|| {
        Error::invalid(
            what,
            "it has no /root/.docker/config.json: nothing could be pulled",
        )
    })?;
    let pull_secret: Value = serde_json::from_str(&pull_secret)
        .map_err(|e| Error::invalid(what, format!("its pull secret is not JSON: {e}")))?;
    if !pull_secret["auths"].is_object() {
        return Err(Error::invalid(what, "its pull secret has no auths"));
    }
    Ok(())
}

fn parse(what: &str, bytes: &[u8]) -> Result<Value, Error> {
    let config: Value = serde_json::from_slice(bytes)
        .map_err(|e| Error::invalid(what, format!("is not JSON: {e}")))?;
    match config["ignition"]["version"].as_str() {
        Some(version) if version.starts_with("3.") => Ok(config),
        Some(version) => Err(Error::invalid(
            what,
            format!("is Ignition {version}; 3.x is expected"),
        )),
        None => Err(Error::invalid(
            what,
            "is JSON but not Ignition: it has no ignition.version",
        )),
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn data_url(source: &str) -> Result<Vec<u8>, String> {
    let rest = source
        .strip_prefix("data:")
        .ok_or_else(|| format!("source {source:?} is not a data URL"))?;
    let (kind, data) = rest.split_once(',').ok_or("its data URL has no comma")?;
    let bytes: Vec<u8> = percent_decode_str(data).collect();
    if kind.ends_with(";base64") {
        STANDARD
            .decode(bytes)
            .map_err(|e| format!("its data URL is not base64: {e}"))
    } else {
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn host(source: &str) -> Vec<u8> {
        json!({
            "ignition": { "version": "3.2.0", "config": { "merge": [{ "source": source }] } },
            "storage": { "files": [{ "path": "/etc/hostname", "contents": { "source": "data:,master-0%0A" } }] },
        })
        .to_string()
        .into_bytes()
    }

    #[test]
    fn a_good_host_ignition_names_its_host() {
        assert_eq!(
            check_host(&host("https://api-int.a.b:22623/config/master"), true).unwrap(),
            "master-0"
        );
    }

    #[test]
    fn a_host_ignition_without_a_pointer_is_refused() {
        for source in ["", "data:,x", "https://api-int.a.b:22623/"] {
            assert!(check_host(&host(source), true).is_err(), "{source}");
        }
        assert!(check_host(br#"{"ignition":{"version":"3.2.0"}}"#, false).is_err());
        assert!(check_host(b"not json", true).is_err());
    }

    #[test]
    fn a_bootstrap_ignition_needs_its_units_and_secret() {
        let mut config = json!({
            "ignition": { "version": "3.2.0" },
            "systemd": { "units": [{ "name": "bootkube.service" }, { "name": "approve-csr.service" }] },
            "storage": { "files": [{ "path": "/root/.docker/config.json",
                "contents": { "source": "data:;base64,eyJhdXRocyI6e319" } }] },
        });
        check_bootstrap(config.to_string().as_bytes()).unwrap();
        config["systemd"] = json!({});
        assert!(
            check_bootstrap(config.to_string().as_bytes())
                .unwrap_err()
                .to_string()
                .contains("bootkube")
        );
    }

    #[test]
    fn compressed_files_are_inflated() {
        use std::io::Write;
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(b"hello").unwrap();
        let source = format!("data:;base64,{}", STANDARD.encode(gzip.finish().unwrap()));
        let config = json!({ "storage": { "files": [{ "path": "/a",
            "contents": { "compression": "gzip", "source": source } }] } });
        assert_eq!(embedded_text(&config, "/a").unwrap().unwrap(), "hello");
    }
}
