//! The installer programs that were taken out of release images, kept for the next preparation.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rules::versions::at_least;
use secrecy::SecretString;
use serde_json::Value;

use super::context::{Context, Failure};
use super::registry::{Images, Scratch};
use super::release::ReleaseInfo;
use crate::files::sync_folder;

/// The program for bare metal, and the plain one; newer images for bare metal hold it under the plain name.
const BARE_METAL: &str = "usr/bin/openshift-baremetal-install";
const PLAIN: &str = "usr/bin/openshift-install";
/// From this version on the plain installer knows bare metal too.
const PLAIN_SINCE: (u64, u64) = (4, 16);
/// What the kept program is called.
const KEPT_NAME: &str = "openshift-install";

/// The installer program of a release, from the cache or taken out of its image now.
pub(super) async fn installer(
    ctx: &Context,
    release: &ReleaseInfo,
    install_config: &str,
    pull_secret: &SecretString,
) -> Result<PathBuf, Failure> {
    let (tag, image) = choose(release, needs_fips(install_config))?;
    let images = Images::new(ctx, pull_secret)?;
    let cache = ctx.installer_cache();
    let digest = image.rsplit_once('@').map_or(image, |(_, digest)| digest);
    let folder = cache.join(digest.replace(['/', ':'], "-"));
    let program = folder.join(KEPT_NAME);
    // Held for the whole extraction: a second preparation of the same release waits and finds it done.
    let _one = ctx.extracting().await;
    if is_program(&program) {
        return Ok(program);
    }
    let scratch = Scratch::make(&cache).await?;
    let candidates = images.component_candidates(image, &release.release_image);
    let paths = if tag == "installer" {
        [PLAIN, BARE_METAL]
    } else {
        [BARE_METAL, PLAIN]
    };
    let taken = images
        .take(&candidates, &paths, &scratch.0.join(KEPT_NAME))
        .await
        .map_err(|why| {
            Failure::new(format!(
                "the installer of release {} cannot be taken from its image: {why}",
                release.version
            ))
        })?;
    tracing::info!(image = %taken.image, path = paths[taken.index], "installer extracted");
    super::blocking(move || keep(&scratch, &folder).map_err(|error| unwritable(&error))).await?;
    Ok(program)
}

/// Which image holds the right installer: the plain one when it can do the job, else the one for bare metal.
fn choose(release: &ReleaseInfo, fips: bool) -> Result<(&str, &str), Failure> {
    let (major, minor) = PLAIN_SINCE;
    let order = if at_least(&release.version, major, minor) && !fips {
        ["installer", "baremetal-installer"]
    } else {
        ["baremetal-installer", "installer"]
    };
    order
        .iter()
        .find_map(|tag| release.installers.get_key_value(*tag))
        .map(|(tag, image)| (tag.as_str(), image.as_str()))
        .ok_or_else(|| {
            Failure::new(format!(
                "release {} names no installer image",
                release.version
            ))
        })
}

/// The plain installer is not built against validated cryptography.
fn needs_fips(install_config: &str) -> bool {
    let config: Value = serde_json::from_str(install_config).unwrap_or_default();
    config
        .get("fips")
        .and_then(Value::as_bool)
        .unwrap_or_default()
}

/// Moves the taken program into place, whole and executable.
fn keep(scratch: &Scratch, folder: &Path) -> io::Result<()> {
    let program = scratch.0.join(KEPT_NAME);
    fs::set_permissions(&program, fs::Permissions::from_mode(0o500))?;
    fs::File::open(&program)?.sync_all()?;
    match fs::rename(&scratch.0, folder) {
        // Another process on the same folder was faster; its program is the same, by digest.
        Err(_) if is_program(&folder.join(KEPT_NAME)) => {}
        outcome => outcome?,
    }
    sync_folder(folder.parent().unwrap_or(folder))
}

fn is_program(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.len() > 0)
}

fn unwritable(error: &io::Error) -> Failure {
    Failure::new(format!("the installer cache cannot be written: {error}"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn release(version: &str, tags: &[&str]) -> ReleaseInfo {
        ReleaseInfo {
            version: version.to_owned(),
            installers: tags
                .iter()
                .map(|tag| ((*tag).to_owned(), format!("image of {tag}")))
                .collect::<BTreeMap<_, _>>(),
            ..ReleaseInfo::default()
        }
    }

    #[test]
    fn the_version_and_fips_choose_the_installer() {
        let both = ["installer", "baremetal-installer"];
        for (version, tags, fips, expected) in [
            ("4.15.9", &both[..], false, "baremetal-installer"),
            ("4.16.0", &both[..], false, "installer"),
            ("4.18.7", &both[..], true, "baremetal-installer"),
            ("5.0.0", &both[..], false, "installer"),
            ("4.18.7", &both[1..], false, "baremetal-installer"),
            ("4.14.0-0.okd-2024", &both[..1], false, "installer"),
        ] {
            let release = release(version, tags);
            assert_eq!(choose(&release, fips).unwrap().0, expected, "{version}");
        }
        assert!(choose(&release("4.18.7", &[]), false).is_err());
    }

    #[test]
    fn fips_is_read_from_the_install_config() {
        assert!(needs_fips(r#"{"fips":true}"#));
        assert!(!needs_fips("{}"));
    }
}
