//! Inventories that are too large for the service.

use model::inventory::{Inventory, InventoryTruncation, Type};

/// Size options of the inventory step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct SizeLimits {
    /// Longest JSON text. Units: bytes.
    pub(crate) output: Option<usize>,
    /// Disks below it are left out of an inventory that is too long. Units: bytes.
    pub(crate) disk: Option<i64>,
}

impl SizeLimits {
    /// Parses `--output-max-size=N` and `--disk-min-size=N`. Errors: any other option.
    pub(crate) fn parse(options: &[String]) -> Result<Self, String> {
        let mut limits = Self::default();
        for option in options {
            let wrong = || format!("{option}: expected --output-max-size=N or --disk-min-size=N");
            match option.split_once('=').ok_or_else(wrong)? {
                ("--output-max-size", size) => {
                    limits.output = Some(size.parse().map_err(|_| wrong())?);
                }
                ("--disk-min-size", size) => {
                    limits.disk = Some(size.parse().map_err(|_| wrong())?);
                }
                _ => return Err(wrong()),
            }
        }
        Ok(limits)
    }
}

/// The inventory as JSON within its limits: without small disks when it is too long (partially truncated), and without
/// any list when it still is (fully truncated).
pub(crate) fn truncate(
    mut inventory: Inventory,
    limits: SizeLimits,
) -> Result<String, serde_json::Error> {
    let text = serde_json::to_string(&inventory)?;
    let Some(longest) = limits.output.filter(|longest| text.len() > *longest) else {
        return Ok(text);
    };
    let mut reasons = vec![format!(
        "the inventory has {} bytes, the limit is {longest}",
        text.len()
    )];
    if let Some(smallest) = limits.disk {
        let count = inventory.disks.len();
        inventory.disks.retain(|disk| disk.size_bytes >= smallest);
        reasons.push(format!(
            "{} disks below {smallest} bytes are left out",
            count - inventory.disks.len()
        ));
        inventory.truncation = Some(InventoryTruncation {
            r#type: Type::Partial.into(),
            reasons: reasons.clone(),
        });
        let text = serde_json::to_string(&inventory)?;
        if text.len() <= longest {
            return Ok(text);
        }
    }
    reasons.push("all disks, interfaces, routes and GPUs are left out".to_owned());
    serde_json::to_string(&Inventory {
        disks: Vec::new(),
        interfaces: Vec::new(),
        routes: Vec::new(),
        gpus: Vec::new(),
        truncation: Some(InventoryTruncation {
            r#type: Type::Full.into(),
            reasons,
        }),
        ..inventory
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::inventory::Disk;

    #[test]
    fn small_disks_go_first() {
        let disk = |size: i64| Disk {
            size_bytes: size,
            model: "x".repeat(100),
            ..Disk::default()
        };
        let inventory = Inventory {
            disks: vec![disk(1), disk(2), disk(1000)],
            ..Inventory::default()
        };
        let whole = serde_json::to_string(&inventory).unwrap();
        let cut = |output: usize| {
            let limits = SizeLimits {
                output: Some(output),
                disk: Some(1000),
            };
            let text = truncate(inventory.clone(), limits).unwrap();
            serde_json::from_str::<Inventory>(&text).unwrap()
        };
        assert_eq!(cut(whole.len()), inventory);
        let partial = cut(whole.len() - 1);
        assert_eq!(partial.disks.len(), 1);
        assert_eq!(partial.truncation.unwrap().r#type, Type::Partial.into());
        let full = cut(10);
        assert!(full.disks.is_empty());
        assert_eq!(full.truncation.unwrap().r#type, Type::Full.into());
    }

    #[test]
    fn other_options_are_refused() {
        let parse = |text: &str| SizeLimits::parse(&[text.to_owned()]);
        assert_eq!(parse("--output-max-size=10").unwrap().output, Some(10));
        assert_eq!(parse("--disk-min-size=-1").unwrap().disk, Some(-1));
        assert!(parse("--output-max-size=x").is_err() && parse("--other=1").is_err());
    }
}
