//! Log-in at a real OpenID provider over TLS, through the web UI to the API server.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use system_tests::{Browser, Installation, LoadedPage, OpenIdProvider, until};
use testkit::certificates::Authority;

use crate::secrets::{KnownSecrets, TALKATIVE};

const SESSION_KEY: &str = "a key that stays, of 32 bytes or more";
const API: &str = "/api/assisted-install/v2/clusters";
const LIMIT: Duration = Duration::from_mins(1);
/// The web UI refreshes tokens a minute before they expire.
const LIFETIME: Duration = Duration::from_secs(63);

/// An installation whose users log in at a provider.
struct LogInSite {
    installation: Installation,
    provider: OpenIdProvider,
    webui: String,
}

impl LogInSite {
    /// None, and a skipped test, without the provider's program.
    async fn start() -> Result<Option<Self>> {
        let Some(modules) = OpenIdProvider::modules() else {
            return Ok(None);
        };
        let installation = Installation::start().await?;
        let webui = installation.state()?.services.ui_url;
        let webui = webui.context("there is no page")?;
        let folder = installation.folder("provider")?;
        let provider = OpenIdProvider::start(&modules, folder, &webui, LIFETIME).await?;
        let site = Self {
            installation,
            provider,
            webui,
        };
        site.configure(OpenIdProvider::CLIENT, &site.provider.authority())
            .await?;
        Ok(Some(site))
    }

    /// Changes the settings while the services run.
    async fn configure(&self, client: &str, authority: &std::path::Path) -> Result<()> {
        let issuer = self.provider.issuer();
        let known = self.provider.authority();
        let lines = [
            ("AUTH_TYPE", "oidc"),
            ("OIDC_ISSUER", issuer),
            ("OIDC_AUDIENCE", OpenIdProvider::AUDIENCE),
            ("OIDC_USERNAME_CLAIM", "email"),
            ("ADMIN_USERS", "root@lab.example"),
            ("JWKS_URL", &format!("{issuer}/jwks")),
            ("JWKS_CA_FILE", &known.display().to_string()),
            ("WEBUI_BASE_URL", &self.webui),
            ("OIDC_CLIENT_ID", client),
            ("OIDC_CLIENT_SECRET", OpenIdProvider::SECRET),
            ("OIDC_CA_FILE", &authority.display().to_string()),
            ("SESSION_KEY", SESSION_KEY),
        ];
        let lines = lines.map(|(name, value)| format!("{name}={value}\n"));
        let lines = lines.concat() + TALKATIVE;
        self.installation.change_settings(&lines).await
    }

    fn browser(&self) -> Result<Browser> {
        Browser::new(&self.provider.authority())
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.webui)
    }
}

/// Opens a page of the web UI, and logs in at the provider.
async fn log_in(browser: &mut Browser, url: &str, user: &str) -> Result<LoadedPage> {
    let form = browser.open(url).await?;
    form.shows(200, "Sign-in")?;
    let consent = browser
        .submit(&form, &[("login", user), ("password", "any")])
        .await?;
    consent.shows(200, "Authorize")?;
    browser.submit(&consent, &[]).await
}

#[tokio::test]
async fn people_log_in_at_a_real_provider() -> Result<()> {
    let Some(mut site) = LogInSite::start().await? else {
        return Ok(());
    };
    let mut alice = site.browser()?;
    let page = log_in(&mut alice, &site.url("/status/clusters"), "alice").await?;
    page.shows(200, "<title>Atoll")?;
    ensure!(
        page.url.as_str() == site.url("/status/clusters"),
        "{}",
        page.url
    );
    let mut secrets = KnownSecrets::default();
    secrets.add("the secret of the client", OpenIdProvider::SECRET)?;
    secrets.add("the key of sessions", SESSION_KEY)?;
    for url in &alice.visited {
        for (name, value) in url.query_pairs().filter(|(name, _)| name == "code") {
            secrets.add(&name, &value)?;
        }
    }
    let listed = alice.get(&site.url(API)).await?;
    listed.shows(200, "[]")?;
    alice
        .open(&site.url("/token"))
        .await?
        .shows(200, "logged in as <b>alice</b>")?;
    alice
        .get(&site.url("/api/assisted-install/v2/audit"))
        .await?
        .shows(403, "")?;
    let mut root = site.browser()?;
    log_in(&mut root, &site.url("/"), "root").await?;
    root.get(&site.url("/api/assisted-install/v2/audit"))
        .await?
        .shows(200, "")?;
    add_cookies(&mut secrets, &alice)?;
    add_cookies(&mut secrets, &root)?;
    refreshes(&site, &mut alice).await?;
    add_cookies(&mut secrets, &alice)?;
    logs_out(&site, &mut alice).await?;
    replayed_codes_revoke_the_tokens(&site).await?;
    // A new log-in, whose token needs no refresh for now; the provider still knows the user.
    let page = root.open(&site.url("/login")).await?;
    page.shows(200, "<title>Atoll")?;
    site.provider.stop()?;
    // The keys are known: sessions last.
    root.get(&site.url(API)).await?.shows(200, "[]")?;
    secrets.are_hidden(&site.installation).await?;
    site.installation.stop().await
}

fn add_cookies(secrets: &mut KnownSecrets, browser: &Browser) -> Result<()> {
    let mut cookies = browser
        .cookies()
        .filter(|(_, text)| !text.is_empty())
        .peekable();
    ensure!(cookies.peek().is_some(), "a session without a cookie");
    for (name, text) in cookies {
        secrets.add(&format!("the cookie {name}"), text)?;
    }
    Ok(())
}

/// The provider accepts a refresh token once.
async fn refreshes(site: &LogInSite, browser: &mut Browser) -> Result<()> {
    for _ in 0..2 {
        until("the session is refreshed", LIMIT, async || {
            let page = browser.get(&site.url(API)).await?;
            page.shows(200, "[]")?;
            let is_renewed = page.headers.contains_key("set-cookie");
            Ok(is_renewed.then_some(()))
        })
        .await?;
    }
    Ok(())
}

/// Also at the provider, which asks for the name again.
async fn logs_out(site: &LogInSite, browser: &mut Browser) -> Result<()> {
    let question = browser.open(&site.url("/logout")).await?;
    let done = browser.submit(&question, &[]).await?;
    done.shows(200, "Logged out")?;
    browser.get(&site.url(API)).await?.shows(401, "")?;
    let (_, end) = done.text.split_once("; url=").context("no refresh")?;
    let (end, _) = end.split_once('"').context("no URL")?;
    let question = browser.open(&end.replace("&amp;", "&")).await?;
    let back = browser.submit(&question, &[]).await?;
    back.shows(200, "Logged out")?;
    ensure!(back.url.as_str() == site.url("/logout"), "{}", back.url);
    let form = browser.open(&site.url("/")).await?;
    form.shows(200, "Sign-in")
}

/// A code that is used again is refused, and its tokens are revoked: the session ends with its access token.
async fn replayed_codes_revoke_the_tokens(site: &LogInSite) -> Result<()> {
    let mut mallory = site.browser()?;
    let form = mallory.open(&site.url("/")).await?;
    let (input, before) = ([("login", "eve"), ("password", "any")], mallory.clone());
    let consent = mallory.submit(&form, &input).await?;
    mallory.submit(&consent, &[]).await?;
    let is_callback = |url: &&reqwest::Url| url.path() == "/login/callback";
    let callback = mallory.visited.iter().find(is_callback).cloned();
    let callback = callback.context("no callback")?;
    let foreign = site.browser()?.open(callback.as_str()).await?;
    foreign.shows(400, "no such log-in in progress")?;
    let replayed = before.clone().open(callback.as_str()).await?;
    replayed.shows(401, "invalid_grant")?;
    // Younger than that session, so that once it is refreshed, the other one is due.
    let mut bob = site.browser()?;
    log_in(&mut bob, &site.url("/"), "bob").await?;
    refreshes(site, &mut bob).await?;
    let unrefreshed = mallory.get(&site.url(API)).await?;
    ensure!(!unrefreshed.headers.contains_key("set-cookie"));
    Ok(())
}

#[tokio::test]
async fn unfit_providers_are_explained() -> Result<()> {
    let Some(mut site) = LogInSite::start().await? else {
        return Ok(());
    };
    site.configure(OpenIdProvider::OPAQUE_CLIENT, &site.provider.authority())
        .await?;
    let opaque = log_in(&mut site.browser()?, &site.url("/"), "alice").await?;
    opaque.shows(502, "opaque access token")?;
    let other = other_authority(&site)?;
    site.configure(OpenIdProvider::CLIENT, &other).await?;
    let distrusted = site.browser()?.open(&site.url("/")).await?;
    distrusted.shows(503, "UnknownIssuer")?;
    site.provider.stop()?;
    site.configure(OpenIdProvider::CLIENT, &site.provider.authority())
        .await?;
    let away = site.browser()?.open(&site.url("/")).await?;
    away.shows(503, "Connection refused")?;
    site.installation.stop().await
}

fn other_authority(site: &LogInSite) -> Result<PathBuf> {
    let path = site.installation.folder("other")?.join("authority.pem");
    fs::write(&path, Authority::new("Another authority")?.certificate)?;
    Ok(path)
}
