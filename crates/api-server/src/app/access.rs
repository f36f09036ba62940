//! Access of callers to clusters and infra-envs.
//!
//! Invariant: a resource out of a caller's reach looks like an unknown one.

use std::sync::Arc;

use model::Error;
use model::events::Event;
use model::ids::{ClusterId, InfraEnvId};
use rules::input::cloud_token;
use secrecy::ExposeSecret as _;

use super::links::{Links, SentLink};
use super::token_validity::InfraEnvTokens;
use crate::auth::{
    AgentToken, Authentication, Caller, OwnedResource, TokenUser, UrlTokens, forbidden,
    unauthenticated,
};
use crate::db::{Database, EventFilter, access, tx};
use crate::operations::Operation;
use crate::operations::access::{OWN, Role, Scheme};

/// Refusal of a request without credentials. Source: assisted-service, observed over HTTP.
const MISSING: &str = "unauthenticated for invalid credentials";

/// Credentials of a request, in the order of its operation's kinds.
#[derive(Default)]
pub(crate) struct SentCredentials<'a>(pub(crate) Vec<(Scheme, &'a str)>);

/// Purpose of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Intent {
    Read,
    Change,
}

/// Ids in the path of a request.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PathIds {
    /// `{cluster_id}`.
    pub(crate) cluster: Option<ClusterId>,
    /// `{infra_env_id}`.
    pub(crate) infra_env: Option<InfraEnvId>,
}

impl PathIds {
    fn resources(self) -> impl Iterator<Item = OwnedResource> {
        let cluster = self.cluster.map(OwnedResource::Cluster);
        cluster
            .into_iter()
            .chain(self.infra_env.map(OwnedResource::InfraEnv))
    }
}

/// Access of callers: their identity, and the records that they reach.
#[derive(Debug)]
pub(crate) struct AccessControl {
    db: Database,
    auth: Arc<Authentication>,
    tokens: Arc<InfraEnvTokens>,
    links: Arc<Links>,
    /// `ENABLE_ORG_TENANCY`: an organisation owns the records of its users; each of them reads all.
    has_organisations: bool,
}

impl AccessControl {
    /// Access by credentials of `auth`, tokens of infra-envs, and links.
    pub(super) fn new(
        db: Database,
        auth: Arc<Authentication>,
        tokens: Arc<InfraEnvTokens>,
        links: Arc<Links>,
        has_organisations: bool,
    ) -> Self {
        Self {
            db,
            auth,
            tokens,
            links,
            has_organisations,
        }
    }

    /// The caller by the first valid credential.
    ///
    /// Errors: Unauthenticated – no valid one; Forbidden – one of another kind, a changed or expired link.
    pub(crate) async fn authenticate(
        &self,
        sent: &SentCredentials<'_>,
        link: SentLink<'_>,
        ids: PathIds,
    ) -> Result<Caller, Error> {
        let mut refusal = None;
        for (scheme, text) in &sent.0 {
            if self.auth.is_off() && *scheme != Scheme::Link {
                continue;
            }
            match self.verify(*scheme, text, link, ids).await {
                Ok(caller) => return Ok(caller),
                Err(error) => refusal = refusal.or(Some(error)),
            }
        }
        match refusal {
            Some(error) => Err(error),
            None if self.auth.is_off() => Ok(Caller::administrator()),
            None => Err(unauthenticated(MISSING)),
        }
    }

    async fn verify(
        &self,
        scheme: Scheme,
        text: &str,
        link: SentLink<'_>,
        ids: PathIds,
    ) -> Result<Caller, Error> {
        let now_s = service::clock::now().timestamp();
        match scheme {
            Scheme::User => self.auth.user(text, now_s).await,
            Scheme::Agent => {
                let caller = self.auth.agent(text, now_s)?;
                self.tokens.unless_withdrawn(caller).await
            }
            Scheme::Url => {
                let caller = self.auth.url(text, now_s)?;
                self.tokens.unless_withdrawn(caller).await
            }
            Scheme::Watcher => self.auth.watcher(text, now_s),
            Scheme::Image | Scheme::ImageUrl
                if self.auth.url_tokens() == UrlTokens::ImageTokens =>
            {
                let verified = self.tokens.verify_image_token(text, now_s).await;
                verified.map(Caller::Image)
            }
            Scheme::Image | Scheme::ImageUrl => {
                Err(unauthenticated("this server issues no tokens of images"))
            }
            Scheme::Link => {
                let cluster = ids.cluster.ok_or_else(|| unauthenticated(MISSING))?;
                self.links.check(cluster, link).await?;
                Ok(Caller::Link)
            }
        }
    }

    /// Checks that the caller reaches the resources of the path.
    ///
    /// Errors: NotFound; Forbidden – insufficient role.
    pub(crate) async fn check_reach(
        &self,
        caller: &Caller,
        operation: &Operation,
        ids: PathIds,
    ) -> Result<(), Error> {
        if let Caller::User(user) = caller
            && !operation.access.roles.contains(&user.role)
        {
            let (name, role) = (&user.name, user.role.as_str());
            return Err(forbidden(format!(
                "{name} has the role {role}, which is not sufficient for {}",
                operation.id
            )));
        }
        // Users with the right to change a cluster get its credentials.
        let is_read = operation.method == "GET" && operation.access.roles != OWN.roles;
        let intent = if is_read {
            Intent::Read
        } else {
            Intent::Change
        };
        for resource in ids.resources() {
            self.check_resource(caller, resource, intent).await?;
        }
        Ok(())
    }

    /// Checks that the caller may change the cluster that a body names.
    ///
    /// Errors: NotFound; Forbidden – it may only read it.
    pub(crate) async fn check_named_cluster(
        &self,
        caller: &Caller,
        id: ClusterId,
    ) -> Result<(), Error> {
        self.check_resource(caller, OwnedResource::Cluster(id), Intent::Change)
            .await
    }

    async fn check_resource(
        &self,
        caller: &Caller,
        resource: OwnedResource,
        intent: Intent,
    ) -> Result<(), Error> {
        let reaches = match caller {
            Caller::Operator(_)
            | Caller::Watcher
            | Caller::Link
            | Caller::Agent(AgentToken::Any) => true,
            Caller::User(user) => return self.check_user(user, resource, intent).await,
            Caller::Url(own) => own.resource == resource,
            Caller::Image(own) if OwnedResource::InfraEnv(*own) == resource => true,
            Caller::Image(_) => {
                return Err(forbidden("the token is for the image of another infra-env"));
            }
            Caller::Agent(AgentToken::Of(own)) => self.shares_hosts(own.resource, resource).await?,
            Caller::Agent(AgentToken::PullSecret(token)) => {
                return self
                    .check_pull_secret(token.expose_secret(), resource)
                    .await;
            }
        };
        if reaches {
            return Ok(());
        }
        Err(resource.not_found())
    }

    /// Source: assisted-service, pkg/auth/rhsso_authz_handler.go: 403 for a change of a readable resource.
    async fn check_user(
        &self,
        user: &TokenUser,
        resource: OwnedResource,
        intent: Intent,
    ) -> Result<(), Error> {
        if user.role == Role::Admin || (user.role == Role::ReadOnlyAdmin && intent == Intent::Read)
        {
            return Ok(());
        }
        let owner = tx("read owner", async || {
            let mut connection = self.db.pool()?.acquire().await?;
            match resource {
                OwnedResource::Cluster(id) => access::owner_of_cluster(&mut connection, id).await,
                OwnedResource::InfraEnv(id) => {
                    access::owner_of_infra_env(&mut connection, id).await
                }
            }
        })
        .await?;
        let owner = owner.ok_or_else(|| resource.not_found())?;
        if owner.user_name == user.name {
            return Ok(());
        }
        match (self.shares_organisation(user, &owner.org_id), intent) {
            (false, _) => Err(resource.not_found()),
            (true, Intent::Read) => Ok(()),
            (true, Intent::Change) => Err(forbidden(
                "only its owner changes it, or gets its credentials",
            )),
        }
    }

    fn shares_organisation(&self, user: &TokenUser, org_id: &str) -> bool {
        self.has_organisations && !org_id.is_empty() && user.org_id == org_id
    }

    /// Whether a listing for the caller includes a record of that owner.
    pub(super) fn lists(&self, caller: &Caller, user_name: &str, org_id: &str) -> bool {
        match caller {
            Caller::User(user) if user.role == Role::User => {
                user.name == user_name || self.shares_organisation(user, org_id)
            }
            caller => caller.oversees(),
        }
    }

    /// The owner of the records that the caller creates: its organisation with `ENABLE_ORG_TENANCY`, else itself. Empty
    /// without an issuer of tokens: then everything has one owner, whose share is the whole.
    pub(super) fn owner<'a>(&self, caller: &'a Caller) -> &'a str {
        match caller.owner() {
            Some(user) if self.has_organisations && !user.org_id.is_empty() => &user.org_id,
            Some(user) => &user.name,
            None => "",
        }
    }

    async fn check_pull_secret(&self, token: &str, resource: OwnedResource) -> Result<(), Error> {
        let keys = self.db.keys().await;
        let secrets = tx("read pull secrets", async || {
            let mut connection = self.db.pool()?.acquire().await?;
            match resource {
                OwnedResource::Cluster(id) => {
                    access::pull_secrets_of_cluster(&mut connection, &keys, id).await
                }
                OwnedResource::InfraEnv(id) => {
                    let secret =
                        access::pull_secret_of_infra_env(&mut connection, &keys, id).await?;
                    Ok(secret.into_iter().collect())
                }
            }
        })
        .await?;
        // Digests: the time of their comparison says nothing about the tokens.
        let digest = |token: &str| ring::digest::digest(&ring::digest::SHA256, token.as_bytes());
        let sent = digest(token);
        let tokens = secrets.iter().filter_map(|secret| cloud_token(secret));
        if tokens
            .map(|token| digest(&token))
            .any(|known| known.as_ref() == sent.as_ref())
        {
            return Ok(());
        }
        Err(unauthenticated(
            "the token is not the one of cloud.openshift.com in the pull secret",
        ))
    }

    /// Checks that agents can be known by a new pull secret.
    ///
    /// Errors: Invalid – it has no token for them.
    pub(super) fn check_agents_token(&self, pull_secret: &str) -> Result<(), Error> {
        if !self.auth.agents_have_pull_secrets() || cloud_token(pull_secret).is_some() {
            return Ok(());
        }
        let reason = "has no entry for cloud.openshift.com, by which agents are known: add one to auths, or set EC_PRIVATE_KEY_PEM";
        Err(Error::invalid("pull_secret", reason))
    }

    /// Checks that a caller reaches the subjects of its event.
    ///
    /// Errors: NotFound; Forbidden – the event has no subject.
    pub(crate) async fn check_event(&self, caller: &Caller, event: &Event) -> Result<(), Error> {
        let ids = PathIds {
            cluster: event.cluster_id,
            infra_env: event.infra_env_id,
        };
        self.check_subjects(caller, ids).await
    }

    /// Checks that a caller reaches the subjects of a listing of events.
    ///
    /// Errors: NotFound; Forbidden – the events of all.
    pub(crate) async fn check_events(
        &self,
        caller: &Caller,
        filter: &EventFilter,
    ) -> Result<(), Error> {
        let ids = PathIds {
            cluster: filter.cluster_id.map(ClusterId),
            infra_env: filter.infra_env_id.map(InfraEnvId),
        };
        self.check_subjects(caller, ids).await
    }

    /// Checks that a caller reads the resources; an administrator reads all.
    ///
    /// Errors: NotFound; Forbidden – no resource is named.
    pub(super) async fn check_subjects(&self, caller: &Caller, ids: PathIds) -> Result<(), Error> {
        if matches!(caller, Caller::Agent(AgentToken::Any)) || caller.oversees() {
            return Ok(());
        }
        if ids.resources().next().is_none() {
            return Err(forbidden(
                "cluster_id or infra_env_id is required: only administrators reach the events of all",
            ));
        }
        for resource in ids.resources() {
            self.check_resource(caller, resource, Intent::Read).await?;
        }
        Ok(())
    }

    /// Whether both are the same, or an infra-env and a cluster of its hosts.
    async fn shares_hosts(&self, own: OwnedResource, other: OwnedResource) -> Result<bool, Error> {
        let (infra_env, cluster) = match (own, other) {
            (own, other) if own == other => return Ok(true),
            (OwnedResource::InfraEnv(infra_env), OwnedResource::Cluster(cluster))
            | (OwnedResource::Cluster(cluster), OwnedResource::InfraEnv(infra_env)) => {
                (infra_env, cluster)
            }
            _ => return Ok(false),
        };
        tx("check access of agent", async || {
            let mut connection = self.db.pool()?.acquire().await?;
            access::shares_hosts(&mut connection, infra_env, cluster).await
        })
        .await
    }
}
