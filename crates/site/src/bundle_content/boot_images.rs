//! Boot images of a bundle, with their entries of `OS_IMAGES`, by volume ids and boot loaders.

use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use ::bundle::PlannedContent;
use ::bundle::assemble::{BOOT_IMAGE_LIST, BOOT_IMAGES, BundleContent};
use image_service::content::ContentPieces;
use image_service::image::BaseImage;
use serde_json::{Value, json};
use service::{Error, ResultExt as _};

use super::name;

/// Where containers see boot images.
const MOUNTED: &str = "file:///images/";
/// Systems whose version begins with that of the platform without its dot: `rhcos-418.94.…` belongs to 4.18.
const NUMBERED: [&str; 2] = ["rhcos-", "scos-"];
/// The platform's major version.
const MAJOR: char = '4';
/// First bytes of kernels of ppc64le.
const ELF: &[u8] = b"\x7fELF";

/// Value of `--os-image`: `[VERSION=]FILE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BootImageFile {
    /// Major and minor number of the platform, if given.
    version: Option<String>,
    file: PathBuf,
}

impl FromStr for BootImageFile {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts = text.split_once('=').filter(|(version, _)| {
            let numbers = version.split_once('.');
            let is_number = |it: &str| !it.is_empty() && it.bytes().all(|b| b.is_ascii_digit());
            numbers.is_some_and(|(major, minor)| is_number(major) && is_number(minor))
        });
        Ok(match parts {
            Some((version, file)) => Self {
                version: Some(version.to_owned()),
                file: file.into(),
            },
            None => Self {
                version: None,
                file: text.into(),
            },
        })
    }
}

/// Adds boot images, and the list that an installation offers.
///
/// Errors: a file that is no live image, or whose platform version is not known.
pub(super) fn add(content: &mut BundleContent, images: &[BootImageFile]) -> Result<(), Error> {
    let mut offers = Vec::new();
    for image in images {
        let path = format!("{BOOT_IMAGES}{}", name(&image.file)?);
        offers.push(offer(image)?);
        content.others.push(PlannedContent::file(path, &image.file));
    }
    if !offers.is_empty() {
        let list = Value::from(offers).to_string();
        content
            .others
            .push(PlannedContent::text(BOOT_IMAGE_LIST, list));
    }
    Ok(())
}

/// The entry of `OS_IMAGES`.
fn offer(image: &BootImageFile) -> Result<Value, Error> {
    let shown = image.file.display();
    let doing = || format!("adding the boot image {shown}");
    let live = BaseImage::open(&image.file).doing(doing)?;
    let (_, system) = live.volume_id.rsplit_once("os-").unwrap_or_default();
    let platform = image.version.clone().or_else(|| platform(&live.volume_id));
    let platform = platform.ok_or_else(|| {
        let reason = format!(
            "its volume id {} names no platform version: name it, as in --os-image 4.20={shown}",
            live.volume_id
        );
        Error::new(doing(), reason)
    })?;
    let architecture = architecture(&live).doing(doing)?;
    Ok(json!({
        "openshift_version": platform,
        "cpu_architecture": architecture,
        "url": format!("{MOUNTED}{}", name(Path::new(&image.file))?),
        "version": system,
    }))
}

/// Major and minor number of the platform.
fn platform(volume: &str) -> Option<String> {
    let version = NUMBERED.iter().find_map(|it| volume.strip_prefix(it))?;
    let (number, _) = version.split_once('.')?;
    let minor = number.strip_prefix(MAJOR)?;
    let is_number = !minor.is_empty() && minor.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| format!("{MAJOR}.{minor}"))
}

/// The architecture of a live image.
fn architecture(image: &BaseImage) -> io::Result<&'static str> {
    if image.is_x86 {
        return Ok("x86_64");
    }
    if image.ins_file().is_some() {
        return Ok("s390x");
    }
    let mut kernel = ContentPieces::new();
    kernel.push(image.kernel());
    let mut head: Vec<u8> = Vec::new();
    let read = kernel.for_each_chunk(|chunk| {
        head.extend(chunk.iter().take(ELF.len() - head.len()));
        // The rest need not be read.
        match head.len() {
            length if length < ELF.len() => Ok(()),
            _ => Err(io::ErrorKind::Interrupted.into()),
        }
    });
    match read {
        Err(error) if head.len() < ELF.len() => Err(error),
        _ if head == ELF => Ok("ppc64le"),
        _ => Ok("arm64"),
    }
}

#[cfg(test)]
mod tests {
    use test_iso::LiveImageOptions;

    use super::*;

    #[test]
    fn the_platform_is_given_or_in_the_volume_id() {
        for (volume, expected) in [
            ("rhcos-418.94.202511191518-0", Some("4.18")),
            ("rhcos-49.84.202207192205-0", Some("4.9")),
            ("scos-419.9.202505081542-0", Some("4.19")),
            ("rhcos-9.6.20251015-1", None),
            ("fedora-coreos-41.20250105.3.0", None),
            ("rhcos-4.1", None),
        ] {
            assert_eq!(platform(volume).as_deref(), expected, "{volume}");
        }
        let parse = |text: &str| text.parse::<BootImageFile>().unwrap();
        let given = parse("4.20=a=b.iso");
        assert_eq!(given.version.as_deref(), Some("4.20"));
        assert_eq!(given.file, Path::new("a=b.iso"));
        for path in ["live.iso", "v4.20=a.iso", "4=a.iso", "4.x=a.iso"] {
            let image = parse(path);
            assert_eq!((image.version, image.file), (None, path.into()));
        }
    }

    #[test]
    fn live_images_are_listed_as_containers_see_them() {
        let dir = tempfile::tempdir().unwrap();
        let mut images = Vec::new();
        for (name, options) in [
            ("a.iso", LiveImageOptions::small()),
            (
                "b.iso",
                LiveImageOptions {
                    os_version: "9.6.1-0".to_owned(),
                    ..LiveImageOptions::small()
                },
            ),
        ] {
            let file = dir.path().join(name);
            test_iso::write(&file, &options).unwrap();
            images.push(BootImageFile {
                version: None,
                file,
            });
        }
        let mut content = BundleContent::default();
        let error = add(&mut content, &images).unwrap_err().to_string();
        assert!(error.contains("--os-image 4.20="), "{error}");
        images[1].version = Some("4.20".to_owned());
        let mut content = BundleContent::default();
        add(&mut content, &images).unwrap();
        let paths: Vec<_> = content.others.iter().map(|it| it.path.as_str()).collect();
        assert_eq!(paths, ["images/a.iso", "images/b.iso", BOOT_IMAGE_LIST]);
        let second = offer(&images[1]).unwrap();
        let expected = json!({
            "openshift_version": "4.20", "cpu_architecture": "x86_64", "version": "9.6.1-0",
            "url": "file:///images/b.iso",
        });
        assert_eq!(second, expected);
        std::fs::write(&images[0].file, "no image").unwrap();
        offer(&images[0]).unwrap_err();
    }
}
