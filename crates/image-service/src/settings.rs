//! Settings of the image service.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use service::limits::{Bound, Limit, Share};
use service::program::ServerSettings;
use service::server::{HttpSettings, Listen};
use service::settings::{CommaList, JsonVar, Problem};
use service::tls::{self, CertificateSetting};

use crate::content::CHUNK;
use crate::http::composed::{CAPACITY, GRANTED, MAX_MEMORY, MEMORY_OF_CLIENT};
use crate::installer_api::MAX_ANSWER;
use crate::os_image::{OsImage, os_image_problems};
use crate::stream_limit::{MAX_QUEUE_WAIT, StreamLimit};

/// `TCP_NOTSENT_LOWAT` of a slow client. Units: bytes. 100 MiB at the maximum number of streams; the system's default is
/// some megabytes for each. At 10 Gbit/s it lasts for a fifth of a millisecond, enough to be filled again.
const UNSENT_BYTES: u32 = 256 * 1024;

service::settings! {
    /// Settings of the image service.
    pub struct Settings {
        /// Address to listen on.
        listen_address: IpAddr = "0.0.0.0",
        /// Port to listen on; HTTPS when a certificate is set.
        listen_port: u16 = "8888",
        /// Further port, of plain HTTP: many BMCs refuse HTTPS with a certificate of one's own. Without a certificate, it
        /// replaces LISTEN_PORT.
        http_listen_port: Option<u16> = "",
        /// Origins (scheme, host, port) of pages that may read images; `*` matches any text. No page by default.
        allowed_domains: CommaList = "",
        /// Certificate chain of the server (PEM).
        https_cert_file: Option<PathBuf> = "",
        /// Key of the server (PEM).
        https_key_file: Option<PathBuf> = "",
        /// Folder of base images; it has to exist.
        data_dir: PathBuf = "/data",
        /// Live image for versions without a file of their own, if present.
        live_iso: PathBuf = "/data/livecd.iso",
        /// Folder of the discovery agents for infra-envs with `embedded_agent`: files atoll-agent-x86_64, atoll-agent-arm64.
        agent_dir: PathBuf = "/agents",
        /// OS images: objects with openshift_version, cpu_architecture, version, url (http, https, file, or oci for an artifact in
        /// a registry, or for the machine-os-images of a release) and, optionally, sha256.
        os_images: JsonVar<Vec<OsImage>> = "[]",
        /// Removed: the service does not start with it.
        os_images_file: Option<PathBuf> = "",
        /// Deprecated name of OS_IMAGES, used when that is empty.
        rhcos_versions: JsonVar<Vec<OsImage>> = "[]",
        /// Headers of downloads of OS images: a JSON object of texts. They may be secrets.
        os_images_request_headers: JsonVar<BTreeMap<String, String>> = "{}",
        /// Query parameters of downloads of OS images: a JSON object of texts. They may be secrets.
        os_images_request_query_params: JsonVar<BTreeMap<String, String>> = "{}",
        /// Do not check certificates while downloading OS images, and use registries without TLS.
        insecure_skip_verify: bool = "false",
        /// Certificates (PEM) trusted while downloading OS images, besides the system's.
        os_image_download_trusted_ca_file: Option<PathBuf> = "",
        /// Logins for the registries of OS images, in the format of a pull secret. Default: the auth files of podman and
        /// docker.
        registry_auth_file: Option<PathBuf> = "",
        /// Longest OS image that is downloaded; longer ones are refused. In bytes.
        max_os_image_bytes: u64 = "17179869184",
        /// Free space that downloads of OS images leave on the file system of DATA_DIR, at most a sixteenth of it. In bytes.
        os_image_reserve_bytes: u64 = "1073741824",
        /// Scheme of the installer API.
        assisted_service_scheme: String = "http",
        /// Host and port of the installer API.
        assisted_service_host: String = "127.0.0.1:8090",
        /// Certificates (PEM) trusted when calling the installer API, besides the system's.
        assisted_service_api_trusted_ca_file: Option<PathBuf> = "",
        /// Do not check the installer API's certificate.
        skip_cert_verification: bool = "false",
        /// Public URL of this service. Hosts that boot a minimal image download their root file system from there.
        image_service_base_url: Option<String> = "",
        /// Concurrent image streams; as many more requests may wait in the queue. A client has half as many, streams and waiting requests together.
        max_concurrent_requests: usize = "400",
    } with {
        /// Limits of clients, trusted proxies, and the listener of the metrics.
        http: HttpSettings,
    }
}

impl Settings {
    /// The OS images, of either variable.
    pub fn images(&self) -> &[OsImage] {
        if self.os_images.is_empty() {
            &self.rhcos_versions
        } else {
            &self.os_images
        }
    }

    /// Origin of the installer API, without a slash at the end.
    pub fn api_url(&self) -> String {
        let host = self.assisted_service_host.trim_end_matches('/');
        format!("{}://{host}", self.assisted_service_scheme)
    }

    /// Public URL of this service, without a slash at the end.
    pub(crate) fn base_url(&self) -> Option<&str> {
        let url = self.image_service_base_url.as_deref()?;
        Some(url.trim_end_matches('/'))
    }

    /// Headers of downloads of OS images. Values stay out of the error.
    pub(crate) fn download_headers(&self) -> Result<HeaderMap, String> {
        let header = |(name, value): (&String, &String)| {
            let parsed = HeaderName::try_from(name)
                .ok()
                .zip(HeaderValue::try_from(value).ok());
            let (name, mut value) = parsed.ok_or_else(|| {
                format!("{name:?} or its value cannot be a header: expected a JSON object of names and values")
            })?;
            value.set_sensitive(true);
            Ok((name, value))
        };
        self.os_images_request_headers.iter().map(header).collect()
    }

    fn tls(&self) -> Option<tls::TlsConfig> {
        let cert = self.https_cert_file.clone()?;
        let key = self.https_key_file.clone()?;
        Some(tls::CertificateFiles { cert, key }.into())
    }
}

impl ServerSettings for Settings {
    fn listen(&self) -> Vec<Listen> {
        let listen = |port, tls| Listen {
            unsent_bytes: Some(UNSENT_BYTES),
            ..Listen::new(SocketAddr::new(self.listen_address, port), tls)
                .with(&self.http)
                .at(self.base_url().unwrap_or_default())
        };
        let plain = self.http_listen_port.map(|port| listen(port, None));
        match (self.tls(), plain) {
            (None, Some(plain)) => vec![plain],
            (tls, plain) => std::iter::once(listen(self.listen_port, tls))
                .chain(plain)
                .collect(),
        }
    }

    fn certificates(&self) -> Vec<CertificateSetting> {
        let served = self.tls();
        let [of_images, of_api] = [
            &self.os_image_download_trusted_ca_file,
            &self.assisted_service_api_trusted_ca_file,
        ];
        let all = [
            served.map(|it| CertificateSetting::pair(it, "HTTPS_CERT_FILE", "HTTPS_KEY_FILE")),
            CertificateSetting::trusted("OS_IMAGE_DOWNLOAD_TRUSTED_CA_FILE", of_images.as_ref()),
            CertificateSetting::trusted("ASSISTED_SERVICE_API_TRUSTED_CA_FILE", of_api.as_ref()),
        ];
        all.into_iter().flatten().collect()
    }

    fn data_folders(&self) -> Vec<&Path> {
        vec![&self.data_dir]
    }

    fn limits(&self) -> Vec<Limit> {
        let streams = u64::try_from(self.max_concurrent_requests).unwrap_or(u64::MAX);
        let requests = Bound::Count(streams, "requests");
        let setting = "MAX_CONCURRENT_REQUESTS";
        let share = StreamLimit::share(self.max_concurrent_requests) as u64;
        let of_client = Bound::Count(share, "requests with those that wait");
        let share = Share::of("client address", of_client, "503 at once").set_by(setting);
        vec![
            Limit::fixed(
                "OS image",
                Bound::Bytes(self.max_os_image_bytes),
                "download",
                "refused, and tried again after 5 s to 15 min",
            )
            .set_by("MAX_OS_IMAGE_BYTES"),
            Limit::fixed(
                "free space besides OS images",
                Bound::Bytes(self.os_image_reserve_bytes),
                "file system of DATA_DIR",
                "the download stops, and is tried again after 5 s to 15 min",
            )
            .set_by("OS_IMAGE_RESERVE_BYTES"),
            Limit::fixed("image streams", requests, "server", "waits")
                .set_by(setting)
                .shared(share.clone()),
            Limit::fixed("image queue", requests, "server", "503 at once")
                .set_by(setting)
                .shared(share),
            Limit::fixed(
                "image queue wait",
                Bound::Time(MAX_QUEUE_WAIT),
                "request",
                "503",
            ),
            Limit::fixed(
                "composed images",
                Bound::Bytes(CAPACITY as u64),
                "server",
                "least recently used ones are composed again",
            )
            .unshared("derived, evicted"),
            Limit::fixed(
                "image by its recipe",
                Bound::Time(GRANTED),
                "image, after a request with credentials",
                "404",
            ),
            Limit::fixed(
                "memory of composed images",
                Bound::Bytes(MAX_MEMORY as u64),
                "server",
                "503",
            )
            .shared(Share::of(
                "client address",
                Bound::Bytes(MEMORY_OF_CLIENT as u64),
                "503",
            )),
            Limit::fixed(
                "ignition of an image",
                Bound::Bytes(MAX_ANSWER as u64),
                "image",
                "413",
            ),
            Limit::fixed(
                "image chunk",
                Bound::Bytes(CHUNK),
                "stream",
                "read when the client has room",
            ),
            Limit::fixed(
                "unsent bytes",
                Bound::Bytes(UNSENT_BYTES.into()),
                "connection",
                "sent when the client has room",
            ),
        ]
    }

    fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        if self.https_cert_file.is_some() != self.https_key_file.is_some() {
            let (missing, given) = if self.https_cert_file.is_none() {
                ("HTTPS_CERT_FILE", "HTTPS_KEY_FILE")
            } else {
                ("HTTPS_KEY_FILE", "HTTPS_CERT_FILE")
            };
            let reason = format!("not set although {given} is; set both or none");
            problems.push(Problem::new(missing, reason));
        }
        if !self.data_dir.is_dir() {
            let reason = format!(
                "{} is not a folder; create it or mount one",
                self.data_dir.display()
            );
            problems.push(Problem::new("DATA_DIR", reason));
        }
        for (variable, path) in [
            ("HTTPS_CERT_FILE", &self.https_cert_file),
            ("HTTPS_KEY_FILE", &self.https_key_file),
            (
                "OS_IMAGE_DOWNLOAD_TRUSTED_CA_FILE",
                &self.os_image_download_trusted_ca_file,
            ),
            (
                "ASSISTED_SERVICE_API_TRUSTED_CA_FILE",
                &self.assisted_service_api_trusted_ca_file,
            ),
        ] {
            problems.extend(path.as_deref().and_then(|path| unreadable(variable, path)));
        }
        if !is_origin(&self.api_url()) {
            let reason = format!(
                "{:?} with ASSISTED_SERVICE_SCHEME {:?} makes no http or https URL; expected host:port",
                self.assisted_service_host, self.assisted_service_scheme
            );
            problems.push(Problem::new("ASSISTED_SERVICE_HOST", reason));
        }
        if let Some(url) = &self.image_service_base_url
            && (!is_http(url) || url.contains(UNQUOTABLE))
        {
            let reason = format!(
                "{url:?} is not an http or https URL without quotes and other special characters"
            );
            problems.push(Problem::new("IMAGE_SERVICE_BASE_URL", reason));
        }
        if self.max_os_image_bytes == 0 {
            let reason =
                "0 would refuse every download; expected a number of bytes, such as 17179869184";
            problems.push(Problem::new("MAX_OS_IMAGE_BYTES", reason));
        }
        if self.max_concurrent_requests == 0 {
            let reason = "0 would refuse every image; expected 1 or more";
            problems.push(Problem::new("MAX_CONCURRENT_REQUESTS", reason));
        }
        if self.https_cert_file.is_some() && self.http_listen_port == Some(self.listen_port) {
            let reason = "it is LISTEN_PORT, which is of HTTPS; choose another port";
            problems.push(Problem::new("HTTP_LISTEN_PORT", reason));
        }
        if let Err(reason) = self.download_headers() {
            problems.push(Problem::new("OS_IMAGES_REQUEST_HEADERS", reason));
        }
        if self.os_images_file.is_some() {
            let reason = "is removed: set OS_IMAGES to the content of the file, or leave both empty to offer the live images in the registry";
            problems.push(Problem::new("OS_IMAGES_FILE", reason));
        }
        let found = os_image_problems(self.images()).into_iter();
        problems.extend(found.map(|reason| Problem::new("OS_IMAGES", reason)));
        problems
    }
}

/// Characters that a quoted word of a boot loader's configuration cannot have.
const UNQUOTABLE: [char; 6] = ['"', '\\', '$', '\'', ' ', '`'];

fn unreadable(variable: &str, path: &Path) -> Option<Problem> {
    let error = std::fs::File::open(path).err()?;
    let reason = format!("{} cannot be read: {error}", path.display());
    Some(Problem::new(variable, reason))
}

fn is_http(text: &str) -> bool {
    url::Url::parse(text)
        .is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
}

fn is_origin(text: &str) -> bool {
    is_http(text)
        && url::Url::parse(text).is_ok_and(|url| url.path() == "/" && url.query().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os_image::tests::image;

    fn sound() -> Settings {
        Settings {
            data_dir: std::env::temp_dir(),
            os_images: JsonVar(vec![image("4.18")]),
            ..Settings::default()
        }
    }

    #[test]
    fn sound_settings_have_no_problems() {
        assert_eq!(sound().problems(), []);
    }

    #[test]
    fn all_problems_are_reported_together() {
        let settings = Settings {
            data_dir: "/nonexistent".into(),
            https_key_file: Some("/nonexistent/key".into()),
            assisted_service_scheme: "ftp".to_owned(),
            image_service_base_url: Some("image:8888".to_owned()),
            max_concurrent_requests: 0,
            max_os_image_bytes: 0,
            os_images_file: Some("/images/os-images.json".into()),
            os_images_request_headers: JsonVar([("a b".to_owned(), "c".to_owned())].into()),
            os_images: JsonVar(vec![
                image("4.18"),
                OsImage {
                    cpu_architecture: "x86_64/..".to_owned(),
                    url: "x".to_owned(),
                    ..image("4.18")
                },
            ]),
            ..sound()
        };
        let problems = settings.problems();
        let found: Vec<_> = problems
            .iter()
            .map(|problem| problem.variable.as_str())
            .collect();
        for variable in [
            "HTTPS_CERT_FILE",
            "HTTPS_KEY_FILE",
            "DATA_DIR",
            "ASSISTED_SERVICE_HOST",
            "IMAGE_SERVICE_BASE_URL",
            "MAX_CONCURRENT_REQUESTS",
            "MAX_OS_IMAGE_BYTES",
            "OS_IMAGES_REQUEST_HEADERS",
            "OS_IMAGES_FILE",
            "OS_IMAGES",
        ] {
            assert!(found.contains(&variable), "{variable} in {problems:?}");
        }
    }
}
