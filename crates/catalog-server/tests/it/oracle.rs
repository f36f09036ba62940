//! Differential test: every reply is compared with that of `opm serve`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use catalog::api::{
    Bundle, ChannelEntry, ExperimentalListPackageCustomSchemasRequest, GetAllProvidersRequest,
    GetAllReplacementsRequest, GetBundleInChannelRequest, GetBundleRequest,
    GetDefaultProviderRequest, GetLatestProvidersRequest, GetPackageRequest, GetReplacementRequest,
    ListBundlesRequest, ListPackageRequest, Package, PackageName,
};
use catalog::cache::CatalogCache;
use prost::Message;
use prost_types::Struct;
use tempfile::TempDir;
use testkit::ports::free_port;
use tonic::{Request, Status};

use crate::client::Client;

/// The peer needs minutes on busy machines.
const DEADLINE: Duration = Duration::from_mins(5);
/// Sampling of APIs: the peer decodes all bundles for each.
const STEP: usize = 25;

/// The peer's process, killed on drop.
struct Peer {
    process: Child,
    address: String,
    folder: TempDir,
}

impl Peer {
    fn start(program: &str, folder: &str) -> Self {
        let port = free_port().unwrap().to_string();
        let own = TempDir::new().unwrap();
        let mut command = Command::new(program);
        command.args(["serve", folder, "--port", &port, "--pprof-addr", ""]);
        command.args(["--termination-log", "/dev/null", "--cache-dir"]);
        command.arg(own.path().join("cache"));
        command.arg("--cache-enforce-integrity=false");
        Self {
            process: command.stderr(Stdio::null()).spawn().unwrap(),
            address: format!("http://127.0.0.1:{port}"),
            folder: own,
        }
    }

    async fn client(&mut self) -> Client {
        let deadline = Instant::now() + DEADLINE;
        let address = self.address.trim_start_matches("http://").to_owned();
        while tokio::net::TcpStream::connect(&address).await.is_err() {
            assert!(self.process.try_wait().unwrap().is_none(), "it has ended");
            assert!(Instant::now() < deadline);
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Client::new(&self.address).await
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// Our client and the peer's.
struct Both {
    ours: Client,
    theirs: Client,
    compared: usize,
}

type Answer<A> = Result<Vec<A>, (tonic::Code, String)>;

fn plain<A: Message>(answer: Result<Vec<A>, Status>) -> Answer<A> {
    answer.map_err(|status| (status.code(), status.message().to_owned()))
}

impl Both {
    /// Calls both; `order` sorts replies whose order is random.
    async fn ask<Q, A>(&mut self, method: &str, request: Q, order: fn(&mut [A])) -> Answer<A>
    where
        Q: Message + Default + Clone + Debug + 'static,
        A: Message + Default + Clone + Debug + PartialEq + 'static,
    {
        let ours = plain(self.ours.all(method, request.clone()).await);
        let mut theirs = plain(self.theirs.all(method, request.clone()).await);
        let mut sorted = ours.clone();
        for answer in [&mut sorted, &mut theirs].into_iter().flatten() {
            order(answer);
        }
        assert!(
            sorted == theirs,
            "{method} {request:?}\nours {}\ntheirs {}",
            shown(&sorted),
            shown(&theirs)
        );
        self.compared += 1;
        ours
    }
}

fn shown<A: Debug>(answer: &A) -> String {
    format!("{answer:?}").chars().take(4000).collect()
}

fn as_it_is<A>(_: &mut [A]) {}

fn by_place(entries: &mut [ChannelEntry]) {
    entries.sort_by_key(|one| {
        [
            &one.package_name,
            &one.channel_name,
            &one.bundle_name,
            &one.replaces,
        ]
        .map(Clone::clone)
    });
}

fn by_name(packages: &mut [PackageName]) {
    packages.sort_by_key(|one| one.name.clone());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs another catalog server and a catalog: ATOLL_ORACLE_OPM=program ATOLL_ORACLE_CATALOG=folder, and for another build of ours ATOLL_ORACLE_OURS=program"]
async fn every_reply_equals_the_peers() {
    #[expect(
        clippy::disallowed_methods,
        reason = "what is tested is named by whoever runs it"
    )]
    let named = |name: &str| std::env::var(name).ok();
    let ours = named("ATOLL_ORACLE_OURS");
    let ours = ours.unwrap_or_else(|| env!("CARGO_BIN_EXE_catalog-server").to_owned());
    let [theirs, folder] =
        ["ATOLL_ORACLE_OPM", "ATOLL_ORACLE_CATALOG"].map(|name| named(name).unwrap());
    let mut ours = Peer::start(&ours, &folder);
    let mut theirs = Peer::start(&theirs, &folder);
    let mut both = Both {
        ours: ours.client().await,
        theirs: theirs.client().await,
        compared: 0,
    };
    let bundles = packages_and_bundles(&mut both).await;
    replacements(&mut both, &bundles).await;
    providers(&mut both, &bundles).await;
    customs(&mut both, ours.folder.path()).await;
    println!("{} answers are the same", both.compared);
}

async fn packages_and_bundles(both: &mut Both) -> Vec<Bundle> {
    let names = both
        .ask("ListPackages", ListPackageRequest {}, by_name)
        .await
        .unwrap();
    let names = names.into_iter().map(|one| one.name);
    for name in names.chain(["", "zz", "a\"\n\u{1}ü\u{200b}"].map(str::to_owned)) {
        let request = GetPackageRequest { name: name.clone() };
        let package: Answer<Package> = both.ask("GetPackage", request, as_it_is).await;
        let channels = package.map_or_else(|_| Vec::new(), |mut found| found.remove(0).channels);
        let channels = channels.into_iter().map(|one| one.name);
        for channel_name in channels.chain(["zz".to_owned()]) {
            let request = GetBundleInChannelRequest {
                pkg_name: name.clone(),
                channel_name,
            };
            both.ask::<_, Bundle>("GetBundleForChannel", request, as_it_is)
                .await
                .ok();
        }
    }
    let bundles: Vec<Bundle> = both
        .ask("ListBundles", ListBundlesRequest {}, as_it_is)
        .await
        .unwrap();
    let places = bundles
        .iter()
        .map(|one| [&*one.package_name, &one.channel_name, &one.csv_name]);
    let missing = [
        ["zz", "zz", "zz"],
        [&bundles[0].package_name, &bundles[0].channel_name, "zz"],
    ];
    for [package, channel, name] in places.chain(missing) {
        let request = GetBundleRequest {
            pkg_name: package.to_owned(),
            channel_name: channel.to_owned(),
            csv_name: name.to_owned(),
        };
        both.ask::<_, Bundle>("GetBundle", request, as_it_is)
            .await
            .ok();
    }
    bundles
}

async fn replacements(both: &mut Both, bundles: &[Bundle]) {
    let mut names: BTreeSet<&str> = BTreeSet::from(["", "zz"]);
    // Replacements by package, channel and replaced name.
    let mut next: BTreeMap<[&str; 3], BTreeSet<&str>> = BTreeMap::new();
    for one in bundles {
        for gone in one.skips.iter().chain([&one.replaces]) {
            names.insert(gone);
            let place = [&*one.package_name, &one.channel_name, gone];
            next.entry(place).or_default().insert(&one.csv_name);
        }
    }
    for name in names {
        let request = GetAllReplacementsRequest {
            csv_name: name.to_owned(),
        };
        both.ask("GetChannelEntriesThatReplace", request, by_place)
            .await
            .ok();
    }
    let [some, other] = [&bundles[0].package_name, &bundles[0].channel_name];
    next.insert([some, other, "zz"], BTreeSet::new());
    next.insert([some, "zz", "zz"], BTreeSet::new());
    next.insert(["zz", "zz", "zz"], BTreeSet::new());
    for ([package, channel, gone], candidates) in next {
        let request = GetReplacementRequest {
            csv_name: gone.to_owned(),
            pkg_name: package.to_owned(),
            channel_name: channel.to_owned(),
        };
        let method = "GetBundleThatReplaces";
        if candidates.len() <= 1 {
            both.ask::<_, Bundle>(method, request, as_it_is).await.ok();
            continue;
        }
        // The peer returns a random one; ours is the first.
        let ours: Bundle = both.ours.one(method, request).await.unwrap();
        assert_eq!(Some(&&*ours.csv_name), candidates.first());
        both.compared += 1;
    }
}

async fn providers(both: &mut Both, bundles: &[Bundle]) {
    let apis = bundles.iter().flat_map(|one| &one.provided_apis);
    let apis: BTreeSet<_> = apis
        .map(|one| [&*one.group, &one.version, &one.kind])
        .collect();
    let some = apis.into_iter().step_by(STEP);
    for [group, version, kind] in some.chain([["zz", "v1", "Z"]]) {
        macro_rules! request {
            ($request:ident) => {
                $request {
                    group: group.to_owned(),
                    version: version.to_owned(),
                    kind: kind.to_owned(),
                    plural: String::new(),
                }
            };
        }
        let request = request!(GetAllProvidersRequest);
        both.ask("GetChannelEntriesThatProvide", request, by_place)
            .await
            .ok();
        let request = request!(GetLatestProvidersRequest);
        both.ask("GetLatestChannelEntriesThatProvide", request, by_place)
            .await
            .ok();
        let request = request!(GetDefaultProviderRequest);
        both.ask::<_, Bundle>("GetDefaultBundleThatProvides", request, as_it_is)
            .await
            .ok();
    }
}

async fn customs(both: &mut Both, folder: &Path) {
    let files = std::fs::read_dir(folder.join("cache")).unwrap();
    let caches = files.filter_map(|file| CatalogCache::open_any(&file.unwrap().path()).ok());
    let caches: Vec<_> = caches.collect();
    let lines = caches.iter().flat_map(CatalogCache::lines);
    let groups: BTreeSet<[&str; 2]> = lines.map(|line| [line.schema, line.package]).collect();
    assert!(!groups.is_empty());
    let odd = [["", ""], ["a/b", ""], ["zz", "-"], ["zz", "zz"]];
    for [schema, package] in groups.into_iter().chain(odd) {
        let ask = async |client: &Client| {
            let mut request = Request::new(ExperimentalListPackageCustomSchemasRequest {
                schema: schema.to_owned(),
                package_name: package.to_owned(),
            });
            let value = tonic::metadata::MetadataValue::from_static("true");
            request
                .metadata_mut()
                .insert("x-acknowledge-experimental", value);
            let method = "ExperimentalListPackageCustomSchemas";
            plain(
                client
                    .sent::<_, Struct>("api.ExperimentalRegistry", method, request)
                    .await,
            )
        };
        let (ours, theirs) = (ask(&both.ours).await, ask(&both.theirs).await);
        assert_eq!(ours, theirs, "{schema} {package}");
        both.compared += 1;
    }
}
