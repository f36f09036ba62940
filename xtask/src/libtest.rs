//! Counting what test programs print.

/// Checks that passed and failed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// How many hold.
    pub(crate) passed: u32,
    /// How many do not.
    pub(crate) failed: u32,
}

impl Tally {
    /// One check.
    pub(crate) fn one(is_passed: bool) -> Self {
        Self {
            passed: u32::from(is_passed),
            failed: u32::from(!is_passed),
        }
    }

    /// Adds another count.
    pub(crate) fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
    }

    /// The count in a line such as `test result: ok. 3 passed; 0 failed; …`.
    pub(crate) fn of_line(line: &str) -> Option<Self> {
        let rest = line.trim().strip_prefix("test result: ")?;
        let number = |what: &str| {
            rest.split([';', '.'])
                .find_map(|part| part.trim().strip_suffix(what)?.trim().parse().ok())
        };
        Some(Self {
            passed: number("passed")?,
            failed: number("failed")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_libtest() {
        let ok = "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s";
        assert_eq!(
            Tally::of_line(ok),
            Some(Tally {
                passed: 12,
                failed: 0
            })
        );
        let bad = "test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.5s";
        assert_eq!(
            Tally::of_line(bad),
            Some(Tally {
                passed: 3,
                failed: 2
            })
        );
        assert_eq!(Tally::of_line("test a ... ok"), None);
        assert_eq!(Tally::of_line("test result: unknown"), None);
    }
}
