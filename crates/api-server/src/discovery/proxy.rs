//! Proxy settings of a host: Ignition, systemd units, login shells.

use model::network::Proxy;

/// Whether any proxy is set.
pub(super) fn is_set(proxy: &Proxy) -> bool {
    variables(proxy).next().is_some()
}

/// The member `ignition.proxy`.
pub(super) fn ignition(proxy: &Proxy) -> ignition::IgnitionProxy {
    let text = |value: &Option<String>| value.clone().filter(|text| !text.is_empty());
    ignition::IgnitionProxy {
        http_proxy: text(&proxy.http_proxy),
        https_proxy: text(&proxy.https_proxy),
        no_proxy: proxy
            .no_proxy
            .iter()
            .flat_map(|list| list.split(','))
            .map(str::trim)
            .filter(|entry| !entry.is_empty())
            .map(str::to_owned)
            .collect(),
        ..ignition::IgnitionProxy::default()
    }
}

/// `Environment=` lines of a unit; `%` would start a specifier there.
pub(super) fn unit_lines(proxy: &Proxy) -> String {
    let lines: Vec<String> = variables(proxy)
        .map(|(name, value)| format!("Environment={name}={}\n", value.replace('%', "%%")))
        .collect();
    lines.concat()
}

/// Lines for `/etc/profile.d`.
pub(super) fn profile(proxy: &Proxy) -> String {
    let lines: Vec<String> = variables(proxy)
        .map(|(name, value)| format!("export {name}='{}'\n", value.replace('\'', r"'\''")))
        .collect();
    lines.concat()
}

/// Variables in upper and lower case: programs read either.
fn variables(proxy: &Proxy) -> impl Iterator<Item = (&'static str, &str)> {
    [
        ("HTTP_PROXY", &proxy.http_proxy),
        ("http_proxy", &proxy.http_proxy),
        ("HTTPS_PROXY", &proxy.https_proxy),
        ("https_proxy", &proxy.https_proxy),
        ("NO_PROXY", &proxy.no_proxy),
        ("no_proxy", &proxy.no_proxy),
    ]
    .into_iter()
    .filter_map(|(name, value)| {
        let value = value.as_deref().unwrap_or_default();
        (!value.is_empty()).then_some((name, value))
    })
}
