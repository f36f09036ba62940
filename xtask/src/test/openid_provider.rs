//! oidc-provider of npm, the OpenID provider of the tests of log-ins, in a folder of its own.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::apt;
use crate::cargo::root;
use crate::command::run;

/// The last version for the Node.js of stable distributions.
const VERSION: &str = "8.8.1";

/// The folder with its node_modules; installs it first when it is missing.
pub(super) fn ensure() -> Result<PathBuf> {
    if !["node", "npm"].iter().all(|name| apt::is_program(name)) {
        let why = "log-ins are tested at a provider of npm";
        apt::install(&["nodejs", "npm"], why)?;
    }
    let folder = root().join(format!("target/tools/oidc-provider-{VERSION}"));
    // Written last: an interrupted installation is repeated.
    let done = folder.join("installed");
    if !done.is_file() {
        println!(
            "oidc-provider is not here: npm installs it into {}.",
            folder.display()
        );
        fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
        run(Command::new("npm")
            .args(["install", "--no-audit", "--no-fund", "--ignore-scripts"])
            .arg("--prefix")
            .arg(&folder)
            .arg(format!("oidc-provider@{VERSION}")))?;
        fs::write(&done, "").with_context(|| format!("writing {}", done.display()))?;
    }
    Ok(folder)
}
