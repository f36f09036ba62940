//! Log-ins of users.

use super::findings::SubjectFinding;
use crate::site::SiteFacts;

/// Rights of the users: no mistake, but people should know them.
pub(super) fn access(site: &SiteFacts) -> Vec<SubjectFinding> {
    let access = site.access.iter();
    let findings = access.map(|text| SubjectFinding::passed("", text));
    findings.collect()
}

/// The claim that names users, where a user could take the name of an administrator.
pub(super) fn username_claim(site: &SiteFacts) -> Vec<SubjectFinding> {
    let warning = site.username_warning.iter();
    let findings = warning.map(|warning| {
        let remedy = "set OIDC_USERNAME_CLAIM to a claim that the issuer alone changes, such as sub, and name administrators by it";
        SubjectFinding::warning("OIDC_USERNAME_CLAIM", warning, remedy)
    });
    findings.collect()
}
