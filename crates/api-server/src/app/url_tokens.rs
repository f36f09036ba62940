//! Tokens in the URLs of an infra-env's images and files.

use chrono::TimeDelta;
use model::Error;
use model::ids::InfraEnvId;
use model::infra_env::{InfraEnv, PresignedUrl};
use model::time::Timestamp;
use rules::urls::ImageAddress;

use super::ApiServer;
use super::links::new_key;
use crate::auth::{self, Caller, OwnedResource, UrlTokens};
use crate::db::{infra_envs, tx};

/// A token in a URL.
enum UrlToken {
    ApiKey(String),
    Image(String, Timestamp),
}

impl UrlToken {
    /// Appends the token to a URL with a query.
    fn sign(&self, url: &str) -> String {
        // Tokens have no characters that a query escapes.
        match self {
            Self::ApiKey(token) => format!("{url}&api_key={token}"),
            Self::Image(token, _) => format!("{url}&image_token={token}"),
        }
    }

    fn image_address(&self) -> ImageAddress<'_> {
        match self {
            Self::ApiKey(token) => ImageAddress::ByApiKey(token),
            Self::Image(token, _) => ImageAddress::ByToken(token),
        }
    }

    fn expires_at(&self) -> Option<Timestamp> {
        match self {
            Self::ApiKey(_) => None,
            Self::Image(_, expires_at) => Some(*expires_at),
        }
    }
}

impl ApiServer {
    /// `url`, which has a query, for callers without credentials of their own: firmware, and the image service.
    ///
    /// Errors: NotFound; Internal – signing failed.
    pub(crate) async fn sign_url(
        &self,
        id: InfraEnvId,
        url: String,
    ) -> Result<PresignedUrl, Error> {
        let Some(token) = self.url_token(id).await? else {
            return Ok(PresignedUrl {
                url,
                ..PresignedUrl::default()
            });
        };
        Ok(PresignedUrl {
            url: token.sign(&url),
            expires_at: token.expires_at().into(),
        })
    }

    /// Recomputes the download URL: the address of the image service may have changed since the record was written.
    /// It has a token for users alone: other callers must not renew one that expires.
    pub(super) async fn renew_download_url(
        &self,
        infra_env: &mut InfraEnv,
        caller: &Caller,
    ) -> Result<(), Error> {
        let version = Some(infra_env.openshift_version.as_str()).filter(|text| !text.is_empty());
        let architecture = infra_env.cpu_architecture.unwrap_or_default();
        let offer = self.offer();
        let image = rules::versions::find_os_image(&offer.os_images, version, architecture);
        let Ok(image) = image else {
            return Ok(());
        };
        let token = if caller.is_user() {
            self.url_token(infra_env.id).await?
        } else {
            None
        };
        if let Some(expires_at) = token.as_ref().and_then(UrlToken::expires_at) {
            infra_env.expires_at = expires_at.into();
        }
        let address = token.as_ref().map(UrlToken::image_address);
        infra_env.download_url = rules::urls::download_url(
            &offer.image_service_url,
            address.unwrap_or(ImageAddress::ById(infra_env.id)),
            image,
            infra_env.r#type,
        );
        Ok(())
    }

    /// The infra-env of a token of its image, which is verified by the infra-env's key.
    ///
    /// Errors: Unauthenticated.
    pub(super) async fn verify_image_token(
        &self,
        token: &str,
        now_s: i64,
    ) -> Result<InfraEnvId, Error> {
        let id = auth::subject_of_image_token(token)?;
        let key = self.image_key(id).await.map_err(|error| match error {
            Error::NotFound { .. } => {
                auth::unauthenticated("the infra-env of the token is unknown")
            }
            error => error,
        })?;
        auth::verify_image_token(token, &key, now_s)?;
        Ok(id)
    }

    async fn url_token(&self, id: InfraEnvId) -> Result<Option<UrlToken>, Error> {
        Ok(match self.auth.url_tokens() {
            UrlTokens::None => None,
            UrlTokens::ApiKeys => {
                let token = self.auth.resource_token(OwnedResource::InfraEnv(id))?;
                Some(UrlToken::ApiKey(token))
            }
            UrlTokens::ImageTokens => {
                let key = self.image_key(id).await?;
                let lifetime = TimeDelta::from_std(self.settings.image_expiration_time).ok();
                let expires_at = lifetime
                    .and_then(|lifetime| service::clock::now().checked_add_signed(lifetime))
                    .unwrap_or(Timestamp::MAX_UTC);
                let token = auth::image_token(id, &key, expires_at.timestamp());
                Some(UrlToken::Image(token, expires_at))
            }
        })
    }

    /// The key of an infra-env's image tokens, made at its first use.
    async fn image_key(&self, id: InfraEnvId) -> Result<Vec<u8>, Error> {
        let new = new_key()?;
        let key = tx("read signing key", async || {
            let mut connection = self.pool()?.acquire().await?;
            infra_envs::signing_key(&mut connection, &self.keys().await, id, &new).await
        })
        .await?;
        key.ok_or_else(|| Error::not_found("infra-env", id))
    }
}
