//! Sizes as people read them.

/// Formats bytes as MiB.
pub fn mib(bytes: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "one decimal is shown")]
    let mib = bytes as f64 / 1_048_576.0;
    format!("{mib:.1} MiB")
}
