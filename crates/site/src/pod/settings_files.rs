//! Files of settings: written from their templates, and kept where they are there.

use std::path::Path;

use service::Error;
use service::file::{read, write_atomic};
use service::settings::env_lines;

use crate::event::{SiteEvent, SiteObserver};

/// Placeholder of the network domain in the settings template.
pub(super) const DOMAIN: &str = "<domain>";
/// The setting of the network domain.
pub(crate) const DOMAIN_SETTING: &str = "NETWORK_DOMAIN";

/// Writes the settings unless they exist.
pub(super) fn write_settings(
    path: &Path,
    text: &str,
    mode: u32,
    observe: SiteObserver<'_>,
) -> Result<(), Error> {
    match read(path)? {
        None => {
            write_atomic(path, text.as_bytes(), mode)?;
            observe(SiteEvent::Written(path));
        }
        Some(found) if found != text.as_bytes() => {
            observe(SiteEvent::Kept(path));
            let missing = missing_settings(&String::from_utf8_lossy(&found), text);
            if !missing.is_empty() {
                let lines = &missing;
                observe(SiteEvent::SettingsMissing { path, lines });
            }
        }
        Some(_) => {}
    }
    Ok(())
}

/// Lines of `template` whose settings are not in `found`.
fn missing_settings(found: &str, template: &str) -> Vec<String> {
    let known = env_lines(found).unwrap_or_default();
    let lines = env_lines(template).unwrap_or_default();
    lines
        .into_iter()
        .filter(|(name, _)| known.iter().all(|(own, _)| own != name))
        .map(|(name, value)| format!("{name}={value}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_settings_are_those_of_the_template() {
        let template = "# A=1\nB=2\nC=3\n";
        assert_eq!(missing_settings("C=\nMINE=1\n", template), ["B=2"]);
        assert!(missing_settings("B=\nC=\n", template).is_empty());
    }
}
