//! Free ports on loopback for programs that a test starts.
//!
//! Port 0 is not enough for them: between its choice and the listener of the program, any outgoing connection can get
//! the port. These are below the range of outgoing connections (`net.ipv4.ip_local_port_range`).

use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context as _, Result};

const PORTS: Range<u16> = 12_000..32_000;

/// The first of `count` free ports in a row, unique in this process.
///
/// Errors: no such row is free.
pub fn free_ports(count: u16) -> Result<u16> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    // Independent of the count: rows of different lengths would else overlap.
    let span = u32::from(PORTS.end - PORTS.start);
    // Concurrent test programs start at different ports.
    let start = std::process::id().wrapping_mul(101) % span;
    (0..span)
        .map(|_| {
            let step = NEXT.fetch_add(u32::from(count), Ordering::Relaxed);
            PORTS.start + u16::try_from(start.wrapping_add(step) % span).unwrap_or(0)
        })
        .filter(|first| first + count <= PORTS.end)
        .find(|first| (*first..first + count).all(is_free))
        .with_context(|| format!("no {count} ports in a row are free"))
}

/// A free port, unique in this process.
///
/// Errors: none is free.
pub fn free_port() -> Result<u16> {
    free_ports(1)
}

fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_in_use_are_skipped() {
        let first = free_ports(6).unwrap();
        let _taken = TcpListener::bind((Ipv4Addr::LOCALHOST, first + 6)).unwrap();
        let next = free_ports(6).unwrap();
        assert!(!(next..next + 6).contains(&(first + 6)));
    }

    #[test]
    fn rows_of_different_lengths_are_apart() {
        let mut all = Vec::new();
        for count in [9, 1, 7, 1, 1, 9, 3, 1] {
            let first = free_ports(count).unwrap();
            all.extend(first..first + count);
        }
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }

    #[test]
    fn threads_get_ports_of_their_own() {
        let chosen = || (0..50).map(|_| free_ports(3).unwrap()).collect::<Vec<_>>();
        let mut all: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(chosen)).collect();
            let rows = threads.into_iter().map(|thread| thread.join().unwrap());
            rows.flatten().collect()
        });
        all.sort_unstable();
        assert!(all.windows(2).all(|pair| pair[1] - pair[0] >= 3), "{all:?}");
    }
}
