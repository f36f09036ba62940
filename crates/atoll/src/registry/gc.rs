//! Collecting a registry's garbage now.

use std::path::{Path, PathBuf};

use clap::Args;
use serde::Deserialize;
use service::Error;

use super::password;
use crate::terminal;

/// Units: bytes.
const MIB: f64 = 1_048_576.0;

/// Which registry, and who asks.
#[derive(Debug, Clone, Args)]
pub(crate) struct Arguments {
    /// The registry, as in https://registry.example.org:5000
    #[arg(value_name = "URL")]
    url: String,
    /// Who asks: a user that may delete everywhere. The password is read as `htpasswd` reads it
    #[arg(long)]
    user: Option<String>,
    /// The registry's certificate, when the system does not trust it
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Only count
    #[arg(long)]
    dry_run: bool,
}

/// What the registry answers in the end.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Answer {
    Collected {
        links: u64,
        blobs: u64,
        bytes: u64,
        repositories: u64,
    },
    Refused {
        errors: Vec<Refusal>,
    },
}

#[derive(Debug, Deserialize)]
struct Refusal {
    message: String,
}

/// Asks, waits for the end and prints what there was.
///
/// Errors: the registry is not reached, refuses, or fails.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Error> {
    let doing = format!("collecting the garbage of {}", arguments.url);
    let password = arguments.user.as_deref().map(password::read).transpose()?;
    let ca = arguments.ca.as_deref().map(read).transpose()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| Error::new(doing.clone(), e))?;
    let answer = runtime.block_on(ask(arguments, password, ca.as_deref()))?;
    match answer {
        Answer::Refused { errors } => {
            let messages: Vec<_> = errors.into_iter().map(|error| error.message).collect();
            Err(Error::new(doing, messages.join(", ")))
        }
        Answer::Collected {
            links,
            blobs,
            bytes,
            repositories,
        } => {
            #[expect(clippy::cast_precision_loss, reason = "for the eye")]
            let mib = bytes as f64 / MIB;
            let verb = if arguments.dry_run {
                "would go"
            } else {
                "are gone"
            };
            terminal::say(&format!(
                "{links} blobs of repositories that no manifest needs, {blobs} contents that no repository has \
                 ({mib:.1} MiB) and {repositories} empty repositories {verb}."
            ));
            Ok(())
        }
    }
}

async fn ask(
    arguments: &Arguments,
    password: Option<String>,
    ca: Option<&[u8]>,
) -> Result<Answer, Error> {
    let doing = || format!("asking {}", arguments.url);
    let url = format!("{}/v2/_atoll/gc", arguments.url.trim_end_matches('/'));
    let mut request = service::http_client(ca, false)?
        .post(url)
        .query(&[("dryrun", arguments.dry_run)]);
    if let Some(user) = &arguments.user {
        request = request.basic_auth(user, password);
    }
    let response = request.send().await.map_err(|e| Error::new(doing(), e))?;
    let status = response.status();
    let text = response.text().await.map_err(|e| Error::new(doing(), e))?;
    serde_json::from_str(&text)
        .map_err(|_| Error::new(doing(), format!("{status}, and no answer of this registry")))
}

fn read(path: &Path) -> Result<Vec<u8>, Error> {
    std::fs::read(path).map_err(|e| Error::new(format!("reading {}", path.display()), e))
}
