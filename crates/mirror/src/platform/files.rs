//! The files from which releases are found without a network.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::payload::Payload;
use super::select::Chosen;

/// Folders of releases' manifests and of upgrade graphs in a workspace. Source: the peer's v2, which finds releases by these
/// files when it reads an archive.
pub(crate) const FOLDER: &str = "hold-release/";
const GRAPHS: &str = "cincinnati-graph-data";

/// The files, by path below their folder.
#[derive(Debug, Default)]
pub(crate) struct ReleaseFiles(BTreeMap<String, Bytes>);

impl ReleaseFiles {
    pub(super) fn of(
        graphs: BTreeMap<(String, String), Bytes>,
        payloads: &[(Chosen, Payload)],
    ) -> Self {
        let mut files = BTreeMap::new();
        for ((architecture, channel), graph) in graphs {
            files.insert(format!("{GRAPHS}/{architecture}-{channel}.json"), graph);
        }
        for (_, payload) in payloads {
            let repository = payload.image.repository.as_str();
            let name = repository
                .rsplit_once('/')
                .map_or(repository, |(_, name)| name);
            let (version, architecture) = (&payload.version, &payload.architecture);
            for (path, manifest) in &payload.manifests {
                let path = format!("{name}/{version}-{architecture}/{path}");
                files.insert(path, manifest.clone());
            }
        }
        Self(files)
    }

    /// Each file with its path in a workspace.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (String, &Bytes)> {
        let files = self.0.iter();
        files.map(|(path, content)| (format!("{FOLDER}{path}"), content))
    }
}
