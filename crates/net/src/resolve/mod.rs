//! Addresses of hosts: /etc/hosts, then the name servers of /etc/resolv.conf in the order in which they stand there.
//!
//! The C library of our static programs asks all servers at once and believes the first answer. In a container the
//! first server knows the neighbours and the second does not, so a neighbour would be unknown at random. The one
//! invariant: a later server is asked only when all before it gave no usable answer.

mod ask;
mod conf;
mod error;
mod hosts;
mod http;
mod kept;
mod name;
mod search;
mod sockets;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use concurrency::WatchedFile;

pub use error::{Error, Statement};

use conf::Conf;
use hosts::Hosts;
use http::Turns;
use kept::Kept;
use name::HostName;
use search::Search;

/// Where a resolver looks, and how patient it is.
#[derive(Debug, Clone)]
pub struct Options {
    /// Names the servers.
    pub resolv_conf: PathBuf,
    /// Lists hosts that no server is asked about.
    pub hosts: PathBuf,
    /// How long addresses are used without asking again, whatever time to live the server gave them: the servers
    /// of container networks say a day, and replicas come and go in seconds.
    pub max_age: Duration,
    /// How long a name that does not exist is not asked for again.
    pub absent_age: Duration,
    /// How long one server has for one answer.
    pub timeout: Duration,
    /// How often the servers are asked when none gives a usable answer.
    pub attempts: u32,
    /// Before the second attempt; twice as long before the third, and so on.
    pub pause: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            resolv_conf: "/etc/resolv.conf".into(),
            hosts: "/etc/hosts".into(),
            max_age: Duration::from_secs(2),
            absent_age: Duration::from_millis(500),
            timeout: Duration::from_secs(2),
            attempts: 3,
            pause: Duration::from_millis(100),
        }
    }
}

/// Finds the addresses of hosts. Clones share what they know.
#[derive(Debug, Clone)]
pub struct Resolver(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    options: Options,
    conf: WatchedFile<Conf>,
    hosts: WatchedFile<Hosts>,
    kept: Kept,
    search: Search,
    turns: Turns,
}

static SYSTEM: LazyLock<Resolver> = LazyLock::new(|| Resolver::new(Options::default()));

impl Resolver {
    /// The resolver that the whole process shares. What is wrong with the system's files shows at look-ups.
    pub fn system() -> Self {
        SYSTEM.clone()
    }

    /// A resolver of its own, with files and patience other than the system's.
    pub fn new(options: Options) -> Self {
        Self(Arc::new(Inner {
            conf: WatchedFile::awaiting(
                &options.resolv_conf,
                |text| Ok(Conf::parse(&String::from_utf8_lossy(text))),
                Conf::parse(""),
            ),
            hosts: WatchedFile::awaiting(
                &options.hosts,
                |text| Ok(Hosts::parse(&String::from_utf8_lossy(text))),
                Hosts::parse(""),
            ),
            kept: Kept::default(),
            search: Search::default(),
            turns: Turns::default(),
            options,
        }))
    }

    /// The addresses of `host`, sorted (IPv4 first) and each once; never none. An address is its own answer, also
    /// in brackets.
    ///
    /// Errors: as [`Error`] tells them apart; the text names the servers and what each said.
    pub async fn lookup(&self, host: &str) -> Result<Vec<IpAddr>, Error> {
        if let Some(address) = name::literal(host) {
            return Ok(vec![address]);
        }
        let name = HostName::parse(host)?;
        if let Some(addresses) = self.listed(&name).await {
            return Ok(addresses);
        }
        self.0
            .kept
            .answer(name.key(), || async {
                let found = self.ask(&name).await;
                let age = match &found {
                    Ok(_) => self.0.options.max_age,
                    Err(error) if error.is_unknown() => self.0.options.absent_age,
                    Err(_) => Duration::ZERO,
                };
                (found, age)
            })
            .await
    }

    /// Addresses of the hosts file, and of this machine.
    async fn listed(&self, name: &HostName) -> Option<Vec<IpAddr>> {
        let hosts = self.0.hosts.get().await;
        let listed = hosts.get(name.relative()).map(<[_]>::to_vec);
        listed.or_else(|| {
            let loopback = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
            name.is_localhost().then(|| loopback.to_vec())
        })
    }

    async fn ask(&self, name: &HostName) -> Result<Vec<IpAddr>, Error> {
        let conf = self.0.conf.get().await;
        if conf.servers.is_empty() {
            return Err(Error::NoServers {
                host: name.key().to_owned(),
                resolv_conf: self.0.options.resolv_conf.display().to_string(),
                hosts: self.0.options.hosts.display().to_string(),
            });
        }
        self.0.search.run(name, &conf, &self.0.options).await
    }
}
