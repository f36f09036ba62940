//! Limits of the API server for its clients.

use cluster_files::{MAX_UPLOADS, UPLOADS_OF_OWNER};
use kubernetes::{MAX_REPORT_BYTES, MAX_RESPONSE_BYTES, MAX_RESPONSE_VALUES};
use redfish::BMC_CONCURRENCY;
use rules::bounds;
use rules::host::expected_hosts;
use rules::host::metric_events;
use service::limits::{Bound, Limit, Share};

use crate::app::event_stream::EventStreams;
use crate::app::registry_content::CHANGED_REPOSITORIES;
use crate::app::{
    agent, audit, bmc_boots, cluster_store, clusters, declarations, events, explain,
    installed_nodes, jobs, manifests, operators,
};
use crate::auth::{KEYS, TOKEN_BYTES};
use crate::http::events::MAX_LIMIT;
use crate::http::extract::{BODY_LIMIT, REPLY_LIMIT};
use crate::settings::Settings;

/// Bytes of an answer that the kernel buffers for a client that does not read: without a bound, up to 4 MiB for each.
pub(crate) const UNSENT_BYTES: u32 = 256 * 1024;

/// Bounds of operations of administrators.
const ADMINISTRATORS: &str = "administrators alone";

/// All limits of the API server.
pub(crate) fn limits(settings: &Settings) -> Vec<Limit> {
    let mut limits = of_bodies(settings);
    limits.extend(of_own_operations());
    limits.extend(of_jobs());
    limits.extend(of_bmc_boots(settings));
    limits.extend(of_installed_nodes());
    limits.extend(of_replies());
    limits.extend(of_records(settings));
    limits.extend(of_streams(settings));
    limits.extend(of_audit(settings));
    limits.extend(of_files(settings));
    limits
}

fn bytes(count: usize) -> Bound {
    Bound::Bytes(count as u64)
}

fn of_bodies(settings: &Settings) -> Vec<Limit> {
    let fixed = |name, size| Limit::fixed(name, bytes(size), "request", "413");
    vec![
        fixed("JSON body", BODY_LIMIT),
        fixed("JSON body of a step reply", REPLY_LIMIT),
        Limit::fixed("token", bytes(TOKEN_BYTES), "request", "401"),
        Limit::fixed(
            "tokens of agents and image links",
            Bound::Time(settings.agent_token_lifetime),
            "token",
            "401",
        )
        .set_by("AGENT_TOKEN_LIFETIME"),
        Limit::fixed(
            "keys of a token issuer",
            Bound::Count(KEYS as u64, "keys"),
            "server",
            "the others are unknown",
        )
        .unshared("the issuer alone publishes keys"),
        Limit::fixed(
            "fetches of the keys of a token issuer",
            Bound::Count(1, "fetch in 30 s"),
            "server",
            "401 for tokens of unknown keys",
        )
        .unshared("tokens of known keys need none"),
        fixed("texts of an event", events::EVENT_BYTES),
        fixed("progress text of a host", agent::PROGRESS_INFO_BYTES),
        fixed("text of an operator's report", operators::REPORT_BYTES),
        fixed("text of the user interface", clusters::UI_SETTINGS_BYTES),
        Limit::fixed("manifest", bytes(manifests::SIZE_LIMIT), "request", "400"),
        Limit::fixed(
            "static networks of an infra-env",
            Bound::Count(bounds::NETWORKS as u64, "hosts"),
            "infra-env",
            "400",
        ),
        Limit::fixed(
            "static network of a host",
            bytes(bounds::NETWORK_YAML_BYTES),
            "host",
            "400",
        ),
        Limit::fixed(
            "NICs of a static network",
            Bound::Count(bounds::NETWORK_NICS as u64, "NICs"),
            "host",
            "400",
        ),
        Limit::fixed(
            "events of an answer",
            Bound::Count(MAX_LIMIT.unsigned_abs(), "events"),
            "request",
            "the first of them",
        ),
        Limit::fixed(
            "changes waiting for a cluster",
            Bound::Count(cluster_store::MAX_WAITING as u64, "requests"),
            "cluster",
            "503 with Retry-After",
        ),
        Limit::fixed(
            "unsent bytes",
            Bound::Bytes(UNSENT_BYTES.into()),
            "connection",
            "sent when the client has room",
        ),
    ]
}

/// Limits of operations that no other installer has.
fn of_own_operations() -> Vec<Limit> {
    vec![
        Limit::fixed(
            "causes of an explanation",
            Bound::Count(rules::explain::MAX_CAUSES as u64, "causes"),
            "request",
            "the first of them",
        ),
        Limit::fixed(
            "subjects of a page of explanations",
            Bound::Count(explain::MAX_PAGE as u64, "subjects"),
            "request",
            "400",
        ),
        Limit::fixed(
            "declared files",
            bytes(declarations::BODY_BYTES),
            "request",
            "413",
        ),
        Limit::fixed(
            "expected hosts of an infra-env",
            Bound::Count(expected_hosts::MAX_HOSTS as u64, "entries"),
            "request",
            "400",
        ),
        Limit::fixed(
            "MAC addresses of an expected host",
            Bound::Count(expected_hosts::MAX_MAC_ADDRESSES as u64, "entries"),
            "entry",
            "400",
        ),
        Limit::fixed(
            "text of an expected host",
            bytes(expected_hosts::TEXT_BYTES),
            "entry",
            "400",
        ),
    ]
}

fn of_jobs() -> [Limit; 3] {
    [
        Limit::fixed(
            "changed repositories that are read one by one",
            Bound::Count(CHANGED_REPOSITORIES as u64, "repositories"),
            "replica",
            "the whole registry is read",
        )
        .unshared("one reading serves all"),
        Limit::fixed(
            "jobs that wait or run",
            Bound::Count(jobs::WAITING_JOBS.unsigned_abs(), "jobs"),
            "server",
            "409",
        )
        .unshared(ADMINISTRATORS),
        Limit::fixed(
            "jobs of a list",
            Bound::Count(jobs::LISTED_JOBS.unsigned_abs(), "jobs"),
            "request",
            "400",
        ),
    ]
}

fn of_bmc_boots(settings: &Settings) -> [Limit; 9] {
    let each = |name, size| Limit::fixed(name, bytes(size), "BMC", "400");
    let bmcs = |count: u64| Bound::Count(count, "BMCs");
    [
        Limit::fixed(
            "BMCs of a request",
            bmcs(bmc_boots::MAX_BMCS as u64),
            "request",
            "400",
        ),
        each("name of a host with a BMC", bmc_boots::NAME_BYTES),
        each("address of a BMC", bmc_boots::ADDRESS_BYTES),
        each(
            "user name or password of a BMC",
            bmc_boots::CREDENTIAL_BYTES,
        ),
        Limit::fixed(
            "BMCs under way",
            bmcs(bmc_boots::UNDER_WAY.unsigned_abs()),
            "server",
            "409",
        )
        .unshared(ADMINISTRATORS),
        Limit::fixed(
            "BMCs served at a time",
            bmcs(BMC_CONCURRENCY as u64),
            "replica",
            "waits",
        )
        .unshared(ADMINISTRATORS),
        Limit::fixed(
            "credentials of BMCs until the installation",
            Bound::Time(settings.bmc_credentials_lifetime),
            "host",
            "they are forgotten",
        )
        .set_by("BMC_CREDENTIALS_LIFETIME"),
        Limit::fixed(
            "earlier boots by BMCs",
            Bound::Count(bmc_boots::KEPT_BOOTS.unsigned_abs(), "hosts"),
            "infra-env",
            "the oldest go",
        ),
        Limit::fixed(
            "error of a boot by a BMC",
            Bound::Count(bmc_boots::ERROR_LENGTH as u64, "characters"),
            "host",
            "the rest is cut off",
        ),
    ]
}

fn of_installed_nodes() -> [Limit; 7] {
    let nodes = |count: usize| Bound::Count(count as u64, "nodes");
    [
        Limit::fixed(
            "installed clusters read at a time",
            Bound::Count(installed_nodes::READS as u64, "clusters"),
            "replica",
            "waits",
        )
        .unshared(ADMINISTRATORS),
        Limit::fixed(
            "read of an installed cluster",
            Bound::Time(installed_nodes::READ_LIMIT),
            "request",
            "503",
        ),
        Limit::fixed(
            "response of an installed cluster",
            bytes(MAX_RESPONSE_BYTES),
            "response",
            "503",
        ),
        Limit::fixed(
            "values of a response of an installed cluster",
            Bound::Count(MAX_RESPONSE_VALUES as u64, "JSON values"),
            "response",
            "503",
        ),
        Limit::fixed(
            "name of a node in a plan of a replacement",
            bytes(installed_nodes::NAME_BYTES),
            "node",
            "400",
        ),
        Limit::fixed(
            "lost nodes in a plan of a replacement",
            nodes(installed_nodes::MAX_LOST),
            "request",
            "400",
        ),
        Limit::fixed(
            "published progress of a replacement",
            bytes(MAX_REPORT_BYTES),
            "cluster",
            "409",
        ),
    ]
}

fn of_replies() -> Vec<Limit> {
    let output = |name, size| Limit::fixed(name, bytes(size), "step reply", "413");
    let text = |name, size| Limit::fixed(name, bytes(size), "step reply", "400");
    let mut limits = vec![
        output("output of an inventory step", bounds::INVENTORY_BYTES),
        output("output of a connectivity step", bounds::CONNECTIVITY_BYTES),
        output(
            "output of a free addresses step",
            bounds::FREE_ADDRESSES_BYTES,
        ),
        output("output of another step", bounds::OUTPUT_BYTES),
        text("text of an inventory", bounds::TEXT_BYTES),
        text("hostname of an inventory", bounds::HOSTNAME_BYTES),
        text("DHCP lease", bounds::LEASE_BYTES),
        Limit::fixed(
            "disks or NICs in events of an installation",
            Bound::Count(metric_events::MAX_PARTS as u64, "events"),
            "host",
            "the first of them",
        ),
        Limit::fixed(
            "images, tested disks or time sources",
            Bound::Count(bounds::RESULTS as u64, "results"),
            "host",
            "400",
        ),
    ];
    limits.extend(bounds::INVENTORY_COUNTS.iter().map(|bound| {
        let count = Bound::Count(bound.limit as u64, "entries");
        Limit::fixed(bound.name, count, "step reply", "400")
    }));
    limits
}

fn of_records(settings: &Settings) -> Vec<Limit> {
    let count = |name, count: u32, unit, per, answer, setting| {
        Limit::fixed(name, Bound::Count(count.into(), unit), per, answer).set_by(setting)
    };
    let of_owner = |count: u32, unit, answer, setting| {
        let bound = match count {
            0 => Bound::Unlimited,
            count => Bound::Count(count.into(), unit),
        };
        Share::of("owner", bound, answer).set_by(setting)
    };
    let oldest = "the oldest go";
    vec![
        count(
            "clusters",
            settings.max_clusters,
            "clusters",
            "server",
            "409",
            "MAX_CLUSTERS",
        )
        .shared(of_owner(
            settings.max_clusters_per_owner,
            "clusters",
            "409",
            "MAX_CLUSTERS_PER_OWNER",
        )),
        count(
            "infra-envs",
            settings.max_infra_envs,
            "infra-envs",
            "server",
            "409",
            "MAX_INFRA_ENVS",
        )
        .shared(of_owner(
            settings.max_infra_envs_per_owner,
            "infra-envs",
            "409",
            "MAX_INFRA_ENVS_PER_OWNER",
        )),
        count(
            "hosts of a cluster",
            settings.max_hosts_per_cluster,
            "hosts",
            "cluster",
            "400",
            "MAX_HOSTS_PER_CLUSTER",
        ),
        count(
            "hosts of an infra-env",
            settings.max_hosts_per_infra_env,
            "hosts",
            "infra-env",
            "400",
            "MAX_HOSTS_PER_INFRA_ENV",
        ),
        count(
            "events of a cluster",
            settings.max_events_per_cluster,
            "events",
            "cluster",
            oldest,
            "MAX_EVENTS_PER_CLUSTER",
        ),
        count(
            "events",
            settings.max_events,
            "events",
            "server",
            oldest,
            "MAX_EVENTS",
        )
        .shared(of_owner(
            settings.max_events_per_owner,
            "events",
            oldest,
            "MAX_EVENTS_PER_OWNER",
        )),
    ]
}

fn of_streams(settings: &Settings) -> [Limit; 2] {
    let streams = EventStreams::share(settings.max_event_streams);
    [
        Limit::fixed(
            "snapshots of clusters in memory",
            bytes(cluster_store::SNAPSHOTS_BYTES),
            "server",
            "the least recently used are read again",
        )
        .unshared("derived, evicted"),
        Limit::fixed(
            "event streams",
            Bound::Count(settings.max_event_streams as u64, "streams"),
            "server",
            "the newest of the client with the most ends, else 503 with Retry-After",
        )
        .set_by("MAX_EVENT_STREAMS")
        .shared(
            Share::of(
                "client address or user",
                Bound::Count(streams as u64, "streams"),
                "503 with Retry-After",
            )
            .set_by("MAX_EVENT_STREAMS"),
        ),
    ]
}

fn of_audit(settings: &Settings) -> [Limit; 4] {
    let oldest = "the oldest of the user with the most go";
    let ring = |name, count: u32, setting| {
        Limit::fixed(
            name,
            Bound::Count(count.into(), "records"),
            "server",
            oldest,
        )
        .set_by(setting)
        .shared(Share::of("user", Bound::EqualPart, oldest))
    };
    [
        ring(
            "audit records",
            settings.max_audit_records,
            "MAX_AUDIT_RECORDS",
        ),
        ring(
            "audit records of refused changes",
            settings.max_audit_refusals,
            "MAX_AUDIT_REFUSALS",
        ),
        Limit::fixed(
            "audit records that wait for the database",
            Bound::Count(audit::MAX_WAITING as u64, "records"),
            "replica",
            "responses wait",
        )
        .unshared("MAX_REQUESTS_PER_CLIENT bounds the responses of a client that wait"),
        Limit::fixed(
            "audit log file",
            Bound::Bytes(settings.audit_log_max_bytes),
            "replica",
            "renamed to FILE.1, and begun again",
        )
        .set_by("AUDIT_LOG_MAX_BYTES")
        .unshared("a copy to be collected: the records above are kept by user"),
    ]
}

fn of_files(settings: &Settings) -> Vec<Limit> {
    let size = |name, size, per, setting| {
        Limit::fixed(name, Bound::Bytes(size), per, "413").set_by(setting)
    };
    vec![
        Limit::fixed(
            "concurrent uploads to a bucket",
            Bound::Count(MAX_UPLOADS as u64, "uploads"),
            "server",
            "waits",
        )
        .shared(Share::of(
            "owner",
            Bound::Count(UPLOADS_OF_OWNER as u64, "uploads with those that wait"),
            "503 with Retry-After",
        )),
        size(
            "logs",
            settings.max_log_bytes,
            "host or controller",
            "MAX_LOG_BYTES",
        ),
        size(
            "files of a cluster",
            settings.max_cluster_files_bytes,
            "cluster",
            "MAX_CLUSTER_FILES_BYTES",
        ),
        size(
            "files of all clusters",
            settings.max_files_bytes,
            "server",
            "MAX_FILES_BYTES",
        )
        .shared(
            Share::of(
                "owner",
                match settings.max_files_bytes_per_owner {
                    0 => Bound::Unlimited,
                    bytes => Bound::Bytes(bytes),
                },
                "413",
            )
            .set_by("MAX_FILES_BYTES_PER_OWNER"),
        ),
        Limit::fixed(
            "manifests",
            Bound::Count(settings.max_manifests_per_cluster as u64, "manifests"),
            "cluster",
            "400",
        )
        .set_by("MAX_MANIFESTS_PER_CLUSTER"),
    ]
}
