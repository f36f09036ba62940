//! The limits of a server, as a table.

use crate::limits::Limit;
use crate::server_settings::ServerSettings;
use crate::settings::markdown_row;

/// Every limit of a server: those that all servers share, then its own.
fn all<S: ServerSettings>(settings: &S) -> Vec<Limit> {
    // The listeners of a server have the same bounds.
    let listen = settings.listen().into_iter().next();
    let shared = listen.map(|listen| listen.http.limits());
    let mut limits = shared.unwrap_or_default();
    limits.extend(settings.limits());
    limits
}

/// The limits of a server in Markdown.
pub(crate) fn table<S: ServerSettings>(settings: &S) -> String {
    let head = "| Limit | Value | Per | Setting | Beyond it | Share |\n|---|---|---|---|---|---|\n";
    let rows = all(settings).into_iter().map(|limit| {
        let setting = limit.setting.map(|name| format!("`{name}`"));
        markdown_row([
            limit.name.to_owned(),
            limit.bound.to_string(),
            limit.per.to_owned(),
            setting.unwrap_or_default(),
            limit.answer.to_owned(),
            limit
                .share
                .map(|share| share.to_string())
                .unwrap_or_default(),
        ])
    });
    std::iter::once(head.to_owned()).chain(rows).collect()
}
