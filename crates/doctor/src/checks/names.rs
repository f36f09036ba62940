//! DNS names of the proxy and of clusters.

use std::net::IpAddr;
use std::sync::Arc;

use net::resolve::Resolver;

use super::findings::{SubjectFinding, each};
use crate::site::{ClusterNames, SiteFacts};

const MISSING: &str = "does not resolve";
const REMEDY: &str = "check the name servers in /etc/resolv.conf";

pub(super) async fn front(site: Arc<SiteFacts>) -> Vec<SubjectFinding> {
    let Some(front) = &site.front else {
        return Vec::new();
    };
    let resolver = Resolver::system();
    let expected = match &front.host {
        Some(host) => resolver.lookup(host).await.unwrap_or_default(),
        None => Vec::new(),
    };
    let subjects = front.names.iter();
    let subjects = subjects
        .map(|name| (name.clone(), expected.clone()))
        .collect();
    let mut found = look_up_all(&resolver, subjects).await;
    if front.is_used {
        return found;
    }
    // One warning for a domain that the name server does not have.
    let is_missing = |one: &SubjectFinding| one.finding.starts_with(MISSING);
    if found.len() > 1 && found.iter().all(is_missing) {
        let remedy = format!(
            "unless ports are enough for users: add address records for {} to the name server, to {}",
            front.names.join(", "),
            target(&expected)
        );
        return vec![SubjectFinding::warning(
            "",
            "no name of the network domain resolves",
            remedy,
        )];
    }
    for one in &mut found {
        one.status = one.status.min(crate::CheckStatus::Warning);
    }
    found
}

pub(super) async fn clusters(site: Arc<SiteFacts>) -> Vec<SubjectFinding> {
    let subjects = site.clusters.iter().flat_map(names_of).collect();
    look_up_all(&Resolver::system(), subjects).await
}

fn names_of(cluster: &ClusterNames) -> [(String, Vec<IpAddr>); 3] {
    let ClusterNames {
        domain,
        api,
        ingress,
    } = cluster;
    [
        (format!("api.{domain}"), api.clone()),
        (format!("api-int.{domain}"), api.clone()),
        // Any name there: the record is a wildcard.
        (format!("test.apps.{domain}"), ingress.clone()),
    ]
}

async fn look_up_all(
    resolver: &Resolver,
    subjects: Vec<(String, Vec<IpAddr>)>,
) -> Vec<SubjectFinding> {
    each(subjects, REMEDY, |name, expected| {
        let resolver = resolver.clone();
        async move { look_up(&resolver, name, &expected).await }
    })
    .await
}

async fn look_up(resolver: &Resolver, name: String, expected: &[IpAddr]) -> SubjectFinding {
    let target = target(expected);
    match resolver.lookup(&name).await {
        Err(error) => {
            let remedy = format!("add an address record {name} for {target} to the name server");
            SubjectFinding::failed(name, format!("{MISSING}: {error}"), remedy)
        }
        Ok(found) if expected.is_empty() || found.iter().any(|one| expected.contains(one)) => {
            SubjectFinding::passed(name, format!("resolves to {}", list(&found)))
        }
        Ok(found) => {
            let finding = format!("resolves to {}, not {target}", list(&found));
            let remedy = format!("change the address record {name} to {target}");
            SubjectFinding::failed(name, finding, remedy)
        }
    }
}

fn target(expected: &[IpAddr]) -> String {
    if expected.is_empty() {
        "its host".to_owned()
    } else {
        list(expected)
    }
}

fn list(addresses: &[IpAddr]) -> String {
    let texts: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    texts.join(", ")
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Duration;

    use net::resolve::ResolverOptions;

    use super::*;
    use crate::CheckStatus;

    #[tokio::test]
    async fn missing_and_wrong_names_fail() {
        let dir = tempfile::tempdir().unwrap();
        let [hosts, conf] = ["hosts", "resolv.conf"].map(|name| dir.path().join(name));
        fs::write(
            &hosts,
            "192.0.2.1 api.c.lab.example api-int.c.lab.example\n192.0.2.9 test.apps.c.lab.example\n",
        )
        .unwrap();
        fs::write(&conf, "nameserver 127.0.0.1:9\n").unwrap();
        let resolver = Resolver::new(ResolverOptions {
            resolv_conf: conf,
            hosts,
            timeout: Duration::from_millis(10),
            attempts: 1,
            ..ResolverOptions::default()
        });
        let cluster = ClusterNames {
            domain: "c.lab.example".to_owned(),
            api: vec!["192.0.2.1".parse().unwrap()],
            ingress: vec!["192.0.2.2".parse().unwrap()],
        };
        let mut subjects = names_of(&cluster).to_vec();
        subjects.push(("gone.lab.example".to_owned(), cluster.ingress.clone()));
        let found = look_up_all(&resolver, subjects).await;
        let states: Vec<CheckStatus> = found.iter().map(|one| one.status).collect();
        let (passed, failed) = (CheckStatus::Passed, CheckStatus::Failed);
        assert_eq!(states, [passed, passed, failed, failed]);
        assert_eq!(found[2].finding, "resolves to 192.0.2.9, not 192.0.2.2");
        for one in &found[2..] {
            assert!(
                one.remedy.contains(&format!("record {}", one.subject)),
                "{one:?}"
            );
            assert!(one.remedy.contains("192.0.2.2"), "{one:?}");
        }
    }
}
