//! Addresses below `/v2/`.

use axum::http::{Method, Uri};
use oci::{Digest, Repository, Target};
use percent_encoding::percent_decode_str;
use uuid::Uuid;

use super::query;
use crate::error::RegistryError;

/// All manifests of a repository, which a parameter names: a path below the repository could be one of a repository
/// with that name.
pub(super) const MANIFEST_LIST: &str = "/v2/_atoll/manifests";
/// The parameter.
pub(super) const REPOSITORY: &str = "repository";

/// The resource of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Route {
    Base,
    Catalog,
    /// Collects garbage: our own.
    Gc,
    /// Usage of quotas: our own.
    Usage,
    /// Compares all content with its digest: our own.
    Scrub,
    /// `/v2/_atoll/reindex`: compares the storage folder with its index.
    Reindex,
    /// Extensions of the protocol. Source: distribution-spec, extension discovery.
    Extensions,
    Referrers {
        name: Repository,
        digest: Digest,
    },
    Tags {
        name: Repository,
    },
    /// `/v2/_atoll/manifests?repository=`: all manifests of a repository.
    ManifestList {
        name: Repository,
    },
    Manifest {
        name: Repository,
        target: Target,
    },
    Blob {
        name: Repository,
        digest: Digest,
    },
    Uploads {
        name: Repository,
    },
    Upload {
        name: Repository,
        id: Uuid,
    },
}

impl Route {
    /// The resource of a request.
    pub(super) fn of(uri: &Uri) -> Result<Self, RegistryError> {
        if uri.path() == MANIFEST_LIST {
            let name = query::value(uri, REPOSITORY).unwrap_or_default();
            let name = name.parse().map_err(|e| RegistryError::name(&e))?;
            return Ok(Self::ManifestList { name });
        }
        Self::parse(uri.path())
    }

    /// Takes a path apart from its end, since a component of a name may itself be `blobs` or `tags`.
    fn parse(path: &str) -> Result<Self, RegistryError> {
        let path = path
            .strip_prefix("/v2/")
            .ok_or_else(RegistryError::no_route)?;
        // Decoded piece by piece, so that an encoded slash does not separate anything.
        let parts: Vec<String> = path
            .split('/')
            .map(|part| {
                percent_decode_str(part)
                    .decode_utf8()
                    .map(std::borrow::Cow::into_owned)
            })
            .collect::<Result<_, _>>()
            .map_err(|_| RegistryError::no_route())?;
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        match parts.as_slice() {
            [""] => Ok(Self::Base),
            ["_catalog"] => Ok(Self::Catalog),
            ["_atoll", "gc"] => Ok(Self::Gc),
            ["_atoll", "usage"] => Ok(Self::Usage),
            ["_atoll", "scrub"] => Ok(Self::Scrub),
            ["_atoll", "reindex"] => Ok(Self::Reindex),
            ["_oci", "ext", "discover"] => Ok(Self::Extensions),
            [name @ .., "tags", "list"] => Ok(Self::Tags {
                name: repository(name)?,
            }),
            [name @ .., "manifests", target] => {
                let name = repository(name)?;
                Ok(Self::Manifest {
                    name,
                    target: self::target(target)?,
                })
            }
            [name @ .., "blobs", "uploads", ""] | [name @ .., "blobs", "uploads"] => {
                Ok(Self::Uploads {
                    name: repository(name)?,
                })
            }
            [name @ .., "blobs", "uploads", id] => {
                let name = repository(name)?;
                // Other spellings of the same id would be other folders.
                let id = Uuid::parse_str(id)
                    .ok()
                    .filter(|uuid| uuid.to_string() == *id)
                    .ok_or_else(RegistryError::upload_unknown)?;
                Ok(Self::Upload { name, id })
            }
            [name @ .., "blobs", digest] => {
                let name = repository(name)?;
                let digest = self::digest(digest)?;
                Ok(Self::Blob { name, digest })
            }
            [name @ .., "referrers", digest] => {
                let name = repository(name)?;
                let digest = self::digest(digest)?;
                Ok(Self::Referrers { name, digest })
            }
            _ => Err(RegistryError::no_route()),
        }
    }

    /// Its repository.
    pub(super) fn repository_mut(&mut self) -> Option<&mut Repository> {
        match self {
            Self::Base
            | Self::Catalog
            | Self::Gc
            | Self::Scrub
            | Self::Reindex
            | Self::Usage
            | Self::Extensions => None,
            Self::Referrers { name, .. }
            | Self::Tags { name }
            | Self::ManifestList { name }
            | Self::Manifest { name, .. }
            | Self::Blob { name, .. }
            | Self::Uploads { name }
            | Self::Upload { name, .. } => Some(name),
        }
    }

    /// Methods that the address takes.
    pub(super) fn methods(&self) -> Vec<Method> {
        match self {
            Self::Base => vec![Method::GET, Method::HEAD, Method::OPTIONS],
            Self::Catalog
            | Self::Usage
            | Self::Extensions
            | Self::Referrers { .. }
            | Self::Tags { .. }
            | Self::ManifestList { .. } => {
                vec![Method::GET, Method::HEAD]
            }
            Self::Manifest { .. } => vec![Method::GET, Method::HEAD, Method::PUT, Method::DELETE],
            Self::Blob { .. } => vec![Method::GET, Method::HEAD, Method::DELETE],
            Self::Gc | Self::Uploads { .. } => vec![Method::POST],
            Self::Scrub | Self::Reindex => vec![Method::GET, Method::HEAD, Method::POST],
            Self::Upload { .. } => vec![
                Method::GET,
                Method::HEAD,
                Method::PATCH,
                Method::PUT,
                Method::DELETE,
            ],
        }
    }
}

fn repository(parts: &[&str]) -> Result<Repository, RegistryError> {
    if parts.is_empty() {
        return Err(RegistryError::no_route());
    }
    if let Some(part) = parts.iter().find(|part| part.contains('/')) {
        let reason = format!("{part:?}: an encoded slash separates nothing");
        return Err(RegistryError::name(&model::Error::invalid(
            "repository name",
            reason,
        )));
    }
    parts.join("/").parse().map_err(|e| RegistryError::name(&e))
}

fn digest(text: &str) -> Result<Digest, RegistryError> {
    text.parse()
        .map_err(|e: model::Error| RegistryError::digest(e.to_string()))
}

fn target(text: &str) -> Result<Target, RegistryError> {
    text.parse().map_err(|e: model::Error| {
        if text.contains(':') {
            RegistryError::digest(e.to_string())
        } else {
            RegistryError::tag(&e)
        }
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const DIGEST: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn addresses() {
        let name = |text: &str| text.parse::<Repository>().unwrap();
        let parse = |path: &str| Route::parse(path).unwrap();
        assert_eq!(parse("/v2/"), Route::Base);
        assert_eq!(parse("/v2/_catalog"), Route::Catalog);
        assert_eq!(parse("/v2/a/tags/list"), Route::Tags { name: name("a") });
        assert_eq!(
            parse("/v2/tags/list/tags/list"),
            Route::Tags {
                name: name("tags/list")
            }
        );
        let target: Target = DIGEST.parse().unwrap();
        let encoded = DIGEST.replace(':', "%3A");
        for text in [DIGEST, encoded.as_str()] {
            assert_eq!(
                parse(&format!("/v2/a/blobs/manifests/{text}")),
                Route::Manifest {
                    name: name("a/blobs"),
                    target: target.clone()
                }
            );
            assert_eq!(
                parse(&format!("/v2/%61/blobs/{text}")),
                Route::Blob {
                    name: name("a"),
                    digest: DIGEST.parse().unwrap()
                }
            );
        }
        assert_eq!(
            parse("/v2/a/blobs/uploads/"),
            Route::Uploads { name: name("a") }
        );
        assert_eq!(
            parse("/v2/blobs/uploads/blobs/uploads/"),
            Route::Uploads {
                name: name("blobs/uploads")
            }
        );
        assert_eq!(parse("/v2/_atoll/gc"), Route::Gc);
        assert_eq!(parse("/v2/_atoll/scrub"), Route::Scrub);
        assert_eq!(parse("/v2/_atoll/reindex"), Route::Reindex);
        assert_eq!(parse("/v2/_atoll/usage"), Route::Usage);
        let of = |uri: &str| Route::of(&uri.parse().unwrap());
        assert_eq!(of("/v2/_atoll/usage").unwrap(), Route::Usage);
        for uri in [
            "/v2/_atoll/manifests?repository=a/b&n=1",
            "/v2/_atoll/manifests?last=x&repository=a%2Fb",
        ] {
            let name = name("a/b");
            assert_eq!(of(uri).unwrap(), Route::ManifestList { name }, "{uri}");
        }
        for uri in [
            "/v2/_atoll/manifests",
            "/v2/_atoll/manifests?repository=",
            "/v2/_atoll/manifests?repository=A",
            "/v2/_atoll/manifests?repository=../a",
        ] {
            assert_eq!(of(uri).unwrap_err().answer().status(), 400, "{uri}");
        }
        assert_eq!(parse("/v2/_oci/ext/discover"), Route::Extensions);
        assert_eq!(
            parse(&format!("/v2/a/referrers/{DIGEST}")),
            Route::Referrers {
                name: name("a"),
                digest: DIGEST.parse().unwrap()
            }
        );
        let id = Uuid::from_u128(7);
        assert_eq!(
            parse(&format!("/v2/a/b/blobs/uploads/{id}")),
            Route::Upload {
                name: name("a/b"),
                id
            }
        );
    }

    #[test]
    fn what_is_refused_and_how() {
        let long = format!("/v2/{}/tags/list", "a".repeat(300));
        for (path, status) in [
            ("/v2/x", 404),
            ("/v2/tags/list", 404),
            ("/v2/A/tags/list", 400),
            ("/v2/a/../b/tags/list", 400),
            ("/v2/a//b/tags/list", 400),
            ("/v2/a%2fb/tags/list", 400),
            ("/v2/_a/tags/list", 400),
            (long.as_str(), 400),
            ("/v2/a/manifests/.x", 400),
            ("/v2/a/manifests/sha256:1", 400),
            ("/v2/a/blobs/latest", 400),
            ("/v2/a/referrers/latest", 400),
            ("/v2/_oci/ext/other", 404),
            ("/v2/a/blobs/uploads/../x", 404),
            ("/v2/a/blobs/uploads/not-a-uuid", 404),
            (
                "/v2/a/blobs/uploads/00000000-0000-0000-0000-00000000000A",
                404,
            ),
            ("/v2/%ff/tags/list", 404),
        ] {
            let status_seen = Route::parse(path).unwrap_err().answer().status().as_u16();
            assert_eq!(status_seen, status, "{path}");
        }
    }

    proptest! {
        #[test]
        fn any_path_is_read_or_refused(path in "/v2/[a-z:%./_\\-0-9]{0,40}(/(blobs|manifests|tags)/[a-z0-9:%/]{0,20})?") {
            Route::parse(&path).ok();
        }
    }
}
