//! The limit of open files, and the connections that it allows.

use rustix::process::{Resource, getrlimit};

/// Units: open files. More is of no use, and some programs that a server starts close every number up to the limit.
const MAX_FILES: u64 = 65_536;
/// One in so many is for listeners, files, pooled connections and name resolution.
const RESERVED_SHARE: u64 = 4;

/// The limit of this process, once it is raised.
pub(crate) fn limit() -> u64 {
    let maximum = getrlimit(Resource::Nofile).maximum;
    maximum.unwrap_or(MAX_FILES).min(MAX_FILES)
}

/// At most `max` connections (0: any number), of which each takes `files`, of `limit` open files. Beyond these, a
/// server could no longer serve those that it has.
pub(crate) fn connections(max: usize, files: u64, limit: u64) -> usize {
    let allowed = (limit - limit / RESERVED_SHARE) / files;
    let allowed = usize::try_from(allowed).unwrap_or(usize::MAX).max(1);
    if max == 0 { allowed } else { max.min(allowed) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_files_to_others() {
        for (max, files, limit, expected) in [
            (1536, 6, 65_536, 1536),
            (0, 6, 65_536, 8192),
            (1536, 6, 1024, 128),
            (100, 2, 1024, 100),
            (100, 6, 4, 1),
        ] {
            assert_eq!(connections(max, files, limit), expected, "{max} of {limit}");
        }
    }
}
