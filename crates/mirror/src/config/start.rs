//! Initial configurations.

use oci::Reference;

/// Storage of the metadata in a folder.
const LOCAL: &str = "  local:
    path: ./metadata
  # An image in a registry instead:
  #registry:
    #imageURL: registry.example.org/mirror/metadata:latest
    #skipTLS: false
";

/// The initial configuration, in YAML with comments; the metadata is kept in the image `registry`, or else in a folder.
pub fn starting_file(registry: Option<&Reference>) -> String {
    let storage = match registry {
        None => LOCAL.to_owned(),
        Some(image) => format!("  registry:\n    imageURL: {image}\n    skipTLS: false\n"),
    };
    include_str!("start.yaml").replace("  {storage}\n", &storage)
}
