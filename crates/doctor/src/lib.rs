#![doc = include_str!("../README.md")]

mod checks;
mod probe;
mod report;
mod site;

pub use checks::{CHECKS, SiteCheck, run};
pub use probe::{ProbeProblem, SiteProbe};
pub use report::{CheckGroup, CheckResult, CheckStatus, DoctorReport};
pub use site::{
    BootImage, CertificateFile, ClusterNames, ContentReport, DataFolder, FrontNames, NamedImage,
    PortUse, RegistryAccess, RemoteCheck, RemoteService, ServedName, ServicePort, SiteFacts,
};
