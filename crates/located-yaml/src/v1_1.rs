//! YAML 1.1 as sigs.k8s.io/yaml reads it: catalogs, and files for Kubernetes.
//!
//! A document is parsed to a flat list of nodes first: anchored nodes are taken again for each alias.

mod located;
mod nodes;
mod quoted;
mod scalar;

pub use self::located::{Located, LocatedMember, Value, read};
pub use self::nodes::{NodeKind, Nodes, YamlNode};
use self::quoted::Reindented;
pub use self::scalar::Scalar;
use crate::DocumentError;

/// Calls `work` with the nodes of the single document of `text`; `beyond` is the error for a second one.
///
/// Errors: not YAML, more than one document, and those of `work`.
pub fn with_nodes<T>(
    text: &str,
    beyond: &'static str,
    work: impl FnOnce(&Nodes<'_>) -> Result<T, DocumentError>,
) -> Result<T, DocumentError> {
    match nodes::read(text, beyond) {
        Ok(nodes) => work(&nodes),
        Err(wrong) => match Reindented::new(text) {
            Some(deepened) => match nodes::read(&deepened.text, beyond) {
                Ok(nodes) if deepened.is_harmless(nodes.quoted()) => work(&nodes),
                _ => Err(wrong),
            },
            None => Err(wrong),
        },
    }
}
