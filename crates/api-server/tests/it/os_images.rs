//! OS images on offer, for administrators and for image services.

use serde_json::json;

use crate::secured::SecuredServer;

#[tokio::test(flavor = "multi_thread")]
async fn image_services_need_no_credentials_and_users_are_no_administrators() {
    let site = SecuredServer::oidc(|_| {}).await;
    // Image services have their own list of those of the settings.
    assert_eq!(
        site.server.outside("/os-images").await.expect(200),
        json!([])
    );
    let refused = site.get("alice", "/v2/os-images").await;
    refused.expect(403);
    let listed = site.get("root", "/v2/os-images").await.expect(200);
    let expected = json!([
        { "openshift_version": "4.18", "cpu_architecture": "x86_64", "url": "http://images/4.18.iso", "version": "418.94" },
        { "openshift_version": "4.19", "cpu_architecture": "x86_64", "url": "http://images/4.19.iso", "version": "419.94" },
    ]);
    assert_eq!(listed, expected);
}
