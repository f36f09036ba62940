//! Archives of logs, as the agent and the controller upload them.

use crate::Error;

/// A gzipped tar archive of these files.
pub(crate) fn log_archive(files: &[(&str, &str)]) -> Result<Vec<u8>, Error> {
    let write = || -> std::io::Result<Vec<u8>> {
        let gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        let mut tar = tar::Builder::new(gzip);
        for (name, content) in files {
            let mut header = tar::Header::new_gnu();
            header.set_size(content.len() as u64);
            header.set_mode(0o644);
            tar.append_data(&mut header, name, content.as_bytes())?;
        }
        tar.into_inner()?.finish()
    };
    write().map_err(|e| Error::invalid("log archive", e.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_archive_can_be_read_back() {
        let bytes = log_archive(&[("logs/a", "one"), ("logs/b", "two")]).unwrap();
        let mut tar = tar::Archive::new(flate2::read::GzDecoder::new(bytes.as_slice()));
        let names: Vec<_> = tar
            .entries()
            .unwrap()
            .map(|e| e.unwrap().path().unwrap().display().to_string())
            .collect();
        assert_eq!(names, ["logs/a", "logs/b"]);
    }
}
