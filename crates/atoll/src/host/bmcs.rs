//! BMCs of the hosts in record files: a job on all of them, with progress and failures on standard error.

use std::path::{Path, PathBuf};

use clap::Args;
use host_records::{MAX_FILE, RecordFile};
use host_records::{RecordedBmc, recorded_bmcs};
use redfish::{BmcEvent, BmcJob, BmcRunner, BmcTarget, RedfishConnector, RedfishTiming};
use service::runtime;
use service::{CancellationToken, Error, ResultExt as _};

use super::input::{self, ApiGroupsArgs};
use crate::terminal;

/// Longest text of a BMC in a table. Units: characters.
const MAX_CELL: usize = 60;

/// Hosts of record files, and trust in their BMCs.
#[derive(Debug, Clone, Args)]
pub(super) struct HostBmcArgs {
    /// Files with BareMetalHost and Secret records in YAML or JSON, which are one set; - reads standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// A host of the files; by default all. Repeatable
    #[arg(long = "host", value_name = "NAME")]
    names: Vec<String>,
    /// CA certificates of the BMCs (PEM) to trust in addition to the system's
    #[arg(long, alias = "bmc-ca", value_name = "FILE")]
    ca: Option<PathBuf>,
    #[command(flatten)]
    groups: ApiGroupsArgs,
}

/// The result of one host.
pub(super) struct HostResult<T> {
    pub(super) host: RecordedBmc,
    pub(super) result: Result<T, String>,
}

impl<T> HostResult<T> {
    /// Its name, and the failure.
    pub(super) fn failure(&self) -> (&str, Option<&str>) {
        let failure = self.result.as_ref().err();
        (&self.host.name, failure.map(String::as_str))
    }
}

impl HostBmcArgs {
    /// Runs a job on the BMC of each host. Results are in the order of the files.
    ///
    /// Errors: a file cannot be read, or has no such host; unusable certificates.
    pub(super) fn run<J: BmcJob>(&self, job: J) -> Result<Vec<HostResult<J::Output>>, Error> {
        let hosts = self.hosts()?;
        let runner = BmcRunner::new(connector(self.ca.as_deref())?, CancellationToken::new());
        let runner = runner.with_receiver(show);
        let targets = hosts.iter().filter_map(|host| {
            let access = host.access.clone().ok()?;
            let name = host.name.clone();
            Some(BmcTarget { name, access })
        });
        let done = runtime::block_on(runner.run(targets.collect(), job))?;
        terminal::clear_progress();
        let mut done = done.into_iter();
        let results = hosts.into_iter().map(|host| {
            let result = match &host.access {
                Err(error) => Err(error.to_string()),
                Ok(_) => match done.next() {
                    Some((_, result)) => result.map_err(|error| error.to_string()),
                    None => Err("it was left out".to_owned()),
                },
            };
            HostResult { host, result }
        });
        Ok(results.collect())
    }

    /// The selected hosts.
    fn hosts(&self) -> Result<Vec<RecordedBmc>, Error> {
        let files = self.files.iter().map(|path| record_file(path));
        let files = files.collect::<Result<Vec<_>, Error>>()?;
        let mut hosts = recorded_bmcs(&files, &self.groups.read()?);
        if hosts.is_empty() {
            let reason = "the files have no record of kind BareMetalHost";
            return Err(Error::new("selecting hosts", reason));
        }
        let is_missing = |name: &&String| hosts.iter().all(|host| host.name != **name);
        if let Some(missing) = self.names.iter().find(is_missing) {
            let names: Vec<_> = hosts.iter().map(|host| host.name.as_str()).collect();
            let meant = model::nearest(missing, names.iter().copied(), missing.len() / 3 + 1);
            let known = match meant {
                Some(meant) => format!("{meant} may be meant"),
                None => format!("the files have {}", names.join(", ")),
            };
            let reason = format!("no host is called {missing}: {known}");
            return Err(Error::new("selecting hosts", reason));
        }
        hosts.retain(|host| self.names.is_empty() || self.names.contains(&host.name));
        Ok(hosts)
    }
}

/// Connections to BMCs that trust the system's authorities and those of a file.
///
/// Errors: the file cannot be read, or has no certificates.
pub(crate) fn connector(ca: Option<&Path>) -> Result<RedfishConnector, Error> {
    let read = |path: &Path| std::fs::read(path).doing(|| format!("reading {}", path.display()));
    let pem = ca.map(read).transpose()?;
    let connector = RedfishConnector::new(pem.as_deref(), RedfishTiming::default());
    connector.doing(|| match ca {
        Some(path) => format!("reading the certificates of {}", path.display()),
        None => "preparing the connections to BMCs".to_owned(),
    })
}

/// A file whose documents are all readable: a broken one might be a secret.
fn record_file(path: &Path) -> Result<RecordFile, Error> {
    let name = input::name(path);
    let file = RecordFile::read(&name, &input::read(path, MAX_FILE)?);
    if let Some(broken) = file.broken.first() {
        let doing = format!("reading {name}:{}", broken.place);
        return Err(Error::new(doing, broken.reason.clone()));
    }
    Ok(file)
}

fn show(name: &str, event: BmcEvent) {
    match event {
        BmcEvent::Connecting => terminal::progress(&format!("{name}: connecting")),
        BmcEvent::Connected(family) => terminal::progress(&format!("{name}: {family}")),
        BmcEvent::Step(step) => terminal::line(&format!("{name}: {step}")),
        BmcEvent::Warning(warning) => terminal::notice(&format!("{name}: {warning}")),
        // Failures are printed in the order of the hosts.
        BmcEvent::Done | BmcEvent::Failed(_) => {}
    }
}

/// Prints the failures of named hosts; returns whether there are none.
pub(super) fn print_failures<'a>(
    hosts: impl IntoIterator<Item = (&'a str, Option<&'a str>)>,
) -> bool {
    let (mut all, mut failed) = (0, 0);
    for (name, failure) in hosts {
        all += 1;
        if let Some(failure) = failure {
            terminal::notice(&format!("{name}: {failure}"));
            failed += 1;
        }
    }
    if failed > 0 {
        terminal::line(&format!("{failed} of {all} hosts failed"));
    }
    failed == 0
}

/// A text of a BMC for a table: printable and short; `-` for none.
pub(super) fn cell(text: &str) -> String {
    let chars = text.chars().filter(|c| !c.is_control());
    let shown: String = chars.take(MAX_CELL).collect();
    if shown.is_empty() {
        "-".to_owned()
    } else {
        shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_bmcs_do_not_control_the_terminal() {
        assert_eq!(cell("a\u{1b}[2J\nb"), "a[2Jb");
        assert_eq!(cell(&"x".repeat(MAX_CELL)).len(), MAX_CELL);
        assert_eq!(cell(&"x".repeat(MAX_CELL + 1)).len(), MAX_CELL);
        assert_eq!(cell("\n"), "-");
    }
}
