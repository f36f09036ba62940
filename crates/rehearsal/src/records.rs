//! Records of an installation on the server: cluster and infra-env.

use declarations::site::SiteFinding;
use host_sim::Hardware;
use host_sim::image::BootConfig;
use model::ids::ClusterId;
use reqwest::Method;
use serde_json::Value;

use crate::api::{InstallerApi, accepted};
use crate::machines::SufficientHardware;
use crate::script::{Script, refused};
use crate::{Error, findings};

/// Records that were created.
#[derive(Debug, Default)]
pub(crate) struct CreatedRecords {
    /// Id of the cluster; empty before its creation.
    pub(crate) cluster: String,
    infra_env: String,
}

impl CreatedRecords {
    /// Creates cluster and infra-env. The inner error is the refusal of the site.
    pub(crate) async fn create(
        &mut self,
        api: &InstallerApi,
        script: &Script,
        version: &str,
    ) -> Result<Result<(), SiteFinding>, Error> {
        let wanted = &script.site.declaration;
        let params = match declarations::cluster_params(wanted, version) {
            Ok(params) => params,
            Err(error) => return Ok(Err(refused(&error))),
        };
        let body = serde_json::to_value(&params).map_err(Error::internal)?;
        let created = api.send(Method::POST, "/v2/clusters", Some(&body)).await?;
        match created {
            Ok(cluster) => self.cluster = id(&cluster)?,
            Err(refusal) => return Ok(Err(findings::refused(&refusal))),
        }
        if !wanted.overrides.is_empty() {
            let overrides = serde_json::to_string(&wanted.overrides).map_err(Error::internal)?;
            let path = format!("/v2/clusters/{}/install-config", self.cluster);
            let body = Value::String(overrides);
            if let Err(refusal) = api.send(Method::PATCH, &path, Some(&body)).await? {
                return Ok(Err(findings::refused(&refusal)));
            }
        }
        let cluster: ClusterId = self.cluster.parse().map_err(Error::server)?;
        let params = match declarations::infra_env_params(wanted, Some(cluster), version) {
            Ok(params) => params,
            Err(error) => return Ok(Err(refused(&error))),
        };
        let body = serde_json::to_value(&params).map_err(Error::internal)?;
        match api
            .send(Method::POST, "/v2/infra-envs", Some(&body))
            .await?
        {
            Ok(infra_env) => self.infra_env = id(&infra_env)?,
            Err(refusal) => return Ok(Err(findings::refused(&refusal))),
        }
        Ok(Ok(()))
    }

    /// The agent's configuration, as the discovery image has it.
    pub(crate) async fn boot_config(&self, api: &InstallerApi) -> Result<BootConfig, Error> {
        let path = format!(
            "/v2/infra-envs/{}/downloads/files?file_name=discovery.ign",
            self.infra_env
        );
        let ignition = accepted(api.get(&path).await?)?;
        BootConfig::from_ignition(&ignition).map_err(|e| Error::server(e.chain()))
    }

    /// The machines of a script, large enough for the created cluster.
    pub(crate) async fn machines(
        &self,
        api: &InstallerApi,
        script: &Script,
    ) -> Result<Vec<Hardware>, Error> {
        let path = format!("/v2/clusters/{}/preflight-requirements", self.cluster);
        // Servers without this operation have the requirements that the machines of a role suit anyway.
        let needs = SufficientHardware::of(&api.get(&path).await?.unwrap_or_default());
        let mut machines = script.machines.clone();
        needs.apply(&mut machines, &script.site);
        Ok(machines)
    }

    /// Removes the records, as far as they were created; a refusal leaves them to the user.
    pub(crate) async fn remove(&self, api: &InstallerApi) -> Result<(), Error> {
        if !self.cluster.is_empty() {
            let path = format!("/v2/clusters/{}", self.cluster);
            let cancel = format!("{path}/actions/cancel");
            // Refused unless the installation runs.
            let _ = api.send(Method::POST, &cancel, None).await?;
            let _ = api.send(Method::DELETE, &path, None).await?;
        }
        if !self.infra_env.is_empty() {
            let path = format!("/v2/infra-envs/{}", self.infra_env);
            let _ = api.send(Method::DELETE, &path, None).await?;
        }
        Ok(())
    }
}

fn id(record: &Value) -> Result<String, Error> {
    let id = record["id"].as_str().unwrap_or_default().to_owned();
    if id.is_empty() {
        return Err(Error::server("the server created a record without id"));
    }
    Ok(id)
}
