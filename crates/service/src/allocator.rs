//! Memory allocator of static programs.
//!
//! Measured with 500 hosts and six downloads at a time: an image costs 1.5 s of a processor for each GiB instead of
//! 2.7 s, an answer of the API is 0 to 15 % cheaper, and idle memory is 0.5 MiB more. musl's own also serialises
//! threads, which machines with many cores would notice. Huge pages are switched off where it is
//! compiled (.cargo/config.toml): with them each server would hold 8 to 13 MiB more while idle.

use std::cell::Cell;
use std::time::{Duration, Instant};

use mimalloc::MiMalloc;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Shortest time between two collections of a thread: one takes some ten microseconds.
const INTERVAL: Duration = Duration::from_millis(200);

thread_local! {
    static COLLECTED_AT: Cell<Option<Instant>> = const { Cell::new(None) };
}

#[expect(unsafe_code, reason = "the declaration of a function of the allocator")]
unsafe extern "C" {
    /// Source: mimalloc.h.
    fn mi_collect(force: bool);
}

/// Returns freed memory to the system. For threads that are about to wait.
///
/// The allocator does so only while it searches for memory: measured with three threads that free 110 MiB and then do
/// little, it keeps all of it, and 1 MiB with these calls.
pub(crate) fn collect() {
    let now = Instant::now();
    let last = COLLECTED_AT.replace(Some(now));
    if last.is_some_and(|last| now.duration_since(last) < INTERVAL) {
        COLLECTED_AT.set(last);
        return;
    }
    // SAFETY: it takes no pointers, and any thread may call it at any time, outside of the allocator.
    #[expect(unsafe_code, reason = "a call of the allocator")]
    unsafe {
        mi_collect(false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resident_kib() -> u32 {
        let text = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.unwrap().trim().strip_suffix("kB").unwrap();
        kib.trim().parse().unwrap()
    }

    #[test]
    fn freed_memory_is_returned() {
        let blocks: Vec<Vec<u8>> = (0..2000).map(|size| vec![1; 20_000 + size]).collect();
        let used = resident_kib();
        drop(blocks);
        for _ in 0..100 {
            std::thread::sleep(INTERVAL);
            collect();
            if resident_kib() < used - 20_000 {
                return;
            }
        }
        panic!("{used} KiB before, {} KiB now", resident_kib());
    }
}
