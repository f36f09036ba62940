//! A visit to a page.

use axum::http::request::Parts;
use maud::Markup;

use crate::auth::Access;
use crate::error::RegistryError;
use crate::origin::Origins;
use crate::storage::Store;

/// Where the pages are; the list of repositories also is at the root.
pub(super) const ROOT: &str = "/ui/";

/// A page, or why there is none.
pub(super) type Page = Result<Markup, RegistryError>;

/// The visitor and the request.
#[derive(Clone, Copy)]
pub(super) struct Visit<'a> {
    pub(super) store: &'a Store,
    pub(super) origins: &'a Origins,
    pub(super) access: &'a Access,
    pub(super) head: &'a Parts,
    pub(super) may_log_in: bool,
}

impl Visit<'_> {
    /// The registry as the browser names it; for people to fill in when it does not.
    pub(super) fn origin(&self) -> String {
        self.origins
            .absolute(self.head)
            .unwrap_or_else(|| "https://REGISTRY".to_owned())
    }
}
