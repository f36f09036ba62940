//! A preparation with a release in a registry and the simulated installer taken out of it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use cluster_files::FileStore;
use ignition::IgnitionConfig;
use model::cluster::{Cluster, ClusterPlatform};
use model::host::{Host, HostRole};
use model::ids::{ClusterId, HostId};
use model::infra_env::InfraEnv;
use model::network::{
    ApiVip, ClusterNetwork, IngressVip, MachineNetwork, NetworkType, ServiceNetwork,
};
use preparation::{
    Confinement, InstallContext, InstallOptions, PreparationFailure, PreparationInput,
    PreparationOutcome, RegistryAccess, SiteCatalogs, SiteMirrors, file_name, prepare,
};
use rules::HostState;
use rules::InstallationPolicy;
use rules::Snapshot;
use sandbox::{Launcher, SandboxLimits};
use secrecy::SecretString;
use serde_json::json;
use testkit::redirecting::Redirecting;
use testkit::release::{InstallerProgram, Published, Userland, publish, publish_with};
use uuid::Uuid;

use crate::registry::{PASSWORD, Registry};

const CLUSTER: ClusterId = ClusterId(Uuid::from_u128(77));

pub(crate) struct World {
    folder: tempfile::TempDir,
    pub(crate) registry: Registry,
    pub(crate) published: Published,
}

impl World {
    pub(crate) async fn new() -> Self {
        let registry = Registry::start().await;
        let program = Path::new(env!("CARGO_BIN_EXE_openshift-baremetal-install"));
        let published = publish(
            &registry.client(),
            &registry.address,
            "ocp",
            program,
            "4.18.7",
        )
        .await
        .unwrap();
        Self {
            folder: tempfile::tempdir().unwrap(),
            registry,
            published,
        }
    }

    pub(crate) async fn context(&self) -> InstallContext {
        let store = FileStore::open(self.root()).await.unwrap();
        InstallContext::new(options(store, &self.registry))
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    pub(crate) fn input(&self) -> PreparationInput {
        input(&self.registry, &self.published.release)
    }

    async fn prepare(
        &self,
        input: PreparationInput,
    ) -> Result<PreparationOutcome, PreparationFailure> {
        prepare(&self.context().await, input).await
    }

    async fn stored(&self) -> Vec<String> {
        let store = FileStore::open(self.root()).await.unwrap();
        let names = store.list(CLUSTER, "").await.unwrap();
        names.iter().map(ToString::to_string).collect()
    }

    pub(crate) async fn read(&self, name: &str) -> Vec<u8> {
        let store = FileStore::open(self.root()).await.unwrap();
        let object = store.get(CLUSTER, name).await.expect(name);
        object.bytes().await.unwrap()
    }

    /// Work folders and half-extracted installers.
    pub(crate) fn leftovers(&self) -> usize {
        let count =
            |name: &str| std::fs::read_dir(self.root().join(name)).map_or(0, Iterator::count);
        count("install-config-generate") + count("installercache").saturating_sub(1)
    }
}

/// Options of preparations with the content of `registry` that write to `store`.
pub(crate) fn options(store: FileStore, registry: &Registry) -> InstallOptions {
    InstallOptions {
        store,
        dummy_ignition: false,
        invoker: "tests".to_owned(),
        policy: InstallationPolicy::default(),
        catalogs: SiteCatalogs::default(),
        registry: RegistryAccess {
            ca_pem: Some(registry.ca.clone()),
            insecure: false,
            mirrors: SiteMirrors::default(),
        },
        confinement: Confinement {
            launcher: Launcher::at(Path::new(env!("CARGO_BIN_EXE_sandbox-launcher"))),
            limits: SandboxLimits {
                memory_bytes: 1 << 30,
                processes: 256,
                disk_bytes: 64 << 20,
                time: Duration::from_mins(10),
            },
            strict: false,
        },
        service_ca: None,
        concurrency: 2,
        cache_capacity_bytes: 0,
        time_limit: Duration::from_mins(10),
        release_timeout: Duration::from_mins(2),
        signers: None,
        on_cache_event: |_| {},
    }
}

/// A cluster that is installed with `release`.
pub(crate) fn input(registry: &Registry, release: &str) -> PreparationInput {
    PreparationInput {
        snapshot: snapshot(release),
        pull_secret: SecretString::from(registry.pull_secret()),
        is_listed: true,
        infra_envs: Vec::new(),
    }
}

fn host(index: u128, role: HostRole) -> HostState {
    let inventory = json!({
        "hostname": format!("{role}-{index}"),
        "boot": { "current_boot_mode": "uefi" },
        "disks": [{ "id": "/dev/disk/by-id/1", "by_id": "/dev/disk/by-id/1", "path": "/dev/sda", "drive_type": "SSD" }],
        "interfaces": [{
            "name": "eth0",
            "mac_address": format!("52:54:00:00:00:0{index}"),
            "ipv4_addresses": [format!("192.168.10.1{index}/24")],
        }],
    });
    HostState::new(Host {
        id: HostId(Uuid::from_u128(index)),
        cluster_id: Some(CLUSTER),
        role: Some(role),
        bootstrap: index == 1,
        requested_hostname: format!("{role}-{index}"),
        inventory: inventory.to_string().into(),
        ..Host::default()
    })
}

fn snapshot(release: &str) -> Snapshot {
    let cluster = Cluster {
        id: CLUSTER,
        name: "demo".to_owned(),
        base_dns_domain: "lab.test".to_owned(),
        openshift_version: "4.18.7".to_owned(),
        ocp_release_image: release.to_owned(),
        control_plane_count: 3,
        network_type: Some(NetworkType::OVNKubernetes),
        platform: Some(ClusterPlatform::default()),
        additional_ntp_source: "ntp.lab.test".to_owned(),
        api_vips: vec![ApiVip {
            ip: "192.168.10.2".to_owned(),
            ..ApiVip::default()
        }],
        ingress_vips: vec![IngressVip {
            ip: "192.168.10.3".to_owned(),
            ..IngressVip::default()
        }],
        machine_networks: vec![MachineNetwork {
            cidr: "192.168.10.0/24".to_owned(),
            ..MachineNetwork::default()
        }],
        cluster_networks: vec![ClusterNetwork {
            cidr: "10.128.0.0/14".to_owned(),
            host_prefix: 23,
            ..ClusterNetwork::default()
        }],
        service_networks: vec![ServiceNetwork {
            cidr: "172.30.0.0/16".to_owned(),
            ..ServiceNetwork::default()
        }],
        ..Cluster::default()
    };
    let roles = [HostRole::Master; 3]
        .into_iter()
        .chain([HostRole::Worker; 2]);
    let hosts = (1..).zip(roles).map(|(index, role)| host(index, role));
    Snapshot::new(cluster, hosts.collect::<Vec<_>>())
}

#[tokio::test]
async fn a_release_becomes_the_files_of_an_installation() {
    let world = World::new().await;
    let outcome = world.prepare(world.input()).await.unwrap();
    assert_eq!(outcome.release.version, "4.18.7");
    assert_eq!(outcome.release.mco_image, world.published.mco);
    assert_eq!(
        outcome.release.must_gather_image,
        world.published.must_gather
    );

    let bootstrap = IgnitionConfig::parse(&world.read("bootstrap.ign").await).unwrap();
    let text = |path: &str| {
        let file = bootstrap.find_file(path).expect(path);
        String::from_utf8(file.contents.inline_bytes().unwrap().unwrap()).unwrap()
    };
    let version = text("/opt/openshift/manifests/cvo-overrides.yaml");
    assert!(
        version.contains(&outcome.openshift_cluster_id.to_string()),
        "{version}"
    );
    assert_eq!(
        text("/opt/openshift/release-image").trim(),
        world.published.release
    );
    let manifest = text("/opt/openshift/openshift/99_openshift-cluster-api_hosts-0.yaml");
    assert!(
        manifest.contains("externallyProvisioned: true"),
        "{manifest}"
    );
    assert!(
        bootstrap
            .find_file("/opt/openshift/openshift/50-masters-chrony-configuration.yaml")
            .is_some()
    );

    for host in &world.input().snapshot.hosts {
        let name = file_name(&host.record);
        let own = IgnitionConfig::parse(&world.read(&name).await).unwrap();
        let file = own.find_file("/etc/hostname").unwrap();
        let hostname = file.contents.inline_bytes().unwrap().unwrap();
        assert_eq!(String::from_utf8(hostname).unwrap(), host.name());
    }
    for name in [
        "kubeconfig-noingress",
        "kubeadmin-password",
        "metadata.json",
        "install-config.yaml",
    ] {
        assert!(!world.read(name).await.is_empty(), "{name}");
    }
    assert_eq!(world.leftovers(), 0);
}

#[tokio::test]
async fn the_extracted_installer_serves_again_without_the_registry() {
    let mut world = World::new().await;
    let ctx = world.context().await;
    let first = prepare(&ctx, world.input()).await.unwrap();
    world.registry.stop().await;
    let second = prepare(&ctx, world.input()).await.unwrap();
    assert_ne!(first.openshift_cluster_id, second.openshift_cluster_id);
}

#[tokio::test]
async fn an_unreachable_registry_fails_and_a_retry_works() {
    let mut world = World::new().await;
    world.registry.stop().await;
    let failure = world.prepare(world.input()).await.unwrap_err();
    let reason = &failure.reason;
    assert!(reason.contains(&world.registry.address), "{reason}");
    assert!(reason.contains(&world.published.release), "{reason}");
    assert!(reason.contains("refused"), "{reason}");
    assert!(!reason.contains(PASSWORD), "{reason}");
    assert!(world.stored().await.is_empty());
    assert_eq!(world.leftovers(), 0);

    world.registry.resume().await;
    world.prepare(world.input()).await.unwrap();
    assert!(world.stored().await.contains(&"bootstrap.ign".to_owned()));
}

#[tokio::test]
async fn wrong_credentials_have_a_reason_of_their_own() {
    let world = World::new().await;
    let mut input = world.input();
    let wrong = world
        .registry
        .pull_secret()
        .replace("auth\":\"", "auth\":\"YTpi");
    input.pull_secret = SecretString::from(wrong);
    let failure = world.prepare(input).await.unwrap_err();
    assert!(
        failure.reason.contains(&world.registry.address),
        "{failure}"
    );
    assert!(!failure.reason.contains(PASSWORD), "{failure}");
}

#[tokio::test]
async fn a_release_behind_a_redirect_gets_no_login() {
    let world = World::new().await;
    let redirecting = Redirecting::start().await;
    let mut options = world.context().await.options().clone();
    options.registry.insecure = true;
    let mut input = world.input();
    input.snapshot.cluster.ocp_release_image = redirecting.image();
    input.pull_secret = SecretString::from(redirecting.logins());
    let failure = prepare(&InstallContext::new(options), input)
        .await
        .unwrap_err();
    redirecting.check(&failure.reason).unwrap();
}

#[tokio::test]
async fn an_untrusted_certificate_is_refused() {
    let world = World::new().await;
    let mut options = world.context().await.options().clone();
    options.registry.ca_pem = None;
    let ctx = InstallContext::new(options.clone());
    let failure = prepare(&ctx, world.input()).await.unwrap_err();
    assert!(failure.reason.contains("certificate"), "{failure}");
    options.registry.insecure = true;
    prepare(&InstallContext::new(options), world.input())
        .await
        .unwrap();
}

#[tokio::test]
async fn the_error_of_the_installer_is_the_reason() {
    let world = World::new().await;
    let mut input = world.input();
    input.snapshot.cluster.api_vips[0].ip = "10.0.0.1".to_owned();
    let failure = world.prepare(input).await.unwrap_err();
    assert!(failure.reason.contains("apiVIPs"), "{failure}");
    assert!(failure.reason.contains("create manifests"), "{failure}");
    assert!(world.stored().await.is_empty());
    assert_eq!(world.leftovers(), 0);
}

#[tokio::test]
async fn mirrors_stand_in_for_where_the_release_came_from() {
    let world = World::new().await;
    let mut options = world.context().await.options().clone();
    let conf = format!(
        "[[registry]]\nlocation = \"quay.invalid/platform\"\n[[registry.mirror]]\nlocation = \"{}/ocp\"\n",
        world.registry.address
    );
    let bundle = String::from_utf8(world.registry.ca.clone()).unwrap();
    options.registry.ca_pem = None;
    options.registry.mirrors = SiteMirrors::parse(&conf, Some(bundle)).unwrap();
    let mut input = world.input();
    let there = format!("{}/ocp", world.registry.address);
    let release = world
        .published
        .release
        .replace(&there, "quay.invalid/platform");
    input
        .snapshot
        .cluster
        .ocp_release_image
        .clone_from(&release);
    let outcome = prepare(&InstallContext::new(options), input).await.unwrap();
    assert_eq!(outcome.release.release_image, release);
    let config = String::from_utf8(world.read("install-config.yaml").await).unwrap();
    assert!(
        config.contains("imageDigestSources") && config.contains("quay.invalid/platform"),
        "{config}"
    );
}

#[tokio::test]
async fn two_preparations_share_one_extraction() {
    let world = World::new().await;
    let ctx = world.context().await;
    let mut other = world.input();
    other.snapshot.cluster.id = ClusterId(Uuid::from_u128(78));
    let (first, second) = tokio::join!(prepare(&ctx, world.input()), prepare(&ctx, other));
    first.unwrap();
    second.unwrap();
    let cache = std::fs::read_dir(world.root().join("installercache")).unwrap();
    assert_eq!(cache.count(), 1);
}

/// A registry that accepts connections and never answers.
async fn silent_registry() -> (tokio::net::TcpListener, String) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    (listener, address)
}

#[tokio::test]
async fn a_silent_registry_delays_only_its_own_preparations() {
    let world = World::new().await;
    let (listener, silent) = silent_registry().await;
    // Its program is no program: the preparation ends once that is extracted.
    let text = world.folder.path().join("text");
    std::fs::write(&text, "text").unwrap();
    let address = &world.registry.address;
    let (client, userland) = (world.registry.client(), Userland::default());
    let program = InstallerProgram {
        program: text,
        userland,
    };
    let healthy = publish_with(&client, address, "healthy", &program, "4.18.7").await;
    let mut options = world.context().await.options().clone();
    let conf = format!(
        "[[registry]]\nlocation = \"{address}/ocp/installer\"\n[[registry.mirror]]\nlocation = \"{silent}/installer\"\n",
    );
    options.registry.mirrors = SiteMirrors::parse(&conf, None).unwrap();
    let ctx = InstallContext::new(options);
    let slow = tokio::spawn({
        let (ctx, input) = (ctx.clone(), world.input());
        async move { prepare(&ctx, input).await }
    });
    let _asked = listener.accept().await.unwrap();
    let mut input = world.input();
    input.snapshot.cluster.id = ClusterId(Uuid::from_u128(78));
    input.snapshot.cluster.ocp_release_image = healthy.unwrap().release;
    let failure = prepare(&ctx, input).await.unwrap_err();
    assert!(failure.reason.contains("cannot be run"), "{failure}");
    assert!(!slow.is_finished());
    slow.abort();
}

#[tokio::test]
async fn a_silent_registry_has_a_deadline_of_its_own() {
    let world = World::new().await;
    let (_listener, silent) = silent_registry().await;
    let mut options = world.context().await.options().clone();
    options.release_timeout = Duration::from_millis(10);
    let mut input = world.input();
    let release = &mut input.snapshot.cluster.ocp_release_image;
    *release = release.replace(&world.registry.address, &silent);
    let failure = prepare(&InstallContext::new(options), input)
        .await
        .unwrap_err();
    assert!(failure.reason.contains(&silent), "{failure}");
    assert!(failure.reason.contains("no response within"), "{failure}");
    assert_eq!(world.leftovers(), 0);
}

#[tokio::test]
async fn a_named_release_image_is_of_the_clusters_version() {
    let world = World::new().await;
    let mut input = world.input();
    input.is_listed = false;
    input.snapshot.cluster.openshift_version = "4.18.6".to_owned();
    let failure = world.prepare(input).await.unwrap_err();
    for expected in ["4.18.6", "4.18.7", &world.published.release] {
        assert!(failure.reason.contains(expected), "{failure}");
    }
    assert!(!world.root().join("installercache").exists());
}

#[tokio::test]
async fn an_older_installer_gives_way_to_a_newer_one() {
    let world = World::new().await;
    let mut options = world.context().await.options().clone();
    options.cache_capacity_bytes = 1;
    let ctx = InstallContext::new(options);
    prepare(&ctx, world.input()).await.unwrap();
    let kept = || -> Vec<_> {
        let cache = std::fs::read_dir(world.root().join("installercache")).unwrap();
        cache.map(|entry| entry.unwrap().file_name()).collect()
    };
    let first = kept();
    assert_eq!(first.len(), 1);

    let mut program = std::fs::read(env!("CARGO_BIN_EXE_openshift-baremetal-install")).unwrap();
    program.extend_from_slice(b"newer");
    let newer = world.folder.path().join("newer");
    std::fs::write(&newer, program).unwrap();
    let registry = &world.registry;
    let published = publish(
        &registry.client(),
        &registry.address,
        "newer",
        &newer,
        "4.18.8",
    )
    .await
    .unwrap();
    let mut input = world.input();
    input.snapshot.cluster.ocp_release_image = published.release;
    prepare(&ctx, input).await.unwrap();
    let second = kept();
    assert_eq!(second.len(), 1);
    assert_ne!(first, second);
}

#[tokio::test]
async fn settings_of_infra_envs_reach_the_installation() {
    let world = World::new().await;
    let mut input = world.input();
    let bundle = String::from_utf8(world.registry.ca.clone()).unwrap();
    input.infra_envs = vec![InfraEnv {
        additional_ntp_sources: "clock.lab.test".to_owned(),
        additional_trust_bundle: bundle.clone(),
        ..InfraEnv::default()
    }];
    world.prepare(input).await.unwrap();
    let stored = world.stored().await;
    for name in [
        "50-masters-chrony-configuration",
        "50-workers-iscsi-nic-reapply",
    ] {
        let suffix = format!("/openshift/{name}.yaml");
        assert!(
            stored.iter().any(|stored| stored.ends_with(&suffix)),
            "{stored:?}"
        );
    }
    let name = stored
        .iter()
        .find(|name| name.ends_with("masters-chrony-configuration.yaml"));
    let manifest: serde_json::Value =
        serde_yaml::from_slice(&world.read(name.unwrap()).await).unwrap();
    let source = &manifest["spec"]["config"]["storage"]["files"][0]["contents"]["source"];
    let text = ignition::data_url::decode(source.as_str().unwrap()).unwrap();
    let text = String::from_utf8(text).unwrap();
    assert!(
        text.starts_with("server ntp.lab.test iburst\nserver clock.lab.test iburst\n"),
        "{text}"
    );
    let config: serde_json::Value =
        serde_json::from_slice(&world.read("install-config.yaml").await).unwrap();
    let trusted = config["additionalTrustBundle"].as_str().unwrap();
    assert!(trusted.contains(bundle.trim()), "{trusted}");
}

#[tokio::test]
async fn user_manifests_reach_the_bootstrap() {
    let world = World::new().await;
    let store = FileStore::open(world.root()).await.unwrap();
    let mine = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: mine\n";
    store
        .put(CLUSTER, "manifests/openshift/99-mine.yaml", mine)
        .await
        .unwrap();
    world.prepare(world.input()).await.unwrap();
    let bootstrap = IgnitionConfig::parse(&world.read("bootstrap.ign").await).unwrap();
    let file = bootstrap
        .find_file("/opt/openshift/openshift/99-mine.yaml")
        .unwrap();
    assert_eq!(
        file.contents.inline_bytes().unwrap().unwrap(),
        mine.as_bytes()
    );
    assert!(
        world
            .stored()
            .await
            .contains(&"manifests/openshift/99-mine.yaml".to_owned())
    );
}
