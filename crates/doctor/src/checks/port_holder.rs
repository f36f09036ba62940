//! The program that listens at a port, by /proc. Those of other users are visible to root alone.

use std::fmt;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

/// State of listening sockets in /proc/net/tcp.
const LISTENING: &str = "0A";

/// A process with a listening socket.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PortHolder {
    name: String,
    pid: u32,
}

impl fmt::Display for PortHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, process {}", self.name, self.pid)
    }
}

impl PortHolder {
    /// The holder of `address`, in the proc file system `proc`; none where it cannot be read.
    pub(super) fn of(proc: &Path, address: SocketAddr) -> Option<Self> {
        let tables = ["net/tcp", "net/tcp6"].into_iter();
        let links: Vec<String> = tables
            .filter_map(|name| fs::read_to_string(proc.join(name)).ok())
            .flat_map(|table| sockets(&table, address))
            .map(|inode| format!("socket:[{inode}]"))
            .collect();
        if links.is_empty() {
            return None;
        }
        let processes = fs::read_dir(proc).ok()?.flatten();
        let mut processes = processes.filter_map(|process| {
            let pid: u32 = process.file_name().to_str()?.parse().ok()?;
            Some((pid, process.path()))
        });
        processes.find_map(|(pid, path)| {
            let mut files = fs::read_dir(path.join("fd")).ok()?.flatten();
            let holds = files.any(|file| {
                fs::read_link(file.path()).is_ok_and(|target| {
                    links.iter().any(|link| target.as_os_str() == link.as_str())
                })
            });
            holds.then(|| Self {
                name: program(&path),
                pid,
            })
        })
    }
}

/// File name of a process's program. Arguments may have secrets.
fn program(process: &Path) -> String {
    let path = fs::read_link(process.join("exe")).unwrap_or_default();
    match path.file_name() {
        Some(name) => name.to_string_lossy().into_owned(),
        None => fs::read_to_string(process.join("comm"))
            .map_or_else(|_| String::new(), |it| it.trim().to_owned()),
    }
}

/// Inodes of the sockets that listen at `address`, or at the same port of every address.
fn sockets(table: &str, address: SocketAddr) -> Vec<String> {
    let lines = table.lines().skip(1);
    let found = lines.filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [_, local, _, state, ..] = fields[..] else {
            return None;
        };
        let (host, port) = local.split_once(':')?;
        let host = host_of(host)?;
        let is_meant = u16::from_str_radix(port, 16) == Ok(address.port())
            && (host == address.ip() || host.is_unspecified());
        (state == LISTENING && is_meant).then(|| fields.get(9).map(ToString::to_string))?
    });
    found.collect()
}

/// An address in groups of four bytes in the order of the machine.
fn host_of(hex: &str) -> Option<IpAddr> {
    let groups = hex.as_bytes().chunks(8).map(|group| {
        let text = std::str::from_utf8(group).ok()?;
        u32::from_str_radix(text, 16).ok().map(u32::to_ne_bytes)
    });
    let bytes = groups.collect::<Option<Vec<_>>>()?.concat();
    let four = <[u8; 4]>::try_from(bytes.as_slice()).map(|four| IpAddr::V4(Ipv4Addr::from(four)));
    let six = <[u8; 16]>::try_from(bytes.as_slice()).map(|six| IpAddr::V6(Ipv6Addr::from(six)));
    four.or(six).ok()
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn this_process_is_found() {
        for at in ["127.0.0.1:0", "0.0.0.0:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(at) else {
                continue;
            };
            let port = listener.local_addr().unwrap().port();
            let host = if at.starts_with('[') {
                "::1"
            } else {
                "127.0.0.1"
            };
            let address = SocketAddr::new(host.parse().unwrap(), port);
            let holder = PortHolder::of(Path::new("/proc"), address).unwrap();
            assert_eq!(holder.pid, std::process::id(), "{at}");
            assert!(holder.to_string().contains(", process "), "{holder}");
            drop(listener);
            assert_eq!(PortHolder::of(Path::new("/proc"), address), None);
        }
    }

    #[test]
    fn malformed_tables_have_no_sockets() {
        let address = "127.0.0.1:80".parse().unwrap();
        for table in [
            "",
            "head\n",
            "head\n 0: 1:2",
            "head\n 0: xx:0050 y 0A",
            "head\n0: 0100007F:0050 y 0A",
        ] {
            assert!(sockets(table, address).is_empty(), "{table}");
        }
        assert_eq!(PortHolder::of(Path::new("/nowhere"), address), None);
    }
}
