//! Tables for the terminal.

use std::fmt::Write as _;

/// Spaces between columns.
const GAP: usize = 2;

/// Formats `rows` below `heads` in aligned columns, without trailing spaces.
pub(crate) fn table<const N: usize>(heads: [&str; N], rows: &[[String; N]]) -> String {
    let mut widths = heads.map(|head| head.chars().count());
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut text = String::new();
    let heads = heads.map(str::to_owned);
    for row in std::iter::once(&heads).chain(rows) {
        let mut line = String::new();
        for (width, cell) in widths.iter().zip(row) {
            write!(line, "{cell:<width$}", width = width + GAP).ok();
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text.pop();
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let rows = [
            ["a".to_owned(), "x".to_owned()],
            ["bär".to_owned(), String::new()],
        ];
        assert_eq!(table(["N", "HEAD"], &rows), "N    HEAD\na    x\nbär");
    }
}
