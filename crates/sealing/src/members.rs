//! Members of stored records that hold secrets.

use std::fmt;

use serde_json::Value;

use crate::envelope::{SealError, SecretPlace};
use crate::key_set::KeySet;

/// A table with a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecretTable {
    Clusters,
    InfraEnvs,
    Hosts,
}

impl SecretTable {
    /// Name of the table.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Clusters => "clusters",
            Self::InfraEnvs => "infra_envs",
            Self::Hosts => "hosts",
        }
    }

    /// Noun of its records.
    pub const fn noun(self) -> &'static str {
        match self {
            Self::Clusters => "cluster",
            Self::InfraEnvs => "infra-env",
            Self::Hosts => "host",
        }
    }

    /// JSON pointers of the secret members of its record: credentials of platforms and machines, keys of disks, and free configuration, in which
    /// users put both.
    pub const fn members(self) -> &'static [&'static str] {
        match self {
            Self::Clusters => &[
                "/install_config_overrides",
                "/disk_encryption/tang_servers",
                "/http_proxy",
                "/https_proxy",
            ],
            Self::InfraEnvs => &[
                "/ignition_config_override",
                "/proxy/http_proxy",
                "/proxy/https_proxy",
            ],
            Self::Hosts => &["/fencing_credentials", "/ignition_config_overrides"],
        }
    }

    /// Whether a printed record may have a secret: empty members are not printed.
    pub fn may_have_secrets(self, json: &str) -> bool {
        let mut names = self.members().iter().filter_map(|at| at.rsplit('/').next());
        names.any(|name| json.contains(name))
    }

    /// A column or member of the row `row`.
    pub fn place(self, column: &str, row: impl fmt::Display) -> SecretPlace {
        SecretPlace::new(self.name(), column, row)
    }
}

impl KeySet {
    /// Seals the secret members of a record.
    pub fn seal_record(
        &self,
        table: SecretTable,
        row: impl fmt::Display,
        record: &mut Value,
    ) -> Result<(), SealError> {
        self.change_members(table, row, record, |place, text| {
            *text = self.seal_text(place, text)?;
            Ok(())
        })
    }

    /// Opens the secret members of a stored record.
    pub fn open_record(
        &self,
        table: SecretTable,
        row: impl fmt::Display,
        record: &mut Value,
    ) -> Result<(), SealError> {
        self.change_members(table, row, record, |place, text| {
            *text = self.open_text(place, std::mem::take(text))?;
            Ok(())
        })
    }

    fn change_members(
        &self,
        table: SecretTable,
        row: impl fmt::Display,
        record: &mut Value,
        change: impl Fn(&SecretPlace, &mut String) -> Result<(), SealError>,
    ) -> Result<(), SealError> {
        if self.active_id().is_none() {
            return Ok(());
        }
        for pointer in table.members() {
            if let Some(Value::String(text)) = record.pointer_mut(pointer) {
                change(&table.place(pointer, &row), text)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use model::cluster::Cluster;
    use model::host::Host;
    use model::infra_env::InfraEnv;
    use serde_json::json;

    use super::*;

    #[test]
    fn printed_records_name_their_secrets() {
        let empty = [
            (SecretTable::Hosts, json!(Host::default())),
            (SecretTable::InfraEnvs, json!(InfraEnv::default())),
            (SecretTable::Clusters, json!(Cluster::default())),
        ];
        for (table, record) in empty {
            let json = record.to_string();
            assert!(!table.may_have_secrets(&json), "{json}");
            for pointer in table.members() {
                // The names are those of the model: it reads a secret in each, and prints it again.
                let path: Vec<&str> = pointer.split('/').skip(1).collect();
                let secret = path
                    .iter()
                    .rev()
                    .fold(json!("secret"), |value, name| json!({ *name: value }));
                let record = match table {
                    SecretTable::Clusters => json!(read::<Cluster>(&secret)),
                    SecretTable::InfraEnvs => json!(read::<InfraEnv>(&secret)),
                    SecretTable::Hosts => json!(read::<Host>(&secret)),
                };
                assert_eq!(record.pointer(pointer), Some(&json!("secret")));
                assert!(table.may_have_secrets(&record.to_string()), "{pointer}");
            }
        }
    }

    fn read<T: serde::de::DeserializeOwned>(value: &Value) -> T {
        serde_json::from_value(value.clone()).unwrap()
    }
}
