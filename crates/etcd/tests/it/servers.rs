//! Members of a real etcd with mutual TLS, each at an address of its own, as nodes have.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use etcd::quorum::MemberId;
use etcd::{EtcdAddress, EtcdCluster, EtcdCredentials, EtcdView, ObservedMember};
use net::resolve::Resolver;
use tempfile::TempDir;
use testkit::certificates::Authority;
use testkit::ports::free_ports;

use super::wait::until;

/// Folder with `etcd` and the programs that restore snapshots: `etcdutl`, or `etcdctl` of 3.4.
const PROGRAMS: &str = "ETCD_PROGRAMS";
/// Numbers of nodes: 127.0.0.11 and so on.
const NODES: std::ops::Range<u8> = 11..20;

/// A node's address and ports.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) name: String,
    pub(crate) host: String,
    clients: u16,
    peers: u16,
}

impl Place {
    fn new(name: &str, number: u8, first: u16) -> Self {
        Self {
            name: name.to_owned(),
            host: format!("127.0.0.{number}"),
            clients: first,
            peers: first + 1,
        }
    }

    pub(crate) fn client_url(&self) -> String {
        format!("https://{}:{}", self.host, self.clients)
    }

    pub(crate) fn peer_url(&self) -> String {
        format!("https://{}:{}", self.host, self.peers)
    }

    pub(crate) fn address(&self) -> EtcdAddress {
        self.client_url().parse().unwrap()
    }
}

/// Members that run. All end with the test.
#[derive(Debug)]
pub(crate) struct Servers {
    programs: PathBuf,
    folder: TempDir,
    authority: Arc<Authority>,
    /// All nodes so far, by name.
    pub(crate) places: BTreeMap<String, Place>,
    running: BTreeMap<String, Child>,
    /// Data folders of the members.
    data: BTreeMap<String, String>,
    /// Of clients; that of peers follows. The same at all addresses, as in a cluster.
    first_port: u16,
    /// Starts of members, which name their data folders.
    starts: u32,
}

/// The folder of etcd's programs; `None`, and a skipped test, without one.
pub(crate) fn programs() -> Option<PathBuf> {
    let folder = std::env::var_os(PROGRAMS).map(PathBuf::from);
    if folder.is_none() {
        testkit::skipped("ETCD_PROGRAMS names no folder with etcd");
    }
    folder
}

impl Servers {
    /// Starts control-1 to control-`count`; `None`, and a skipped test, without etcd.
    pub(crate) async fn start(count: u8) -> Option<Self> {
        Self::start_at(count, free_ports(2).unwrap()).await
    }

    /// [`Servers::start`] with clients at `port`, and peers at the next one.
    pub(crate) async fn start_at(count: u8, port: u16) -> Option<Self> {
        let authority = Authority::new("etcd of a test").unwrap();
        Self::with(count, Arc::new(authority), port).await
    }

    /// [`Servers::start`] with certificates of `authority`.
    pub(crate) async fn start_with(count: u8, authority: Arc<Authority>) -> Option<Self> {
        Self::with(count, authority, free_ports(2).unwrap()).await
    }

    async fn with(count: u8, authority: Arc<Authority>, first_port: u16) -> Option<Self> {
        let programs = programs()?;
        // In memory: etcd waits for each write of its log.
        let folder = TempDir::new_in("/dev/shm")
            .or_else(|_| TempDir::new())
            .unwrap();
        // Members connect to each other from the first address.
        let numbers = NODES.chain([1]);
        let hosts: Vec<String> = numbers.map(|number| format!("127.0.0.{number}")).collect();
        let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
        let (certificate, key) = authority.sign(&hosts).unwrap();
        for (name, text) in [
            ("authority.pem", &authority.certificate),
            ("certificate.pem", &certificate),
            ("key.pem", &key),
        ] {
            fs::write(folder.path().join(name), text).unwrap();
        }
        let mut servers = Self {
            programs,
            folder,
            authority,
            places: BTreeMap::new(),
            running: BTreeMap::new(),
            data: BTreeMap::new(),
            first_port,
            starts: 0,
        };
        let names: Vec<_> = (1..=count)
            .map(|number| format!("control-{number}"))
            .collect();
        for (name, number) in names.iter().zip(NODES) {
            servers.place(name, number);
        }
        let peers: Vec<_> = servers.places.values().cloned().collect();
        for name in &names {
            servers.run(name, &peers, "new");
        }
        let cluster = servers.cluster();
        until("all members are healthy", async || {
            let view = cluster.observe().await.map_err(|error| error.to_string())?;
            let is_ready =
                view.leader().is_some() && view.members.iter().all(ObservedMember::is_healthy);
            is_ready.then_some(()).ok_or_else(|| format!("{view:?}"))
        })
        .await;
        Some(servers)
    }

    /// A place for another node, which does not run yet.
    pub(crate) fn place(&mut self, name: &str, number: u8) -> Place {
        let place = Place::new(name, number, self.first_port);
        self.places.insert(name.to_owned(), place.clone());
        place
    }

    /// Starts the member of a node that was added to a running cluster. Its data folder is empty.
    pub(crate) fn join(&mut self, name: &str, view: &EtcdView) {
        let own = self.places[name].clone();
        let others = view.members.iter().filter(|it| it.member.has_started());
        let others = others.map(|it| {
            let mut places = self.places.values();
            let place = places.find(|place| it.member.peer_urls.contains(&place.peer_url()));
            let mut place = place.unwrap().clone();
            place.name.clone_from(&it.member.name);
            place
        });
        let peers: Vec<_> = others.chain([own]).collect();
        self.run(name, &peers, "existing");
    }

    /// Starts a member again with its data, as the only one of a new cluster: etcd's way without quorum.
    pub(crate) fn force_alone(&mut self, name: &str) {
        self.kill(name);
        let (place, stem) = (self.places[name].clone(), self.data[name].clone());
        self.spawn(&place, &stem, &["--force-new-cluster"]);
    }

    fn run(&mut self, name: &str, peers: &[Place], state: &str) {
        let place = self.places[name].clone();
        let peers: Vec<_> = peers
            .iter()
            .map(|peer| format!("{}={}", peer.name, peer.peer_url()))
            .collect();
        self.starts += 1;
        let stem = format!("{name}.{}", self.starts);
        self.data.insert(name.to_owned(), stem.clone());
        let options = [
            "--initial-cluster",
            &peers.join(","),
            "--initial-cluster-state",
            state,
        ];
        self.spawn(&place, &stem, &options);
    }

    fn spawn(&mut self, place: &Place, stem: &str, options: &[&str]) {
        let (name, folder) = (&place.name, self.folder.path());
        let log = File::create(folder.join(format!("{stem}.log"))).unwrap();
        let mut command = Command::new("setpriv");
        // It ends with the test program, also when that is killed.
        command.args(["--pdeathsig", "KILL", "--"]);
        command
            .arg(self.programs.join("etcd"))
            .args(["--name", name])
            .arg("--data-dir")
            .arg(folder.join(stem))
            .args(["--listen-client-urls", &place.client_url()])
            .args(["--advertise-client-urls", &place.client_url()])
            .args(["--listen-peer-urls", &place.peer_url()])
            .args(["--initial-advertise-peer-urls", &place.peer_url()])
            .args(options)
            // Of OpenShift on slow platforms: a busy machine must not cause elections.
            .args(["--heartbeat-interval", "500"])
            .args(["--election-timeout", "2500"])
            .args(["--logger", "zap"]);
        for prefix in ["", "peer-"] {
            for (flag, file) in [
                ("cert-file", "certificate.pem"),
                ("key-file", "key.pem"),
                ("trusted-ca-file", "authority.pem"),
            ] {
                command
                    .arg(format!("--{prefix}{flag}"))
                    .arg(folder.join(file));
            }
            command.arg(format!("--{prefix}client-cert-auth"));
        }
        command.stdin(Stdio::null());
        command.stdout(log.try_clone().unwrap()).stderr(log);
        let child = command.spawn().unwrap();
        self.running.insert(name.clone(), child);
    }

    /// Kills the member of a node, if it runs.
    pub(crate) fn kill(&mut self, name: &str) {
        if let Some(mut child) = self.running.remove(name) {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// Whether the member of a node runs: a removed one ends by itself.
    pub(crate) fn runs(&mut self, name: &str) -> bool {
        let child = self.running.get_mut(name);
        child.is_some_and(|it| it.try_wait().unwrap().is_none())
    }

    /// Stops or continues the process of a member.
    pub(crate) fn signal(&self, name: &str, signal: &str) {
        let id = self.running[name].id().to_string();
        let status = Command::new("kill").args([signal, &id]).status().unwrap();
        assert!(status.success());
    }

    /// Certificates of a client, of the members' authority.
    pub(crate) fn credentials(&self) -> EtcdCredentials {
        credentials(&self.authority, &self.authority.certificate)
    }

    /// A client with all places as seeds.
    pub(crate) fn cluster(&self) -> EtcdCluster {
        let seeds = self.places.values().map(Place::address).collect();
        EtcdCluster::new(seeds, &self.credentials(), Resolver::system()).unwrap()
    }

    /// The id of a node's member.
    pub(crate) fn id(&self, view: &EtcdView, name: &str) -> MemberId {
        let member = view.member_at(&self.places[name].host);
        member.unwrap().member.id
    }

    /// The name of the leader's node.
    pub(crate) fn leader(view: &EtcdView) -> String {
        view.leader().unwrap().member.name.clone()
    }

    /// A path for a file of the test.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Restores a snapshot as the data of a new cluster with one member, as in a disaster.
    pub(crate) fn restore(&self, snapshot: &Path) -> Result<(), String> {
        let utl = self.programs.join("etcdutl");
        let program = if utl.exists() {
            utl
        } else {
            self.programs.join("etcdctl")
        };
        let output = Command::new(program)
            .env("ETCDCTL_API", "3")
            .args(["snapshot", "restore"])
            .arg(snapshot)
            .arg("--data-dir")
            .arg(self.path("restored"))
            .output()
            .unwrap();
        if output.status.success() {
            Ok(())
        } else {
            Err(String::from_utf8_lossy(&output.stderr).into_owned())
        }
    }
}

/// A client's certificate of `authority` that trusts `trusted`.
pub(crate) fn credentials(authority: &Authority, trusted: &str) -> EtcdCredentials {
    let (certificate_pem, key) = authority.sign(&["client"]).unwrap();
    EtcdCredentials {
        authorities_pem: trusted.to_owned(),
        certificate_pem,
        key_pem: key.into(),
    }
}

impl Drop for Servers {
    #[expect(clippy::print_stdout, reason = "logs explain a failure")]
    fn drop(&mut self) {
        for child in self.running.values_mut() {
            child.kill().ok();
            child.wait().ok();
        }
        if std::thread::panicking() {
            for entry in fs::read_dir(self.folder.path()).unwrap().flatten() {
                if entry.path().extension().is_some_and(|it| it == "log") {
                    let text = fs::read_to_string(entry.path()).unwrap_or_default();
                    let lines: Vec<_> = text.lines().collect();
                    let last = lines[lines.len().saturating_sub(15)..].join("\n");
                    println!("{}:\n{last}", entry.path().display());
                }
            }
        }
    }
}
