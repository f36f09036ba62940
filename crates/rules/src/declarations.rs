//! Files of users: sites, their members, manifests, and the install-config that becomes of them.

pub mod declaration;
pub mod install_config;
pub mod manifests;
pub mod site;
