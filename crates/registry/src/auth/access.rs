//! Access of one request.

use std::sync::Arc;

use oci::Repository;

use super::grants::Grants;
use super::policy::{Action, Policy};
use crate::error::RegistryError;

/// The user of a request and the granted actions.
#[derive(Debug, Clone)]
pub(crate) struct Access {
    user: Option<Arc<str>>,
    rights: Rights,
}

#[derive(Debug, Clone)]
enum Rights {
    /// By the policy's rules on the user.
    Policy(Arc<Policy>),
    /// By a token's claims; another token may grant more.
    Token(Arc<Grants>),
}

impl Access {
    /// Access without authentication: everything.
    pub(crate) fn open() -> Self {
        Self::by_policy(None, Arc::new(Policy::open()))
    }

    pub(super) fn by_policy(user: Option<Arc<str>>, policy: Arc<Policy>) -> Self {
        let rights = Rights::Policy(policy);
        Self { user, rights }
    }

    pub(super) fn by_token(user: Option<Arc<str>>, grants: Grants) -> Self {
        let rights = Rights::Token(Arc::new(grants));
        Self { user, rights }
    }

    /// None for anonymous clients.
    pub(crate) fn name(&self) -> Option<Arc<str>> {
        self.user.clone()
    }

    pub(crate) fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    /// Whether other credentials may be allowed more, so that it makes sense to ask for them.
    pub(crate) fn may_get_more(&self) -> bool {
        self.user.is_none() || matches!(self.rights, Rights::Token(_))
    }

    pub(crate) fn allows(&self, repository: &Repository, action: Action) -> bool {
        match &self.rights {
            Rights::Policy(policy) => policy.allows(self.user(), repository.as_str(), action),
            Rights::Token(grants) => grants.allow(repository.as_str(), action),
        }
    }

    /// Whether the same holds in every repository, also those to come. No token says that.
    pub(crate) fn allows_everywhere(&self, action: Action) -> bool {
        match &self.rights {
            Rights::Policy(policy) => policy.allows_everywhere(self.user(), action),
            Rights::Token(_) => false,
        }
    }

    /// Whether a repository may be named in a list of all.
    pub(crate) fn lists(&self, repository: &Repository) -> bool {
        match &self.rights {
            Rights::Policy(_) => self.allows(repository, Action::Pull),
            Rights::Token(grants) => grants.allow_catalog(),
        }
    }

    /// Errors: 401 for those who might get more, 403 for others.
    pub(crate) fn demand(
        &self,
        repository: &Repository,
        action: Action,
    ) -> Result<(), RegistryError> {
        self.refuse_unless(self.allows(repository, action))
    }

    /// Errors: as [`Access::demand`], for listing repositories; the list has those that the user may pull.
    pub(crate) fn demand_catalog(&self) -> Result<(), RegistryError> {
        self.refuse_unless(match &self.rights {
            Rights::Policy(_) => true,
            Rights::Token(grants) => grants.allow_catalog(),
        })
    }

    /// Errors: as [`Access::demand`], where it takes the right to look after all of the content.
    pub(crate) fn demand_everything(&self) -> Result<(), RegistryError> {
        self.refuse_unless(match &self.rights {
            Rights::Policy(_) => self.allows_everywhere(Action::Delete),
            Rights::Token(grants) => grants.allow_maintenance(),
        })
    }

    fn refuse_unless(&self, is_allowed: bool) -> Result<(), RegistryError> {
        if is_allowed {
            Ok(())
        } else if self.may_get_more() {
            Err(RegistryError::unauthorized())
        } else {
            Err(RegistryError::denied())
        }
    }
}
