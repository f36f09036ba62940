//! The way to a bucket: our HTTP client, trust and name service under the S3 requests of `object_store`.

use std::time::Duration;

use model::Error;
use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey};
use object_store::client::{HttpClient, HttpConnector};
use object_store::{BackoffConfig, ClientOptions, RetryConfig};
use secrecy::{ExposeSecret as _, SecretString};

use net::resolve::Resolver;
use net::trust;

/// Units: bytes. The smallest part of an upload that is not the last. Source: S3.
pub const PART_BYTES_MIN: u64 = 5 << 20;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Without a byte for this long, the other side is taken for dead: a copy of five gigabytes says nothing for minutes.
const READ_TIMEOUT: Duration = Duration::from_mins(10);
/// A bucket that does not answer is told soon enough for a client to try again.
const RETRY_TIMEOUT: Duration = Duration::from_secs(10);
const RETRIES: usize = 4;
const FIRST_WAIT: Duration = Duration::from_millis(50);
const LONGEST_WAIT: Duration = Duration::from_secs(2);

/// A bucket, and who asks.
#[derive(Debug, Clone)]
pub struct S3Options {
    /// Its name.
    pub bucket: String,
    /// Where it is.
    pub region: String,
    /// URL of a server other than Amazon's.
    pub endpoint: Option<String>,
    /// Whether the bucket stands in the path of URLs, instead of in their host.
    pub is_path_style: bool,
    /// Key and secret; without them, what the machine's metadata service gives.
    pub keys: Option<(SecretString, SecretString)>,
    /// Goes with keys that are valid for a while.
    pub session_token: Option<SecretString>,
    /// Certificates to trust beside the system's.
    pub ca_pem: Option<Vec<u8>>,
    /// Whether everybody is trusted.
    pub is_insecure: bool,
    /// Whether the server is asked to encrypt what it keeps.
    pub is_encrypted: bool,
    /// The key for that in the server's key service.
    pub encryption_key: Option<String>,
}

#[derive(Debug)]
struct Connector(reqwest::Client);

impl HttpConnector for Connector {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.0.clone()))
    }
}

/// The bucket of `options`; nothing is asked of it yet.
///
/// Errors: Invalid – the certificates or the endpoint make no sense.
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
            .expect("a name that object_store documents");
        builder = builder.with_config(kind, "AES256");
    }
    builder
        .build()
        .map_err(|e| Error::invalid("bucket", e.to_string()))
}

/// Where the requests go: to the endpoint, or to the bucket's host below it.
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
