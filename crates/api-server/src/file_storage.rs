//! The storage backend of files, by the settings.

use ::bucket::S3Options;
use cluster_files::{FileQuotas, FileStore};
use secrecy::ExposeSecret as _;
use service::settings::Secret;
use service::{Error, ResultExt as _};

use crate::settings::{FileBackend, Settings};

impl Settings {
    /// The bucket of files. Source: assisted-service, pkg/s3wrapper, for names of variables.
    fn s3(&self) -> Result<S3Options, Error> {
        let ca_pem = self.s3_ca_file.as_deref().map(std::fs::read).transpose();
        let has_endpoint = !self.s3_endpoint_url.is_empty();
        let key = self.aws_access_key_id.clone();
        let secret = self.aws_secret_access_key.clone();
        Ok(S3Options {
            bucket: self.s3_bucket.clone(),
            region: self.s3_region.clone(),
            endpoint: has_endpoint.then(|| self.s3_endpoint_url.clone()),
            // Servers other than Amazon's seldom have a name for each bucket.
            is_path_style: self.s3_force_path_style.unwrap_or(has_endpoint),
            keys: is_set(&key).then_some((key, secret)),
            session_token: Some(self.aws_session_token.clone()).filter(is_set),
            ca_pem: ca_pem.doing("reading S3_CA_FILE")?,
            is_insecure: false,
            is_encrypted: false,
            encryption_key: None,
        })
    }
}

/// Opens the file store.
pub(crate) async fn open(settings: &Settings) -> Result<FileStore, Error> {
    let quotas = FileQuotas {
        cluster_bytes: settings.max_cluster_files_bytes,
        owner_bytes: match settings.max_files_bytes_per_owner {
            0 => u64::MAX,
            share => share,
        },
        total_bytes: settings.max_files_bytes,
    };
    let work_dir = &settings.work_dir;
    match settings.storage {
        FileBackend::Filesystem => FileStore::open_within(work_dir, quotas)
            .await
            .doing("opening WORK_DIR"),
        FileBackend::S3 => FileStore::open_bucket(work_dir, quotas, &settings.s3()?)
            .await
            .doing("opening the storage of STORAGE=s3"),
    }
}

/// Reports settings of the bucket that cannot be used together.
pub(crate) fn problems(settings: &Settings, report: &mut impl FnMut(&str, String)) {
    if settings.storage == FileBackend::Filesystem {
        return;
    }
    if settings.s3_bucket.is_empty() {
        report("S3_BUCKET", "is required while STORAGE is s3".to_owned());
    }
    let endpoint = &settings.s3_endpoint_url;
    let mut schemes = ["http://", "https://"].into_iter();
    if !endpoint.is_empty() && !schemes.any(|scheme| endpoint.starts_with(scheme)) {
        let text = "requires a URL that begins with http:// or https://";
        report("S3_ENDPOINT_URL", text.to_owned());
    }
    if is_set(&settings.aws_access_key_id) != is_set(&settings.aws_secret_access_key) {
        let text = "and AWS_ACCESS_KEY_ID are required together";
        report("AWS_SECRET_ACCESS_KEY", text.to_owned());
    }
    if let Some(path) = &settings.s3_ca_file
        && !path.is_file()
    {
        report("S3_CA_FILE", format!("{} is not a file", path.display()));
    }
}

fn is_set(secret: &Secret) -> bool {
    !secret.expose_secret().is_empty()
}

#[cfg(test)]
mod tests {
    use service::settings::{FromValues as _, Values};

    use super::*;

    fn settings(pairs: &[(&str, &str)]) -> Settings {
        Settings::from_values(&Values::from_pairs(pairs.iter().copied())).unwrap()
    }

    #[test]
    fn contradictions_are_reported_without_secrets() {
        let (s3, bucket) = (("storage", "s3"), ("s3_bucket", "b"));
        for (pairs, variable) in [
            (&[s3][..], "S3_BUCKET"),
            (
                &[s3, bucket, ("s3_endpoint_url", "a:9000")],
                "S3_ENDPOINT_URL",
            ),
            (
                &[s3, bucket, ("aws_access_key_id", "hidden")],
                "AWS_SECRET_ACCESS_KEY",
            ),
            (
                &[s3, bucket, ("aws_secret_access_key", "hidden")],
                "AWS_SECRET_ACCESS_KEY",
            ),
            (&[s3, bucket, ("s3_ca_file", "/none")], "S3_CA_FILE"),
        ] {
            let mut reported = Vec::new();
            problems(&settings(pairs), &mut |variable, text| {
                assert!(!text.contains("hidden"), "{text}");
                reported.push(variable.to_owned());
            });
            assert_eq!(reported, [variable]);
        }
        let shown = format!("{:?}", settings(&[("aws_secret_access_key", "hidden")]));
        assert!(!shown.contains("hidden"), "{shown}");
    }

    #[test]
    fn servers_of_others_have_the_bucket_in_the_path() {
        let options = settings(&[("s3_endpoint_url", "http://a:9000")])
            .s3()
            .unwrap();
        assert_eq!(options.endpoint.as_deref(), Some("http://a:9000"));
        assert!(options.is_path_style && options.keys.is_none());
        assert!(!settings(&[]).s3().unwrap().is_path_style);
    }
}
