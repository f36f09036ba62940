//! Media types of manifests, configs and layers.

/// OCI image manifest.
pub const OCI_MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
/// OCI image index.
pub const OCI_INDEX: &str = "application/vnd.oci.image.index.v1+json";
/// Docker schema 2 manifest.
pub const DOCKER_MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";
/// Docker schema 2 manifest list.
pub const DOCKER_LIST: &str = "application/vnd.docker.distribution.manifest.list.v2+json";
/// Docker schema 1 manifest with signatures.
pub const DOCKER_SCHEMA1_SIGNED: &str = "application/vnd.docker.distribution.manifest.v1+prettyjws";
/// Docker schema 1 manifest without.
pub const DOCKER_SCHEMA1: &str = "application/vnd.docker.distribution.manifest.v1+json";
/// OCI image configuration.
pub const OCI_CONFIG: &str = "application/vnd.oci.image.config.v1+json";
/// Image configuration, as Docker named it. Source: Docker's registry documentation, schema 2.
pub const DOCKER_CONFIG: &str = "application/vnd.docker.container.image.v1+json";
/// OCI layer, tar compressed by gzip.
pub const OCI_LAYER_GZIP: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
/// OCI layer, plain tar.
pub const OCI_LAYER: &str = "application/vnd.oci.image.layer.v1.tar";

/// A compressed layer, as Docker named it.
pub const DOCKER_LAYER_GZIP: &str = "application/vnd.docker.image.rootfs.diff.tar.gzip";
/// The manifests that this crate reads, as an `Accept` header.
pub const ACCEPT_MANIFESTS: &str = "application/vnd.oci.image.manifest.v1+json, \
    application/vnd.oci.image.index.v1+json, \
    application/vnd.docker.distribution.manifest.v2+json, \
    application/vnd.docker.distribution.manifest.list.v2+json";

/// Whether this is the type of a container image's configuration.
pub fn is_image_config(media_type: &str) -> bool {
    [OCI_CONFIG, DOCKER_CONFIG].contains(&media_type)
}

/// Whether a layer of this type is a tar archive, plain or compressed.
pub fn is_archive(media_type: &str) -> bool {
    media_type.starts_with("application/vnd.oci.image.layer.")
        || media_type.starts_with("application/vnd.docker.image.rootfs.")
}

/// Whether a layer of this type may live outside the registry, so that its blob may be absent.
pub fn is_nondistributable(media_type: &str) -> bool {
    media_type.starts_with("application/vnd.oci.image.layer.nondistributable.v1.tar")
        || media_type.starts_with("application/vnd.docker.image.rootfs.foreign.diff.tar")
}
