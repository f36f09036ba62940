//! Services of the compose file as requests to the engine.

use std::collections::HashMap;

use anyhow::{Context as _, Result, bail};
use testcontainers::bollard::models::{
    ContainerCreateBody, HostConfig, Mount as HostMount, ResourcesUlimits, RestartPolicy,
    RestartPolicyNameEnum,
};
use testcontainers::core::{AccessMode, Mount};
use testcontainers::{ContainerRequest, GenericImage, ImageExt as _};

use super::compose::{Compose, Service};
use super::engine::Engine;
use super::folder::read_variables;
use super::{Folder, Pod};

/// Mounting of the compose file's volumes.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum Volumes {
    /// Writable.
    #[default]
    Mounted,
    /// Read-only.
    ReadOnly,
    /// Not mounted.
    Missing,
}

/// A service of the compose file, configured for a test.
pub(super) struct ServiceRequest {
    pub(super) service: Service,
    environment: HashMap<String, String>,
    mounts: Vec<Mount>,
    /// Network, and name in it.
    network: String,
    labels: HashMap<String, String>,
}

impl ServiceRequest {
    pub(super) fn of(pod: &Pod, name: &str, volumes: Volumes) -> Result<Self> {
        let compose = pod.folder.compose()?;
        let service = compose.service(name)?;
        let mut environment = environment(&pod.folder, service)?;
        if name == "proxy" {
            // Its status listens on loopback by default; tests read it from outside.
            let everywhere = ("PROXY_STATUS_ADDRESS".to_owned(), "0.0.0.0".to_owned());
            environment.extend([everywhere]);
        }
        Ok(Self {
            service: service.clone(),
            environment,
            mounts: mounts(pod, &compose, service, volumes)?,
            // Podman's syntax for a network alias; testcontainers has none.
            network: format!("{}:alias={name}", pod.name),
            labels: Engine::labels(&pod.name),
        })
    }

    /// The request to testcontainers.
    pub(super) fn request(&self) -> Result<ContainerRequest<GenericImage>> {
        let (image, tag) = self.service.image()?;
        let config = HostConfig {
            restart_policy: Some(self.restart_policy()?),
            ..self.host_config()?
        };
        let mut request = GenericImage::new(image, tag)
            // Ports are set by testcontainers itself, everything else here.
            .with_host_config_modifier(move |host| {
                let port_bindings = host.port_bindings.take();
                *host = HostConfig {
                    port_bindings,
                    ..config.clone()
                };
            });
        for (name, value) in &self.environment {
            request = request.with_env_var(name, value);
        }
        if !self.service.command.is_empty() {
            request = request.with_cmd(&self.service.command);
        }
        if let Some(user) = &self.service.user {
            request = request.with_user(user);
        }
        Ok(request)
    }

    fn restart_policy(&self) -> Result<RestartPolicy> {
        let name = match self.service.restart.as_str() {
            "no" => RestartPolicyNameEnum::NO,
            "always" => RestartPolicyNameEnum::ALWAYS,
            "on-failure" => RestartPolicyNameEnum::ON_FAILURE,
            "unless-stopped" => RestartPolicyNameEnum::UNLESS_STOPPED,
            other => bail!("restart {other:?} is not understood"),
        };
        Ok(RestartPolicy {
            name: Some(name),
            maximum_retry_count: None,
        })
    }

    /// The request to the engine itself, without ports and restarts.
    pub(super) fn body(&self) -> Result<ContainerCreateBody> {
        let variables = self.environment.iter();
        Ok(ContainerCreateBody {
            image: Some(self.service.image.clone()),
            user: self.service.user.clone(),
            cmd: Some(self.service.command.clone()).filter(|command| !command.is_empty()),
            env: Some(
                variables
                    .map(|(name, value)| format!("{name}={value}"))
                    .collect(),
            ),
            labels: Some(self.labels.clone()),
            host_config: Some(self.host_config()?),
            ..ContainerCreateBody::default()
        })
    }

    fn host_config(&self) -> Result<HostConfig> {
        let service = &self.service;
        let limits = service
            .ulimits
            .iter()
            .map(|(name, limit)| ResourcesUlimits {
                name: Some(name.clone()),
                soft: Some(*limit),
                hard: Some(*limit),
            });
        let tmpfs = service
            .tmpfs
            .iter()
            .map(|path| (path.clone(), String::new()));
        Ok(HostConfig {
            network_mode: Some(self.network.clone()),
            mounts: Some(self.mounts.iter().map(HostMount::from).collect()),
            readonly_rootfs: Some(service.read_only),
            cap_drop: Some(service.cap_drop.clone()),
            security_opt: Some(service.security_opt.clone()),
            ulimits: Some(limits.collect()),
            init: Some(service.init),
            dns: Some(service.dns.clone()),
            tmpfs: Some(tmpfs.collect()),
            memory: service.memory_bytes()?,
            pids_limit: service.pids_limit,
            ..HostConfig::default()
        })
    }
}

/// Secrets, folders, volumes.
fn mounts(pod: &Pod, compose: &Compose, service: &Service, volumes: Volumes) -> Result<Vec<Mount>> {
    let mut mounts = Vec::new();
    for secret in &service.secrets {
        let file = compose.secrets.get(secret);
        let file = file.with_context(|| format!("secret {secret} is not declared"))?;
        let source = pod.folder.resolve(&file.file);
        let target = format!("/run/secrets/{secret}");
        let mount = Mount::bind_mount(source.display().to_string(), target);
        mounts.push(mount.with_access_mode(AccessMode::ReadOnly));
    }
    for volume in service.volumes()? {
        let target = volume.target.clone();
        let mount = if volume.is_folder() {
            let source = pod.folder.resolve(&volume.source);
            Mount::bind_mount(source.display().to_string(), target)
        } else if volumes == Volumes::Missing {
            continue;
        } else {
            Mount::volume_mount(pod.volume(&volume.source), target)
        };
        let is_locked = volumes == Volumes::ReadOnly && !volume.is_folder();
        let mode = if volume.is_read_only || is_locked {
            AccessMode::ReadOnly
        } else {
            AccessMode::ReadWrite
        };
        mounts.push(mount.with_access_mode(mode));
    }
    Ok(mounts)
}

/// Variables of the file and of the service; those of the service win.
fn environment(folder: &Folder, service: &Service) -> Result<HashMap<String, String>> {
    let mut variables = HashMap::new();
    if let Some(path) = &service.env_file {
        variables.extend(read_variables(&folder.resolve(path))?);
    }
    variables.extend(service.environment.clone());
    Ok(variables)
}
