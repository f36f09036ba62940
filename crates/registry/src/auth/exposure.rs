//! Detection of registries that anonymous clients may push to: fine on a desk, seldom elsewhere, so the start warns.

use service::tls::Demand;

use super::gate::Gate;
use crate::settings::Settings;

/// Whether anonymous clients may push or delete.
pub(crate) async fn is_open_to_everybody(settings: &Settings, gate: Option<&Gate>) -> bool {
    let takes_content = !settings.registry_storage_maintenance_readonly_enabled
        && settings.registry_proxy_remoteurl.is_none();
    let clients = settings.tls().and_then(|tls| tls.clients);
    let asks_certificates = clients.is_some_and(|it| it.demand == Demand::RequireAndVerify);
    if !takes_content || asks_certificates {
        return false;
    }
    match gate {
        None => true,
        Some(Gate::Users(users)) => users.lets_in_anonymous_writers().await,
        Some(Gate::Issuer(_)) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn is_open(change: impl FnOnce(&mut Settings)) -> bool {
        let mut settings = Settings::default();
        change(&mut settings);
        let gate = Gate::open(&settings).await.unwrap();
        is_open_to_everybody(&settings, gate.as_ref()).await
    }

    #[tokio::test]
    async fn open_is_who_takes_content_from_everybody() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            std::fs::write(dir.path().join(name), text).unwrap();
            Some(dir.path().join(name))
        };
        let rules = |user: &str, action: &str| {
            let text =
                format!("rules: [{{users: [{user}], repositories: ['a/*'], actions: [{action}]}}]");
            file(&format!("{user}-{action}"), &text)
        };
        assert!(is_open(|_| {}).await);
        assert!(!is_open(|it| it.registry_storage_maintenance_readonly_enabled = true).await);
        assert!(!is_open(|it| it.registry_proxy_remoteurl = Some("https://a".to_owned())).await);
        for (policy, expected) in [
            (None, false),
            (rules("anonymous", "push"), true),
            (rules("anonymous", "delete"), true),
            (rules("anonymous", "pull"), false),
            (rules("u", "push"), false),
        ] {
            let users = file("htpasswd", "");
            let found = is_open(|settings| {
                settings.registry_auth_htpasswd_path = users;
                settings.registry_auth_policy_path.clone_from(&policy);
            });
            assert_eq!(found.await, expected, "{policy:?}");
        }
        let certificates = |settings: &mut Settings| {
            settings.registry_http_tls_certificate = file("cert", "");
            settings.registry_http_tls_key = file("key", "");
            settings.registry_http_tls_clientcas.0 = vec!["ca".to_owned()];
        };
        assert!(!is_open(certificates).await);
    }
}
