//! Input files, bounded in size; `-` is standard input.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::Args;
use host_records::ApiGroups;
use service::{Error, ResultExt as _};

/// Longest file with API versions. Units: bytes.
const MAX_GROUPS: usize = 64 << 10;

/// API versions of the records.
#[derive(Debug, Clone, Args)]
pub(super) struct ApiGroupsArgs {
    /// API versions and namespace of the records, as YAML with host, machine, provider and namespace. Default: those of
    /// metal3.io and OpenShift
    #[arg(long, value_name = "FILE")]
    api_groups: Option<PathBuf>,
}

impl ApiGroupsArgs {
    /// Errors: the file cannot be read, or has other members.
    pub(super) fn read(&self) -> Result<ApiGroups, Error> {
        let Some(path) = &self.api_groups else {
            return Ok(ApiGroups::default());
        };
        let content = read(path, MAX_GROUPS)?;
        serde_yaml::from_slice(&content).doing(|| doing(path))
    }
}

/// Whether a path is standard input.
pub(super) fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// The name of a file in messages.
pub(crate) fn name(path: &Path) -> String {
    if is_stdin(path) {
        "<stdin>".to_owned()
    } else {
        path.display().to_string()
    }
}

/// The content of a file, and one byte more than `most` of a longer one.
///
/// Errors: it cannot be read.
pub(crate) fn read(path: &Path, most: usize) -> Result<Vec<u8>, Error> {
    let most = most as u64 + 1;
    let mut content = Vec::new();
    let read = if is_stdin(path) {
        std::io::stdin().take(most).read_to_end(&mut content)
    } else {
        let file = std::fs::File::open(path);
        file.and_then(|file| file.take(most).read_to_end(&mut content))
    };
    read.doing(|| doing(path))?;
    Ok(content)
}

fn doing(path: &Path) -> String {
    format!("reading {}", name(path))
}
