//! The caller of a request, after the verification of its credentials.

use std::borrow::Cow;
use std::sync::Arc;

use model::ids::{ClusterId, InfraEnvId};
use secrecy::SecretString;

use crate::operations::access::Role;

/// Name of the caller without authentication, and of tokens without subject.
/// Source: assisted-service, pkg/ocm/utils.go.
pub(crate) const ADMINISTRATOR: &str = "admin";

/// The caller of a request.
#[derive(Debug, Clone)]
pub(crate) enum Caller {
    /// The administrator, by name: every caller with AUTH_TYPE=none, and the holder of a user token of the local key.
    Operator(Cow<'static, str>),
    /// A user of a token issuer.
    User(Arc<TokenUser>),
    /// A program that follows installations, and reads all of them.
    Watcher,
    /// An agent, an installer on a host, or a cluster's controller.
    Agent(AgentToken),
    /// The holder of a URL for one resource.
    Url(ResourceToken),
    /// The holder of a token for the image of one infra-env.
    Image(InfraEnvId),
    /// The holder of a signed link, which was verified for this request.
    Link,
}

/// Reach of an agent's token.
#[derive(Debug, Clone)]
pub(crate) enum AgentToken {
    /// Everything: the installation has one cluster, as agent-based installers make it.
    Any,
    /// One infra-env or cluster, and those that share hosts with it.
    Of(ResourceToken),
    /// The clusters and infra-envs whose pull secrets have it. Not verified yet: that takes their names.
    PullSecret(SecretString),
}

/// A token of one resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ResourceToken {
    /// The resource.
    pub(crate) resource: OwnedResource,
    /// Its number: a withdrawal of an infra-env's tokens raises it. Tokens of earlier versions have none, which is zero.
    pub(crate) generation: i64,
}

/// A user of a token issuer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TokenUser {
    /// Unique name.
    pub(crate) name: String,
    /// Organisation; may be empty.
    pub(crate) org_id: String,
    /// Domain of the e-mail address.
    pub(crate) email_domain: String,
    /// Role.
    pub(crate) role: Role,
}

/// A resource with an owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OwnedResource {
    /// A cluster.
    Cluster(ClusterId),
    /// An infra-env.
    InfraEnv(InfraEnvId),
}

impl OwnedResource {
    /// The error for callers without access, and for an unknown resource alike.
    pub(crate) fn not_found(self) -> model::Error {
        match self {
            Self::Cluster(id) => model::Error::not_found("cluster", id),
            Self::InfraEnv(id) => model::Error::not_found("infra-env", id),
        }
    }
}

impl Caller {
    /// The administrator without authentication.
    pub(crate) const fn administrator() -> Self {
        Self::Operator(Cow::Borrowed(ADMINISTRATOR))
    }

    /// Whether it may read everything.
    pub(crate) fn oversees(&self) -> bool {
        match self {
            Self::Operator(_) | Self::Watcher => true,
            Self::User(user) => user.role != Role::User,
            _ => false,
        }
    }

    /// Whether it is a person, or a program on behalf of one.
    pub(crate) fn is_user(&self) -> bool {
        matches!(self, Self::Operator(_) | Self::User(_))
    }

    /// Name of a person, or of a program on behalf of one; empty for others.
    pub(crate) fn user_name(&self) -> &str {
        match self {
            Self::Operator(name) => name,
            Self::User(user) => &user.name,
            _ => "",
        }
    }

    /// The owner of the records that it creates; none for the administrator.
    pub(crate) fn owner(&self) -> Option<&TokenUser> {
        match self {
            Self::User(user) => Some(user),
            _ => None,
        }
    }
}
