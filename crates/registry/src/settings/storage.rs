//! Where content is kept.

use std::path::Path;

use blob_store::object::{PART_BYTES_MIN, S3Options};
use service::settings::Problem;
use service::{Error, ResultExt as _};

use super::Settings;
use super::kinds::Driver;

const STORAGE: &str = "REGISTRY_STORAGE";
const BUCKET: &str = "REGISTRY_STORAGE_S3_BUCKET";

impl Settings {
    pub(crate) fn driver(&self) -> Driver {
        let by_bucket = match self.registry_storage_s3_bucket.as_str() {
            "" => Driver::Filesystem,
            _ => Driver::S3,
        };
        self.registry_storage.unwrap_or(by_bucket)
    }

    /// The bucket and its credentials. Errors: the file of certificates cannot be read.
    pub(crate) fn s3(&self) -> Result<S3Options, Error> {
        let ca_pem = match &self.registry_storage_s3_cafile {
            None => None,
            Some(path) => {
                let reading = || format!("reading {}", path.display());
                Some(std::fs::read(path).doing(reading)?)
            }
        };
        let endpoint = self.registry_storage_s3_regionendpoint.as_ref();
        let scheme = if self.registry_storage_s3_secure {
            "https"
        } else {
            "http"
        };
        let keys = self.registry_storage_s3_accesskey.clone();
        Ok(S3Options {
            bucket: self.registry_storage_s3_bucket.clone(),
            region: self.registry_storage_s3_region.clone(),
            endpoint: endpoint.map(|endpoint| match endpoint.split_once("://") {
                Some(_) => endpoint.clone(),
                None => format!("{scheme}://{endpoint}"),
            }),
            // Servers other than Amazon's seldom have a name for each bucket.
            is_path_style: self
                .registry_storage_s3_forcepathstyle
                .unwrap_or(endpoint.is_some()),
            keys: keys.zip(self.registry_storage_s3_secretkey.clone()),
            session_token: self.registry_storage_s3_sessiontoken.clone(),
            ca_pem,
            is_insecure: self.registry_storage_s3_skipverify,
            is_encrypted: self.registry_storage_s3_encrypt,
            encryption_key: self.registry_storage_s3_keyid.clone(),
        })
    }

    pub(super) fn storage_problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let has_bucket = !self.registry_storage_s3_bucket.is_empty();
        match self.registry_storage {
            Some(Driver::S3) if !has_bucket => {
                let reason = format!("missing although {STORAGE} is s3");
                problems.push(Problem::new(BUCKET, reason));
            }
            Some(Driver::Filesystem) if has_bucket => {
                let reason = format!("contradicts {BUCKET}: set one of them");
                problems.push(Problem::new(STORAGE, reason));
            }
            _ => {}
        }
        let key = (
            "REGISTRY_STORAGE_S3_ACCESSKEY",
            &self.registry_storage_s3_accesskey,
        );
        let secret = (
            "REGISTRY_STORAGE_S3_SECRETKEY",
            &self.registry_storage_s3_secretkey,
        );
        let token = (
            "REGISTRY_STORAGE_S3_SESSIONTOKEN",
            &self.registry_storage_s3_sessiontoken,
        );
        for (given, needed) in [(&key, &secret), (&secret, &key), (&token, &key)] {
            if given.1.is_some() && needed.1.is_none() {
                let reason = format!("missing although {} is set", given.0);
                problems.push(Problem::new(needed.0, reason));
            }
        }
        if let Some(endpoint) = &self.registry_storage_s3_regionendpoint
            && let Some((scheme, _)) = endpoint.split_once("://")
            && !["http", "https"].contains(&scheme)
        {
            problems.push(Problem::new(
                "REGISTRY_STORAGE_S3_REGIONENDPOINT",
                "expected a host, or a URL that begins with http:// or https://",
            ));
        }
        if let Some(path) = &self.registry_storage_s3_cafile
            && !Path::is_file(path)
        {
            let reason = format!("{} is not a file", path.display());
            problems.push(Problem::new("REGISTRY_STORAGE_S3_CAFILE", reason));
        }
        if self.registry_storage_s3_chunksize < PART_BYTES_MIN {
            problems.push(Problem::new(
                "REGISTRY_STORAGE_S3_CHUNKSIZE",
                format!("S3 takes no parts of less than {PART_BYTES_MIN} bytes"),
            ));
        }
        problems
    }
}

#[cfg(test)]
mod tests {
    use service::program::ServerSettings as _;
    use service::settings::{FromValues as _, Values};

    use super::*;

    fn settings(pairs: &[(&str, &str)]) -> Settings {
        Settings::from_values(&Values::from_pairs(pairs.iter().copied())).unwrap()
    }

    #[test]
    fn a_bucket_is_taken_when_there_is_one() {
        let bucket = ("registry_storage_s3_bucket", "b");
        assert_eq!(settings(&[]).driver(), Driver::Filesystem);
        assert_eq!(settings(&[bucket]).driver(), Driver::S3);
        assert_eq!(
            settings(&[("registry_storage", "s3"), bucket]).driver(),
            Driver::S3
        );
    }

    #[test]
    fn endpoints_have_a_scheme_and_buckets_in_the_path() {
        let options = |pairs: &[(&str, &str)]| {
            let options = settings(pairs).s3().unwrap();
            (options.endpoint, options.is_path_style)
        };
        let endpoint = "registry_storage_s3_regionendpoint";
        assert_eq!(options(&[]), (None, false));
        let given = |text: &str| Some(text.to_owned());
        assert_eq!(
            options(&[(endpoint, "a:9000")]),
            (given("https://a:9000"), true)
        );
        let plain = [(endpoint, "a"), ("registry_storage_s3_secure", "false")];
        assert_eq!(options(&plain), (given("http://a"), true));
        let hosted = [
            (endpoint, "http://a"),
            ("registry_storage_s3_forcepathstyle", "false"),
        ];
        assert_eq!(options(&hosted), (given("http://a"), false));
    }

    #[test]
    fn contradictions_are_reported_without_secrets() {
        let reported = |pairs: &[(&str, &str)]| {
            let problems = settings(pairs).problems().into_iter();
            let reported: Vec<_> = problems.map(|problem| problem.to_string()).collect();
            assert!(!reported.join(" ").contains("hidden"), "{reported:?}");
            reported
                .into_iter()
                .map(|reported| reported.split(':').next().unwrap_or_default().to_owned())
                .collect::<Vec<_>>()
        };
        let (key, secret) = (
            "registry_storage_s3_accesskey",
            "registry_storage_s3_secretkey",
        );
        for (pairs, variable) in [
            (&[("registry_storage", "s3")][..], BUCKET),
            (
                &[
                    ("registry_storage", "filesystem"),
                    ("registry_storage_s3_bucket", "b"),
                ],
                STORAGE,
            ),
            (&[(key, "hidden")], "REGISTRY_STORAGE_S3_SECRETKEY"),
            (&[(secret, "hidden")], "REGISTRY_STORAGE_S3_ACCESSKEY"),
            (
                &[("registry_storage_s3_sessiontoken", "hidden")],
                "REGISTRY_STORAGE_S3_ACCESSKEY",
            ),
            (
                &[("registry_storage_s3_regionendpoint", "ftp://x")],
                "REGISTRY_STORAGE_S3_REGIONENDPOINT",
            ),
            (
                &[("registry_storage_s3_cafile", "/none")],
                "REGISTRY_STORAGE_S3_CAFILE",
            ),
            (
                &[("registry_storage_s3_chunksize", "1000")],
                "REGISTRY_STORAGE_S3_CHUNKSIZE",
            ),
        ] {
            assert_eq!(reported(pairs), [variable], "{pairs:?}");
        }
        let shown = format!("{:?}", settings(&[(key, "hidden"), (secret, "hidden")]));
        assert!(!shown.contains("hidden"), "{shown}");
    }
}
