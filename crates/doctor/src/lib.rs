#![doc = include_str!("../README.md")]

mod checks;
mod report;
mod site;

pub use checks::{CHECKS, SiteCheck, run};
pub use report::{CheckGroup, CheckResult, CheckStatus, DoctorReport};
pub use site::{
    BootImage, CertificateFile, ClusterNames, DataFolder, FrontNames, NamedImage, PortUse,
    RegistryAccess, ServicePort, SiteFacts,
};
