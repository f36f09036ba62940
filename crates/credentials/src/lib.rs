//! Credentials of a site: its certificate authority and certificates, passwords, and the keys of log-ins.
//!
//! The one invariant: existing credentials are kept, since clients already trust them; only old certificates of the site's own authority
//! are renewed.

pub mod certificate;
pub mod host_name;
pub mod log_in;
pub mod secrets;
pub mod site_certificate;
