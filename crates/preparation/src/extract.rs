//! Extraction of the installer from a release's image into the cache.
//!
//! Source: openshift/assisted-service, `internal/installercache` and `internal/oc`, for the choice of the installer.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use oci::Reference;
use rules::versions::at_least;
use secrecy::SecretString;
use serde_json::Value;

use crate::confinement::Confinement;
use crate::context::InstallContext;
use crate::elf::ElfHeader;
use crate::failure::{PreparationFailure, blocking};
use crate::installer_cache::{self, CachedInstaller, InstallerCacheEvent};
use crate::libraries;
use crate::registry::{ExtractedFile, Images, ScratchFolder};
use crate::release::ReleaseInfo;

/// The installer for bare metal, and the plain one; newer bare metal images use the plain name.
const BARE_METAL: &str = "usr/bin/openshift-baremetal-install";
const PLAIN: &str = "usr/bin/openshift-install";
/// First version whose plain installer supports bare metal.
const PLAIN_SINCE: (u64, u64) = (4, 16);

/// The installer of a release, from the cache or extracted from its image.
pub(crate) async fn installer(
    ctx: &InstallContext,
    release: &ReleaseInfo,
    install_config: &str,
    pull_secret: &SecretString,
) -> Result<CachedInstaller, PreparationFailure> {
    let fips = needs_fips(install_config) || is_fips_machine();
    let (tag, image) = choose(release, fips)?;
    let cache = ctx.installer_cache();
    let digest = image.rsplit_once('@').map_or(image, |(_, digest)| digest);
    let folder = cache.join(digest.replace(['/', ':'], "-"));
    // Locked during the extraction: concurrent preparations of the same release share it (single-flight).
    let _guard = ctx.lock_extraction(&folder).await;
    let found = cached(&folder).await?;
    (ctx.options().on_cache_event)(&InstallerCacheEvent::LookedUp {
        minor_version: minor_version(&release.version),
        is_hit: found.is_some(),
    });
    let installer = if let Some(installer) = found {
        installer
    } else {
        let images = Images::new(&ctx.options().registry, pull_secret)?;
        let confinement = &ctx.options().confinement;
        let extraction = async {
            let candidates = images.component_candidates(image, &release.release_image)?;
            extract(confinement, &images, &candidates, tag, &folder).await
        };
        extraction.await.map_err(|failure: PreparationFailure| {
            let (version, why) = (&release.version, failure.reason);
            PreparationFailure::new(format!(
                "the installer of release {version} cannot be extracted from its image: {why}"
            ))
        })?
    };
    shrink(ctx).await?;
    Ok(installer)
}

/// Extracts the installer, with its loader and libraries, from the first reachable candidate into `folder`.
async fn extract(
    confinement: &Confinement,
    images: &Images,
    candidates: &[Reference],
    tag: &str,
    folder: &Path,
) -> Result<CachedInstaller, PreparationFailure> {
    let paths = if tag == "installer" {
        [PLAIN, BARE_METAL]
    } else {
        [BARE_METAL, PLAIN]
    };
    let scratch = ScratchFolder::make(folder.parent().unwrap_or(folder)).await?;
    let program = scratch.0.join(installer_cache::INSTALLER_NAME);
    let extracted = images.extract(candidates, &paths, &program, None).await?;
    let path = paths[extracted.index];
    let header = check_header(program.clone(), path, &extracted).await?;
    if let Some(interpreter) = &header.interpreter {
        libraries::extract(
            confinement,
            images,
            &extracted.image,
            path,
            program,
            interpreter,
        )
        .await?;
    }
    let interpreter = header.interpreter.as_deref().unwrap_or_default();
    tracing::info!(image = %extracted.image, path, interpreter, "installer extracted");
    let folder = folder.to_owned();
    let now = service::clock::now().into();
    blocking(move || {
        installer_cache::insert(&scratch, &folder, now).map_err(|error| unusable(&error))
    })
    .await
}

/// Reads the header of the extracted program; refuses one for another machine. `path` is its path in the image.
async fn check_header(
    program: PathBuf,
    path: &'static str,
    extracted: &ExtractedFile,
) -> Result<ElfHeader, PreparationFailure> {
    let image = extracted.image.clone();
    blocking(move || {
        let unfit = |why: &str| PreparationFailure::new(format!("{path} of image {image} cannot be run: {why}"));
        let header = File::open(&program)
            .and_then(|mut file| ElfHeader::read(&mut file))
            .map_err(|error| unusable(&error))?
            .map_err(unfit)?;
        header.check_machine().map_err(|(built_for, here)| {
            unfit(&format!(
                "it is built for {built_for} and this machine is {here}; choose a release for {here}, or run the \
                 service on {built_for}"
            ))
        })?;
        Ok(header)
    })
    .await
}

async fn shrink(ctx: &InstallContext) -> Result<(), PreparationFailure> {
    let cache = ctx.installer_cache();
    let capacity_bytes = ctx.options().cache_capacity_bytes;
    let on_event = ctx.options().on_cache_event;
    let now = service::clock::now().into();
    blocking(move || {
        // An oversized cache does not fail the preparation.
        if let Err(error) = installer_cache::shrink(&cache, capacity_bytes, now, on_event) {
            tracing::warn!(%error, folder = %cache.display(), "installer cache cannot be shrunk");
        }
        Ok(())
    })
    .await
}

async fn cached(folder: &Path) -> Result<Option<CachedInstaller>, PreparationFailure> {
    let folder = folder.to_owned();
    let now = service::clock::now().into();
    blocking(move || installer_cache::get(&folder, now).map_err(|error| unusable(&error))).await
}

/// Major and minor version of a release; empty if it has none.
fn minor_version(version: &str) -> String {
    let numbers = version.split('.').take(2).map(str::parse::<u16>);
    let numbers: Result<Vec<u16>, _> = numbers.collect();
    match numbers.as_deref() {
        Ok([major, minor]) => format!("{major}.{minor}"),
        _ => String::new(),
    }
}

/// Tag and image of the installer: the plain one if it supports the cluster, else the one for bare metal.
fn choose(release: &ReleaseInfo, fips: bool) -> Result<(&str, &str), PreparationFailure> {
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
            PreparationFailure::new(format!(
                "release {} has no installer image",
                release.version
            ))
        })
}

/// Whether the cluster needs FIPS: the plain installer lacks validated cryptography.
fn needs_fips(install_config: &str) -> bool {
    let config: Value = serde_json::from_str(install_config).unwrap_or_default();
    config
        .get("fips")
        .and_then(Value::as_bool)
        .unwrap_or_default()
}

/// The kernel's FIPS mode.
const FIPS_ENABLED: &str = "/proc/sys/crypto/fips_enabled";

/// Whether this machine is in FIPS mode, which permits validated cryptography only, whatever the cluster needs.
fn is_fips_machine() -> bool {
    std::fs::read_to_string(FIPS_ENABLED).is_ok_and(|text| text.trim() == "1")
}

fn unusable(error: &io::Error) -> PreparationFailure {
    PreparationFailure::new(format!("the installer cache cannot be used: {error}"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn releases_have_a_minor_version() {
        for (version, expected) in [
            ("4.18.7", "4.18"),
            ("4.19.0-ec.2", "4.19"),
            ("4.20", "4.20"),
            ("4", ""),
            ("four.1", ""),
            ("", ""),
        ] {
            assert_eq!(minor_version(version), expected, "{version}");
        }
    }

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
    fn installer_is_selected_by_version_and_fips() {
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
