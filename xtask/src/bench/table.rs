//! Numbers of several servers, side by side.

/// Labels, and a column for each server.
#[derive(Debug)]
pub(super) struct ComparisonTable {
    rows: Vec<Vec<String>>,
}

impl ComparisonTable {
    /// A table with these columns.
    pub(super) fn new<'a>(names: impl Iterator<Item = &'a str>) -> Self {
        let head = std::iter::once("work").chain(names).map(str::to_owned);
        Self {
            rows: vec![head.collect()],
        }
    }

    /// Adds a row, with a cell for each column.
    pub(super) fn row(&mut self, label: String, cells: Vec<String>) {
        self.rows.push([vec![label], cells].concat());
    }
}

impl std::fmt::Display for ComparisonTable {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for row in &self.rows {
            for (column, cell) in row.iter().enumerate() {
                let widths = self.rows.iter().map(|row| row[column].len());
                let width = widths.max().unwrap_or(0);
                match column {
                    0 => write!(formatter, "{cell:<width$}")?,
                    _ => write!(formatter, "  {cell:>width$}")?,
                }
            }
            writeln!(formatter)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_a_table_are_aligned() {
        let mut table = ComparisonTable::new(["ours", "peer"].into_iter());
        table.row("a".to_owned(), vec!["10000 (1)".to_owned(), "2".to_owned()]);
        let expected = "work       ours  peer\na     10000 (1)     2\n";
        assert_eq!(table.to_string(), expected);
    }
}
