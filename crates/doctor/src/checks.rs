//! The table of checks, and its concurrent run.

mod base_urls;
mod certificates;
mod clients;
mod content;
mod findings;
mod images;
mod logins;
mod machine;
mod mirrors;
mod names;
mod port_holder;
mod ports;
mod remote;
mod served_certificates;
mod services;
mod time;

use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt as _};
use futures_util::stream::{self, StreamExt as _};

use self::findings::{CONCURRENT, SubjectFinding};
use crate::report::{CheckGroup, CheckResult, DoctorReport};
use crate::site::SiteFacts;

/// Timeout of a check.
const CHECK_TIMEOUT: Duration = Duration::from_mins(1);

type CheckFuture = BoxFuture<'static, Vec<SubjectFinding>>;

/// A row of the table.
#[derive(Debug)]
pub struct SiteCheck {
    /// Its name.
    pub id: &'static str,
    /// Its subject area.
    pub group: CheckGroup,
    check: fn(Arc<SiteFacts>) -> CheckFuture,
}

/// All checks, in the order of their results.
pub static CHECKS: &[SiteCheck] = &[
    row("front-names", CheckGroup::Dns, |site| {
        Box::pin(names::front(site))
    }),
    row("cluster-names", CheckGroup::Dns, |site| {
        Box::pin(names::clusters(site))
    }),
    row("time-server", CheckGroup::Time, |site| {
        Box::pin(time::servers(site))
    }),
    row("clock", CheckGroup::Time, |site| {
        Box::pin(time::clock(site))
    }),
    row("disk-space", CheckGroup::Machine, |site| {
        Box::pin(machine::disks(site))
    }),
    row("memory", CheckGroup::Machine, |site| {
        Box::pin(machine::memory(site))
    }),
    row("port", CheckGroup::Machine, |site| {
        Box::pin(ports::ports(site))
    }),
    row("certificate", CheckGroup::Certificates, |site| {
        Box::pin(certificates::files(site))
    }),
    row("served-certificate", CheckGroup::Certificates, |site| {
        Box::pin(served_certificates::served(site))
    }),
    row("database", CheckGroup::Services, |site| {
        Box::pin(services::database(site))
    }),
    row("api", CheckGroup::Services, |site| {
        Box::pin(services::api(site))
    }),
    row("access", CheckGroup::Services, |site| {
        Box::pin(ready(logins::access(&site)))
    }),
    row("registry-login", CheckGroup::Services, |site| {
        Box::pin(services::registry(site))
    }),
    row("mirror", CheckGroup::Services, |site| {
        Box::pin(mirrors::mirrors(site))
    }),
    row("connection", CheckGroup::Services, |site| {
        Box::pin(remote::connections(site))
    }),
    row("base-url", CheckGroup::Services, |site| {
        Box::pin(base_urls::base_urls(site))
    }),
    row("username-claim", CheckGroup::Services, |site| {
        Box::pin(ready(logins::username_claim(&site)))
    }),
    row("catalog", CheckGroup::Services, |site| {
        Box::pin(services::catalogs(site))
    }),
    row("registry-content", CheckGroup::Images, |site| {
        Box::pin(ready(content::releases(&site)))
    }),
    row("release-image", CheckGroup::Images, |site| {
        Box::pin(images::releases(site))
    }),
    row("os-image", CheckGroup::Images, |site| {
        Box::pin(images::boot_images(site))
    }),
    row("image", CheckGroup::Images, |site| {
        Box::pin(images::named(site))
    }),
];

const fn row(
    id: &'static str,
    group: CheckGroup,
    check: fn(Arc<SiteFacts>) -> CheckFuture,
) -> SiteCheck {
    SiteCheck { id, group, check }
}

/// Runs all checks on `site`. Needs a tokio runtime.
pub async fn run(site: SiteFacts) -> DoctorReport {
    run_table(CHECKS, Arc::new(site)).await
}

async fn run_table(table: &'static [SiteCheck], site: Arc<SiteFacts>) -> DoctorReport {
    let running: Vec<_> = table
        .iter()
        .map(|check| run_one(check, Arc::clone(&site)).boxed())
        .collect();
    let results: Vec<Vec<CheckResult>> = stream::iter(running).buffered(CONCURRENT).collect().await;
    DoctorReport {
        checks: results.concat(),
    }
}

/// Results of one check. A panic or a timeout is a result: it does not hide the other checks.
async fn run_one(check: &'static SiteCheck, site: Arc<SiteFacts>) -> Vec<CheckResult> {
    // A task of its own: its panic ends there.
    let mut task = tokio::spawn((check.check)(site));
    let broken = |finding: String| {
        let remedy = "run it again, and report it if it stays";
        vec![SubjectFinding::failed("", finding, remedy)]
    };
    let found = match tokio::time::timeout(CHECK_TIMEOUT, &mut task).await {
        Ok(Ok(found)) => found,
        Ok(Err(error)) => broken(format!("the check itself failed: {error}")),
        Err(_) => {
            task.abort();
            broken(format!("no result within {} s", CHECK_TIMEOUT.as_secs()))
        }
    };
    let result = |one: SubjectFinding| CheckResult {
        id: if one.subject.is_empty() {
            check.id.to_owned()
        } else {
            format!("{}:{}", check.id, one.subject)
        },
        group: check.group,
        status: one.status,
        finding: one.finding,
        remedy: one.remedy,
    };
    found.into_iter().map(result).collect()
}

#[cfg(test)]
mod tests {
    use model::release_payload::ComponentImages;

    use super::*;
    use crate::{
        BootImage, CertificateFile, CheckStatus, DataFolder, ProbeProblem, ServedName, SiteProbe,
    };

    static TABLE: &[SiteCheck] = &[
        row("panics", CheckGroup::Dns, |_| {
            Box::pin(async { panic!("on purpose") })
        }),
        row("works", CheckGroup::Time, |_| {
            Box::pin(async { vec![SubjectFinding::passed("it", "well")] })
        }),
    ];

    #[tokio::test]
    async fn a_broken_check_hides_no_other() {
        let report = run_table(TABLE, Arc::default()).await;
        assert_eq!(report.checks.len(), 2);
        let [broken, works] = [&report.checks[0], &report.checks[1]];
        assert_eq!(
            (broken.id.as_str(), broken.status),
            ("panics", CheckStatus::Failed)
        );
        assert!(!broken.remedy.is_empty() && report.has_failures());
        assert_eq!(
            (works.id.as_str(), works.status),
            ("works:it", CheckStatus::Passed)
        );
    }

    #[tokio::test]
    async fn an_empty_site_has_nothing_to_check() {
        assert_eq!(run(SiteFacts::default()).await, DoctorReport::default());
    }

    /// A site in which nothing works, with results that are equal on each machine.
    fn broken_site() -> SiteFacts {
        let free = "127.0.0.1:1".parse().unwrap();
        let missing = |name: &str| format!("/nowhere/{name}").into();
        SiteFacts {
            folders: vec![DataFolder {
                path: "/".into(),
                required_bytes: u64::MAX,
            }],
            certificates: vec![CertificateFile {
                service: "proxy".to_owned(),
                path: missing("lab.example.pem"),
                key: missing("lab.example.pem"),
                names: vec!["api.lab.example".to_owned()],
                authority: Some(missing("ca.crt")),
                renewal: "atoll certs --domain lab.example".to_owned(),
            }],
            served_names: vec![ServedName {
                service: "proxy",
                listener: "proxy",
                name: "api.lab.example".to_owned(),
                address: free,
            }],
            database: Some(SiteProbe::new("db:5432/installer", || async {
                Err(ProbeProblem {
                    status: CheckStatus::Failed,
                    finding: "refuses the password".to_owned(),
                    remedy: "correct DB_USER".to_owned(),
                })
            })),
            catalogs: vec![SiteProbe::new("own", || async {
                Ok("serves 3 packages".to_owned())
            })],
            boot_images: Some(vec![BootImage {
                openshift_version: "4.18".to_owned(),
                cpu_architecture: "x86_64".to_owned(),
                url: "file:///images/live.iso".to_owned(),
                path: Some(missing("live.iso")),
                ..BootImage::default()
            }]),
            releases: Some(Vec::new()),
            components: Some(ComponentImages {
                agent: "Not An Image".to_owned(),
                ..ComponentImages::default()
            }),
            service_base_url: Some("http://127.0.0.1:8090".to_owned()),
            image_service_base_url: Some("http://user:secret@localhost:8888/?q=secret".to_owned()),
            ..SiteFacts::default()
        }
    }

    #[tokio::test]
    async fn a_broken_site_is_reported() {
        let mut report = run(broken_site()).await;
        let disk = report.checks.iter_mut();
        for one in disk.filter(|one| one.id.starts_with("disk-space")) {
            one.finding = "[free space]".to_owned();
        }
        for one in &report.checks {
            let has_remedy = !one.remedy.is_empty();
            assert_eq!(has_remedy, one.status != CheckStatus::Passed, "{one:?}");
        }
        insta::assert_json_snapshot!(report);
    }

    #[test]
    fn json_is_as_documented() {
        let report = DoctorReport {
            checks: vec![CheckResult {
                id: "memory".to_owned(),
                group: CheckGroup::Machine,
                status: CheckStatus::Warning,
                finding: "f".to_owned(),
                remedy: "r".to_owned(),
            }],
        };
        assert_eq!(
            serde_json::to_string(&report).unwrap(),
            r#"{"checks":[{"id":"memory","group":"machine","status":"warning","finding":"f","remedy":"r"}]}"#
        );
        for check in CHECKS {
            let group = serde_json::to_value(check.group).unwrap();
            assert_eq!(group, check.group.name());
        }
    }
}
