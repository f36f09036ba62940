//! A reader of newc archives.

const HEADER: usize = 110;
const MAGIC: &[u8] = b"070701";
const TRAILER: &str = "TRAILER!!!";

/// Finds a member by name. Errors: the reason why the archive is damaged, as text.
pub(super) fn member<'a>(archive: &'a [u8], wanted: &str) -> Result<Option<&'a [u8]>, String> {
    let mut at = 0;
    loop {
        let header = archive
            .get(at..at + HEADER)
            .ok_or("it ends without a trailer")?;
        if &header[..6] != MAGIC {
            return Err(format!("no newc header at byte {at}"));
        }
        let size = field(header, 6)?;
        let name_size = field(header, 11)?;
        let name_at = at + HEADER;
        let name = archive
            .get(name_at..name_at + name_size)
            .ok_or("a name is cut off")?;
        let name = String::from_utf8_lossy(name.strip_suffix(&[0]).unwrap_or(name));
        let content_at = (name_at + name_size).next_multiple_of(4);
        let content = archive
            .get(content_at..content_at + size)
            .ok_or("a member is cut off")?;
        if name == TRAILER {
            return Ok(None);
        }
        if name.trim_start_matches("./").trim_start_matches('/') == wanted {
            return Ok(Some(content));
        }
        at = (content_at + size).next_multiple_of(4);
    }
}

/// One of the thirteen eight-digit hexadecimal fields behind the magic.
fn field(header: &[u8], index: usize) -> Result<usize, String> {
    let start = 6 + index * 8;
    let digits =
        std::str::from_utf8(&header[start..start + 8]).map_err(|_| "a header field is not text")?;
    u32::from_str_radix(digits, 16)
        .ok()
        .and_then(|n| usize::try_from(n).ok())
        .ok_or_else(|| format!("header field {digits:?} is not a number"))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A newc archive of the given members.
    pub(in crate::image) fn archive(members: &[(&str, &[u8])]) -> Vec<u8> {
        let mut out = Vec::new();
        for (name, content) in members.iter().chain([&(TRAILER, b"".as_slice())]) {
            let fields = [
                1,
                0o100_644,
                0,
                0,
                1,
                0,
                content.len(),
                0,
                0,
                0,
                0,
                name.len() + 1,
                0,
            ];
            out.extend_from_slice(MAGIC);
            for value in fields {
                out.extend(format!("{value:08X}").bytes());
            }
            out.extend(name.bytes());
            out.push(0);
            out.resize(out.len().next_multiple_of(4), 0);
            out.extend_from_slice(content);
            out.resize(out.len().next_multiple_of(4), 0);
        }
        out
    }

    #[test]
    fn members_are_found_by_name() {
        let bytes = archive(&[("etc/motd", b"hello"), ("config.ign", b"{}")]);
        assert_eq!(
            member(&bytes, "config.ign").unwrap(),
            Some(b"{}".as_slice())
        );
        assert_eq!(
            member(&bytes, "etc/motd").unwrap(),
            Some(b"hello".as_slice())
        );
        assert_eq!(member(&bytes, "other").unwrap(), None);
    }

    #[test]
    fn every_cut_is_an_error() {
        let bytes = archive(&[("config.ign", b"0123456789")]);
        for end in 0..bytes.len() - 3 {
            assert!(member(&bytes[..end], "other").is_err(), "cut at {end}");
        }
    }
}
