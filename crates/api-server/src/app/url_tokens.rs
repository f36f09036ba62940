//! Tokens in the URLs of an infra-env's images and files.

use chrono::TimeDelta;
use model::Error;
use model::ids::InfraEnvId;
use model::infra_env::{InfraEnv, PresignedUrl};
use model::time::Timestamp;
use rules::Offer;
use rules::urls::ImageAddress;

use super::links::new_key;
use super::request;
use super::token_validity::InfraEnvTokens;
use crate::app::redacted_files::sees_secrets;
use crate::auth::{self, Caller, UrlTokens};
use crate::db::{infra_envs, tx};

/// A token in a URL.
enum UrlToken {
    ApiKey(String, Timestamp),
    Image(String, Timestamp),
}

impl UrlToken {
    /// Appends the token to a URL with a query.
    fn sign(&self, url: &str) -> String {
        // Tokens have no characters that a query escapes.
        match self {
            Self::ApiKey(token, _) => format!("{url}&api_key={token}"),
            Self::Image(token, _) => format!("{url}&image_token={token}"),
        }
    }

    fn image_address(&self) -> ImageAddress<'_> {
        match self {
            Self::ApiKey(token, _) => ImageAddress::ByApiKey(token),
            Self::Image(token, _) => ImageAddress::ByToken(token),
        }
    }

    fn expires_at(&self) -> Timestamp {
        match self {
            Self::ApiKey(_, expires_at) | Self::Image(_, expires_at) => *expires_at,
        }
    }
}

impl InfraEnvTokens {
    /// `url`, which has a query, for callers without credentials of their own: firmware, and the image service.
    ///
    /// Errors: NotFound; Internal – signing failed.
    pub(crate) async fn sign_url(
        &self,
        infra_env: &InfraEnv,
        url: String,
    ) -> Result<PresignedUrl, Error> {
        let Some(token) = self.url_token(infra_env).await? else {
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
    /// It has a token for users with the right to edit the infra-env: the image has secrets, and other callers must not
    /// renew a token that expires.
    pub(super) async fn renew_download_url(
        &self,
        offer: &Offer,
        infra_env: &mut InfraEnv,
        caller: &Caller,
    ) -> Result<(), Error> {
        let version = Some(infra_env.openshift_version.as_str()).filter(|text| !text.is_empty());
        let architecture = infra_env.cpu_architecture.unwrap_or_default();
        let stream = &infra_env.os_stream;
        let image = rules::versions::find_os_image(&offer.os_images, version, architecture, stream);
        let Ok(image) = image else {
            return Ok(());
        };
        let is_shown = caller.is_user() && sees_secrets(caller, &infra_env.user_name);
        // The infra-env of a dry run may not be stored, and so has no key.
        let token = if is_shown && !request::is_dry_run() {
            self.url_token(infra_env).await?
        } else {
            None
        };
        if let Some(token) = &token {
            infra_env.expires_at = token.expires_at().into();
        }
        let address = token.as_ref().map(UrlToken::image_address);
        infra_env.download_url = rules::urls::download_url(
            &offer.image_service_url,
            address.unwrap_or(ImageAddress::ById(infra_env.id)),
            image.name(),
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

    async fn url_token(&self, infra_env: &InfraEnv) -> Result<Option<UrlToken>, Error> {
        let id = infra_env.id;
        Ok(match self.auth.url_tokens() {
            UrlTokens::None => None,
            UrlTokens::ApiKeys => {
                let validity = self.validity(infra_env).await?;
                let token = self.auth.infra_env_token(id, validity)?;
                let expires_at = Timestamp::from_timestamp(validity.expires_s, 0);
                Some(UrlToken::ApiKey(
                    token,
                    expires_at.unwrap_or(Timestamp::MAX_UTC),
                ))
            }
            UrlTokens::ImageTokens => {
                let key = self.image_key(id).await?;
                let lifetime = TimeDelta::from_std(self.image_lifetime).ok();
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
            let mut connection = self.db.pool()?.acquire().await?;
            infra_envs::signing_key(&mut connection, &self.db.keys().await, id, &new).await
        })
        .await?;
        key.ok_or_else(|| Error::not_found("infra-env", id))
    }
}
