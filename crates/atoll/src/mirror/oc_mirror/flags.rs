//! The peer's flags, and what says the same here.

use service::settings::Setting as _;

use super::UsageError;

/// A flag of the peer, where it is not just the same here.
pub(super) struct Flag {
    pub(super) name: &'static str,
    /// Whether a value follows it.
    pub(super) has_value: bool,
    pub(super) meaning: Meaning,
}

#[derive(Clone, Copy)]
pub(super) enum Meaning {
    /// Flags of ours say it.
    Is(&'static str),
    /// A flag of ours says it when this one is switched off.
    Not(&'static str),
    /// It changes nothing here.
    Nothing,
    /// It is not known here. Why, or what to do.
    Refused(&'static str),
}

use Meaning::{Is, Not, Nothing, Refused};

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

/// All of them.
pub(super) static FLAGS: &[Flag] = &[
    switch("v1", Nothing),
    switch("v2", Nothing),
    value("verbose", Nothing),
    value("log-level", Nothing),
    // What is temporary is in a folder of its own, and goes with the run.
    switch("skip-cleanup", Nothing),
    // Content is compared with its digests while it passes.
    switch("skip-verification", Nothing),
    switch("strict-archive", Nothing),
    switch("oci-insecure-signature-policy", Nothing),
    // There is no cache, and no registry in front of it.
    value("cache-dir", Nothing),
    value("port", Nothing),
    value("rootless-storage-path", Nothing),
    switch("force-cache-delete", Nothing),
    // Images have the names that the peer's v1 gives them.
    switch("delete-v1-images", Nothing),
    // Each request has time-outs and is repeated with pauses of its own.
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
    switch("rebuild-catalogs", Not("keep-catalogs")),
    switch("manifests-only", Is("manifests-only")),
    switch(
        "build-catalog-cache",
        Refused(
            "smaller catalogs are served without --cache-dir, and make a cache of their own when they start",
        ),
    ),
    // The peer asks these mirrors for what catalogs in folders name; here they are asked for all sources.
    value("oci-registries-config", Is("registries-conf")),
    switch(
        "enable-operator-secure-policy",
        Refused("signature policies of this machine are not read"),
    ),
    switch(
        "secure-policy",
        Refused("signature policies of this machine are not read"),
    ),
    value(
        "policy",
        Refused("signature policies of this machine are not read"),
    ),
    value(
        "registries.d",
        Refused("signature policies of this machine are not read"),
    ),
    value(
        "since",
        Refused("--ignore-history carries everything again"),
    ),
];

/// Those with one letter.
pub(super) const SHORT: [(&str, &str); 4] = [
    ("-c", "config"),
    ("-d", "dir"),
    ("-v", "verbose"),
    ("-p", "port"),
];

impl Flag {
    /// What says the same here.
    ///
    /// Errors: a value that is missing or none; a flag that is not known here.
    pub(super) fn own(&self, given: Option<String>) -> Result<Vec<String>, UsageError> {
        let name = self.name;
        let refused = |why| UsageError::Flag(format!("--{name} is not known here: {why}"));
        if self.has_value {
            let needed = || UsageError::Flag(format!("flag needs an argument: --{name}"));
            let given = given.ok_or_else(needed)?;
            let given = given.strip_prefix("file://").unwrap_or(&given);
            return match self.meaning {
                Is(other) => Ok(vec![format!("--{other}"), given.to_owned()]),
                Refused(why) => Err(refused(why)),
                Not(_) | Nothing => Ok(Vec::new()),
            };
        }
        let is_on = given.map_or(Ok(true), |given| is_on(name, &given))?;
        match (self.meaning, is_on) {
            (Is(other), true) | (Not(other), false) => Ok(vec![format!("--{other}")]),
            (Refused(why), true) => Err(refused(why)),
            _ => Ok(Vec::new()),
        }
    }
}

/// Whether what is given with a switch switches it on.
///
/// Errors: it is neither.
pub(super) fn is_on(name: &str, given: &str) -> Result<bool, UsageError> {
    bool::parse(given).map_err(|reason| UsageError::Flag(format!("--{name}: {reason}")))
}
