//! Writes of properties: only the version that was read is changed.

use reqwest::Method;
use serde_json::Value;

use super::document::RedfishDocument;
use super::error::BmcError;
use super::http::RedfishRequest;
use super::session::RedfishSession;

/// Statuses that ask for another entity tag: it does not match, or is missing.
const PRECONDITION: [u16; 2] = [412, 428];

impl RedfishSession {
    /// Writes properties of a resource that was just read. When its entity tag is refused, the resource is read again once,
    /// and the other forms of the tag are tried.
    ///
    /// Errors: Refused with 412 – another client changes the resource at the same time.
    pub(super) async fn patch(
        &mut self,
        document: &RedfishDocument,
        body: &Value,
    ) -> Result<(), BmcError> {
        let first = document.etags().into_iter().next();
        let refusal = match self.patch_once(document, body, first.clone()).await {
            Err(error) if error.status().is_some_and(|it| PRECONDITION.contains(&it)) => error,
            done => return done,
        };
        let again = self.get(&document.path).await?;
        // Of a tag that changed, the new one comes first; of the same tag, another form.
        let other = again
            .etags()
            .into_iter()
            .find(|etag| Some(etag) != first.as_ref());
        let other = match (other, &first) {
            (Some(etag), _) => etag,
            // The BMC wants a precondition, and has no tag.
            (None, None) => "*".to_owned(),
            (None, Some(_)) => return Err(refusal),
        };
        self.patch_once(&again, body, Some(other)).await
    }

    async fn patch_once(
        &mut self,
        document: &RedfishDocument,
        body: &Value,
        etag: Option<String>,
    ) -> Result<(), BmcError> {
        let mut request = RedfishRequest::new(Method::PATCH, &document.path, Some(body.clone()));
        request.if_match = etag;
        self.act(&request).await
    }
}
