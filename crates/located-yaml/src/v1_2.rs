//! YAML 1.2 as go-yaml v3 reads it, and JSON as Go's `encoding/json` does: a tree of values, each with its position.
//!
//! Every bound on input is here: bytes, depth and number of values, copies of YAML aliases included. Nothing
//! recurses deeper than [`MAX_DEPTH`].

mod json;
mod node;
mod yaml;

pub use json::from_json;
pub use node::{ConfigMember, ConfigNode, NodeValue, ScalarKind};
pub use yaml::{documents_from_yaml, from_yaml};

use crate::{DocumentError, Position};

/// Units: bytes. Larger than any configuration that a boot image or the machine-config server takes.
pub const MAX_BYTES: usize = 16 * 1024 * 1024;

/// Levels of lists and objects; Ignition needs nine.
pub const MAX_DEPTH: usize = 64;

/// Values in one document.
pub const MAX_NODES: usize = 500_000;

fn check_length(bytes: usize) -> Result<(), DocumentError> {
    if bytes <= MAX_BYTES {
        return Ok(());
    }
    let reason = format!("the document has {bytes} bytes, at most {MAX_BYTES} are read");
    Err(DocumentError::new(Position::START, reason))
}

/// The values that a document may still have, and the bytes of text that its aliases may still copy.
struct NodeBudget {
    nodes: usize,
    copied_bytes: usize,
}

impl Default for NodeBudget {
    fn default() -> Self {
        Self {
            nodes: MAX_NODES,
            copied_bytes: MAX_BYTES,
        }
    }
}

impl NodeBudget {
    fn spend(&mut self, nodes: usize, at: Position) -> Result<(), DocumentError> {
        let reason = || format!("the document has more than {MAX_NODES} values");
        self.nodes = self
            .nodes
            .checked_sub(nodes)
            .ok_or_else(|| DocumentError::new(at, reason()))?;
        Ok(())
    }

    /// Spends a copy of a value.
    fn copy(&mut self, node: &ConfigNode) -> Result<(), DocumentError> {
        self.spend(node.count(), node.at)?;
        let reason = || format!("anchors and aliases copy more than {MAX_BYTES} bytes");
        self.copied_bytes = self
            .copied_bytes
            .checked_sub(node.text_bytes())
            .ok_or_else(|| DocumentError::new(node.at, reason()))?;
        Ok(())
    }
}

fn too_deep(at: Position) -> DocumentError {
    let reason = format!("lists and objects are nested more than {MAX_DEPTH} levels deep");
    DocumentError::new(at, reason)
}
