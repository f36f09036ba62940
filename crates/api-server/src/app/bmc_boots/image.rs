//! The discovery image that hosts boot.

use std::time::Duration;

use model::Error;
use model::ids::InfraEnvId;
use model::infra_env::ImageType;
use reqwest::header;
use url::Url;

use super::BmcBoots;
use crate::app::infra_envs::find_infra_env;
use crate::app::render;
use crate::auth::Caller;

/// Longest wait for the image service.
const TIMEOUT: Duration = Duration::from_secs(10);

impl BmcBoots {
    /// The address of an infra-env's image, for callers without credentials of their own.
    ///
    /// Errors: NotFound; Conflict – no image is on offer, or the image service does not have it yet.
    pub(super) async fn image(
        &self,
        caller: &Caller,
        id: InfraEnvId,
        image_type: Option<ImageType>,
    ) -> Result<Url, Error> {
        let mut infra_env = render::infra_env(find_infra_env(&self.db, id).await?.record);
        infra_env.r#type = image_type.unwrap_or(infra_env.r#type);
        if infra_env.r#type == ImageType::DisconnectedIso && infra_env.cluster_id.is_none() {
            return Err(Error::not_found("cluster of infra-env", id));
        }
        infra_env.download_url.clear();
        let offer = self.offer.get();
        let renewing = self
            .tokens
            .renew_download_url(&offer, &mut infra_env, caller);
        renewing.await?;
        let version = &infra_env.openshift_version;
        if infra_env.download_url.is_empty() {
            return Err(Error::conflict(format!(
                "no discovery image of version {version:?} is on offer: mirror a release of it to the registry, or add its \
                 base image to OS_IMAGES"
            )));
        }
        let image = Url::parse(&infra_env.download_url)
            .map_err(|error| Error::internal("reading the address of the image", error))?;
        if self.is_awaited(&image).await? {
            return Err(Error::conflict(format!(
                "the image service does not have the base image of version {version:?} yet: it downloads it after a release \
                 arrives. Try again in a minute; if it stays so, its log has the reason"
            )));
        }
        Ok(image)
    }

    /// Whether the image service fails to give the image, which it may not have yet: BMCs accept the address all the same, and their hosts
    /// boot nothing. A service that this server does not reach may be reachable for BMCs.
    async fn is_awaited(&self, image: &Url) -> Result<bool, Error> {
        let doing = "reading SERVICE_CA_CERT_PATH";
        let ca = match &self.settings.service_ca_cert_path {
            Some(path) => Some(tokio::fs::read(path).await),
            None => None,
        };
        let ca = ca
            .transpose()
            .map_err(|error| Error::internal(doing, error))?;
        let insecure = self.settings.skip_cert_verification;
        let client = service::http_client_with_secrets(ca.as_deref(), insecure)
            .map_err(|error| Error::internal(doing, error))?;
        let request = client
            .get(image.clone())
            .header(header::RANGE, "bytes=0-0")
            .timeout(TIMEOUT);
        let answer = request.send().await;
        Ok(answer.is_ok_and(|answer| answer.status().is_server_error()))
    }
}
