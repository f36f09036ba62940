//! Builders of the records that Atoll writes.

use crate::config::{
    Directory, Dropin, IgnitionConfig, IgnitionFile, Link, Mode, Owner, Resource, SpecVersion,
    Unit, User,
};
use crate::{Error, data_url};

impl IgnitionConfig {
    /// An empty configuration.
    pub fn new(version: SpecVersion) -> Self {
        let mut config = Self::default();
        config.ignition.version = version;
        config
    }

    /// Adds a file.
    #[must_use]
    pub fn file(mut self, file: IgnitionFile) -> Self {
        self.storage.files.push(file);
        self
    }

    /// Adds a directory.
    #[must_use]
    pub fn directory(mut self, directory: Directory) -> Self {
        self.storage.directories.push(directory);
        self
    }

    /// Adds a link.
    #[must_use]
    pub fn link(mut self, link: Link) -> Self {
        self.storage.links.push(link);
        self
    }

    /// Adds a unit.
    #[must_use]
    pub fn unit(mut self, unit: Unit) -> Self {
        self.systemd.units.push(unit);
        self
    }

    /// Adds a user.
    #[must_use]
    pub fn user(mut self, user: User) -> Self {
        self.passwd.users.push(user);
        self
    }

    /// Adds a file, replacing one of the same path.
    pub fn put_file(&mut self, file: IgnitionFile) {
        self.storage.files.retain(|other| other.path != file.path);
        self.storage.files.push(file);
    }

    /// The file at `path`.
    pub fn find_file(&self, path: &str) -> Option<&IgnitionFile> {
        self.storage.files.iter().find(|file| file.path == path)
    }

    /// The unit called `name`.
    pub fn find_unit(&self, name: &str) -> Option<&Unit> {
        self.systemd.units.iter().find(|unit| unit.name == name)
    }
}

impl Resource {
    /// A readable data URL of the text.
    pub fn text(contents: &str) -> Self {
        Self::at(data_url::text(contents))
    }

    /// A data URL of the bytes.
    pub fn bytes(contents: &[u8]) -> Self {
        Self::at(data_url::base64(contents))
    }

    /// A data URL of the compressed bytes.
    pub fn gzip(contents: &[u8]) -> Self {
        Self {
            compression: Some("gzip".to_owned()),
            ..Self::at(data_url::gzip_base64(contents))
        }
    }

    /// Contents that are fetched from the URL.
    pub fn at(url: impl Into<String>) -> Self {
        Self {
            source: Some(url.into()),
            // Explicit, because an absent one would keep a merged parent's `gzip`.
            compression: Some(String::new()),
            ..Self::default()
        }
    }

    /// The bytes of a data URL; none when they must be fetched.
    ///
    /// Errors: when the data URL or the compressed bytes cannot be decoded.
    pub fn inline_bytes(&self) -> Result<Option<Vec<u8>>, Error> {
        let Some(source) = self.source.as_deref() else {
            return Ok(None);
        };
        if !data_url::is_data_url(source) {
            return Ok(None);
        }
        let bytes = data_url::decode(source)?;
        match self.compression.as_deref() {
            Some("gzip") => data_url::gunzip(&bytes).map(Some),
            _ => Ok(Some(bytes)),
        }
    }
}

impl IgnitionFile {
    /// A file of root that replaces an existing one.
    pub fn new(path: impl Into<String>, mode: u32, contents: Resource) -> Self {
        Self {
            path: path.into(),
            overwrite: Some(true),
            user: Owner::root(),
            mode: Some(Mode(mode)),
            contents,
            ..Self::default()
        }
    }

    /// A text file of root; `mode` as in `0o644`.
    pub fn text(path: impl Into<String>, mode: u32, contents: &str) -> Self {
        Self::new(path, mode, Resource::text(contents))
    }

    /// A binary file of root.
    pub fn bytes(path: impl Into<String>, mode: u32, contents: &[u8]) -> Self {
        Self::new(path, mode, Resource::bytes(contents))
    }
}

impl Owner {
    /// The user root.
    pub fn root() -> Self {
        Self {
            id: None,
            name: Some("root".to_owned()),
        }
    }
}

impl Directory {
    /// A directory of root.
    pub fn new(path: impl Into<String>, mode: u32) -> Self {
        Self {
            path: path.into(),
            user: Owner::root(),
            mode: Some(Mode(mode)),
            ..Self::default()
        }
    }
}

impl Link {
    /// A symbolic link from `path` to `target`.
    pub fn symbolic(path: impl Into<String>, target: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            overwrite: Some(true),
            target: Some(target.into()),
            hard: Some(false),
            ..Self::default()
        }
    }
}

impl Unit {
    /// An enabled unit.
    pub fn enabled(name: impl Into<String>, contents: impl Into<String>) -> Self {
        Self {
            enabled: Some(true),
            ..Self::new(name, contents)
        }
    }

    /// A unit that other units start.
    pub fn new(name: impl Into<String>, contents: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            contents: Some(contents.into()),
            ..Self::default()
        }
    }

    /// Adds a drop-in to the unit.
    #[must_use]
    pub fn dropin(mut self, name: impl Into<String>, contents: impl Into<String>) -> Self {
        self.dropins.push(Dropin {
            name: name.into(),
            contents: Some(contents.into()),
        });
        self
    }
}

impl User {
    /// A user without a password who may log in with `keys`.
    pub fn with_keys(name: impl Into<String>, keys: Vec<String>) -> Self {
        Self {
            name: name.into(),
            password_hash: Some("!".to_owned()),
            ssh_authorized_keys: keys,
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_configurations_are_valid() {
        let config = IgnitionConfig::new(SpecVersion::V3_1)
            .file(IgnitionFile::text("/etc/motd", 0o644, "hello: 100 %, ü\n"))
            .file(IgnitionFile::bytes("/opt/x", 0o755, &[0, 255]))
            .directory(Directory::new("/opt/d", 0o755))
            .link(Link::symbolic("/opt/l", "../x"))
            .unit(Unit::enabled("a.service", "[Unit]\n").dropin("10-a.conf", "[Service]\n"))
            .user(User::with_keys("core", vec!["ssh-ed25519 AAAA".to_owned()]));
        let read = IgnitionConfig::parse(&config.to_json()).unwrap();
        assert_eq!(read, config);
        let motd = read.find_file("/etc/motd").unwrap();
        assert_eq!(motd.mode, Some(Mode(420)));
        let bytes = motd.contents.inline_bytes().unwrap().unwrap();
        assert_eq!(bytes, "hello: 100 %, ü\n".as_bytes());
        assert!(read.find_unit("a.service").is_some());
    }

    #[test]
    fn compressed_contents_round_trip() {
        let text = b"the same ".repeat(1000);
        let resource = Resource::gzip(&text);
        assert!(resource.source.as_ref().unwrap().len() < 500);
        assert_eq!(resource.inline_bytes().unwrap(), Some(text));
    }
}
