//! Reader of discovery images, as a machine's firmware, kernel and init read them.

mod boot;
mod cpio;
mod ignition;
mod iso;

pub use boot::BootConfig;
pub use ignition::{check_bootstrap, check_host, embedded_text};
pub use iso::Iso;

use std::io::Read;
use std::path::Path;

use serde_json::Value;

use crate::Error;

/// Largest ignition that is accepted after inflating; the area itself holds 256 KiB.
const IGNITION_LIMIT: u64 = 16 << 20;

/// Reads the ignition embedded in the image at `path`.
///
/// Errors: `File`, `Invalid` – no ISO9660 image, no embed area, nothing embedded, no ignition.
pub fn embedded_ignition(path: &Path) -> Result<Value, Error> {
    let mut iso = Iso::open(path)?;
    let area = embed_area(&mut iso)?;
    let what = || path.display().to_string();
    if area.iter().all(|byte| *byte == 0) {
        return Err(Error::invalid(
            what(),
            "its embed area is empty: it has no address of an API server",
        ));
    }
    let mut archive = Vec::new();
    flate2::read::GzDecoder::new(area.as_slice())
        .take(IGNITION_LIMIT)
        .read_to_end(&mut archive)
        .map_err(|e| {
            Error::invalid(
                what(),
                format!("the embedded archive cannot be inflated: {e}"),
            )
        })?;
    let config = cpio::member(&archive, "config.ign")
        .map_err(|reason| {
            Error::invalid(what(), format!("the embedded archive is damaged: {reason}"))
        })?
        .ok_or_else(|| Error::invalid(what(), "the embedded archive has no config.ign"))?;
    serde_json::from_slice(config)
        .map_err(|e| Error::invalid(what(), format!("its config.ign is not JSON: {e}")))
}

/// Reads the agent's configuration of the image at `path`.
///
/// Errors: as [`embedded_ignition`], and `Invalid` when there is no usable agent.service.
pub fn boot_config(path: &Path) -> Result<BootConfig, Error> {
    BootConfig::from_ignition(&embedded_ignition(path)?)
}

/// The bytes of the ignition area as coreos/igninfo.json describes it.
fn embed_area(iso: &mut Iso) -> Result<Vec<u8>, Error> {
    let info: Value = match iso.read("coreos/igninfo.json")? {
        Some(bytes) => serde_json::from_slice(&bytes)
            .map_err(|e| Error::invalid("coreos/igninfo.json", format!("is not JSON: {e}")))?,
        None => serde_json::json!({ "file": "images/ignition.img" }),
    };
    let file = info["file"]
        .as_str()
        .ok_or_else(|| Error::invalid("coreos/igninfo.json", "does not name a file"))?;
    let bytes = iso.read(file)?.ok_or_else(|| {
        Error::invalid(
            file,
            "is named by coreos/igninfo.json but is not in the image",
        )
    })?;
    let size = |name: &str| info[name].as_u64().and_then(|n| usize::try_from(n).ok());
    let offset = size("offset").unwrap_or(0);
    let length = size("length").unwrap_or(bytes.len().saturating_sub(offset));
    let end = offset.checked_add(length).filter(|end| *end <= bytes.len());
    end.map(|end| bytes[offset..end].to_vec()).ok_or_else(|| {
        Error::invalid(
            "coreos/igninfo.json",
            format!("its area reaches beyond the end of {file}"),
        )
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use std::io::Write;

    use super::*;

    /// A complete, tiny image around `config`.
    pub(crate) fn image(config: &[u8]) -> tempfile::NamedTempFile {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        gzip.write_all(&cpio::tests::archive(&[("config.ign", config)]))
            .unwrap();
        let mut area = gzip.finish().unwrap();
        area.resize(64 << 10, 0);
        image_with_area(&area)
    }

    fn image_with_area(area: &[u8]) -> tempfile::NamedTempFile {
        let iso = iso::tests::image(&[
            (
                "COREOS",
                "IGNINFO.JSO;1",
                br#"{"file":"images/ignition.img"}"#,
            ),
            ("IMAGES", "IGNITION.IMG;1", area),
        ]);
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&iso).unwrap();
        file
    }

    #[test]
    fn the_embedded_ignition_is_found() {
        let file = image(br#"{"ignition":{"version":"3.1.0"}}"#);
        assert_eq!(
            embedded_ignition(file.path()).unwrap()["ignition"]["version"],
            "3.1.0"
        );
    }

    #[test]
    fn an_image_without_ignition_is_refused() {
        let file = image_with_area(&[0; 4096]);
        let text = embedded_ignition(file.path()).unwrap_err().to_string();
        assert!(text.contains("embed area is empty"), "{text}");
    }

    #[test]
    fn a_file_that_is_no_image_is_refused() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&vec![7; 50_000]).unwrap();
        let text = embedded_ignition(file.path()).unwrap_err().to_string();
        assert!(text.contains("ISO9660"), "{text}");
    }
}
