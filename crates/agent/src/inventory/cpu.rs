//! Processors of the host.
//!
//! Source: lscpu of util-linux, which assisted-installer-agent runs.

use model::inventory::Cpu;

use super::dmi::DmiTables;
use crate::HostFiles;

/// Names of the flags in `/proc/cpuinfo`: of x86, of ARM and s390x.
const FLAGS: [&str; 3] = ["flags", "Features", "features"];
const MODEL_NAMES: [&str; 2] = ["model name", "cpu"];

pub(super) fn cpu(files: &HostFiles, dmi: &DmiTables) -> Cpu {
    let info = files.text("/proc/cpuinfo").unwrap_or_default();
    let value = |names: &[&str]| {
        info.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            names
                .contains(&name.trim())
                .then(|| value.trim().to_owned())
        })
    };
    let flags = value(&FLAGS).unwrap_or_default();
    Cpu {
        count: count(files),
        frequency: frequency(files, &info),
        flags: flags.split_whitespace().map(str::to_owned).collect(),
        model_name: value(&MODEL_NAMES)
            .or_else(|| dmi.processor())
            .unwrap_or_default(),
        architecture: rustix::system::uname()
            .machine()
            .to_string_lossy()
            .into_owned(),
    }
}

/// Processors that the machine has now.
fn count(files: &HostFiles) -> i64 {
    let present = files.text("/sys/devices/system/cpu/present");
    present.map_or(0, |ranges| ranges.split(',').map(length_of).sum())
}

/// The length of `3` or `0-7`.
fn length_of(range: &str) -> i64 {
    let (first, last) = range.split_once('-').unwrap_or((range, range));
    match (first.parse::<i64>(), last.parse::<i64>()) {
        (Ok(first), Ok(last)) if first <= last => last - first + 1,
        _ => 0,
    }
}

/// The highest frequency. Units: MHz.
fn frequency(files: &HostFiles, info: &str) -> f64 {
    let kilohertz: Option<f64> =
        files.number("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq");
    if let Some(kilohertz) = kilohertz {
        return kilohertz / 1000.0;
    }
    info.lines()
        .filter_map(|line| line.strip_prefix("cpu MHz")?.trim().strip_prefix(':'))
        .filter_map(|value| value.trim().parse::<f64>().ok())
        .fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_counted() {
        let counted = |text: &str| text.split(',').map(length_of).sum::<i64>();
        assert_eq!(counted("0-7"), 8);
        assert_eq!(counted("0,2-3"), 3);
        assert_eq!(counted("nonsense"), 0);
        assert_eq!(counted("9-1"), 0);
    }
}
