//! Handler names: a fixed list, which bounds the number of series.

/// The handler of a request. Source: distribution's route names, and our own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Handler {
    Base,
    Catalog,
    Tags,
    Manifest,
    Referrers,
    Blob,
    BlobUpload,
    BlobUploadChunk,
    Token,
    Maintenance,
    Extensions,
    Page,
    Operations,
    Other,
}

impl Handler {
    /// In the order of declaration.
    pub(super) const ALL: [Self; 14] = [
        Self::Base,
        Self::Catalog,
        Self::Tags,
        Self::Manifest,
        Self::Referrers,
        Self::Blob,
        Self::BlobUpload,
        Self::BlobUploadChunk,
        Self::Token,
        Self::Maintenance,
        Self::Extensions,
        Self::Page,
        Self::Operations,
        Self::Other,
    ];

    /// By the path alone, read from its end as the routes are: also for requests that go no further than the door.
    pub(super) fn of(path: &str) -> Self {
        let Some(rest) = path.strip_prefix("/v2/") else {
            return match path {
                "/v2" => Self::Base,
                "/auth/token" => Self::Token,
                "/health" | "/ready" | "/metrics" | "/debug/health" => Self::Operations,
                "/" | "/ui" => Self::Page,
                _ if path.starts_with("/ui/") => Self::Page,
                _ => Self::Other,
            };
        };
        let mut parts = rest.rsplit('/');
        let last = parts.next().unwrap_or_default();
        let (before, third) = (parts.next(), parts.next());
        match (third, before, last) {
            (None, None, "") => Self::Base,
            (None, None, "_catalog") => Self::Catalog,
            (None, Some("_atoll"), _) => Self::Maintenance,
            (Some("_oci"), Some("ext"), _) => Self::Extensions,
            (_, Some("tags"), "list") => Self::Tags,
            (_, Some("manifests"), _) => Self::Manifest,
            (Some("blobs"), Some("uploads"), "") | (_, Some("blobs"), "uploads") => {
                Self::BlobUpload
            }
            (Some("blobs"), Some("uploads"), _) => Self::BlobUploadChunk,
            (_, Some("blobs"), _) => Self::Blob,
            (_, Some("referrers"), _) => Self::Referrers,
            _ => Self::Other,
        }
    }

    /// Its label.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Base => "base",
            Self::Catalog => "catalog",
            Self::Tags => "tags",
            Self::Manifest => "manifest",
            Self::Referrers => "referrers",
            Self::Blob => "blob",
            Self::BlobUpload => "blob_upload",
            Self::BlobUploadChunk => "blob_upload_chunk",
            Self::Token => "token",
            Self::Maintenance => "maintenance",
            Self::Extensions => "extensions",
            Self::Page => "page",
            Self::Operations => "operations",
            Self::Other => "other",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths() {
        for (path, name) in [
            ("/v2", "base"),
            ("/v2/", "base"),
            ("/v2/_catalog", "catalog"),
            ("/v2/a/tags/list", "tags"),
            ("/v2/a/b/manifests/t", "manifest"),
            ("/v2/tags/list/manifests/x", "manifest"),
            ("/v2/a/blobs/sha256:1", "blob"),
            ("/v2/a/blobs/manifests/x", "manifest"),
            ("/v2/a/blobs/uploads/", "blob_upload"),
            ("/v2/a/blobs/uploads", "blob_upload"),
            ("/v2/a/blobs/uploads/1", "blob_upload_chunk"),
            ("/v2/a/referrers/x", "referrers"),
            ("/v2/_atoll/gc", "maintenance"),
            ("/v2/_oci/ext/discover", "extensions"),
            ("/v2/x", "other"),
            ("/auth/token", "token"),
            ("/", "page"),
            ("/ui/x", "page"),
            ("/ready", "operations"),
            ("/etc/passwd", "other"),
            ("", "other"),
        ] {
            assert_eq!(Handler::of(path).name(), name, "{path}");
        }
    }

    #[test]
    fn the_list_is_in_order() {
        for (index, handler) in Handler::ALL.into_iter().enumerate() {
            assert_eq!(handler as usize, index);
        }
    }
}
