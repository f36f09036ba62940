//! oc-mirror's flags and their counterparts here.

use service::settings::Setting as _;

use super::command_line::UsageError;

/// A flag of oc-mirror that differs here.
pub(super) struct Flag {
    pub(super) name: &'static str,
    /// Whether a value follows it.
    pub(super) has_value: bool,
    pub(super) meaning: Meaning,
}

#[derive(Clone, Copy)]
pub(super) enum Meaning {
    /// The flag of ours with the same meaning.
    Is(&'static str),
    /// The equivalent of its negation.
    Not(&'static str),
    /// The equivalents of its negation.
    NotEach(&'static [&'static str]),
    /// Accepted without effect.
    Nothing,
    /// Unsupported, with the reason or remedy.
    Refused(&'static str),
}

use Meaning::{Is, Not, NotEach, Nothing, Refused};

const fn switch(name: &'static str, meaning: Meaning) -> Flag {
    Flag {
        name,
        has_value: false,
        meaning,
    }
}

const fn value(name: &'static str, meaning: Meaning) -> Flag {
    let has_value = true;
    Flag {
        has_value,
        ..switch(name, meaning)
    }
}

/// All flags that differ. Source: oc-mirror v1 and v2, `--help`.
pub(super) static FLAGS: &[Flag] = &[
    switch("v1", Nothing),
    switch("v2", Nothing),
    value("verbose", Nothing),
    value("log-level", Nothing),
    // Temporary files have a folder of their own, which each run removes.
    switch("skip-cleanup", Nothing),
    // Content is verified against its digests while it is transferred.
    switch("skip-verification", Nothing),
    switch("oci-insecure-signature-policy", Nothing),
    switch("quiet", Nothing),
    switch("cpu-prof", Nothing),
    switch("mem-prof", Nothing),
    // Archives and targets are never overwritten by another set.
    switch("force", Nothing),
    // For images in folders and in docker's daemon: registries get layers as they are.
    value("src-shared-blob-dir", Nothing),
    value("src-daemon-host", Nothing),
    value("dest-shared-blob-dir", Nothing),
    value("dest-daemon-host", Nothing),
    value("dest-compress-format", Nothing),
    value("dest-compress-level", Nothing),
    switch("dest-compress", Nothing),
    switch("dest-decompress", Nothing),
    switch("dest-oci-accept-uncompressed-layers", Nothing),
    switch("dest-precompute-digests", Nothing),
    // There is no cache, and no registry in front of it.
    value("cache-dir", Nothing),
    value("port", Nothing),
    value("rootless-storage-path", Nothing),
    switch("force-cache-delete", Nothing),
    // Images have the names that oc-mirror v1 gives them.
    switch("delete-v1-images", Nothing),
    // Each request has its own timeouts, retries and backoff.
    value("retry-times", Nothing),
    value("retry-delay", Nothing),
    value("image-timeout", Nothing),
    value("parallel-layers", Nothing),
    value("parallel-images", Is("max-per-registry")),
    value("config", Is("config")),
    value("from", Is("from")),
    value("dir", Is("dir")),
    value("workspace", Is("dir")),
    switch("src-tls-verify", Not("source-skip-tls")),
    switch("dest-tls-verify", Not("dest-skip-tls")),
    switch("tls-verify", NotEach(&["source-skip-tls", "dest-skip-tls"])),
    switch("rebuild-catalogs", Not("keep-catalogs")),
    switch("manifests-only", Is("manifests-only")),
    switch(
        "build-catalog-cache",
        Refused("pruned catalogs are served without --cache-dir and build their cache at startup"),
    ),
    // oc-mirror uses these mirrors for related images of catalogs in folders; here they apply to all sources.
    value("oci-registries-config", Is("registries-conf")),
    switch("enable-operator-secure-policy", Is("secure-policy")),
    // Without --secure-policy they have no effect there, either: signatures are copied as they are.
    value("policy", Nothing),
    value("registries.d", Nothing),
];

/// Short flags.
pub(super) const SHORT: [(&str, &str); 6] = [
    ("-f", "force"),
    ("-q", "quiet"),
    ("-c", "config"),
    ("-d", "dir"),
    ("-v", "verbose"),
    ("-p", "port"),
];

impl Flag {
    /// The flags of ours with the same meaning.
    ///
    /// Errors: a missing or malformed value; an unsupported flag.
    pub(super) fn own(&self, given: Option<String>) -> Result<Vec<String>, UsageError> {
        let name = self.name;
        let refused = |why| UsageError::Flag(format!("--{name} is not supported: {why}"));
        if self.has_value {
            let needed = || UsageError::Flag(format!("flag needs an argument: --{name}"));
            let given = given.ok_or_else(needed)?;
            let given = given.strip_prefix("file://").unwrap_or(&given);
            return match self.meaning {
                Is(other) => Ok(vec![format!("--{other}"), given.to_owned()]),
                Refused(why) => Err(refused(why)),
                Not(_) | NotEach(_) | Nothing => Ok(Vec::new()),
            };
        }
        let is_on = given.map_or(Ok(true), |given| is_on(name, &given))?;
        match (self.meaning, is_on) {
            (Is(other), true) | (Not(other), false) => Ok(vec![format!("--{other}")]),
            (NotEach(others), false) => Ok(others.iter().map(|it| format!("--{it}")).collect()),
            (Refused(why), true) => Err(refused(why)),
            _ => Ok(Vec::new()),
        }
    }
}

/// Parses the value of a switch.
///
/// Errors: not a boolean.
pub(super) fn is_on(name: &str, given: &str) -> Result<bool, UsageError> {
    bool::parse(given).map_err(|reason| UsageError::Flag(format!("--{name}: {reason}")))
}
