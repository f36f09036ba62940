//! A live image on disk, with the offsets of its parts and embed areas, read once when it is opened.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use super::iso_map::IsoMap;
use super::iso9660::Iso;
use crate::content::Piece;

/// Prefixes of the volume ids of live images.
const VOLUME_IDS: &[&str] = &["rhcos-", "fedora-coreos-", "scos-"];
/// Least length of a genuine root file system. Units: bytes.
const MIN_ROOTFS: u64 = 100 * 1024 * 1024;
/// Least length of a genuine kernel. Units: bytes.
const MIN_KERNEL: u64 = 5 * 1024 * 1024;
/// Longest metadata file. Units: bytes. Many times their usual length.
const MAX_RECORD: u64 = 256 * 1024;

/// Start of an image that distinguishes it from others: volume descriptors and directories. Units: bytes.
const FINGERPRINTED: u64 = 1 << 20;

const MARKER: &[u8] = b"# COREOS_KARG_EMBED_AREA";
const KARGS_RECORD: &str = "coreos/kargs.json";
/// Boot loader configurations. Source: assisted-image-service.
const LOADER_CONFIGS: &[&str] = &[
    "EFI/redhat/grub.cfg",
    "EFI/fedora/grub.cfg",
    "boot/grub/grub.cfg",
    "EFI/centos/grub.cfg",
    "isolinux/isolinux.cfg",
];

/// Reason why a base image cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BaseImageError {
    /// It cannot be read, or is no ISO image.
    #[error("{path} cannot be used")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// It is an ISO image but not a live image of the operating system, or not all of it.
    #[error("{path} is no whole live image: {reason}")]
    NotLive {
        /// The file.
        path: PathBuf,
        /// The missing or invalid part.
        reason: String,
    },
}

/// Embed area of kernel arguments in one boot loader's configuration. Offsets count from the start of the image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KargsArea {
    pub(super) start: u64,
    pub(super) size: usize,
    /// Present kernel arguments.
    pub(super) text: String,
    pub(super) end: u8,
    pub(super) pad: u8,
}

/// A live image that is open for streaming.
#[derive(Debug)]
pub struct BaseImage {
    /// The open file; replacing it on disk does not disturb streams of this one.
    file: Arc<File>,
    /// Units: bytes.
    pub length: u64,
    /// Modification time of the file.
    pub modified: SystemTime,
    /// Digest of the length, the start and the kernel arguments: equal for copies of one image. The start has the times of
    /// its making and of each file.
    pub fingerprint: [u8; 32],
    /// Name of the volume, as in `rhcos-418.94.202511191518-0`.
    pub volume_id: String,
    /// Whether it starts with a BIOS loader, which only x86_64 images have.
    pub is_x86: bool,
    kernel: Range<u64>,
    initrd: Range<u64>,
    pub(super) rootfs: Range<u64>,
    /// Of s390x: the list of files for a boot from an FTP server.
    ins_file: Option<Range<u64>>,
    /// Of s390x: the address of the initrd, as `images/initrd.addrsize` begins.
    initrd_address: Option<[u8; 8]>,
    pub(super) ignition: Range<u64>,
    /// The file that is the ignition area, unless the area is a part of a file.
    pub(super) ignition_file: Option<Range<u64>>,
    pub(super) kargs: Vec<KargsArea>,
    /// Files that name the kernel arguments, for images that boot in another way.
    pub(super) loader: LoaderFiles,
    /// None if the image's metadata cannot be followed: then its files stay where they are.
    pub(super) map: Option<IsoMap>,
}

/// A small text file. Offsets count from the start of the image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TextFile {
    pub(super) extent: Range<u64>,
    pub(super) text: String,
}

/// Configurations of boot loaders, and the record of their kernel arguments.
#[derive(Debug, Default)]
pub(super) struct LoaderFiles {
    pub(super) configs: Vec<TextFile>,
    /// `coreos/kargs.json`; none in older images.
    pub(super) record: Option<TextFile>,
}

#[derive(Deserialize)]
struct IgnitionRecord {
    file: String,
    #[serde(default)]
    offset: u64,
    length: Option<u64>,
}

#[derive(Deserialize)]
struct KargsRecord {
    files: Vec<KargsFile>,
    size: usize,
}

#[derive(Deserialize)]
struct KargsFile {
    path: String,
    offset: u64,
    #[serde(default = "default_pad")]
    pad: String,
    #[serde(default = "default_end")]
    end: String,
}

fn default_pad() -> String {
    "#".to_owned()
}

fn default_end() -> String {
    "\n".to_owned()
}

impl BaseImage {
    /// Opens an image and locates its parts. Reads about a megabyte.
    ///
    /// Errors: `Unreadable`, or `NotLive` when a part is missing.
    pub fn open(path: &Path) -> Result<Self, BaseImageError> {
        Self::read(path).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData => BaseImageError::NotLive {
                path: path.to_owned(),
                reason: error.to_string(),
            },
            _ => BaseImageError::Unreadable {
                path: path.to_owned(),
                source: error,
            },
        })
    }

    fn read(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        let iso = Iso::open(&file)?;
        if !VOLUME_IDS
            .iter()
            .any(|start| iso.volume_id.starts_with(start))
        {
            let expected = VOLUME_IDS.join(", ");
            let id = &iso.volume_id;
            return Err(wrong(format!(
                "its volume id {id:?} starts with none of {expected}"
            )));
        }
        if metadata.len() < iso.length {
            let (found, length) = (metadata.len(), iso.length);
            return Err(wrong(format!("it has {found} of {length} bytes")));
        }
        let part = |name: &str| part(&iso, &[name]);
        let (ignition, ignition_file) = ignition_area(&iso)?;
        let map = IsoMap::read(&file)
            .inspect_err(|error| {
                let path = path.display();
                tracing::warn!(%path, %error, "the layout of the image is unusual: it is offered as full.iso only");
            })
            .ok();
        let kargs = kargs_areas(&iso)?;
        let image = Self {
            length: metadata.len(),
            fingerprint: fingerprint(&file, metadata.len(), &kargs)?,
            modified: metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH),
            volume_id: iso.volume_id.clone(),
            is_x86: iso.find("isolinux/isolinux.bin")?.is_some(),
            kernel: self::part(
                &iso,
                &["images/pxeboot/vmlinuz", "images/pxeboot/kernel.img"],
            )?,
            initrd: part("images/pxeboot/initrd.img")?,
            rootfs: part("images/pxeboot/rootfs.img")?,
            ins_file: iso.find("generic.ins")?,
            initrd_address: initrd_address(&iso)?,
            ignition,
            ignition_file,
            kargs,
            loader: loader_files(&iso)?,
            map,
            file: Arc::new(file.try_clone()?),
        };
        let parts = [&image.kernel, &image.initrd, &image.rootfs, &image.ignition];
        let is_outside = |part: &Range<u64>| part.end > image.length;
        if parts.into_iter().chain(&image.ins_file).any(is_outside) {
            return Err(wrong("a part reaches over its end".to_owned()));
        }
        Ok(image)
    }

    /// Refuses an image that is too small to be genuine: a broken download.
    ///
    /// Errors: `NotLive`.
    pub fn check_sizes(&self, path: &Path) -> Result<(), BaseImageError> {
        for (name, part, least) in [
            ("rootfs.img", &self.rootfs, MIN_ROOTFS),
            ("vmlinuz", &self.kernel, MIN_KERNEL),
        ] {
            let length = part.end - part.start;
            if length < least {
                return Err(BaseImageError::NotLive {
                    path: path.to_owned(),
                    reason: format!(
                        "images/pxeboot/{name} has {length} bytes, a genuine one at least {least}"
                    ),
                });
            }
        }
        Ok(())
    }

    /// The whole image.
    pub fn whole(&self) -> Piece {
        self.piece(&(0..self.length))
    }

    /// The kernel.
    pub fn kernel(&self) -> Piece {
        self.piece(&self.kernel)
    }

    /// The initrd.
    pub fn initrd(&self) -> Piece {
        self.piece(&self.initrd)
    }

    /// The root file system.
    pub fn rootfs(&self) -> Piece {
        self.piece(&self.rootfs)
    }

    /// The list of files for a boot from an FTP server; only of s390x.
    pub fn ins_file(&self) -> Option<Piece> {
        self.ins_file.as_ref().map(|part| self.piece(part))
    }

    /// Address and length of an initrd for the boot loader of s390x, each a big-endian number; none of other
    /// architectures.
    pub fn addrsize(&self, initrd_length: u64) -> Option<[u8; 16]> {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.initrd_address?);
        bytes[8..].copy_from_slice(&initrd_length.to_be_bytes());
        Some(bytes)
    }

    /// The bytes of the ignition area: archives, or zeros.
    ///
    /// Errors: the file cannot be read.
    pub fn embedded(&self) -> io::Result<Vec<u8>> {
        let length = self.ignition.end - self.ignition.start;
        let mut bytes = vec![0; usize::try_from(length).map_err(io::Error::other)?];
        self.file.read_exact_at(&mut bytes, self.ignition.start)?;
        Ok(bytes)
    }

    /// Length of the ignition area. Units: bytes.
    pub fn ignition_room(&self) -> u64 {
        self.ignition.end - self.ignition.start
    }

    /// The kernel arguments that boot loaders pass; none if the image does not record them.
    pub fn kernel_arguments(&self) -> Option<&str> {
        let area = self.kargs.iter().find(|area| !area.text.is_empty());
        area.map(|area| area.text.as_str())
    }

    /// The kernel arguments of the image as it was published; none if it does not record them.
    pub fn default_kernel_arguments(&self) -> Option<String> {
        let record: serde_json::Value =
            serde_json::from_str(&self.loader.record.as_ref()?.text).ok()?;
        Some(record["default"].as_str()?.to_owned())
    }

    /// Fills `buffer` from `offset` in rootfs.img.
    pub(super) fn read_rootfs(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let end = offset.checked_add(buffer.len() as u64);
        if end.is_none_or(|end| end > self.rootfs.end - self.rootfs.start) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.file.read_exact_at(buffer, self.rootfs.start + offset)
    }

    fn piece(&self, range: &Range<u64>) -> Piece {
        Piece::File {
            file: Arc::clone(&self.file),
            start: range.start,
            length: range.end - range.start,
        }
    }
}

fn fingerprint(file: &File, length: u64, kargs: &[KargsArea]) -> io::Result<[u8; 32]> {
    let mut start = vec![0; usize::try_from(length.min(FINGERPRINTED)).map_err(io::Error::other)?];
    file.read_exact_at(&mut start, 0)?;
    let mut hash = Sha256::new();
    hash.update(length.to_le_bytes());
    hash.update(start);
    for area in kargs {
        hash.update((area.text.len() as u64).to_le_bytes());
        hash.update(&area.text);
    }
    Ok(hash.finalize().into())
}

fn wrong(reason: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

fn part(iso: &Iso<'_>, paths: &[&str]) -> io::Result<Range<u64>> {
    for path in paths {
        if let Some(extent) = iso.find(path)? {
            return Ok(extent);
        }
    }
    Err(wrong(format!("{} is missing", paths[0])))
}

fn initrd_address(iso: &Iso<'_>) -> io::Result<Option<[u8; 8]>> {
    let file = iso.read("images/initrd.addrsize", MAX_RECORD)?;
    Ok(file.and_then(|(_, bytes)| bytes.first_chunk().copied()))
}

/// Embed area of the ignition, and the file if that is the area: from `igninfo.json`, in older images a whole file. Source:
/// coreos-installer.
fn ignition_area(iso: &Iso<'_>) -> io::Result<(Range<u64>, Option<Range<u64>>)> {
    const RECORD: &str = "coreos/igninfo.json";
    let Some((_, json)) = iso.read(RECORD, MAX_RECORD)? else {
        let file = part(iso, &["images/ignition.img"])?;
        return Ok((file.clone(), Some(file)));
    };
    let record: IgnitionRecord =
        serde_json::from_slice(&json).map_err(|error| wrong(format!("{RECORD}: {error}")))?;
    let file = part(iso, &[&record.file])?;
    let start = file.start.saturating_add(record.offset);
    // Both zero means the whole file.
    let end = match record.length {
        None | Some(0) => file.end,
        Some(length) => start.saturating_add(length),
    };
    if start >= end || end > file.end {
        return Err(wrong(format!(
            "{RECORD}: the area is not within {}",
            record.file
        )));
    }
    let area = start..end;
    // With a length of its own, the record would have to be replaced, too.
    let is_file = area == file && record.length.is_none_or(|length| length == 0);
    Ok((area, is_file.then_some(file)))
}

fn loader_files(iso: &Iso<'_>) -> io::Result<LoaderFiles> {
    let read = |path: &str| -> io::Result<Option<TextFile>> {
        // A boot image of some megabytes is no configuration.
        let Some(extent) = iso.find(path)? else {
            return Ok(None);
        };
        if extent.end - extent.start > MAX_RECORD {
            return Ok(None);
        }
        let text = String::from_utf8(iso.bytes(&extent, MAX_RECORD)?).ok();
        Ok(text.map(|text| TextFile { extent, text }))
    };
    let mut files = LoaderFiles {
        configs: Vec::new(),
        record: read(KARGS_RECORD)?,
    };
    for path in LOADER_CONFIGS {
        files.configs.extend(read(path)?);
    }
    Ok(files)
}

fn kargs_areas(iso: &Iso<'_>) -> io::Result<Vec<KargsArea>> {
    const RECORD: &str = KARGS_RECORD;
    let Some((_, json)) = iso.read(RECORD, MAX_RECORD)? else {
        return unrecorded_kargs_areas(iso);
    };
    let record: KargsRecord =
        serde_json::from_slice(&json).map_err(|error| wrong(format!("{RECORD}: {error}")))?;
    let area = |file: &KargsFile| {
        let path = &file.path;
        let (&[pad], &[end]) = (file.pad.as_bytes(), file.end.as_bytes()) else {
            return Err(wrong(format!(
                "{RECORD}: pad and end of {path} are not one byte each"
            )));
        };
        // An area may be part of a boot image of some megabytes: only the area is read.
        let extent = part(iso, &[path])?;
        let start = extent.start.saturating_add(file.offset);
        let region = start..start.saturating_add(record.size as u64);
        if region.end > extent.end {
            return Err(wrong(format!("{RECORD}: the area is not within {path}")));
        }
        let bytes = iso.bytes(&region, MAX_RECORD)?;
        let text = String::from_utf8(bytes)
            .map_err(|error| wrong(format!("{path}: its kernel arguments are no text: {error}")))?;
        let text = text.trim_end_matches(char::from(pad));
        let text = text.trim_end_matches(char::from(end)).trim().to_owned();
        Ok(KargsArea {
            start,
            size: record.size,
            text,
            end,
            pad,
        })
    };
    record.files.iter().map(area).collect()
}

/// Images before 2023: the area is the arguments of the boot loader's line, its newline and the padding before the marker.
fn unrecorded_kargs_areas(iso: &Iso<'_>) -> io::Result<Vec<KargsArea>> {
    let mut areas = Vec::new();
    for path in LOADER_CONFIGS {
        let Some((start, bytes)) = iso.read(path, MAX_RECORD)? else {
            continue;
        };
        let marker = bytes.windows(MARKER.len()).position(|at| at == MARKER);
        let Some(marker) = marker else { continue };
        let padding = bytes[..marker]
            .iter()
            .rev()
            .take_while(|byte| **byte == b'#')
            .count();
        let newline = marker - padding;
        if newline == 0 || bytes[newline - 1] != b'\n' {
            continue;
        }
        let line_end = newline - 1;
        let line = &bytes[..line_end];
        let Some(first) = arguments_of_line(line).or_else(|| last_word(line)) else {
            continue;
        };
        areas.push(KargsArea {
            start: start + first as u64,
            size: marker - first,
            text: String::from_utf8_lossy(&bytes[first..line_end]).into_owned(),
            end: b'\n',
            pad: b'#',
        });
    }
    Ok(areas)
}

/// Where the kernel arguments begin in the last line: after `linux` and the kernel, or `append` and its initrd.
fn arguments_of_line(text: &[u8]) -> Option<usize> {
    let text = std::str::from_utf8(text).ok()?;
    let line = &text[text.rfind('\n').map_or(0, |at| at + 1)..];
    let mut words = line.split_whitespace();
    let is_linux = words.next()?.starts_with("linux");
    let last = words
        .next()
        .filter(|word| is_linux || word.starts_with("initrd="))?;
    let start = text.len() - line.len() + line.find(last)? + last.len();
    let blanks = text[start..].len() - text[start..].trim_start().len();
    (blanks > 0).then_some(start + blanks)
}

/// Where the last word of the last line begins: it continues with others of a line of another form.
fn last_word(text: &[u8]) -> Option<usize> {
    let line_start = text
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |at| at + 1);
    let line = text[line_start..].trim_ascii_end();
    let blank = line.iter().rposition(u8::is_ascii_whitespace);
    (!line.is_empty()).then_some(line_start + blank.map_or(0, |at| at + 1))
}

#[cfg(test)]
mod tests {
    use testkit::iso::{self, LiveImageOptions};

    use super::*;

    fn opened(
        options: &LiveImageOptions,
    ) -> (
        tempfile::TempDir,
        PathBuf,
        Result<BaseImage, BaseImageError>,
    ) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.iso");
        iso::write(&path, options).unwrap();
        let image = BaseImage::open(&path);
        (directory, path, image)
    }

    #[test]
    fn parts_and_areas_are_found() {
        let (_directory, path, image) = opened(&LiveImageOptions::small());
        let image = image.unwrap();
        assert!(image.is_x86);
        assert_eq!(image.ignition.end - image.ignition.start, 262_144);
        assert_eq!(image.kargs.len(), 2);
        assert!(image.kargs[0].text.ends_with("ignition.platform.id=metal"));
        assert!(image.check_sizes(&path).is_err());
    }

    #[test]
    fn older_images_have_areas_too() {
        let options = LiveImageOptions {
            kargs_json: false,
            igninfo_json: false,
            ..LiveImageOptions::small()
        };
        let (_directory, _, image) = opened(&options);
        let image = image.unwrap();
        assert_eq!(image.ignition.end - image.ignition.start, 262_144);
        let text = "rw coreos.liveiso=rhcos-418.94.202511191518-0 ignition.firstboot ignition.platform.id=metal";
        assert_eq!(image.kargs.len(), 2);
        for area in &image.kargs {
            assert_eq!((area.size, area.text.as_str()), (text.len() + 1025, text));
        }
    }

    #[test]
    fn arguments_of_boot_loader_lines_are_found() {
        for (line, arguments) in [
            ("a\n\tlinux /vmlinuz rw a=b", Some("rw a=b")),
            ("linuxefi /vmlinuz  rw", Some("rw")),
            ("  append initrd=/a,/b rw", Some("rw")),
            ("  append rw a=b", None),
            ("linux /vmlinuz", None),
            ("", None),
        ] {
            let found = arguments_of_line(line.as_bytes()).map(|start| &line[start..]);
            assert_eq!(found, arguments, "{line:?}");
        }
        for (line, word) in [
            ("x\n  append rw a=b ", Some("a=b ")),
            ("x", Some("x")),
            ("x\n ", None),
        ] {
            let found = last_word(line.as_bytes()).map(|start| &line[start..]);
            assert_eq!(found, word, "{line:?}");
        }
    }

    #[test]
    fn genuine_sizes_pass() {
        let options = LiveImageOptions {
            cpu_architecture: "arm64".to_owned(),
            ..LiveImageOptions::default()
        };
        let (_directory, path, image) = opened(&options);
        let image = image.unwrap();
        image.check_sizes(&path).unwrap();
        assert!(!image.is_x86);
        assert_eq!(image.kargs.len(), 1);
    }

    #[test]
    fn other_images_are_refused_with_the_reason() {
        let (_directory, _, other) = opened(&LiveImageOptions {
            os_name: "debian".to_owned(),
            ..LiveImageOptions::small()
        });
        assert!(other.unwrap_err().to_string().contains("debian-418"));
        let (_directory, path, _) = opened(&LiveImageOptions::small());
        let file = File::options().write(true).open(&path).unwrap();
        file.set_len(file.metadata().unwrap().len() - 2048).unwrap();
        assert!(
            BaseImage::open(&path)
                .unwrap_err()
                .to_string()
                .contains("bytes")
        );
        assert!(matches!(
            BaseImage::open("/nonexistent".as_ref()),
            Err(BaseImageError::Unreadable { .. })
        ));
    }

    #[test]
    fn an_image_that_was_cut_off_is_refused() {
        let (_directory, path, image) = opened(&LiveImageOptions::small());
        let length = image.unwrap().length;
        let file = File::options().write(true).open(&path).unwrap();
        for point in (0..32).rev() {
            file.set_len(length * point / 32).unwrap();
            assert!(BaseImage::open(&path).is_err(), "{point} of 32 parts");
        }
    }

    /// An image whose record at `path` is replaced with `record`, with blanks up to its length.
    fn with_record(path: &str, record: &str) -> Result<BaseImage, BaseImageError> {
        let directory = tempfile::tempdir().unwrap();
        let image = directory.path().join("x.iso");
        let written = iso::write(&image, &LiveImageOptions::small()).unwrap();
        let (start, length) = written.files[path];
        let mut bytes = record.as_bytes().to_vec();
        let length = usize::try_from(length).unwrap();
        assert!(bytes.len() <= length, "{record}");
        bytes.resize(length, b' ');
        let file = File::options().write(true).open(&image).unwrap();
        file.write_all_at(&bytes, start).unwrap();
        BaseImage::open(&image)
    }

    #[test]
    fn records_that_lie_are_refused_with_the_reason() {
        for (path, record, reason) in [
            ("coreos/igninfo.json", "{", "coreos/igninfo.json: EOF"),
            (
                "coreos/igninfo.json",
                r#"{"file":"images/none"}"#,
                "images/none is missing",
            ),
            (
                "coreos/igninfo.json",
                r#"{"file":"x","offset":-1}"#,
                "invalid value",
            ),
            (
                "coreos/kargs.json",
                "[]",
                "coreos/kargs.json: invalid length",
            ),
            (
                "coreos/kargs.json",
                r#"{"files":[{"path":"images/none","offset":0}],"size":9}"#,
                "images/none is missing",
            ),
            (
                "coreos/kargs.json",
                r#"{"files":[{"path":"isolinux/isolinux.cfg","offset":18446744073709551615}],"size":9}"#,
                "the area is not within isolinux/isolinux.cfg",
            ),
            (
                "coreos/kargs.json",
                r#"{"files":[{"path":"isolinux/isolinux.cfg","offset":1,"pad":"ab"}],"size":9}"#,
                "are not one byte each",
            ),
            (
                "coreos/kargs.json",
                r#"{"files":[{"path":"isolinux/isolinux.cfg","offset":0}],"size":9999999}"#,
                "the area is not within isolinux/isolinux.cfg",
            ),
        ] {
            let error = with_record(path, record).unwrap_err().to_string();
            assert!(error.contains(reason), "{record}: {error}");
        }
    }
}
