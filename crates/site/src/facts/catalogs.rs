//! Checks of operator catalogs, by gRPC.

use std::net::SocketAddr;

use catalog_server::{CatalogConfig, CatalogList, ServedCatalogError, served_packages};
use doctor::{CheckStatus, ProbeProblem, SiteProbe};
use service::settings::Setting as _;

/// The catalog server, as settings describe it.
#[derive(Debug, Clone)]
pub(super) struct CatalogSite {
    /// Its address from here.
    pub(super) address: SocketAddr,
    /// Status of a server that does not run: many sites have none.
    pub(super) absent: CheckStatus,
    /// The command that starts it.
    pub(super) start: &'static str,
    /// The place of its log.
    pub(super) log: String,
}

impl CatalogSite {
    /// A check for each catalog of the setting CATALOGS.
    ///
    /// Errors: malformed catalogs.
    pub(super) fn probes(&self, catalogs: &str) -> Result<Vec<SiteProbe>, String> {
        let list = CatalogList::parse(catalogs)?;
        Ok(list.0.iter().map(|one| self.probe(one)).collect())
    }

    fn probe(&self, catalog: &CatalogConfig) -> SiteProbe {
        let name = catalog.name.clone();
        let mut site = self.clone();
        if let Some(port) = catalog.port {
            site.address.set_port(port);
        }
        SiteProbe::new(name.clone(), move || {
            let (site, name) = (site.clone(), name.clone());
            async move {
                let found = served_packages(&name, site.address).await;
                site.result(found)
            }
        })
    }

    fn result(&self, found: Result<usize, ServedCatalogError>) -> Result<String, ProbeProblem> {
        let address = self.address;
        let (status, finding, remedy) = match found {
            Ok(0) => (
                CheckStatus::Warning,
                format!("{address} serves no package of it"),
                "put packages into the catalog, or correct its source in CATALOGS".to_owned(),
            ),
            Ok(1) => return Ok(format!("{address} serves 1 package of it")),
            Ok(count) => return Ok(format!("{address} serves {count} packages of it")),
            Err(ServedCatalogError::Unreachable(_)) if self.absent == CheckStatus::Passed => {
                return Ok(format!("the catalog server does not run; {}", self.start));
            }
            Err(error @ ServedCatalogError::Unreachable(_)) => (
                self.absent,
                format!("{address}: {error}"),
                self.start.to_owned(),
            ),
            Err(error @ ServedCatalogError::NotLoaded) => (
                CheckStatus::Failed,
                format!("{address}: {error}"),
                format!(
                    "correct its source in CATALOGS; {} has the reason",
                    self.log
                ),
            ),
            Err(error @ ServedCatalogError::Call(_)) => (
                CheckStatus::Failed,
                format!("{address}: {error}"),
                format!(
                    "check that the catalog server has the port; see {}",
                    self.log
                ),
            ),
        };
        Err(ProbeProblem {
            status,
            finding,
            remedy,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_state_has_its_remedy() {
        let site = CatalogSite {
            address: "127.0.0.1:50051".parse().unwrap(),
            absent: CheckStatus::Warning,
            start: "start it",
            log: "its log".to_owned(),
        };
        assert!(site.result(Ok(3)).unwrap().contains("3 packages"));
        for (found, status, remedy) in [
            (Ok(0), CheckStatus::Warning, "put packages"),
            (
                Err(ServedCatalogError::Unreachable("refused".to_owned())),
                CheckStatus::Warning,
                "start it",
            ),
            (
                Err(ServedCatalogError::NotLoaded),
                CheckStatus::Failed,
                "its log",
            ),
            (
                Err(ServedCatalogError::Call("no gRPC".to_owned())),
                CheckStatus::Failed,
                "its log",
            ),
        ] {
            let problem = site.result(found).unwrap_err();
            assert_eq!(problem.status, status, "{problem:?}");
            assert!(problem.remedy.contains(remedy), "{problem:?}");
        }
        let names = |catalogs: &str| site.probes(catalogs).map(|all| all.len());
        assert_eq!(names("/catalogs"), Ok(1));
        assert_eq!(names("a=/a,b:50052=/b"), Ok(2));
        assert!(names("/a,/b").is_err());
    }
}
