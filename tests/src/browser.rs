//! A browser without scripts: cookies, redirects, forms.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use reqwest::header::{self, HeaderMap};
use reqwest::{RequestBuilder, StatusCode, Url};
use url::form_urlencoded::Serializer;

/// Redirects of one visit: a log-in has seven.
const REDIRECTS: usize = 12;

/// A browser with its cookies.
#[derive(Debug, Clone)]
pub struct Browser {
    http: reqwest::Client,
    /// By origin and name. Unlike real ones, which share the cookies of all ports: no server here relies on others' cookies.
    cookies: BTreeMap<(String, String), String>,
    /// URLs of the last visit, in order.
    pub visited: Vec<Url>,
}

/// A page that was read to its end.
#[derive(Debug)]
pub struct LoadedPage {
    /// Its address, after all redirects.
    pub url: Url,
    /// Its status.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its text.
    pub text: String,
}

/// The first form of a page.
struct Form {
    action: Url,
    fields: Vec<(String, String)>,
}

impl Browser {
    /// A browser that trusts the certificate in `authority` alone.
    ///
    /// Errors: the file cannot be read, or holds no certificate.
    pub fn new(authority: &Path) -> Result<Self> {
        // Another test of this program may have installed the same provider already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let pem =
            std::fs::read(authority).with_context(|| format!("reading {}", authority.display()))?;
        let http = reqwest::Client::builder()
            .tls_certs_only(reqwest::Certificate::from_pem_bundle(&pem)?)
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .context("making an HTTP client")?;
        Ok(Self {
            http,
            cookies: BTreeMap::new(),
            visited: Vec::new(),
        })
    }

    /// Opens `url` and follows redirects.
    ///
    /// Errors: no response, or endless redirects.
    pub async fn open(&mut self, url: &str) -> Result<LoadedPage> {
        self.visited.clear();
        let url = Url::parse(url).with_context(|| format!("opening {url}"))?;
        self.follow(url).await
    }

    /// Sends the first form of `page` with the user's `input` beside its hidden fields.
    ///
    /// Errors: there is none; as [`Self::open`].
    pub async fn submit(
        &mut self,
        page: &LoadedPage,
        input: &[(&str, &str)],
    ) -> Result<LoadedPage> {
        self.visited.clear();
        let form = page.form()?;
        let input = input.iter().map(|(name, text)| (*name, *text));
        let hidden = form.fields.iter();
        let fields: Vec<_> = hidden
            .map(|(name, text)| (name.as_str(), text.as_str()))
            .chain(input)
            .collect();
        let request = self
            .http
            .post(form.action.clone())
            .header(header::ORIGIN, page.url.origin().ascii_serialization())
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(Serializer::new(String::new()).extend_pairs(fields).finish());
        let answer = self.send(request, form.action).await?;
        match answer.redirect()? {
            Some(next) => self.follow(next).await,
            None => Ok(answer),
        }
    }

    /// The values of its cookies, by their names.
    pub fn cookies(&self) -> impl Iterator<Item = (&str, &str)> {
        let cookies = self.cookies.iter();
        cookies.map(|((_, name), text)| (name.as_str(), text.as_str()))
    }

    /// Sends one request with the cookies of its origin; redirects are responses.
    ///
    /// Errors: no response.
    pub async fn get(&mut self, url: &str) -> Result<LoadedPage> {
        self.send(self.http.get(url), Url::parse(url)?).await
    }

    async fn follow(&mut self, mut url: Url) -> Result<LoadedPage> {
        for _ in 0..REDIRECTS {
            let request = self.http.get(url.clone());
            let request = request.header(header::ACCEPT, "text/html");
            let page = self.send(request, url).await?;
            match page.redirect()? {
                Some(next) => url = next,
                None => return Ok(page),
            }
        }
        anyhow::bail!("endless redirects: {:?}", self.visited)
    }

    async fn send(&mut self, request: RequestBuilder, url: Url) -> Result<LoadedPage> {
        self.visited.push(url.clone());
        let origin = url.origin().ascii_serialization();
        let cookies: Vec<String> = self
            .cookies
            .iter()
            .filter(|((of, _), _)| *of == origin)
            .map(|((_, name), text)| format!("{name}={text}"))
            .collect();
        let request = if cookies.is_empty() {
            request
        } else {
            request.header(header::COOKIE, cookies.join("; "))
        };
        let response = request.send().await.with_context(|| url.to_string())?;
        let (status, headers) = (response.status(), response.headers().clone());
        for cookie in headers.get_all(header::SET_COOKIE) {
            self.store(&origin, cookie.to_str()?)?;
        }
        let text = response.text().await.with_context(|| url.to_string())?;
        Ok(LoadedPage {
            url,
            status,
            headers,
            text,
        })
    }

    fn store(&mut self, origin: &str, cookie: &str) -> Result<()> {
        let (pair, attributes) = cookie.split_once(';').unwrap_or((cookie, ""));
        let (name, text) = pair.split_once('=').context("a cookie without a text")?;
        let key = (origin.to_owned(), name.to_owned());
        let attributes = attributes.to_ascii_lowercase();
        if attributes.contains("max-age=0") || attributes.contains("expires=thu, 01 jan 1970") {
            self.cookies.remove(&key);
        } else {
            self.cookies.insert(key, text.to_owned());
        }
        Ok(())
    }
}

impl LoadedPage {
    fn redirect(&self) -> Result<Option<Url>> {
        if !self.status.is_redirection() {
            return Ok(None);
        }
        let target = self.headers.get(header::LOCATION);
        let target = target.context("a redirect without a target")?.to_str()?;
        Ok(Some(self.url.join(target)?))
    }

    fn form(&self) -> Result<Form> {
        let missing = || format!("{} has no form: {}", self.url, self.text);
        let (_, rest) = self.text.split_once("<form").with_context(missing)?;
        let (head, rest) = rest.split_once('>').with_context(missing)?;
        let (body, _) = rest.split_once("</form>").with_context(missing)?;
        let action = attribute(head, "action").unwrap_or_default();
        let mut fields = Vec::new();
        for input in body.split("<input").skip(1) {
            let input = input.split('>').next().unwrap_or_default();
            let name = attribute(input, "name");
            if let (Some("hidden"), Some(name)) = (attribute(input, "type").as_deref(), name) {
                fields.push((name, attribute(input, "value").unwrap_or_default()));
            }
        }
        Ok(Form {
            action: self.url.join(&action)?,
            fields,
        })
    }

    /// Fails unless the page has this status and text.
    ///
    /// Errors: it has others.
    pub fn shows(&self, status: u16, text: &str) -> Result<()> {
        ensure!(
            self.status.as_u16() == status && self.text.contains(text),
            "{} is no {status} with {text:?}: {} {}",
            self.url,
            self.status,
            self.text
        );
        Ok(())
    }
}

fn attribute(tag: &str, name: &str) -> Option<String> {
    let (_, rest) = tag.split_once(&format!(" {name}=\""))?;
    let (text, _) = rest.split_once('"')?;
    Some(text.replace("&amp;", "&"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hidden_fields_of_a_form_are_read() {
        let page = LoadedPage {
            url: Url::parse("https://a.example/b/c").unwrap(),
            status: StatusCode::OK,
            headers: HeaderMap::new(),
            text: r#"<p><form method="post" action="d?x=1&amp;y=2"><input type="hidden" name="n" value="v"/>
                <input type="text" name="user"></form><input type="hidden" name="other" value="o">"#
                .to_owned(),
        };
        let form = page.form().unwrap();
        assert_eq!(form.action.as_str(), "https://a.example/b/d?x=1&y=2");
        assert_eq!(form.fields, [("n".to_owned(), "v".to_owned())]);
    }
}
