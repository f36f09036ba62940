//! Log-ins of users.

use std::sync::Arc;

use super::SubjectFinding;
use crate::site::SiteFacts;

/// The claim that names users, where a user could take the name of an administrator.
pub(super) async fn username_claim(site: Arc<SiteFacts>) -> Vec<SubjectFinding> {
    let warning = site.username_warning.iter();
    let findings = warning.map(|warning| {
        let remedy = "set OIDC_USERNAME_CLAIM to a claim that the issuer alone changes, such as sub, and name administrators by it";
        SubjectFinding::warning("OIDC_USERNAME_CLAIM", warning, remedy)
    });
    findings.collect()
}
