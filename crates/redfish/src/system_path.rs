//! Paths of systems: those of other resources are refused before a BMC is asked. Pure.
//!
//! Source: DSP0268 ComputerSystem (URIs); baremetal-operator, issue 896 (a path of a manager, as of virtual media).

/// Start of the paths of all resources.
const SERVICE_ROOT: &str = "/redfish/v1";
/// The collection of systems, and of the systems of a resource block.
const SYSTEMS: &str = "Systems";
/// Resources whose paths are taken for those of systems.
const OTHERS: &[(&str, &str)] = &[
    ("Managers", "managers"),
    ("Chassis", "chassis"),
    ("SessionService", "sessions"),
    ("AccountService", "accounts"),
    ("UpdateService", "updates"),
];

/// The reason why a path is not that of a system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SystemPathError {
    /// Another kind of resource.
    #[error("has the path of {0}, not of a system")]
    OtherResource(&'static str),
    /// All systems.
    #[error("has the path of all systems, not of one")]
    Collection,
    /// A resource of a system.
    #[error("has a path below that of a system")]
    BelowSystem,
    /// Upper and lower case.
    #[error("has a path in another case, and Redfish distinguishes cases")]
    Case,
    /// Another path.
    #[error("has a path that is not /redfish/v1/Systems/<id>")]
    Unknown,
}

impl SystemPathError {
    /// The remedy, in words, with the usual id of a system.
    pub fn remedy(self, usual_id: &str) -> String {
        format!("write {SERVICE_ROOT}/{SYSTEMS}/{usual_id}")
    }
}

/// The id of the system that a path names; none for an empty path or the service root, which leave the choice to the BMC.
///
/// Errors: the path is that of another resource.
pub fn system_id(path: &str) -> Result<Option<&str>, SystemPathError> {
    let path = path.trim_end_matches('/');
    if path.is_empty() || path.trim_start_matches('/') == &SERVICE_ROOT[1..] {
        return Ok(None);
    }
    let below = path.strip_prefix(SERVICE_ROOT);
    let Some(below) = below.and_then(|rest| rest.strip_prefix('/')) else {
        return Err(other_case(path).unwrap_or(SystemPathError::Unknown));
    };
    let elements: Vec<&str> = below.split('/').collect();
    match elements.as_slice() {
        [SYSTEMS] => Err(SystemPathError::Collection),
        [SYSTEMS, id] | [.., "ResourceBlocks", _, SYSTEMS, id] if is_id(id) => Ok(Some(id)),
        [SYSTEMS, id, ..] if is_id(id) => Err(SystemPathError::BelowSystem),
        _ => Err(other_case(path).unwrap_or(SystemPathError::Unknown)),
    }
}

fn is_id(element: &str) -> bool {
    !matches!(element, "" | "." | "..")
}

/// The mistake of a path by its first elements, in any case.
fn other_case(path: &str) -> Option<SystemPathError> {
    let start = path.get(..SERVICE_ROOT.len())?;
    let rest = path[start.len()..].strip_prefix('/')?;
    if !start.eq_ignore_ascii_case(SERVICE_ROOT) {
        return None;
    }
    let (first, rest) = rest.split_once('/').unwrap_or((rest, ""));
    let other = OTHERS
        .iter()
        .find(|(name, _)| first.eq_ignore_ascii_case(name));
    if let Some((_, words)) = other {
        return Some(SystemPathError::OtherResource(words));
    }
    let is_system = first.eq_ignore_ascii_case(SYSTEMS) && is_id(rest) && !rest.contains('/');
    is_system.then_some(SystemPathError::Case)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn paths_name_a_system_or_are_refused() {
        use SystemPathError::{BelowSystem, Case, Collection, OtherResource, Unknown};
        for (path, expected) in [
            ("", Ok(None)),
            ("/", Ok(None)),
            ("/redfish/v1", Ok(None)),
            ("/redfish/v1/", Ok(None)),
            ("/redfish/v1/Systems/1", Ok(Some("1"))),
            ("/redfish/v1/Systems/1//", Ok(Some("1"))),
            (
                "/redfish/v1/Systems/System.Embedded.1/",
                Ok(Some("System.Embedded.1")),
            ),
            ("/redfish/v1/Systems/a%20b", Ok(Some("a%20b"))),
            (
                "/redfish/v1/CompositionService/ResourceBlocks/B1/Systems/2",
                Ok(Some("2")),
            ),
            ("/redfish/v1/Systems", Err(Collection)),
            ("/redfish/v1/Systems/", Err(Collection)),
            ("/redfish/v1/Managers/1", Err(OtherResource("managers"))),
            ("/redfish/v1/Managers/1/", Err(OtherResource("managers"))),
            ("/redfish/v1/Managers", Err(OtherResource("managers"))),
            ("/redfish/v1/managers/1", Err(OtherResource("managers"))),
            (
                "/redfish/v1/Managers/1/VirtualMedia/Cd",
                Err(OtherResource("managers")),
            ),
            ("/redfish/v1/Chassis/1U", Err(OtherResource("chassis"))),
            ("/redfish/v1/Systems/1/VirtualMedia", Err(BelowSystem)),
            ("/redfish/v1/systems/1", Err(Case)),
            ("/Redfish/V1/Systems/1", Err(Case)),
            ("/redfish/v1/Systems/..", Err(Unknown)),
            ("/redfish/v1/Systems//1", Err(Unknown)),
            ("/Systems/1", Err(Unknown)),
            ("/redfish/v2/Systems/1", Err(Unknown)),
            ("/foo", Err(Unknown)),
        ] {
            assert_eq!(system_id(path), expected, "{path}");
        }
    }

    #[test]
    fn remedies_name_a_path() {
        assert_eq!(
            SystemPathError::Collection.remedy("<id>"),
            "write /redfish/v1/Systems/<id>"
        );
    }

    proptest! {
        #[test]
        fn any_path_names_a_system_or_is_refused(path in "(/redfish/v1)?/?\\PC{0,30}") {
            if let Ok(Some(id)) = system_id(&path) {
                prop_assert!(path.trim_end_matches('/').ends_with(id) && !id.contains('/'));
            }
        }
    }
}
