//! The status page: why a cluster is not ready, on one page that is small, needs no build step and is part of the program.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};

/// Root of the status page.
pub(crate) const ROOT: &str = "/status/";

/// A file of the status page.
pub(crate) struct BuiltinFile {
    /// Path below [`ROOT`].
    pub(crate) path: &'static str,
    /// Its media type.
    pub(crate) media_type: &'static str,
    /// Its bytes.
    pub(crate) content: &'static [u8],
}

macro_rules! files {
    ($($path:literal => $media_type:literal),* $(,)?) => {
        &[$(BuiltinFile {
            path: $path,
            media_type: $media_type,
            content: include_bytes!(concat!("../../../web/status/", $path)),
        }),*]
    };
}

/// Every file of the status page.
pub(crate) static FILES: &[BuiltinFile] = files! {
    "index.html" => "text/html; charset=utf-8",
    "style.css" => "text/css; charset=utf-8",
    "icon.svg" => "image/svg+xml",
    "app.js" => "text/javascript; charset=utf-8",
    "api.js" => "text/javascript; charset=utf-8",
    "checks.js" => "text/javascript; charset=utf-8",
    "dom.js" => "text/javascript; charset=utf-8",
    "format.js" => "text/javascript; charset=utf-8",
    "views/clusters.js" => "text/javascript; charset=utf-8",
    "views/cluster.js" => "text/javascript; charset=utf-8",
    "views/credentials.js" => "text/javascript; charset=utf-8",
    "views/embedded_agent.js" => "text/javascript; charset=utf-8",
    "views/infra_envs.js" => "text/javascript; charset=utf-8",
    "views/hosts.js" => "text/javascript; charset=utf-8",
    "views/events.js" => "text/javascript; charset=utf-8",
    "views/site_checks.js" => "text/javascript; charset=utf-8",
    "views/versions.js" => "text/javascript; charset=utf-8",
};

/// The file at `path` below [`ROOT`].
pub(crate) fn find(path: &str) -> Option<&'static BuiltinFile> {
    FILES.iter().find(|file| file.path == path)
}

impl BuiltinFile {
    /// Response to a GET or HEAD; 304 when the entity tag matches.
    pub(crate) fn answer(&self, method: &Method, headers: &HeaderMap) -> Response<Bytes> {
        let tag = self.entity_tag();
        let mut response = if is_known(headers, &tag) {
            let mut response = Response::new(Bytes::new());
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            response
        } else {
            let is_head = method == Method::HEAD;
            let body = if is_head { &[][..] } else { self.content };
            let mut response = Response::new(Bytes::from_static(body));
            let headers = response.headers_mut();
            headers.insert(
                header::CONTENT_TYPE,
                HeaderValue::from_static(self.media_type),
            );
            headers.insert(header::CONTENT_LENGTH, self.content.len().into());
            response
        };
        if let Ok(tag) = HeaderValue::from_str(&tag) {
            response.headers_mut().insert(header::ETAG, tag);
        }
        response
    }

    /// Entity tag of the content: FNV-1a is enough to distinguish releases.
    fn entity_tag(&self) -> String {
        let hash = self
            .content
            .iter()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
                (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
            });
        format!("\"{hash:016x}\"")
    }
}

fn is_known(headers: &HeaderMap, tag: &str) -> bool {
    headers
        .get_all(header::IF_NONE_MATCH)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|known| known.trim().trim_start_matches("W/"))
        .any(|known| known == tag || known == "*")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn listed(folder: &Path, prefix: &str, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
            if entry.file_type().unwrap().is_dir() {
                listed(&entry.path(), &format!("{name}/"), found);
            } else {
                found.push(name);
            }
        }
    }

    #[test]
    fn every_file_of_the_page_is_built_in() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web/status");
        let mut found = Vec::new();
        listed(&folder, "", &mut found);
        found.sort();
        let mut built_in: Vec<_> = FILES.iter().map(|file| file.path.to_owned()).collect();
        built_in.sort();
        assert_eq!(found, built_in);
    }

    #[test]
    fn every_import_of_the_page_is_built_in() {
        let text = |path| String::from_utf8_lossy(find(path).unwrap().content).into_owned();
        let scripts = FILES
            .iter()
            .filter(|file| file.media_type.starts_with("text/javascript"));
        for file in scripts {
            let folder = Path::new("/").join(file.path);
            let folder = folder.parent().unwrap().to_owned();
            for line in text(file.path)
                .lines()
                .filter(|line| line.starts_with("import") || line.starts_with("} from"))
            {
                let name = line.split('"').nth(1).unwrap();
                let up = name.strip_prefix("../");
                let target = match up {
                    Some(rest) => folder.parent().unwrap().join(rest),
                    None => folder.join(name.trim_start_matches("./")),
                };
                let target = target.to_str().unwrap().trim_start_matches('/').to_owned();
                assert!(find(&target).is_some(), "{} imports {target}", file.path);
            }
        }
        assert!(text("index.html").contains("/status/app.js"));
    }

    #[test]
    fn a_known_tag_gets_304() {
        let file = find("index.html").unwrap();
        let first = file.answer(&Method::GET, &HeaderMap::new());
        let mut headers = HeaderMap::new();
        headers.insert(header::IF_NONE_MATCH, first.headers()[header::ETAG].clone());
        let second = file.answer(&Method::GET, &headers);
        assert_eq!(second.status(), StatusCode::NOT_MODIFIED);
        assert!(second.body().is_empty());
    }
}
