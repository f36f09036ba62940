//! The table of images, and their size compared with the budget.

use std::fmt;
use std::path::Path;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::record;

const MIB: u64 = 1 << 20;
/// Budget of all images without PostgreSQL: 50 MiB for the layer with the program of all services, which counts once, 8 for
/// the discovery agent, 2 for the files beside them. Units: bytes.
const BUDGET_BYTES: u64 = 60 * MIB;

/// One image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ImageRow {
    pub(super) name: &'static str,
    /// Without the layer of all services, which has a row of its own.
    pub(super) size_bytes: u64,
    pub(super) digest: String,
    /// Whether it was packed now, or is unchanged.
    pub(super) is_new: bool,
    /// Whether its size counts.
    pub(super) counts: bool,
}

/// The sum of the last run, kept for `cargo xtask test --full`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Figure {
    /// Units: bytes. All images that count.
    pub(crate) size_bytes: u64,
    /// Units: bytes.
    pub(crate) budget_bytes: u64,
}

impl Figure {
    /// The figure that a run has written to `path`.
    pub(crate) fn read(path: &Path) -> Option<Self> {
        record::read(path)
    }

    /// Keeps it at `path`.
    pub(super) fn write(&self, path: &Path) -> Result<()> {
        record::write(self, path)
    }
}

impl Figure {
    fn verdict(&self) -> String {
        let budget = mib(self.budget_bytes);
        match self.size_bytes.checked_sub(self.budget_bytes) {
            Some(over @ 1..) => {
                let over_kib = over.div_ceil(1024);
                format!("{over_kib} KiB over the budget of {budget} MiB")
            }
            _ => format!("within the budget of {budget} MiB"),
        }
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} MiB, {}", mib(self.size_bytes), self.verdict())
    }
}

/// All rows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ImageReport {
    pub(super) rows: Vec<ImageRow>,
}

impl ImageReport {
    /// Of the images that count. Units: bytes.
    fn sum(&self) -> u64 {
        let ours = self.rows.iter().filter(|row| row.counts);
        ours.map(|row| row.size_bytes).sum()
    }

    /// Their sum, compared with the budget.
    pub(super) fn figure(&self) -> Figure {
        Figure {
            size_bytes: self.sum(),
            budget_bytes: BUDGET_BYTES,
        }
    }
}

impl fmt::Display for ImageReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for row in &self.rows {
            let state = if row.is_new { "packed" } else { "unchanged" };
            writeln!(
                f,
                "{:<14} {:>6} MiB  {}  {state}",
                row.name,
                mib(row.size_bytes),
                row.digest
            )?;
        }
        let (sum, verdict) = (mib(self.sum()), self.figure().verdict());
        write!(f, "{:<14} {sum:>6} MiB, {verdict}", "without db")
    }
}

/// With one digit behind the point.
fn mib(bytes: u64) -> String {
    // To the nearest tenth, in whole numbers.
    let tenths = (bytes * 10 + MIB / 2) / MIB;
    format!("{}.{}", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &'static str, size_bytes: u64) -> ImageRow {
        ImageRow {
            name,
            size_bytes,
            digest: "sha256:1f".to_owned(),
            is_new: name == "webui",
            counts: name != "db",
        }
    }

    #[test]
    fn the_table_is_as_wide_as_its_names() {
        let rows = vec![
            row("image-service", 8_480_000),
            row("webui", 104_857),
            row("db", 80 * MIB),
        ];
        let text = ImageReport { rows }.to_string();
        assert_eq!(
            text,
            "image-service     8.1 MiB  sha256:1f  unchanged\n\
             webui             0.1 MiB  sha256:1f  packed\n\
             db               80.0 MiB  sha256:1f  unchanged\n\
             without db        8.2 MiB, within the budget of 60.0 MiB"
        );
    }

    #[test]
    fn one_byte_above_the_budget_is_reported() {
        let mut report = ImageReport {
            rows: vec![row("webui", BUDGET_BYTES), row("db", 1)],
        };
        assert!(report.figure().to_string().contains("within"));
        report.rows.push(row("registry", 1));
        assert_eq!(
            report.figure().to_string(),
            "60.0 MiB, 1 KiB over the budget of 60.0 MiB"
        );
    }

    #[test]
    fn the_figure_is_read_as_it_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("size.json");
        assert_eq!(Figure::read(&path), None);
        let figure = ImageReport::default().figure();
        figure.write(&path).unwrap();
        assert_eq!(Figure::read(&path), Some(figure));
    }
}
