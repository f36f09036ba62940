//! Credentials that open an operation: one column of the table.
//!
//! Source: assisted-service, swagger.yaml, `securityDefinitions` and the `security` of each operation. Additions: signed
//! links to files of clusters.

use Scheme::{Agent, Image, ImageUrl, Link, Url, Watcher};

/// A kind of credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// Token of a user.
    User,
    /// Token of a discovery agent, an installer on a host, or a cluster's controller.
    Agent,
    /// Token in a URL for one infra-env or cluster.
    Url,
    /// Token for the image of one infra-env, with an expiry.
    Image,
    /// The same token in a URL.
    ImageUrl,
    /// Token of a program that follows an installation.
    Watcher,
    /// Signature in a link to one file of a cluster.
    Link,
}

/// Place of a credential in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CredentialPlace {
    /// Name of a header.
    Header(&'static str),
    /// Name of a query parameter.
    Query(&'static str),
}

impl Scheme {
    /// All kinds.
    pub const ALL: [Self; 7] = [
        Self::User,
        Self::Agent,
        Self::Url,
        Self::Image,
        Self::ImageUrl,
        Self::Watcher,
        Self::Link,
    ];

    /// Name in the description, and in the claim `auth_scheme` of tokens.
    pub const fn name(self) -> &'static str {
        match self {
            Self::User => "userAuth",
            Self::Agent => "agentAuth",
            Self::Url => "urlAuth",
            Self::Image => "imageAuth",
            Self::ImageUrl => "imageURLAuth",
            Self::Watcher => "watcherAuth",
            Self::Link => "linkAuth",
        }
    }

    /// Place in a request.
    pub const fn place(self) -> CredentialPlace {
        match self {
            Self::User => CredentialPlace::Header("authorization"),
            Self::Agent => CredentialPlace::Header("x-secret-key"),
            Self::Url => CredentialPlace::Query("api_key"),
            Self::Image => CredentialPlace::Header("image-token"),
            Self::ImageUrl => CredentialPlace::Query("image_token"),
            Self::Watcher => CredentialPlace::Header("watcher-authorization"),
            Self::Link => CredentialPlace::Query("signature"),
        }
    }
}

/// Role of a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Reads and changes everything.
    Admin,
    /// Reads everything.
    ReadOnlyAdmin,
    /// Reads and changes its own clusters and infra-envs.
    User,
}

impl Role {
    /// Name in the description.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::ReadOnlyAdmin => "read-only-admin",
            Self::User => "user",
        }
    }
}

/// Credentials that open an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// Roles of users; none if users have no access.
    pub roles: &'static [Role],
    /// Kinds of credentials beside those of users.
    pub others: &'static [Scheme],
}

impl Access {
    const fn users(roles: &'static [Role]) -> Self {
        Self { roles, others: &[] }
    }

    const fn or(self, others: &'static [Scheme]) -> Self {
        Self { others, ..self }
    }

    /// Every kind of credential, users first.
    pub fn schemes(&self) -> impl Iterator<Item = Scheme> + use<> {
        let user = (!self.roles.is_empty()).then_some(Scheme::User);
        user.into_iter().chain(self.others.iter().copied())
    }

    /// Whether `scheme` is one of them.
    pub fn includes(&self, scheme: Scheme) -> bool {
        self.schemes().any(|one| one == scheme)
    }
}

/// Changes by users, and the default of the description.
pub(super) const EDIT: Access = Access::users(&[Role::Admin, Role::User]);
/// Reads by users.
pub(super) const VIEW: Access = Access::users(&[Role::Admin, Role::ReadOnlyAdmin, Role::User]);
/// Credentials of clusters: administrators of the service are not administrators of its users' clusters.
pub(crate) const OWN: Access = Access::users(&[Role::User]);
/// Reads by administrators.
pub(super) const OVERSEE: Access = Access::users(&[Role::Admin, Role::ReadOnlyAdmin]);
/// Changes of the site.
pub(super) const ADMINISTER: Access = Access::users(&[Role::Admin]);
/// Hosts and clusters in installation.
pub(super) const AGENT: Access = Access::users(&[]).or(&[Agent]);
pub(super) const VIEW_OR_AGENT: Access = VIEW.or(&[Agent]);
pub(super) const VIEW_OR_LINK: Access = VIEW.or(&[Link]);
pub(super) const VIEW_OR_WATCHER: Access = VIEW.or(&[Watcher]);
pub(super) const VIEW_CLUSTER: Access = VIEW.or(&[Agent, Watcher]);
pub(super) const VIEW_EVENTS: Access = VIEW.or(&[Url, Watcher]);
pub(super) const IMAGE_CONTENT: Access = VIEW.or(&[Agent, Url, Image, ImageUrl]);
pub(super) const IMAGE_RAMDISK: Access = VIEW.or(&[Url, Image]);
pub(super) const CLUSTER_FILES: Access = VIEW.or(&[Agent, Url, Link]);
pub(super) const CLUSTER_CREDENTIALS: Access = OWN.or(&[Agent, Link]);
pub(super) const CLUSTER_LOGS: Access = VIEW.or(&[Url, Link]);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::OPERATIONS;

    /// The operations that a kind of credential opens.
    fn opened_by(scheme: Scheme) -> Vec<&'static str> {
        let opened = OPERATIONS.iter().filter(|one| one.access.includes(scheme));
        opened.map(|one| one.id).collect()
    }

    /// Source: assisted-service, swagger.yaml.
    #[test]
    fn each_kind_of_credential_opens_its_operations() {
        assert_eq!(
            opened_by(Watcher),
            [
                "v2ListClusters",
                "v2GetCluster",
                "ListInfraEnvs",
                "v2ListEvents",
                "streamEvents"
            ]
        );
        assert_eq!(
            opened_by(ImageUrl),
            ["GetInfraEnv", "v2DownloadInfraEnvFiles"]
        );
        assert_eq!(
            opened_by(Image),
            [
                "GetInfraEnv",
                "v2DownloadInfraEnvFiles",
                "DownloadMinimalInitrd"
            ]
        );
        assert_eq!(
            opened_by(Url),
            [
                "GetInfraEnv",
                "v2DownloadInfraEnvFiles",
                "V2DownloadClusterFiles",
                "DownloadMinimalInitrd",
                "V2DownloadClusterLogs",
                "v2ListEvents",
                "streamEvents",
            ]
        );
        assert_eq!(
            opened_by(Link),
            [
                "V2DownloadClusterFiles",
                "V2DownloadClusterCredentials",
                "v2DownloadClusterManifest",
                "V2DownloadClusterLogs",
            ]
        );
        assert_eq!(opened_by(Agent).len(), 21, "{:?}", opened_by(Agent));
    }

    #[test]
    fn read_only_administrators_change_nothing() {
        for operation in OPERATIONS {
            if operation.method != "GET" {
                let roles = operation.access.roles;
                assert!(!roles.contains(&Role::ReadOnlyAdmin), "{}", operation.id);
            }
        }
    }

    #[test]
    fn every_operation_needs_a_credential() {
        for operation in OPERATIONS {
            assert!(
                operation.access.schemes().next().is_some(),
                "{}",
                operation.id
            );
        }
    }
}
