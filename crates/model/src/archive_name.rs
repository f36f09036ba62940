//! Names of the files of mirror archives. Source: oc-mirror v1.

/// The name of a set's file; the first one has the number 0.
pub fn file_name(sequence: u64, number: usize) -> String {
    format!("mirror_seq{sequence}_{number:06}.tar")
}

/// Sequence and number of a file; nothing where it is called otherwise.
pub fn parse(name: &str) -> Option<(u64, usize)> {
    let (sequence, number) = name
        .strip_prefix("mirror_seq")?
        .strip_suffix(".tar")?
        .split_once('_')?;
    let parsed = (sequence.parse().ok()?, number.parse().ok()?);
    (file_name(parsed.0, parsed.1) == name).then_some(parsed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_peers() {
        assert_eq!(file_name(1, 0), "mirror_seq1_000000.tar");
        assert_eq!(parse("mirror_seq12_000003.tar"), Some((12, 3)));
        for other in [
            "mirror_seq1_0.tar",
            "mirror_seq+1_000000.tar",
            "mirror_seq1_000000.tar.part",
            "mirror_000001.tar",
        ] {
            assert_eq!(parse(other), None, "{other}");
        }
    }
}
