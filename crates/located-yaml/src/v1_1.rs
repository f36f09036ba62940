//! YAML 1.1 as sigs.k8s.io/yaml reads it: catalogs, and files for Kubernetes.
//!
//! A document is parsed to a flat list of nodes first: anchored nodes are taken again for each alias.

mod located;
mod nodes;
mod quoted;
mod scalar;

pub use self::located::{Located, LocatedMember, Value, read};
pub use self::nodes::{NodeKind, Nodes, YamlNode, with_nodes};
pub use self::scalar::Scalar;
