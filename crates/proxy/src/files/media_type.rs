//! Media types by the end of a file's name.

use http::HeaderValue;

/// Of names without a known end.
const BINARY: &str = "application/octet-stream";

/// Ends of names in lower case, and their types. Those that Debian's table lacks are here, too: files of boots and
/// mirrors.
const TYPES: &[(&str, &str)] = &[
    ("7z", "application/x-7z-compressed"),
    ("asc", "text/plain; charset=utf-8"),
    ("avif", "image/avif"),
    ("br", BINARY),
    ("bz2", "application/x-bzip2"),
    ("cfg", "text/plain; charset=utf-8"),
    ("conf", "text/plain; charset=utf-8"),
    ("crt", "application/x-x509-ca-cert"),
    ("css", "text/css; charset=utf-8"),
    ("csv", "text/csv; charset=utf-8"),
    ("gif", "image/gif"),
    ("gz", "application/gzip"),
    ("htm", "text/html; charset=utf-8"),
    ("html", "text/html; charset=utf-8"),
    ("ico", "image/x-icon"),
    ("ign", "application/vnd.coreos.ignition+json"),
    ("img", "application/x-raw-disk-image"),
    ("ipxe", "text/plain; charset=utf-8"),
    ("iso", "application/x-iso9660-image"),
    ("jpeg", "image/jpeg"),
    ("jpg", "image/jpeg"),
    ("js", "text/javascript; charset=utf-8"),
    ("json", "application/json"),
    ("jsonl", "application/jsonl"),
    ("log", "text/plain; charset=utf-8"),
    ("map", "application/json"),
    ("md", "text/markdown; charset=utf-8"),
    ("md5", "text/plain; charset=utf-8"),
    ("mjs", "text/javascript; charset=utf-8"),
    ("mp4", "video/mp4"),
    ("pdf", "application/pdf"),
    ("pem", "application/x-pem-file"),
    ("png", "image/png"),
    ("qcow2", "application/x-qemu-disk"),
    ("raw", "application/x-raw-disk-image"),
    ("rpm", "application/x-rpm"),
    ("sh", "text/x-shellscript; charset=utf-8"),
    ("sha256", "text/plain; charset=utf-8"),
    ("sha512", "text/plain; charset=utf-8"),
    ("sig", "application/pgp-signature"),
    ("svg", "image/svg+xml"),
    ("tar", "application/x-tar"),
    ("tgz", "application/gzip"),
    ("toml", "application/toml"),
    ("txt", "text/plain; charset=utf-8"),
    ("wasm", "application/wasm"),
    ("webp", "image/webp"),
    ("woff2", "font/woff2"),
    ("xml", "text/xml; charset=utf-8"),
    ("xz", "application/x-xz"),
    ("yaml", "application/yaml"),
    ("yml", "application/yaml"),
    ("zip", "application/zip"),
    ("zst", "application/zstd"),
];

/// Media type of a file called `name`.
pub(super) fn of(name: &[u8]) -> HeaderValue {
    HeaderValue::from_static(known(name).unwrap_or(BINARY))
}

fn known(name: &[u8]) -> Option<&'static str> {
    let dot = name.iter().rposition(|byte| *byte == b'.')?;
    let end = std::str::from_utf8(&name[dot + 1..]).ok()?;
    let end = end.to_ascii_lowercase();
    let found = TYPES.binary_search_by_key(&end.as_str(), |(end, _)| end);
    found.ok().map(|index| TYPES[index].1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_can_be_searched() {
        assert!(TYPES.is_sorted_by(|one, other| one.0 < other.0));
        for (end, media_type) in TYPES {
            assert_eq!(of(format!("x.{end}").as_bytes()), media_type);
        }
    }

    #[test]
    fn types_are_found_by_the_end_of_the_name() {
        for (name, media_type) in [
            ("a.YAML", "application/yaml"),
            ("mirror_seq1_000000.tar", "application/x-tar"),
            ("rootfs.img.gz", "application/gzip"),
            ("Makefile", BINARY),
            (".json", "application/json"),
            ("a.", BINARY),
        ] {
            assert_eq!(of(name.as_bytes()), media_type, "{name}");
        }
        assert_eq!(of(b"\xff.\xff"), BINARY);
    }
}
