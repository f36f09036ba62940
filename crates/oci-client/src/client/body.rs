//! Bodies of responses, in memory up to a limit.

use bytes::{Bytes, BytesMut};
use model::Error;
use reqwest::Response;

use super::error;

pub(super) async fn collect(
    place: &str,
    mut response: Response,
    limit: usize,
) -> Result<Bytes, Error> {
    let mut bytes = BytesMut::new();
    while let Some(chunk) = response
        .chunk()
        .await
        .map_err(|e| error::unavailable(place, &e.without_url()))?
    {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > limit {
            return Err(Error::TooLarge {
                what: "the registry's answer",
                limit: limit as u64,
            });
        }
    }
    Ok(bytes.freeze())
}
