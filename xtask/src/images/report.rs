//! The table of images, and whether they are small enough.

use std::fmt;

const MIB: u64 = 1 << 20;
/// All images without PostgreSQL together: 60 MiB for what installs clusters, 12 for catalogs. Units: bytes.
const BUDGET_BYTES: u64 = 72 * MIB;

/// One image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) size_bytes: u64,
    pub(super) digest: String,
    /// Whether it was packed now, or is as it was.
    pub(super) is_new: bool,
    /// Whether its size counts.
    pub(super) counts: bool,
}

/// All of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Report {
    pub(super) rows: Vec<Row>,
}

impl Report {
    /// Of the images that count. Units: bytes.
    fn sum(&self) -> u64 {
        let ours = self.rows.iter().filter(|row| row.counts);
        ours.map(|row| row.size_bytes).sum()
    }

    /// Whether they are small enough to be carried.
    pub(super) fn is_within_budget(&self) -> bool {
        self.sum() <= BUDGET_BYTES
    }
}

impl fmt::Display for Report {
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
        let (sum, budget) = (mib(self.sum()), mib(BUDGET_BYTES));
        let verdict = if self.is_within_budget() {
            "within"
        } else {
            "MORE THAN"
        };
        write!(
            f,
            "{:<14} {sum:>6} MiB, {verdict} the {budget} MiB that are allowed",
            "without db"
        )
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

    fn row(name: &'static str, size_bytes: u64) -> Row {
        Row {
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
        let text = Report { rows }.to_string();
        assert_eq!(
            text,
            "image-service     8.1 MiB  sha256:1f  unchanged\n\
             webui             0.1 MiB  sha256:1f  packed\n\
             db               80.0 MiB  sha256:1f  unchanged\n\
             without db        8.2 MiB, within the 72.0 MiB that are allowed"
        );
    }

    #[test]
    fn one_byte_too_much_is_too_much() {
        let mut report = Report {
            rows: vec![row("webui", BUDGET_BYTES), row("db", 1)],
        };
        assert!(report.is_within_budget());
        report.rows.push(row("registry", 1));
        assert!(!report.is_within_budget());
        assert!(report.to_string().contains("MORE THAN"));
    }
}
