//! Taking the installer program out of a release's image, unless it is kept already.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use rules::versions::at_least;
use secrecy::SecretString;
use serde_json::Value;

use super::confinement::Confinement;
use super::context::{Context, Failure};
use super::elf::Program;
use super::installer_cache::{self, Kept};
use super::libraries;
use super::registry::{Images, Scratch, Taken};
use super::release::ReleaseInfo;

/// The program for bare metal, and the plain one; newer images for bare metal hold it under the plain name.
const BARE_METAL: &str = "usr/bin/openshift-baremetal-install";
const PLAIN: &str = "usr/bin/openshift-install";
/// From this version on the plain installer knows bare metal too.
const PLAIN_SINCE: (u64, u64) = (4, 16);

/// The installer program of a release, from the cache or taken out of its image now.
pub(super) async fn installer(
    ctx: &Context,
    release: &ReleaseInfo,
    install_config: &str,
    pull_secret: &SecretString,
) -> Result<Kept, Failure> {
    let fips = needs_fips(install_config) || is_fips_machine();
    let (tag, image) = choose(release, fips)?;
    let cache = ctx.installer_cache();
    let digest = image.rsplit_once('@').map_or(image, |(_, digest)| digest);
    let folder = cache.join(digest.replace(['/', ':'], "-"));
    // Held for the whole extraction: a second preparation of the same release waits and finds it done.
    let _guard = ctx.extracting(&folder).await;
    let kept = if let Some(kept) = take(&folder).await? {
        kept
    } else {
        let images = Images::new(ctx, pull_secret)?;
        let candidates = images.component_candidates(image, &release.release_image);
        let confinement = &ctx.options().confinement;
        extract(confinement, &images, &candidates, tag, &folder)
            .await
            .map_err(|failure| {
                let (version, why) = (&release.version, failure.reason);
                Failure::new(format!(
                    "the installer of release {version} cannot be taken from its image: {why}"
                ))
            })?
    };
    shrink(ctx).await?;
    Ok(kept)
}

/// Takes the installer, and what it needs to run, out of the first of `candidates` that answers, into `folder`.
async fn extract(
    confinement: &Confinement,
    images: &Images,
    candidates: &[String],
    tag: &str,
    folder: &Path,
) -> Result<Kept, Failure> {
    let paths = if tag == "installer" {
        [PLAIN, BARE_METAL]
    } else {
        [BARE_METAL, PLAIN]
    };
    let scratch = Scratch::make(folder.parent().unwrap_or(folder)).await?;
    let program = scratch.0.join(installer_cache::KEPT_NAME);
    let taken = images
        .take(candidates, &paths, &program, None)
        .await
        .map_err(Failure::new)?;
    let path = paths[taken.index];
    let header = examine(program.clone(), path, &taken).await?;
    if let Some(interpreter) = &header.interpreter {
        libraries::take(
            confinement,
            images,
            &taken.image,
            path,
            program,
            interpreter,
        )
        .await?;
    }
    let interpreter = header.interpreter.as_deref().unwrap_or_default();
    tracing::info!(image = %taken.image, path, interpreter, "installer extracted");
    let folder = folder.to_owned();
    let now = service::clock::now().into();
    super::blocking(move || {
        installer_cache::keep(&scratch, &folder, now).map_err(|error| unusable(&error))
    })
    .await
}

/// Reads the header of the program at `path` of an image, now at `program`; one that cannot run here is refused.
async fn examine(program: PathBuf, path: &'static str, taken: &Taken) -> Result<Program, Failure> {
    let image = taken.image.clone();
    super::blocking(move || {
        let unfit = |why: &str| Failure::new(format!("{path} of image {image} cannot be run: {why}"));
        let header = File::open(&program)
            .and_then(|mut file| Program::read(&mut file))
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

async fn shrink(ctx: &Context) -> Result<(), Failure> {
    let cache = ctx.installer_cache();
    let capacity_bytes = ctx.options().cache_capacity_bytes;
    let now = service::clock::now().into();
    super::blocking(move || {
        // A cache that is too large is no reason to fail a preparation.
        if let Err(error) = installer_cache::shrink(&cache, capacity_bytes, now) {
            tracing::warn!(%error, folder = %cache.display(), "the installer cache does not shrink");
        }
        Ok(())
    })
    .await
}

async fn take(folder: &Path) -> Result<Option<Kept>, Failure> {
    let folder = folder.to_owned();
    let now = service::clock::now().into();
    super::blocking(move || installer_cache::take(&folder, now).map_err(|error| unusable(&error)))
        .await
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

/// Where the kernel says whether it runs in FIPS mode.
const FIPS_ENABLED: &str = "/proc/sys/crypto/fips_enabled";

/// On such a machine nothing else than validated cryptography may be used, whatever the cluster is to have.
fn is_fips_machine() -> bool {
    std::fs::read_to_string(FIPS_ENABLED).is_ok_and(|text| text.trim() == "1")
}

fn unusable(error: &io::Error) -> Failure {
    Failure::new(format!("the installer cache cannot be used: {error}"))
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
