//! Tags of releases: `4.18.30-x86_64`, as mirroring tools write them.
//!
//! Source: openshift/oc-mirror, `internal/pkg/release`; openshift/oc, `pkg/cli/admin/release/mirror.go`.

use model::versions::CpuArchitecture;
use semver::Version;

/// Version and architecture of a tag of a release; none of other tags, as of components.
pub(crate) fn release_of(tag: &str) -> Option<(Version, CpuArchitecture)> {
    let (version, architecture) = tag.rsplit_once('-')?;
    let architecture = match architecture.parse().ok()? {
        CpuArchitecture::Aarch64 => CpuArchitecture::Arm64,
        other => other,
    };
    Some((version.parse().ok()?, architecture))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_of_releases_are_recognised() {
        for (tag, expected) in [
            ("4.18.30-x86_64", Some(("4.18.30", "x86_64"))),
            ("4.18.30-aarch64", Some(("4.18.30", "arm64"))),
            ("4.19.0-rc.1-multi", Some(("4.19.0-rc.1", "multi"))),
            (
                "4.20.0-okd-scos.3-x86_64",
                Some(("4.20.0-okd-scos.3", "x86_64")),
            ),
            ("4.18.30-x86_64-cli", None),
            ("4.18-x86_64", None),
            ("4.18.30", None),
            ("latest", None),
            ("sha256-abc.sig", None),
            ("4.18.30-sparc", None),
        ] {
            let found = release_of(tag);
            let found = found.map(|(version, it)| (version.to_string(), it.to_string()));
            let expected = expected.map(|(version, it)| (version.to_owned(), it.to_owned()));
            assert_eq!(found, expected, "{tag}");
        }
    }
}
