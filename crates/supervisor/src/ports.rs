//! Ports of all services.

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::ops::Range;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use service::Error;

/// Default port of Postgres; the database is private, so any higher free one works.
const POSTGRES_PORT: u16 = 5432;
/// Units: ports. Ports tried for the database; few machines run more than some.
const POSTGRES_TRIES: u16 = 100;
/// Ports of temporary servers: below those of outgoing connections (`net.ipv4.ip_local_port_range`), any of which could
/// get a port between its choice and the server's listener.
const TEMPORARY: Range<u16> = 20_000..32_000;
/// Units: ports. Consecutive ports of `--ports-from`.
const PORTS_IN_ROW: u16 = 7;
const POLL: Duration = Duration::from_millis(100);

/// The ports of an installation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ServicePorts {
    /// Database, on loopback only.
    pub postgres: u16,
    /// Container registry.
    pub registry: u16,
    /// Installer API.
    pub api: u16,
    /// Discovery images.
    pub image: u16,
    /// Web UI.
    pub webui: u16,
    /// Web UI once more, where reverse proxies expect it.
    pub webui_static: u16,
    /// Operator catalogs; used only with catalogs.
    pub catalog: u16,
}

impl ServicePorts {
    /// The documented ports, or seven consecutive ones; waits until `deadline` for ports of services to become free.
    ///
    /// Errors: a port in use by another program.
    pub(crate) fn choose(
        listen: IpAddr,
        from: Option<u16>,
        has_catalogs: bool,
        deadline: Instant,
    ) -> Result<Self, Error> {
        let ports = match from {
            Some(from) => Self::in_row(from)?,
            None => Self {
                postgres: free_port_from(POSTGRES_PORT)?,
                registry: 5000,
                api: 8090,
                image: 8888,
                webui: 8080,
                webui_static: 8989,
                catalog: 50051,
            },
        };
        if from.is_some() {
            wait_free(
                IpAddr::V4(Ipv4Addr::LOCALHOST),
                ports.postgres,
                "the database",
                deadline,
            )?;
        }
        for (port, service) in [
            (ports.registry, "the registry"),
            (ports.api, "the API"),
            (ports.image, "the image service"),
            (ports.webui, "the page"),
            (ports.webui_static, "the page"),
        ] {
            wait_free(listen, port, service, deadline)?;
        }
        if has_catalogs {
            wait_free(listen, ports.catalog, "the catalogs", deadline)?;
        }
        Ok(ports)
    }

    /// Ports of the services, without the database.
    pub(crate) fn of_services(&self) -> [u16; 6] {
        [
            self.registry,
            self.api,
            self.image,
            self.webui,
            self.webui_static,
            self.catalog,
        ]
    }

    fn in_row(from: u16) -> Result<Self, Error> {
        let last = from.checked_add(PORTS_IN_ROW - 1);
        if from == 0 || last.is_none() {
            let reason = format!(
                "{PORTS_IN_ROW} ports from {from} on are not available: use 1 to {}",
                u16::MAX - PORTS_IN_ROW + 1
            );
            return Err(Error::new("reading --ports-from", reason));
        }
        Ok(Self {
            postgres: from,
            registry: from + 1,
            api: from + 2,
            image: from + 3,
            webui: from + 4,
            webui_static: from + 5,
            catalog: from + 6,
        })
    }
}

fn wait_free(address: IpAddr, port: u16, service: &str, deadline: Instant) -> Result<(), Error> {
    let socket = SocketAddr::new(address, port);
    let doing = || format!("checking port {port} of {service}");
    loop {
        match TcpListener::bind(socket) {
            Ok(_) => return Ok(()),
            Err(error) if error.kind() == ErrorKind::AddrInUse => {
                if Instant::now() >= deadline {
                    return Err(Error::new(
                        doing(),
                        format!(
                            "{socket} is in use by another program: stop it, or choose other ports with --ports-from N"
                        ),
                    ));
                }
                std::thread::sleep(POLL);
            }
            Err(error) => return Err(Error::new(doing(), error)),
        }
    }
}

fn free_port_from(first: u16) -> Result<u16, Error> {
    (first..first + POSTGRES_TRIES)
        .find(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok())
        .ok_or_else(|| {
            Error::new(
                "choosing a port for the database",
                format!(
                    "{first} to {} are all in use: choose with --ports-from N",
                    first + POSTGRES_TRIES - 1
                ),
            )
        })
}

/// A free port on loopback for a temporary server.
///
/// Errors: no free port.
pub fn temporary_port() -> Result<u16, Error> {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let count = TEMPORARY.end - TEMPORARY.start;
    // Concurrent programs start at different ports.
    let start = std::process::id().wrapping_mul(101) % u32::from(count);
    (0..count)
        .map(|_| {
            let step = NEXT.fetch_add(1, Ordering::Relaxed);
            let offset = (start + u32::from(step)) % u32::from(count);
            TEMPORARY.start + u16::try_from(offset).unwrap_or(0)
        })
        .find(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok())
        .ok_or_else(|| {
            let range = format!(
                "{} to {} are all in use",
                TEMPORARY.start,
                TEMPORARY.end - 1
            );
            Error::new("choosing a port for a temporary server", range)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    #[test]
    fn a_port_in_use_is_named_with_the_remedy() {
        let taken = TcpListener::bind((LOOPBACK, 0)).unwrap();
        let port = taken.local_addr().unwrap().port();
        let error = wait_free(LOOPBACK, port, "the API", Instant::now()).unwrap_err();
        let text = error.to_string();
        assert!(text.contains(&port.to_string()), "{text}");
        assert!(text.contains("--ports-from"), "{text}");
    }

    #[test]
    fn temporary_ports_are_distinct() {
        let first = temporary_port().unwrap();
        assert!(TEMPORARY.contains(&first));
        assert_ne!(temporary_port().unwrap(), first);
    }

    #[test]
    fn ports_are_consecutive() {
        let ports = ServicePorts::in_row(7000).unwrap();
        assert_eq!((ports.postgres, ports.catalog), (7000, 7006));
        assert!(ServicePorts::in_row(0).is_err());
        assert!(ServicePorts::in_row(65_530).is_err());
        assert!(ServicePorts::in_row(65_529).is_ok());
    }
}
