//! `atoll mirror` from a registry that redirects: credentials are not sent to other hosts.

use std::fs;

use testkit::redirecting::Redirecting;

use crate::mirror_list::mirror;

#[tokio::test(flavor = "multi_thread")]
async fn an_image_behind_a_redirect_gets_no_login() {
    let redirecting = Redirecting::start().await;
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let image = redirecting.image();
    let set = format!(
        "kind: ImageSetConfiguration\napiVersion: mirror.openshift.io/v1alpha2\n\
         mirror: {{additionalImages: [{{name: {image}}}]}}\n"
    );
    fs::write(path("set.yaml"), set).unwrap();
    fs::write(path("logins.json"), redirecting.logins()).unwrap();
    let (config, logins) = (path("set.yaml"), path("logins.json"));
    let target = format!("file://{}", path("archives"));
    let run = move || {
        let logins = ["--authfile", &logins, "--source-use-http"];
        mirror(&[&["-c", &config], &logins[..], &[&target]].concat())
    };
    let output = tokio::task::spawn_blocking(run).await.unwrap();
    assert!(!output.status.success());
    let shown = String::from_utf8_lossy(&output.stderr);
    redirecting.check(&shown).unwrap();
}
