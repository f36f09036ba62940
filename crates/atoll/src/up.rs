//! `atoll up`: all services on this machine, and texts of their events.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use credentials::log_in::LINK_HOURS;
use service::Error;
use supervisor::{ReadyReport, SupervisorEvent, SupervisorObserver, UpOptions};

use crate::terminal::{notice, print};

/// Arguments of `atoll up`.
#[derive(Debug, Clone, Args)]
pub(crate) struct UpArgs {
    /// Data directory (default: /var/lib/atoll as root, else atoll in the user's data folder)
    #[arg(long = "dir", alias = "data", value_name = "DIR")]
    data: Option<PathBuf>,
    /// Use seven ports from N: database, registry, API, images, web UI, web UI, catalogs
    #[arg(long, value_name = "N")]
    ports_from: Option<u16>,
    /// File with NAME=value lines for the services; reloaded when it changes
    #[arg(long, value_name = "FILE")]
    env_file: Option<PathBuf>,
    /// Serve an operator catalog: a folder, or NAME=SOURCE as in CATALOGS of the catalog server; repeatable
    #[arg(long, value_name = "SOURCE")]
    catalog: Vec<String>,
    /// Listen address of the services
    #[arg(long, value_name = "ADDR", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    listen: IpAddr,
    /// Require log-ins: browsers on this machine are logged in by themselves, others by a link that is printed; later starts need no flag
    #[arg(long)]
    login: bool,
    /// Exit at the end of standard input, for supervising programs
    #[arg(long, hide = true)]
    supervised: bool,
}

/// Runs all services until SIGINT or SIGTERM.
///
/// Errors: a failed start, with its remedy.
pub(crate) fn run(arguments: &UpArgs) -> Result<(), Error> {
    let options = UpOptions {
        data: arguments.data.clone(),
        ports_from: arguments.ports_from,
        env_file: arguments.env_file.clone(),
        catalogs: arguments.catalog.clone(),
        listen: arguments.listen,
        login: arguments.login,
        is_supervised: arguments.supervised,
    };
    let observer: SupervisorObserver = Arc::new(|event| report(&event));
    supervisor::run(&options, &observer)
}

fn report(event: &SupervisorEvent<'_>) {
    match event {
        SupervisorEvent::StaleDatabaseStopped => print("Stopped the database of a killed run."),
        SupervisorEvent::DataPrepared {
            is_new,
            root,
            postgres,
            user,
        } => {
            let kind = if *is_new { "New" } else { "Existing" };
            let user = user.map_or_else(String::new, |user| format!(" as user {user}"));
            let root = root.display();
            print(&format!(
                "{kind} data in {root}; Postgres {postgres}{user}."
            ));
        }
        SupervisorEvent::Ready(report) => print(&ready(report)),
        SupervisorEvent::VariablesChanged => {
            print("Variables changed: restarting api-server, image-service and webui.");
        }
        SupervisorEvent::StopFile {
            service,
            path,
            exists,
        } => {
            let (action, state) = match exists {
                true => ("Stopping", "exists"),
                false => ("Starting", "was removed"),
            };
            print(&format!("{action} {service}: {} {state}.", path.display()));
        }
        SupervisorEvent::NotStarted { name, error } => notice(&format!("{name}: {error}")),
        SupervisorEvent::Exited { name, how, log } => {
            notice(&format!(
                "{name} exited ({how}) and is restarted; see {log}"
            ));
        }
        SupervisorEvent::Killed { name } => {
            notice(&format!("{name} did not stop in time and is killed"));
        }
        SupervisorEvent::Reported { name, text } => notice(&format!("{name}: {text}")),
        SupervisorEvent::StateNotWritten(error) => notice(&error.to_string()),
        SupervisorEvent::Stopping => {
            print("Stopping: draining in-flight requests; press Ctrl-C again to stop at once.");
        }
        SupervisorEvent::Stopped => print("All services stopped; the data is kept."),
    }
}

/// Addresses, rights, and the link of a first log-in.
fn ready(report: &ReadyReport<'_>) -> String {
    let state = report.state;
    let mut text = String::new();
    if !state.catalogs.is_empty() {
        let address = &state.catalog_server;
        text = format!("Operator catalogs are served on {address}.\n");
    }
    let ready = format!(
        "Ready after {:.1} s.\n  Web UI         {}\n  API            {}/api/assisted-install/v2\n  Images         {}\n  Registry       {} (user {}, password in {}, certificate {})\n  Logs           {}\nPress Ctrl-C to stop.\n{}",
        report.after.as_secs_f64(),
        state.ui_url,
        state.api_url,
        state.image_service_url,
        state.registry,
        state.registry_user,
        state.registry_password_file.display(),
        state.registry_ca.display(),
        report.logs.display(),
        report.access,
    );
    text.push_str(&ready);
    if let Some(link) = &report.log_in_link {
        let others = format!(
            "\nBrowsers on this machine are logged in by themselves; on others, once and within {LINK_HOURS} hours, by\n{link}"
        );
        text.push_str(&others);
    }
    text
}
