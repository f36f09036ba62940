//! The S3 client: requests of `object_store` over our HTTP client, trust and resolver.

use std::time::Duration;

use model::Error;
use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey};
use object_store::client::{HttpClient, HttpConnector};
use object_store::{BackoffConfig, ClientOptions, RetryConfig};
use secrecy::{ExposeSecret as _, SecretString};

use net::resolve::Resolver;
use net::trust;

/// Units: bytes. Smallest part of a multipart upload, except for the last one. Source: S3.
pub const PART_BYTES_MIN: u64 = 5 << 20;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Idle timeout of a response: S3 copies five gigabytes without sending a byte for minutes.
const READ_TIMEOUT: Duration = Duration::from_mins(10);
/// Limit of retries, short enough that clients get a 503 and retry themselves.
const RETRY_TIMEOUT: Duration = Duration::from_secs(10);
const RETRIES: usize = 4;
const FIRST_WAIT: Duration = Duration::from_millis(50);
const LONGEST_WAIT: Duration = Duration::from_secs(2);

/// Bucket, endpoint and credentials.
#[derive(Debug, Clone)]
pub struct S3Options {
    /// Name of the bucket.
    pub bucket: String,
    /// Region of the bucket.
    pub region: String,
    /// Endpoint URL of a server other than Amazon's.
    pub endpoint: Option<String>,
    /// Path-style URLs, with the bucket in the path instead of the host.
    pub is_path_style: bool,
    /// Access key id and secret; default: credentials of the instance metadata service.
    pub keys: Option<(SecretString, SecretString)>,
    /// Session token of temporary credentials.
    pub session_token: Option<SecretString>,
    /// Certificates to trust besides the system's.
    pub ca_pem: Option<Vec<u8>>,
    /// Skip the verification of certificates.
    pub is_insecure: bool,
    /// Request server-side encryption.
    pub is_encrypted: bool,
    /// Key id for encryption in the server's key management service.
    pub encryption_key: Option<String>,
}

#[derive(Debug)]
struct Connector(reqwest::Client);

impl HttpConnector for Connector {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.0.clone()))
    }
}

/// The client for the bucket of `options`; sends no request yet.
///
/// Errors: Invalid – malformed certificates or endpoint.
pub fn s3(options: &S3Options) -> Result<AmazonS3, Error> {
    let tls = trust::client_config(options.ca_pem.as_deref(), options.is_insecure)?;
    let client = reqwest::Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .read_timeout(READ_TIMEOUT)
        .redirect(reqwest::redirect::Policy::none())
        .dns_resolver(Resolver::system())
        .tls_backend_preconfigured(tls)
        .build()
        .map_err(|e| Error::internal("building the HTTP client", e))?;
    let mut builder = AmazonS3Builder::new()
        .with_bucket_name(&options.bucket)
        .with_region(&options.region)
        .with_virtual_hosted_style_request(!options.is_path_style)
        .with_allow_http(true)
        .with_http_connector(Connector(client))
        .with_retry(RetryConfig {
            backoff: BackoffConfig {
                init_backoff: FIRST_WAIT,
                max_backoff: LONGEST_WAIT,
                base: 2.0,
            },
            max_retries: RETRIES,
            retry_timeout: RETRY_TIMEOUT,
        });
    if let Some(endpoint) = &options.endpoint {
        builder = builder.with_endpoint(address(endpoint, options)?);
    }
    if let Some((key, secret)) = &options.keys {
        builder = builder
            .with_access_key_id(key.expose_secret())
            .with_secret_access_key(secret.expose_secret());
    }
    if let Some(token) = &options.session_token {
        builder = builder.with_token(token.expose_secret());
    }
    if let Some(key) = &options.encryption_key {
        builder = builder.with_sse_kms_encryption(key);
    } else if options.is_encrypted {
        let kind = "aws_server_side_encryption"
            .parse::<AmazonS3ConfigKey>()
            .expect("a documented key of object_store");
        builder = builder.with_config(kind, "AES256");
    }
    builder
        .build()
        .map_err(|e| Error::invalid("bucket", e.to_string()))
}

/// URL of the requests: the endpoint, or the bucket's host below it.
fn address(endpoint: &str, options: &S3Options) -> Result<String, Error> {
    let wrong = |reason: &str| Error::invalid("endpoint", format!("{endpoint:?}: {reason}"));
    let (scheme, host) = endpoint
        .split_once("://")
        .ok_or_else(|| wrong("expected http:// or https:// and a host"))?;
    if options.is_path_style {
        return Ok(endpoint.trim_end_matches('/').to_owned());
    }
    let host = host.trim_end_matches('/');
    Ok(format!("{scheme}://{}.{host}", options.bucket))
}
