//! Many simulated BMCs behind one listener.
//!
//! All addresses 127.0.0.0/8 are this machine's: the BMC of a connection is the one whose address it came in by. Clients see
//! hosts of their own, as with real BMCs, and the process needs no file for each. HTTP and TLS share the port.

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::authority::BmcAuthority;
use super::fault::BmcFault;
use super::host::BmcHost;
use super::profile::BmcProfile;
use super::requests::answer;
use super::simulated::{BmcBootHook, BmcPace, SimulatedBmc};
use crate::Error;

/// The address before that of the first BMC.
const BASE: Ipv4Addr = Ipv4Addr::new(127, 64, 0, 0);
/// Most BMCs of one rack.
pub const MAX_BMCS: usize = 60_000;
/// Connections at a time.
const MAX_CONNECTIONS: usize = 2048;
/// First byte of a TLS handshake.
const HANDSHAKE: u8 = 0x16;

/// The BMCs of a rack.
#[derive(Clone)]
pub struct BmcRackPlan {
    /// Families and hosts.
    pub bmcs: Vec<(&'static BmcProfile, BmcHost)>,
    /// User name of all.
    pub user: String,
    /// Password of all.
    pub password: String,
    /// Their times.
    pub pace: BmcPace,
    /// Receives the starts of hosts.
    pub hook: Option<BmcBootHook>,
}

impl std::fmt::Debug for BmcRackPlan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BmcRackPlan")
            .field("bmcs", &self.bmcs.len())
            .finish_non_exhaustive()
    }
}

impl BmcRackPlan {
    /// `count` numbered hosts of a family, fast, without a hook.
    pub fn of(profile: &'static BmcProfile, count: usize) -> Self {
        Self {
            bmcs: (0..count)
                .map(|at| (profile, BmcHost::numbered(at)))
                .collect(),
            user: "admin".to_owned(),
            password: "correct-horse".to_owned(),
            pace: BmcPace::default(),
            hook: None,
        }
    }
}

/// Running BMCs; they end when it is dropped.
#[derive(Debug)]
pub struct BmcRack {
    bmcs: Arc<Vec<Arc<SimulatedBmc>>>,
    port: u16,
    ca_pem: String,
    cancel: CancellationToken,
}

impl BmcRack {
    /// Starts BMCs. Must run in a tokio runtime.
    ///
    /// Errors: Invalid – more than [`MAX_BMCS`], or no port.
    pub async fn start(plan: BmcRackPlan) -> Result<Self, Error> {
        if plan.bmcs.len() > MAX_BMCS {
            let reason = format!("at most {MAX_BMCS} fit into a rack");
            return Err(Error::invalid("the number of BMCs", reason));
        }
        // Not loopback alone, since the BMCs have many of its addresses. Others are refused below.
        let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).await;
        let listener = listener.map_err(|e| Error::invalid("the BMCs' port", e.to_string()))?;
        let port = listener.local_addr().map_or(0, |address| address.port());
        let authority = BmcAuthority::new()?;
        let ca_pem = authority.certificate.clone();
        let bmcs = plan.bmcs.into_iter().enumerate().map(|(index, it)| {
            let login = (plan.user.clone(), plan.password.clone());
            let bmc = SimulatedBmc::new(
                index,
                it,
                address(index),
                login,
                plan.pace,
                plan.hook.clone(),
            );
            Arc::new(bmc)
        });
        let bmcs: Arc<Vec<_>> = Arc::new(bmcs.collect());
        let cancel = CancellationToken::new();
        let server = BmcServer {
            bmcs: Arc::clone(&bmcs),
            authority: Arc::new(authority),
        };
        tokio::spawn(
            cancel
                .clone()
                .run_until_cancelled_owned(server.serve(listener, cancel.clone())),
        );
        Ok(Self {
            bmcs,
            port,
            ca_pem,
            cancel,
        })
    }

    /// The BMCs, by their indexes.
    pub fn bmcs(&self) -> &[Arc<SimulatedBmc>] {
        &self.bmcs
    }

    /// Origin of a BMC, as `https://127.64.0.1:34567`.
    pub fn origin(&self, index: usize, scheme: &str) -> String {
        format!("{scheme}://{}:{}", address(index), self.port)
    }

    /// Certificate of the authority that signed those of the BMCs, as PEM.
    pub fn ca_pem(&self) -> &str {
        &self.ca_pem
    }
}

impl Drop for BmcRack {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

/// Address of a BMC.
fn address(index: usize) -> Ipv4Addr {
    let offset = u32::try_from(index + 1).unwrap_or(u32::MAX);
    Ipv4Addr::from_bits(BASE.to_bits().saturating_add(offset))
}

#[derive(Clone)]
struct BmcServer {
    bmcs: Arc<Vec<Arc<SimulatedBmc>>>,
    authority: Arc<BmcAuthority>,
}

impl BmcServer {
    async fn serve(self, listener: TcpListener, cancel: CancellationToken) {
        let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        loop {
            // The semaphore is never closed.
            let Ok(permit) = Arc::clone(&permits).acquire_owned().await else {
                return;
            };
            let Ok((stream, _)) = listener.accept().await else {
                // Out of files, for example: until others are closed.
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            };
            let Some(bmc) = self.bmc(&stream) else {
                continue;
            };
            let (server, cancel) = (self.clone(), cancel.clone());
            tokio::spawn(async move {
                let ended = cancel
                    .run_until_cancelled(server.connection(bmc, stream))
                    .await;
                if let Some(Err(error)) = ended {
                    tracing::debug!(%error, "a connection of a simulated BMC ended");
                }
                drop(permit);
            });
        }
    }

    /// The BMC with the local address of a connection.
    fn bmc(&self, stream: &TcpStream) -> Option<Arc<SimulatedBmc>> {
        let IpAddr::V4(local) = stream.local_addr().ok()?.ip() else {
            return None;
        };
        let index = local.to_bits().checked_sub(BASE.to_bits() + 1)?;
        self.bmcs.get(usize::try_from(index).ok()?).cloned()
    }

    async fn connection(&self, bmc: Arc<SimulatedBmc>, stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let mut first = [0];
        if stream.peek(&mut first).await? == 0 {
            return Ok(());
        }
        if first[0] != HANDSHAKE {
            return requests(bmc, stream).await;
        }
        let is_other = bmc.state().has(&BmcFault::OtherCertificate);
        let name = if is_other {
            Ipv4Addr::new(192, 0, 2, 1)
        } else {
            bmc.address
        };
        let config = self.authority.config(name).map_err(io::Error::other)?;
        let stream = TlsAcceptor::from(config).accept(stream).await?;
        requests(bmc, stream).await
    }
}

async fn requests(
    bmc: Arc<SimulatedBmc>,
    stream: impl AsyncRead + AsyncWrite + Unpin,
) -> io::Result<()> {
    let service = service_fn(move |request| answer(Arc::clone(&bmc), request));
    let served = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    served.await.map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_loopback_and_distinct() {
        assert_eq!(address(0), Ipv4Addr::new(127, 64, 0, 1));
        assert_eq!(address(255), Ipv4Addr::new(127, 64, 1, 0));
        assert!(address(MAX_BMCS).is_loopback());
    }

    #[tokio::test]
    async fn racks_are_bounded() {
        let profile = BmcProfile::find("standard").unwrap();
        let rack = BmcRack::start(BmcRackPlan::of(profile, MAX_BMCS + 1)).await;
        assert!(rack.is_err());
        let rack = BmcRack::start(BmcRackPlan::of(profile, MAX_BMCS))
            .await
            .unwrap();
        assert_eq!(rack.bmcs().len(), MAX_BMCS);
    }
}
