//! The frame of every page.

use maud::{Markup, html};
use service::page::{self, Shown, Site};

use super::route::PageRoute;
use crate::http::app::HttpError;

/// Site of all pages.
pub(super) const SITE: Site = Site {
    name: "Catalogs",
    root: "/ui/",
};

/// A page or an error response.
pub(super) type PageResult = Result<Markup, HttpError>;

/// A page of `main` below its breadcrumb.
pub(super) fn document(title: &str, breadcrumb: &[PageRoute<'_>], main: &Markup) -> Markup {
    let top = html! {
        header.top {
            a.brand href=(PageRoute::Catalogs.path()) {
                img src={ (SITE.root) "icon.svg" } alt="" width="28" height="28";
                (SITE.name)
            }
        }
    };
    let body = html! {
        @if !breadcrumb.is_empty() {
            nav aria-label="Breadcrumb" {
                ol.way {
                    @for view in breadcrumb { li { a href=(view.path()) { (Shown(&view.label())) } } }
                }
            }
        }
        h1 { (Shown(title)) }
        (main)
    };
    page::framed(&SITE, title, &top, &body)
}

/// A deprecation message.
pub(super) fn deprecated(why: Option<&str>) -> Markup {
    html! { @if let Some(why) = why { strong { "Deprecated" } ": " (Shown(why)) } }
}
