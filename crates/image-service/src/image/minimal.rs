//! Minimal images: the live image without its root file system, which early boot downloads.
//!
//! Source of the kernel arguments: assisted-image-service. There, the ramdisk of a static network is a file of its own that
//! the boot loaders load; here, it follows the ignition in the file that they load anyway.

use serde_json::Value;

use super::base::{BaseImage, TextFile};
use super::customise::{InitrdArchives, embed_ignition};
use super::error::CustomiseError;
use super::iso_edit::{EditError, IsoEdit, Replacement, edited};
use super::kargs::KargsChange;
use crate::content::{ContentPieces, Piece};

/// The kernel argument of images that have their root file system.
const LIVE_ISO: &str = "coreos.liveiso=";
/// Text behind the area for kernel arguments.
const AREA_MARKER: &str = "# COREOS_KARG_EMBED_AREA";
/// Padding of the area for kernel arguments.
const PADDING: char = '#';

/// A minimal image with `ignition` and the archives in it, and the kernel arguments of every boot loader's line changed.
///
/// `rootfs_url` is quoted in the boot loaders' configurations, so it has neither `"` nor `\` nor `$`.
///
/// Errors: as those of a full image; or when the image has no minimal form.
pub fn minimal_iso(
    image: &BaseImage,
    ignition: &[u8],
    archives: InitrdArchives,
    kargs: &KargsChange,
    rootfs_url: &str,
) -> Result<ContentPieces, CustomiseError> {
    let Some(map) = &image.map else {
        return Err(EditError::Layout("its metadata cannot be followed").into());
    };
    let mut edit = IsoEdit {
        removed: Some(image.rootfs.clone()),
        ..IsoEdit::default()
    };
    embed_ignition(&mut edit, image, ignition, archives)?;
    for file in &image.loader.configs {
        let Some(mut text) = with_rootfs_url(&file.text, rootfs_url) else {
            continue;
        };
        if !kargs.is_empty() {
            let starts = image.kargs.iter().map(|area| area.start);
            let start = starts.filter(|start| file.extent.contains(start)).min();
            let start = start.ok_or(CustomiseError::NoKargsArea)? - file.extent.start;
            text = with_kargs(&text, start, kargs)?;
        }
        edit.replacements.push(replacement(file, text));
    }
    if edit.replacements.is_empty() {
        return Err(CustomiseError::NoLoaderConfig);
    }
    if let Some(file) = &image.loader.record
        && let Some(text) = adapted_record(&file.text, rootfs_url)
    {
        edit.replacements.push(replacement(file, text));
    }
    Ok(edited(map, &image.whole(), edit)?)
}

fn replacement(file: &TextFile, text: String) -> Replacement {
    let mut content = ContentPieces::new();
    content.push(Piece::Memory(text.into()));
    Replacement {
        file: file.extent.clone(),
        content,
    }
}

/// Kernel arguments without the live image's, and with the URL at the end of their line; of live images only.
fn with_rootfs_url(text: &str, url: &str) -> Option<String> {
    let start = text.find(LIVE_ISO)?;
    let (before, rest) = text.split_at(start);
    let word = rest.find(char::is_whitespace).unwrap_or(rest.len());
    let rest = &rest[word..];
    let rest = rest.strip_prefix(' ').unwrap_or(rest);
    let (line, after) = rest.split_at(rest.find('\n').unwrap_or(rest.len()));
    let line = format!("{before}{line}");
    let line = line.trim_end_matches(' ');
    Some(format!("{line} coreos.live.rootfs_url=\"{url}\"{after}"))
}

/// Changed kernel arguments in the area that begins at `start`: the padding before its marker gets shorter or longer.
fn with_kargs(text: &str, start: u64, kargs: &KargsChange) -> Result<String, CustomiseError> {
    // Comments begin with the padding's character, too: the area is before its marker.
    let marker = text.find(AREA_MARKER).ok_or(CustomiseError::NoKargsArea)?;
    let area = usize::try_from(start).ok();
    let area = area.and_then(|start| text.get(start..marker));
    let area = area.ok_or(CustomiseError::NoKargsArea)?;
    let line = area.trim_end_matches(PADDING).strip_suffix('\n');
    let line = line.ok_or(CustomiseError::NoKargsArea)?;
    let line = kargs.apply(line)?;
    // One byte is reserved for the end.
    let (size, room) = (line.len(), area.len() - 1);
    if size > room {
        return Err(CustomiseError::KargsTooLong { size, room });
    }
    let (before, after) = (&text[..marker - area.len()], &text[marker..]);
    let padding = PADDING.to_string().repeat(room - size);
    Ok(format!("{before}{line}\n{padding}{after}"))
}

/// `kargs.json` with other default arguments. None if it is not as expected: then nothing reads it either.
fn adapted_record(text: &str, url: &str) -> Option<String> {
    let mut record: Value = serde_json::from_str(text).ok()?;
    let before = record["default"].as_str()?;
    let after = with_rootfs_url(before, url)?;
    let size = record["size"].as_u64()?;
    let room = size.checked_sub(before.len() as u64)?;
    record["size"] = (room + after.len() as u64).into();
    record["default"] = after.into();
    Some(format!("{record:#}\n"))
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::FileExt as _;
    use std::path::PathBuf;

    use bytes::Bytes;
    use testkit::iso::{self, LiveImageOptions, Written};

    use super::*;
    use crate::content::collect;
    use crate::image::iso_map::IsoMap;
    use crate::image::iso9660::Iso;

    const URL: &str = "http://h:8888/boot-artifacts/rootfs?arch=x86_64&version=v";
    const IGNITION: &[u8] = br#"{"ignition":{"version":"3.1.0"}}"#;

    struct Images {
        folder: tempfile::TempDir,
        base: BaseImage,
        bytes: Vec<u8>,
        written: Written,
    }

    impl Images {
        fn new(options: &LiveImageOptions) -> Self {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("full.iso");
            let written = iso::write(&path, options).unwrap();
            let bytes = std::fs::read(&path).unwrap();
            let base = BaseImage::open(&path).unwrap();
            Self {
                folder,
                base,
                bytes,
                written,
            }
        }

        fn original(&self, path: &str) -> &[u8] {
            let (start, length) = self.written.files[path];
            let [start, length] = [start, length].map(|at| usize::try_from(at).unwrap());
            &self.bytes[start..start + length]
        }

        fn minimal(&self, ramdisk: Option<&'static [u8]>, kargs: &[&str]) -> PathBuf {
            let network = InitrdArchives {
                ramdisk: ramdisk.map(Bytes::from_static),
                ..InitrdArchives::default()
            };
            let kargs = added(kargs);
            let content = minimal_iso(&self.base, IGNITION, network, &kargs, URL).unwrap();
            let length = content.length();
            let bytes = collect(&content);
            assert_eq!(bytes.len() as u64, length);
            let path = self.folder.path().join("minimal.iso");
            std::fs::write(&path, bytes).unwrap();
            path
        }
    }

    fn added(kargs: &[&str]) -> KargsChange {
        KargsChange::adding(kargs.iter().map(ToString::to_string).collect())
    }

    fn file(path: &PathBuf, name: &str) -> Vec<u8> {
        let file = File::open(path).unwrap();
        let iso = Iso::open(&file).unwrap();
        assert_eq!(iso.length, file.metadata().unwrap().len().min(iso.length));
        iso.read(name, 1 << 30).unwrap().unwrap().1
    }

    /// Files that a minimal image changes.
    const CHANGED: [&str; 5] = [
        "images/pxeboot/rootfs.img",
        "images/ignition.img",
        "EFI/redhat/grub.cfg",
        "isolinux/isolinux.cfg",
        "coreos/kargs.json",
    ];
    /// Files that hold sector numbers.
    const MOVED: [&str; 3] = ["isolinux/isolinux.bin", "isolinux/boot.cat", "boot.catalog"];

    #[test]
    fn all_files_but_the_root_file_system_are_kept() {
        for options in [
            LiveImageOptions::small(),
            LiveImageOptions {
                joliet: false,
                ..LiveImageOptions::small()
            },
            LiveImageOptions {
                rock_ridge: false,
                ..LiveImageOptions::small()
            },
            LiveImageOptions {
                cpu_architecture: "arm64".to_owned(),
                ..LiveImageOptions::small()
            },
            LiveImageOptions {
                kargs_json: false,
                igninfo_json: false,
                ..LiveImageOptions::small()
            },
        ] {
            let images = Images::new(&options);
            let minimal = images.minimal(None, &[]);
            for name in images.written.files.keys() {
                if !CHANGED.contains(&name.as_str()) && !MOVED.contains(&name.as_str()) {
                    assert!(file(&minimal, name) == images.original(name), "{name}");
                }
            }
            assert!(file(&minimal, "images/pxeboot/rootfs.img").is_empty());
            let ignition = file(&minimal, "images/ignition.img");
            assert_eq!(ignition.len(), ignition::archive::EMBED_AREA);
            assert_eq!(
                ignition::archive::read(&ignition).unwrap()[0].data,
                IGNITION
            );
        }
    }

    #[test]
    fn boot_loaders_get_the_url_in_place_of_the_live_image() {
        let images = Images::new(&LiveImageOptions::small());
        let minimal = images.minimal(None, &["console=ttyS0", "debug"]);
        for path in ["EFI/redhat/grub.cfg", "isolinux/isolinux.cfg"] {
            let text = String::from_utf8(file(&minimal, path)).unwrap();
            let before = std::str::from_utf8(images.original(path)).unwrap();
            assert!(!text.contains(LIVE_ISO), "{text}");
            let end = format!(
                "rw ignition.firstboot ignition.platform.id=metal coreos.live.rootfs_url=\"{URL}\" console=ttyS0 debug\n#"
            );
            assert!(text.contains(&end), "{text}");
            let tail = |text: &str| text[text.find(AREA_MARKER).unwrap()..].to_owned();
            assert_eq!(tail(&text), tail(before));
        }
    }

    #[test]
    fn the_record_of_the_areas_is_true() {
        let images = Images::new(&LiveImageOptions::small());
        let minimal = images.minimal(None, &["debug"]);
        let record: Value = serde_json::from_slice(&file(&minimal, "coreos/kargs.json")).unwrap();
        let size = usize::try_from(record["size"].as_u64().unwrap()).unwrap();
        let default = record["default"].as_str().unwrap();
        assert!(default.ends_with(&format!(" coreos.live.rootfs_url=\"{URL}\"")));
        for area in record["files"].as_array().unwrap() {
            let bytes = file(&minimal, area["path"].as_str().unwrap());
            let offset = usize::try_from(area["offset"].as_u64().unwrap()).unwrap();
            let text = std::str::from_utf8(&bytes[offset..offset + size]).unwrap();
            assert_eq!(text.trim_end_matches('#'), format!("{default} debug\n"));
            assert!(bytes[offset + size..].starts_with(b"# COREOS_KARG_EMBED_AREA\n"));
        }
    }

    #[test]
    fn a_ramdisk_follows_the_ignition() {
        static RAMDISK: std::sync::LazyLock<Vec<u8>> = std::sync::LazyLock::new(|| {
            let data: Vec<u8> = (0..900_000_u32)
                .map(|at| at.wrapping_mul(2_654_435_761).to_be_bytes()[0])
                .collect();
            let member = ignition::cpio::CpioMember {
                name: "etc/assisted/network/x",
                mode: 0o100_600,
                data: &data,
            };
            ignition::cpio::write(&[member]).unwrap()
        });
        let images = Images::new(&LiveImageOptions::small());
        let minimal = images.minimal(Some(&RAMDISK), &[]);
        let area = file(&minimal, "images/ignition.img");
        assert!(area.len() > RAMDISK.len());
        let files = ignition::archive::read(&area).unwrap();
        let names: Vec<_> = files.iter().map(|file| file.name.as_str()).collect();
        assert_eq!(names, ["config.ign", "etc/assisted/network/x"]);
        assert!(BaseImage::open(&minimal).unwrap().ignition_file.is_some());
    }

    #[test]
    fn all_trees_name_the_same_places() {
        let images = Images::new(&LiveImageOptions::small());
        let minimal = images.minimal(Some(b"070701"), &["debug"]);
        let map = IsoMap::read(&File::open(&minimal).unwrap()).unwrap();
        let mut places = map.places();
        let trees = places.len() / 2;
        assert_eq!(places.len() % 2, 0);
        let mut others = places.split_off(trees);
        places.sort_unstable();
        others.sort_unstable();
        assert_eq!(places, others);
        let length = std::fs::metadata(&minimal).unwrap().len();
        for (sector, bytes) in places {
            assert!(u64::from(sector) * 2048 + u64::from(bytes) <= length);
        }
    }

    #[test]
    fn images_of_other_kinds_are_refused() {
        let text = "default linux\nlabel linux\n  append quiet\n";
        assert_eq!(with_rootfs_url(text, URL), None);
        let images = Images::new(&LiveImageOptions::small());
        let network = InitrdArchives::default;
        let line = "rw ignition.firstboot ignition.platform.id=metal coreos.live.rootfs_url=";
        let line = line.len() + URL.len() + 2;
        let added = |size: usize| added(&[&"x".repeat(size)]);
        let error = minimal_iso(&images.base, IGNITION, network(), &added(1024), URL).unwrap_err();
        let expected = (line + 1025, line + 1024);
        assert!(
            matches!(error, CustomiseError::KargsTooLong { size, room } if (size, room) == expected),
            "{error}"
        );
        minimal_iso(&images.base, IGNITION, network(), &added(1023), URL).unwrap();
    }

    #[test]
    fn kernel_arguments_are_changed_in_their_area_only() {
        let change = KargsChange {
            delete: vec!["rw".to_owned(), "linux".to_owned()],
            replace: vec!["ignition.platform.id=metal=qemu".to_owned()],
            append: vec!["debug".to_owned()],
        };
        for kargs_json in [true, false] {
            let images = Images::new(&LiveImageOptions {
                kargs_json,
                ..LiveImageOptions::small()
            });
            let content = minimal_iso(
                &images.base,
                IGNITION,
                InitrdArchives::default(),
                &change,
                URL,
            );
            let path = images.folder.path().join("minimal.iso");
            std::fs::write(&path, collect(&content.unwrap())).unwrap();
            let line = format!(
                "ignition.firstboot ignition.platform.id=qemu coreos.live.rootfs_url=\"{URL}\" debug"
            );
            let minimal = BaseImage::open(&path).unwrap();
            assert_eq!(minimal.kargs.len(), 2);
            for area in &minimal.kargs {
                assert_eq!(area.text, line);
            }
            let grub = String::from_utf8(file(&path, "EFI/redhat/grub.cfg")).unwrap();
            assert!(
                grub.contains(&format!("\tlinux /images/pxeboot/vmlinuz {line}\n")),
                "{grub}"
            );
            let isolinux = file(&path, "isolinux/isolinux.cfg");
            assert!(isolinux.ends_with(b"# COREOS_KARG_EMBED_AREA\nmenu end\n"));
        }
    }

    #[test]
    fn damaged_images_do_no_harm() {
        let images = Images::new(&LiveImageOptions::small());
        let path = images.folder.path().join("full.iso");
        let file = File::options().write(true).open(&path).unwrap();
        let metadata = images.written.files.values().map(|(start, _)| *start).min();
        let (mut made, mut refused) = (0, 0);
        // A prime step visits all members of the records.
        for at in (0..512).chain(32768..metadata.unwrap()).step_by(29) {
            let before = images.bytes[usize::try_from(at).unwrap()];
            for value in [0, 1, 33, 255] {
                file.write_all_at(&[value], at).unwrap();
                let made_one = BaseImage::open(&path).ok().and_then(|base| {
                    let network = InitrdArchives::default();
                    minimal_iso(&base, IGNITION, network, &KargsChange::default(), URL).ok()
                });
                if made_one.is_some() {
                    made += 1;
                } else {
                    refused += 1;
                }
            }
            file.write_all_at(&[before], at).unwrap();
        }
        assert!(made > 0 && refused > 0, "{made} and {refused}");
    }
}
