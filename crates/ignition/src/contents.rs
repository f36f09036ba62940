//! The bytes of files inside a configuration, with their hash verified.

use located_yaml::v1_2::ConfigNode;
use sha2::{Digest as _, Sha256, Sha512};

use crate::config::{Resource, Verification};
use crate::document::ConfigDocument;
use crate::{Error, data_url};

impl Verification {
    /// Compares the decompressed bytes with the hash; without a hash all bytes are right.
    ///
    /// Errors: another hash, or one of an unknown function.
    pub fn check(&self, bytes: &[u8]) -> Result<(), Error> {
        let Some(hash) = &self.hash else {
            return Ok(());
        };
        let found = match hash.split_once('-') {
            Some(("sha512", _)) => format!("sha512-{:x}", Sha512::digest(bytes)),
            Some(("sha256", _)) => format!("sha256-{:x}", Sha256::digest(bytes)),
            _ => {
                return Err(Error::DataUrl(
                    "the hash has an unknown function".to_owned(),
                ));
            }
        };
        if found.eq_ignore_ascii_case(hash) {
            return Ok(());
        }
        Err(Error::Hash { found })
    }
}

impl Resource {
    /// The decompressed and verified bytes; none when they must be fetched.
    ///
    /// Errors: when the data URL or the compressed bytes cannot be decoded, or the hash is another one.
    pub fn verified_bytes(&self) -> Result<Option<Vec<u8>>, Error> {
        let bytes = self.inline_bytes()?;
        if let Some(bytes) = &bytes {
            self.verification.check(bytes)?;
        }
        Ok(bytes)
    }
}

impl ConfigDocument {
    /// The bytes that the file at `path` has after a boot: its contents, or those of a unit or drop-in, and all that is
    /// appended.
    ///
    /// Errors: `Invalid` when there is no such file, or some of it is to be fetched or appended to a file that exists;
    /// `DataUrl` when the bytes cannot be decoded; `Hash`.
    pub fn file_bytes(&self, path: &str) -> Result<Vec<u8>, Error> {
        let invalid = |reason: &str| Error::Invalid {
            at: path.to_owned(),
            reason: reason.to_owned(),
        };
        let files = self.root.find(&["storage", "files"]);
        let files = files.map_or(&[][..], ConfigNode::items);
        let file = files.iter().find(|file| has_text(file, "path", path));
        let Some(file) = file else {
            return self.unit_text(path).ok_or_else(|| {
                invalid("the configuration has no such file (show without --file lists them)")
            });
        };
        let contents = file.get("contents");
        let appended = file.get("append").map_or(&[][..], ConfigNode::items);
        if contents.is_none_or(|contents| contents.get("source").is_none()) {
            return Err(invalid(
                "the file has no contents of its own: those on the disk stay",
            ));
        }
        let mut all = Vec::new();
        for node in contents.into_iter().chain(appended) {
            let resource: Resource = serde_json::from_value(node.to_json())
                .map_err(|error| invalid(&error.to_string()))?;
            if resource.source.as_deref() == Some("") {
                continue;
            }
            let bytes = resource.verified_bytes()?;
            all.extend(bytes.ok_or_else(|| invalid("the contents are fetched from a URL"))?);
            if all.len() as u64 > data_url::MAX_UNPACKED {
                let reason = format!(
                    "the contents unpack to more than {} bytes",
                    data_url::MAX_UNPACKED
                );
                return Err(Error::DataUrl(reason));
            }
        }
        Ok(all)
    }

    fn unit_text(&self, path: &str) -> Option<Vec<u8>> {
        let name = path.strip_prefix("/etc/systemd/system/")?;
        let units = self.root.find(&["systemd", "units"])?.items();
        let text = |node: &ConfigNode| Some(node.get("contents")?.as_text()?.as_bytes().to_vec());
        if let Some((unit, dropin)) = name.split_once(".d/") {
            let unit = units.iter().find(|node| has_text(node, "name", unit))?;
            let mut dropins = unit.get("dropins")?.items().iter();
            return text(dropins.find(|node| has_text(node, "name", dropin))?);
        }
        text(units.iter().find(|node| has_text(node, "name", name))?)
    }
}

fn has_text(node: &ConfigNode, member: &str, text: &str) -> bool {
    node.get(member).and_then(ConfigNode::as_text) == Some(text)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn bytes(file: &Value, path: &str) -> Result<String, String> {
        let config = json!({"ignition": {"version": "3.2.0"}, "storage": {"files": [file]}, "systemd": {"units": [
            {"name": "a.service", "contents": "[Unit]\n", "dropins": [{"name": "x.conf", "contents": "[Service]\n"}]},
        ]}});
        let (document, _) = ConfigDocument::read(config.to_string().as_bytes());
        let bytes = document.unwrap().file_bytes(path);
        bytes
            .map(|bytes| String::from_utf8(bytes).unwrap())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn contents_are_decoded_and_verified() {
        let hash = |text: &str| format!("sha256-{:X}", Sha256::digest(text));
        let gzip = json!({"source": data_url::gzip_base64(b"packed"), "compression": "gzip", "verification": {"hash": hash("packed").replacen("SHA", "sha", 1)}});
        let file = json!({"path": "/a", "contents": gzip, "append": [{"source": "data:,%21"}]});
        assert_eq!(bytes(&file, "/a").unwrap(), "packed!");
        let mut other = file.clone();
        other["contents"]["verification"]["hash"] = json!(hash("other"));
        assert!(
            bytes(&other, "/a")
                .unwrap_err()
                .contains("another than verification.hash")
        );
        other["contents"] = json!({"source": "http://h/a"});
        assert!(bytes(&other, "/a").unwrap_err().contains("fetched"));
        other["contents"] = json!({});
        assert!(bytes(&other, "/a").unwrap_err().contains("stay"));
        assert!(bytes(&file, "/b").unwrap_err().contains("no such file"));
    }

    #[test]
    fn units_are_files_too() {
        let none = json!({"path": "/a"});
        let text = |name: &str| bytes(&none, &format!("/etc/systemd/system/{name}"));
        assert_eq!(text("a.service").unwrap(), "[Unit]\n");
        assert_eq!(text("a.service.d/x.conf").unwrap(), "[Service]\n");
        assert!(text("b.service").is_err());
    }
}
