//! Rules about crates: allowed directions of dependencies.

use super::finding::TidyFinding;
use super::source::WorkspaceSources;

/// Crates of servers.
const SERVERS: &[&str] = &[
    "api-server",
    "image-service",
    "registry",
    "webui",
    "proxy",
    "catalog-server",
];
/// Crates below the servers.
const LOW: &[&str] = &[
    "model",
    "concurrency",
    "located-yaml",
    "static-network",
    "rules",
    "declarations",
    "ignition",
    "net",
    "oci",
    "oci-client",
    "registry-content",
    "bucket",
    "blob-store",
    "catalog",
    "sandbox",
    "durable",
    "doctor",
    "rehearsal",
    "redfish",
    "etcd",
    "host-records",
    "kubernetes",
    "replacement",
    "host-controller",
];
/// Crates that only tests and tools use.
const TOOLS: &[&str] = &["testkit", "faults", "system-tests", "xtask"];
/// Crates that may simulate hosts: rehearsals, tests and tools.
const SIMULATES: &[&str] = &["rehearsal", "host-sim", "testkit", "system-tests", "xtask"];

/// `from` (all of these) must not depend on `on` (any of these), except `but`.
struct Deny {
    from: &'static [&'static str],
    on: &'static [&'static str],
    but: &'static [&'static str],
    why: &'static str,
}

/// Every crate.
const ANY: &[&str] = &["*"];

static DENIED: &[Deny] = &[
    Deny {
        from: &["model"],
        on: &[
            "tokio", "axum", "sqlx", "reqwest", "rules", "ignition", "oci", "service",
        ],
        but: &[],
        why: "model is vocabulary: no IO, no clocks, nobody above it",
    },
    Deny {
        from: &["rules"],
        on: &["tokio", "axum", "sqlx", "reqwest", "oci", "service"],
        but: &[],
        why: "rules decide: no async, no IO",
    },
    Deny {
        from: &["static-network"],
        on: &["tokio", "reqwest", "rules", "ignition"],
        but: &[],
        why: "static-network knows configurations, not clusters",
    },
    Deny {
        from: &["rules"],
        on: &["declarations"],
        but: &[],
        why: "files of sites are above the decisions",
    },
    Deny {
        from: &["declarations"],
        on: &["tokio", "reqwest"],
        but: &[],
        why: "declarations are texts and records: no async, no network",
    },
    Deny {
        from: &["sealing", "cluster-files", "preparation"],
        on: &["axum", "sqlx"],
        but: &[],
        why: "the work of the API server below its rows and requests",
    },
    Deny {
        from: &["ignition"],
        on: &["tokio", "axum", "sqlx", "reqwest", "service"],
        but: &[],
        why: "ignition is records and rendering: no network, no files",
    },
    Deny {
        from: &["oci"],
        on: &["tokio", "reqwest", "net", "durable"],
        but: &[],
        why: "oci is vocabulary: no async, no network, no files",
    },
    Deny {
        from: &["net"],
        on: &["oci"],
        but: &[],
        why: "net knows hosts, not images",
    },
    Deny {
        from: &["bucket"],
        on: &["oci", "durable"],
        but: &[],
        why: "bucket knows keys and bytes, not their meaning",
    },
    Deny {
        from: ANY,
        on: &["blob-store"],
        but: &["registry", "atoll"],
        why: "only the registry, and the command that repairs its folder, know how content is kept",
    },
    Deny {
        from: &["service"],
        on: &["oci", "oci-client"],
        but: &[],
        why: "the front door and the web UI need no images",
    },
    Deny {
        from: &["catalog"],
        on: &["tokio", "tonic", "reqwest"],
        but: &[],
        why: "catalog is files and what they mean: no async, no network",
    },
    Deny {
        from: &["sandbox"],
        on: &["tokio", "reqwest", "model", "rules", "oci"],
        but: &[],
        why: "sandbox is the kernel and processes: its processes have one thread, and it knows no clusters",
    },
    Deny {
        from: &["durable"],
        on: &["model", "oci", "catalog", "service", "tokio", "rustix"],
        but: &[],
        why: "durable is below every crate that keeps files: the standard library alone",
    },
    Deny {
        from: &["concurrency"],
        on: &["model", "net", "oci", "durable", "reqwest"],
        but: &[],
        why: "concurrency does not know what is locked, called or read",
    },
    Deny {
        from: &["located-yaml"],
        on: &["model", "rules", "ignition", "catalog", "durable", "tokio"],
        but: &[],
        why: "located-yaml knows texts and positions, not their meaning",
    },
    Deny {
        from: LOW,
        on: &["axum", "sqlx", "service"],
        but: &[],
        why: "what is below `service` knows no server",
    },
    Deny {
        from: &["service"],
        on: &["sqlx", "rules", "ignition"],
        but: &[],
        why: "service knows nothing about clusters",
    },
    Deny {
        from: SERVERS,
        on: SERVERS,
        but: &[],
        why: "servers talk over the wire, never by a call",
    },
    Deny {
        from: ANY,
        on: &["services"],
        but: &["atoll"],
        why: "the program of all services is above them",
    },
    Deny {
        from: ANY,
        on: &["sqlx"],
        but: &["api-server", "testkit", "xtask"],
        why: "only the API server has a database",
    },
    Deny {
        from: &["redfish", "etcd"],
        on: &["kube", "host-records", "catalog", "rules", "ignition"],
        but: &[],
        why: "clients of BMCs and of etcd know no records",
    },
    Deny {
        from: &["host-records"],
        on: &["kube", "reqwest", "tokio", "etcd", "catalog"],
        but: &[],
        why: "host-records is records and what they mean: no async, no network",
    },
    Deny {
        from: ANY,
        on: &["kube"],
        but: &["kubernetes", "replacement", "system-tests"],
        why: "the API of a cluster is spoken by one crate",
    },
    Deny {
        from: ANY,
        on: &["tonic"],
        but: &["catalog-server", "etcd"],
        why: "only the catalog server and the client of etcd speak gRPC",
    },
    Deny {
        from: ANY,
        on: TOOLS,
        but: TOOLS,
        why: "nothing of the tests and the demo is in production",
    },
    Deny {
        from: &["agent"],
        on: &["axum", "sqlx", "rules", "service"],
        but: &[],
        why: "the agent is a small program on hosts: no server, no decision about clusters",
    },
    Deny {
        from: ANY,
        on: &["host-sim"],
        but: SIMULATES,
        why: "only rehearsals, tests and the demo simulate hosts",
    },
    Deny {
        from: &["rehearsal"],
        on: SERVERS,
        but: &[],
        why: "rehearsals use a server by its public operations",
    },
    Deny {
        from: &["rehearsal"],
        on: &["clap", "atoll", "services"],
        but: &[],
        why: "rehearsals are a library: the command line is atoll's",
    },
    Deny {
        from: &["credentials", "supervisor", "site"],
        on: &["clap", "indicatif", "atoll", "services"],
        but: &[],
        why: "what verbs do is a library: words, questions and output are atoll's",
    },
    Deny {
        from: &["credentials", "supervisor"],
        on: &["site", "bundle", "mirror"],
        but: &[],
        why: "a site has a supervisor and credentials, which know no pod",
    },
    Deny {
        from: &["host-sim"],
        on: &[
            "model",
            "rules",
            "ignition",
            "oci",
            "rehearsal",
            "service",
            "api-server",
            "image-service",
            "registry",
            "webui",
            "proxy",
            "services",
            "atoll",
        ],
        but: &[],
        why: "simulated hosts know only the wire",
    },
    Deny {
        from: ANY,
        on: &["anyhow"],
        but: &["xtask", "testkit", "system-tests"],
        why: "libraries and services have errors of their own",
    },
    Deny {
        from: ANY,
        on: &["openssl", "native-tls", "aws-lc-rs", "tokio-tar"],
        but: &[],
        why: "rustls with ring is the one TLS; tokio-tar is not maintained",
    },
];

pub(super) fn direction(sources: &WorkspaceSources) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    for dependency in sources
        .dependencies
        .iter()
        .filter(|dependency| !dependency.is_dev)
    {
        let (from, on) = (dependency.from.as_str(), dependency.on.as_str());
        for deny in DENIED {
            let is_from = deny.from == ANY || deny.from.contains(&from);
            let is_denied =
                is_from && deny.on.contains(&on) && !deny.but.contains(&from) && from != on;
            if is_denied {
                findings.push(TidyFinding {
                    place: format!("{from} depends on {on}"),
                    remedy: deny.why.to_owned(),
                });
            }
        }
    }
    findings
}

pub(super) fn inherited(sources: &WorkspaceSources) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    // A workspace of its own, such as fuzz targets, has nothing to inherit.
    let members = sources.manifests.iter();
    for manifest in members.filter(|it| !it.text.lines().any(|line| line == "[workspace]")) {
        let mut find = |place: String, remedy: &str| {
            findings.push(TidyFinding {
                place,
                remedy: remedy.to_owned(),
            });
        };
        if !manifest.text.contains("[lints]\nworkspace = true") {
            find(manifest.path.clone(), "add [lints] workspace = true");
        }
        let mut section = "";
        for (index, line) in manifest.text.lines().enumerate() {
            if line.starts_with('[') {
                section = line;
            } else if section.contains("dependencies")
                && line.contains('=')
                && !line.trim_start().starts_with('#')
                && !line.contains("workspace = true")
            {
                let place = format!("{}:{}", manifest.path, index + 1);
                find(place, "take the version from [workspace.dependencies]");
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::source::{CrateDependency, SourceFile};

    fn depends(from: &str, on: &str, is_dev: bool) -> WorkspaceSources {
        WorkspaceSources {
            dependencies: vec![CrateDependency {
                from: from.to_owned(),
                on: on.to_owned(),
                is_dev,
            }],
            ..WorkspaceSources::default()
        }
    }

    #[test]
    fn every_denied_dependency_is_found() {
        for (from, on) in [
            ("model", "tokio"),
            ("rules", "sqlx"),
            ("api-server", "registry"),
            ("webui", "sqlx"),
            ("proxy", "services"),
            ("service", "host-sim"),
            ("host-sim", "model"),
            ("atoll", "host-sim"),
            ("rehearsal", "api-server"),
            ("rehearsal", "service"),
            ("registry", "anyhow"),
            ("oci", "openssl"),
        ] {
            assert!(
                !direction(&depends(from, on, false)).is_empty(),
                "{from} -> {on}"
            );
        }
    }

    #[test]
    fn downward_and_dev_dependencies_are_allowed() {
        for (from, on, is_dev) in [
            ("rules", "model", false),
            ("atoll", "registry", false),
            ("api-server", "rehearsal", false),
            ("api-server", "sqlx", false),
            ("testkit", "sqlx", false),
            ("api-server", "testkit", true),
        ] {
            assert_eq!(direction(&depends(from, on, is_dev)), [], "{from} -> {on}");
        }
    }

    #[test]
    fn a_crates_own_version_is_found() {
        let manifest = |text: &str| WorkspaceSources {
            manifests: vec![SourceFile {
                path: "crates/x/Cargo.toml".to_owned(),
                text: text.to_owned(),
            }],
            ..WorkspaceSources::default()
        };
        let good = "[lints]\nworkspace = true\n\n[dependencies]\nserde.workspace = true\n";
        assert_eq!(inherited(&manifest(good)), []);
        let own = good.replace("serde.workspace = true", "serde = \"1\"");
        assert_eq!(inherited(&manifest(&own))[0].place, "crates/x/Cargo.toml:5");
        assert_eq!(inherited(&manifest("[dependencies]\n")).len(), 1);
        assert_eq!(inherited(&manifest(&format!("{own}\n[workspace]\n"))), []);
    }
}
