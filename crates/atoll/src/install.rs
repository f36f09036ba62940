//! `atoll install`: a bundle becomes a running pod, without any network.

use std::cell::RefCell;
use std::io::{self, BufRead as _, IsTerminal as _};
use std::path::PathBuf;

use clap::Args;
use mirror::history::Pruning;
use service::{Error, ResultExt as _};
use site::SiteEvent;
use site::install::{Dialogue, InstallRequest, InstalledPod};

use crate::bundle::elsewhere;
use crate::mirror::{ProgressPrinter, ask_to_prune, pruning_lines};
use crate::site_texts::{self, access_text};
use crate::terminal::{notice, print};

/// Arguments of `atoll install`.
#[derive(Debug, Clone, Args)]
pub(crate) struct InstallArgs {
    /// File of `atoll bundle`
    bundle: PathBuf,
    /// Folder of the pod, which is made
    #[arg(long, value_name = "DIR", default_value = "pod")]
    dir: PathBuf,
    /// Answers to all questions, as YAML: `host: NAME`, and `settings:` with variables of .env
    #[arg(long, value_name = "FILE")]
    answers: Option<PathBuf>,
    /// Host name or IP address of this host for users and booting machines
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// Public key that has to have signed the bundle: FILE.pub of `atoll mirror key FILE`
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Only load the images of the services into podman
    #[arg(long)]
    only_load: bool,
    /// Require log-ins: sets AUTH_TYPE=local with new keys, and prints a link that logs the administrator in once
    #[arg(long)]
    login: bool,
}

/// Installs a bundle, and prints the next steps.
///
/// Errors: those of the installation.
pub(crate) fn run(arguments: &InstallArgs) -> Result<(), Error> {
    let request = InstallRequest {
        bundle: arguments.bundle.clone(),
        dir: arguments.dir.clone(),
        answers: arguments.answers.clone(),
        host: arguments.host.clone(),
        key: arguments.key.clone(),
        only_load: arguments.only_load,
        login: arguments.login,
    };
    let publication = RefCell::new(ProgressPrinter::default());
    let observe = |event: SiteEvent<'_>| match event {
        SiteEvent::Publishing(progress) => publication.borrow_mut().tick(progress),
        event => site_texts::report(event),
    };
    let Some(pod) = site::install::run(&request, &Terminal, &observe)? else {
        return Ok(());
    };
    if let Some(text) = elsewhere(&pod.manifest) {
        print(&text);
    }
    print(&summary(&pod));
    print(&access_text(&pod.access, &pod.dir));
    Ok(())
}

/// Questions at the terminal.
struct Terminal;

impl Dialogue for Terminal {
    fn host(&self, known: Option<&str>) -> Result<String, Error> {
        let doing = "asking for the host name";
        if !io::stdin().is_terminal() {
            let remedy =
                "there is no terminal: use --host NAME, or --answers FILE with `host: NAME`";
            return Err(Error::new(doing, remedy));
        }
        let shown = known.unwrap_or("none");
        print(&format!(
            "Host name or IP address of this host for users and booting machines [{shown}]:"
        ));
        let mut line = String::new();
        io::stdin().lock().read_line(&mut line).doing(doing)?;
        match (line.trim(), known) {
            ("", Some(known)) => Ok(known.to_owned()),
            ("", None) => Err(Error::new(
                doing,
                "this host has no address that could be the default",
            )),
            (line, _) => Ok(line.to_owned()),
        }
    }

    fn allows_pruning(&self, pruning: &Pruning) -> Result<bool, Error> {
        for line in pruning_lines(pruning) {
            notice(&line);
        }
        if !pruning.needs_consent() {
            return Ok(true);
        }
        ask_to_prune().doing("reading the answer")
    }
}

fn summary(pod: &InstalledPod) -> String {
    format!(
        "Version {} is ready. Open http://{}\n\
         API: http://{}/api/assisted-install/v2, registry: {}, password in {}.",
        pod.manifest.version,
        pod.webui,
        pod.api,
        pod.registry,
        pod.dir.join("secrets/registry-password").display(),
    )
}
