//! Addresses of pages. An image is written as for the clients: `NAME`, `NAME:TAG`, `NAME@DIGEST`.

use axum::http::Uri;
use oci::{Digest, Repository, Target};
use percent_encoding::percent_decode_str;

use super::visit::ROOT;
use crate::error::RegistryError;

/// The page of an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum View {
    Repositories,
    Repository(Repository),
    Manifest(Repository, Target),
    Blob(Repository, Digest),
    LogIn,
    Style,
    Icon,
}

impl View {
    /// Errors: no such page; a name, tag or digest that cannot be one.
    pub(super) fn parse(path: &str) -> Result<Self, RegistryError> {
        let path = percent_decode_str(path)
            .decode_utf8()
            .map_err(|_| RegistryError::no_route())?;
        let below = path.strip_prefix(ROOT).unwrap_or_default();
        match below {
            "" => Ok(Self::Repositories),
            "login" => Ok(Self::LogIn),
            "style.css" => Ok(Self::Style),
            "icon.svg" => Ok(Self::Icon),
            _ => match below.split_once('/') {
                Some(("image", image)) => Self::image(image),
                Some(("blob", blob)) => {
                    let (name, digest) =
                        blob.split_once('@').ok_or_else(RegistryError::no_route)?;
                    Ok(Self::Blob(repository(name)?, self::digest(digest)?))
                }
                _ => Err(RegistryError::no_route()),
            },
        }
    }

    fn image(image: &str) -> Result<Self, RegistryError> {
        if let Some((name, digest)) = image.split_once('@') {
            let target = Target::Digest(self::digest(digest)?);
            return Ok(Self::Manifest(repository(name)?, target));
        }
        let Some((name, tag)) = image.split_once(':') else {
            return repository(image).map(Self::Repository);
        };
        let tag = tag.parse().map_err(|e| RegistryError::tag(&e))?;
        Ok(Self::Manifest(repository(name)?, Target::Tag(tag)))
    }

    /// The repository that has to be allowed.
    pub(super) fn repository(&self) -> Option<&Repository> {
        match self {
            Self::Repositories | Self::LogIn | Self::Style | Self::Icon => None,
            Self::Repository(name) | Self::Manifest(name, _) | Self::Blob(name, _) => Some(name),
        }
    }

    /// The address that shows this.
    pub(super) fn path(&self) -> String {
        match self {
            Self::Repositories => ROOT.to_owned(),
            Self::Repository(name) => format!("{ROOT}image/{name}"),
            Self::Manifest(name, Target::Tag(tag)) => format!("{ROOT}image/{name}:{tag}"),
            Self::Manifest(name, Target::Digest(digest)) => format!("{ROOT}image/{name}@{digest}"),
            Self::Blob(name, digest) => format!("{ROOT}blob/{name}@{digest}"),
            Self::LogIn => format!("{ROOT}login"),
            Self::Style => format!("{ROOT}style.css"),
            Self::Icon => format!("{ROOT}icon.svg"),
        }
    }
}

/// The address of a manifest by its digest.
pub(super) fn manifest(name: &Repository, digest: &Digest) -> String {
    View::Manifest(name.clone(), Target::Digest(digest.clone())).path()
}

/// The address of a blob.
pub(super) fn blob(name: &Repository, digest: &Digest) -> String {
    View::Blob(name.clone(), digest.clone()).path()
}

/// The parameter of an address that is looked for or gone on from, trimmed.
pub(super) fn parameter(uri: &Uri, name: &str) -> String {
    let value = super::super::query::value(uri, name).unwrap_or_default();
    value.trim().to_owned()
}

fn repository(text: &str) -> Result<Repository, RegistryError> {
    text.parse().map_err(|e| RegistryError::name(&e))
}

fn digest(text: &str) -> Result<Digest, RegistryError> {
    text.parse()
        .map_err(|e: model::Error| RegistryError::digest(e.to_string()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn addresses_lead_back() {
        let name: Repository = "a/blob/image".parse().unwrap();
        let digest = Digest::sha256(b"");
        for view in [
            View::Repositories,
            View::Repository(name.clone()),
            View::Manifest(name.clone(), Target::Tag("v1.0".parse().unwrap())),
            View::Manifest(name.clone(), Target::Digest(digest.clone())),
            View::Blob(name, digest),
            View::LogIn,
            View::Style,
            View::Icon,
        ] {
            let path = view.path();
            assert_eq!(View::parse(&path).unwrap(), view, "{path}");
            let encoded = path.replace(':', "%3A").replace('@', "%40");
            assert_eq!(View::parse(&encoded).unwrap(), view, "{encoded}");
        }
        assert_eq!(View::parse("/").unwrap(), View::Repositories);
    }

    #[test]
    fn what_is_no_page() {
        for (path, status) in [
            ("/ui/none", 404),
            ("/ui/image/", 400),
            ("/ui/image/A", 400),
            ("/ui/image/a:.x", 400),
            ("/ui/image/a@sha256:1", 400),
            ("/ui/blob/a", 404),
            ("/ui/blob/../a@x", 400),
            ("/ui/%ff", 404),
        ] {
            let seen = View::parse(path).unwrap_err().answer().status().as_u16();
            assert_eq!(seen, status, "{path}");
        }
    }

    proptest! {
        #[test]
        fn any_path_is_read_or_refused(path in "/ui/(image|blob)?/?[a-z:%@./_\\-0-9]{0,40}") {
            View::parse(&path).ok();
        }
    }
}
