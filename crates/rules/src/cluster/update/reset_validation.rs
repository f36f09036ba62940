//! Reset of a host's validation: its stored result is dropped, so that the agent checks again.

use model::Error;
use model::validations::HostValidationId;

use crate::HostState;
use crate::hardware::disks;

/// Drops the result of a validation that the agent of a bound host checks once.
///
/// Errors: Invalid – another validation.
/// Source: assisted-service, internal/host/host.go, ResetHostValidation.
pub fn reset_validation(host: &mut HostState, id: &str) -> Result<(), Error> {
    match id.parse() {
        Ok(HostValidationId::SufficientInstallationDiskSpeed) => disks::forget_speed(host),
        Ok(HostValidationId::ContainerImagesAvailable) => {
            host.record.images_status.clear();
            Ok(())
        }
        _ => Err(Error::invalid(
            "validation_id",
            format!(
                "{id:?} cannot be reset: only {} and {} can",
                HostValidationId::SufficientInstallationDiskSpeed,
                HostValidationId::ContainerImagesAvailable
            ),
        )),
    }
}

#[cfg(test)]
mod tests {
    use model::host::HostRole;
    use serde_json::json;

    use super::*;
    use crate::fixtures;
    use crate::hardware::disks::{Speed, speed};

    #[test]
    fn results_are_dropped() {
        let mut host = fixtures::host(0, HostRole::Master, 1);
        let disk = "/dev/disk/by-id/wwn-0x1";
        let result =
            |path: &str| json!({ "path": path, "disk_speed": { "tested": true, "exit_code": 1 } });
        let results = json!({ disk: result(disk), "/dev/sdz": result("/dev/sdz") });
        host.record.disks_info = results.to_string();
        host.record.installation_disk_id = disk.to_owned();
        host.record.images_status = "{}".to_owned();
        assert_eq!(speed(&host), Speed::Failed(1));
        reset_validation(&mut host, "sufficient-installation-disk-speed").unwrap();
        assert_eq!(speed(&host), Speed::Unknown);
        assert!(
            host.record.disks_info.contains("/dev/sdz"),
            "of another disk"
        );
        reset_validation(&mut host, "container-images-available").unwrap();
        assert!(host.record.images_status.is_empty());
        assert!(reset_validation(&mut host, "ntp-synced").is_err());
        assert!(reset_validation(&mut host, "dance").is_err());
    }
}
