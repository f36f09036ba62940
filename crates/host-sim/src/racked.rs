//! Machines that are switched off until their BMCs boot a discovery image.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::fs::File;
use tokio::io::AsyncWriteExt as _;
use tokio::sync::mpsc;

use crate::bmc::{BMC_PROFILES, BmcBoot, BmcBootSource, BmcHost, BmcRack, BmcRackPlan};
use crate::image::{self, BootConfig};
use crate::{Error, Hardware};

/// Records of the hosts, for `atoll host`.
const RECORDS: &str = "hosts.yaml";
/// Rows of the hosts, as the web UI takes them.
const ROWS: &str = "bmcs.csv";
/// Authority of the BMCs' certificates.
const AUTHORITY: &str = "bmc-ca.pem";
/// The image that the machines boot.
const IMAGE: &str = "discovery.iso";
/// Longest image. Units: bytes.
const IMAGE_BYTES: u64 = 16 << 30;
/// Of its server, to connect or to go on.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Machines behind BMCs, which end when it is dropped.
#[derive(Debug)]
pub struct RackedMachines {
    rack: BmcRack,
    boots: mpsc::UnboundedReceiver<BmcBoot>,
    folder: PathBuf,
}

impl RackedMachines {
    /// Starts the BMCs, one of each family in turn, and writes their records into a folder. Must run in a tokio runtime.
    ///
    /// Errors: File; Invalid – too many machines, or no port.
    pub async fn start(machines: &[Hardware], folder: &Path) -> Result<Self, Error> {
        let (sender, boots) = mpsc::unbounded_channel();
        let families = BMC_PROFILES.iter().cycle();
        let plan = BmcRackPlan {
            bmcs: families.zip(machines.iter().map(BmcHost::of)).collect(),
            // Fails once nothing waits for boots any more.
            hook: Some(Arc::new(move |boot: &BmcBoot| {
                drop(sender.send(boot.clone()));
            })),
            ..BmcRackPlan::of(&BMC_PROFILES[0], 0)
        };
        let (user, password) = (plan.user.clone(), plan.password.clone());
        let racked = Self {
            rack: BmcRack::start(plan).await?,
            boots,
            folder: folder.to_owned(),
        };
        racked.write(&user, &password)?;
        Ok(racked)
    }

    fn write(&self, user: &str, password: &str) -> Result<(), Error> {
        let (mut records, mut rows) = (String::new(), "name,address,user,password\n".to_owned());
        for bmc in self.rack.bmcs() {
            let name = &bmc.host.name;
            let origin = self.rack.origin(bmc.index, "redfish-virtualmedia");
            let address = format!("{origin}{}", bmc.profile.system_path());
            let boot_mac = bmc.host.macs.first();
            for record in records_of(name, &address, boot_mac, (user, password)) {
                // Writing to a text cannot fail.
                let _ = writeln!(records, "---\n{record:#}");
            }
            let _ = writeln!(rows, "{name},{address},{user},{password}");
        }
        let written = |path: &Path| {
            let path = path.to_owned();
            move |source| Error::File {
                path,
                doing: "cannot be written",
                source,
            }
        };
        fs::create_dir_all(&self.folder).map_err(written(&self.folder))?;
        // The records are last: once they are there, the others are.
        for (name, text) in [
            (AUTHORITY, self.rack.ca_pem()),
            (ROWS, &rows),
            (RECORDS, &records),
        ] {
            let path = self.folder.join(name);
            fs::write(&path, text).map_err(written(&path))?;
        }
        Ok(())
    }

    /// Waits until each machine has booted a discovery image: the agent's configuration in it.
    ///
    /// Errors: Invalid – they booted images of different infra-envs.
    pub async fn booted(&mut self) -> Result<BootConfig, Error> {
        let mut waiting: BTreeSet<usize> = (0..self.rack.bmcs().len()).collect();
        let mut known: Option<(String, BootConfig)> = None;
        while let Some(boot) = self.boots.recv().await {
            let host = boot.host;
            let (BmcBootSource::VirtualCd(url) | BmcBootSource::Http(Some(url))) = boot.source
            else {
                tracing::warn!(host, "started without an image: nothing is on its disk");
                continue;
            };
            let config = match &known {
                Some((known, config)) if *known == url => config.clone(),
                _ => match self.read_image(&url).await {
                    Ok(config) => config,
                    Err(error) => {
                        tracing::warn!(host, error = error.chain(), "cannot boot its image");
                        continue;
                    }
                },
            };
            if known.as_ref().is_some_and(|(_, known)| *known != config) {
                let reason = "booted the image of another infra-env than the machines before it";
                return Err(Error::invalid(host, reason));
            }
            known = Some((url, config.clone()));
            waiting.remove(&boot.index);
            tracing::info!(host, waiting = waiting.len(), "booted the image");
            if waiting.is_empty() {
                return Ok(config);
            }
        }
        Err(Error::invalid("the machines", "their BMCs have ended"))
    }

    /// Downloads an image. Its address may have a token, and is in no error.
    async fn read_image(&self, url: &str) -> Result<BootConfig, Error> {
        let failed = |source: reqwest::Error| Error::Unreachable {
            method: "GET",
            url: "its image".to_owned(),
            source: source.without_url(),
        };
        // The embedding program may have set the default provider already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        // Most BMCs do not verify the servers of images.
        let client = reqwest::Client::builder()
            .connect_timeout(TIMEOUT)
            .read_timeout(TIMEOUT)
            .tls_danger_accept_invalid_certs(true);
        let response = client.build().map_err(failed)?.get(url).send().await;
        let response = response.and_then(reqwest::Response::error_for_status);
        let mut response = response.map_err(failed)?;
        let path = self.folder.join(IMAGE);
        let written = |source| Error::File {
            path: path.clone(),
            doing: "cannot be written",
            source,
        };
        let mut file = File::create(&path).await.map_err(written)?;
        let mut length = 0;
        while let Some(chunk) = response.chunk().await.map_err(failed)? {
            length += chunk.len() as u64;
            if length > IMAGE_BYTES {
                let reason = format!("has more than {IMAGE_BYTES} bytes");
                return Err(Error::invalid("the image", reason));
            }
            file.write_all(&chunk).await.map_err(written)?;
        }
        file.flush().await.map_err(written)?;
        image::boot_config(&path)
    }
}

/// Secret and BareMetalHost of a machine.
fn records_of(
    name: &str,
    address: &str,
    boot_mac: Option<&String>,
    (user, password): (&str, &str),
) -> [Value; 2] {
    let secret = format!("{name}-bmc");
    [
        json!({
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": { "name": secret },
            "stringData": { "username": user, "password": password },
        }),
        json!({
            "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost", "metadata": { "name": name },
            "spec": {
                "online": true, "bootMACAddress": boot_mac,
                "bmc": { "address": address, "credentialsName": secret },
            },
        }),
    ]
}
