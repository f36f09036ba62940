//! Forwarded ports and their upstreams, as a setting lists them.

use std::ops::Deref;

use http::uri::PathAndQuery;
use service::forward::Upstream;
use service::settings::Setting;

/// Prefix of the path of health checks.
const READY: &str = "ready=";

/// A forwarded port and its upstream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForwardEntry {
    /// Port to listen on; 0 lets the system choose, which only tests can set.
    pub port: u16,
    /// Upstream of its requests.
    pub upstream: Upstream,
}

/// `PORT=http://HOST:PORT` entries separated by commas, each with ` ready=/PATH` after it when health checks use
/// another path than `/ready`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forwards(pub Vec<ForwardEntry>);

impl Deref for Forwards {
    type Target = [ForwardEntry];

    fn deref(&self) -> &[ForwardEntry] {
        &self.0
    }
}

impl Setting for Forwards {
    const EXPECTED: &'static str =
        "PORT=http://HOST:PORT entries separated by commas, as in 8080=http://webui:8080; or none";

    fn parse(text: &str) -> Result<Self, String> {
        if text.trim() == "none" {
            return Ok(Self(Vec::new()));
        }
        let mut entries: Vec<ForwardEntry> = Vec::new();
        let mut errors = Vec::new();
        let texts = text.split(',').map(str::trim);
        for (index, text) in texts.filter(|text| !text.is_empty()).enumerate() {
            let error = match entry(text) {
                Ok(entry) if entries.iter().any(|other| other.port == entry.port) => {
                    format!("duplicate port {}", entry.port)
                }
                Ok(entry) => {
                    entries.push(entry);
                    continue;
                }
                Err(reason) => reason,
            };
            // Without the text: it may hold credentials.
            errors.push(format!("entry {}: {error}", index + 1));
        }
        if !errors.is_empty() {
            return Err(errors.join("; "));
        }
        if entries.is_empty() {
            return Err("no entry".to_owned());
        }
        Ok(Self(entries))
    }
}

fn entry(text: &str) -> Result<ForwardEntry, String> {
    let (port, rest) = text
        .split_once('=')
        .ok_or("the port and = before the origin are missing")?;
    let port = port
        .trim()
        .parse()
        .ok()
        .filter(|port| *port > 0)
        .ok_or("the port is no number from 1 to 65535")?;
    let mut words = rest.split_whitespace();
    let origin = words.next().unwrap_or_default();
    let mut upstream = Upstream::parse(origin).map_err(|error| error.to_string())?;
    for word in words {
        let path = word
            .strip_prefix(READY)
            .filter(|path| path.starts_with('/'))
            .and_then(|path| path.parse::<PathAndQuery>().ok())
            .ok_or("only ready=/PATH is allowed after the origin")?;
        upstream = upstream.ready_at(path);
    }
    Ok(ForwardEntry { port, upstream })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_parsed() {
        let forwards =
            Forwards::parse(" 80=http://a:8080, 81=http://[::1]:1 ready=/v2/?x=1 ,").unwrap();
        let upstream = |origin| Upstream::parse(origin).unwrap();
        let path = PathAndQuery::from_static("/v2/?x=1");
        let expected = [
            (80, upstream("http://a:8080")),
            (81, upstream("http://[::1]:1").ready_at(path)),
        ];
        assert_eq!(
            *forwards,
            expected.map(|(port, upstream)| ForwardEntry { port, upstream })
        );
    }

    #[test]
    fn every_error_is_reported_with_the_number_of_its_entry() {
        let text = "8080=http://a:1,b,0=http://c:1,99999=http://d:1,1=e:1,2=http://f:1/x,8080=http://g:1,\
                    3=https://h:1,4=http://i:1 check=/x,5=,6=http://user:secret@j";
        let reason = Forwards::parse(text).unwrap_err();
        for error in [
            "entry 2: the port",
            "entry 3: the port",
            "entry 4: the port",
            "entry 5: give it as http://",
            "entry 6: a path",
            "entry 7: duplicate port 8080",
            "entry 8: give it as http://",
            "entry 9: only ready=/PATH",
            "entry 10: give it as http://",
            "entry 11: a user name",
        ] {
            assert!(reason.contains(error), "{error} in {reason}");
        }
        assert_eq!(reason.split("; ").count(), 10, "{reason}");
        assert!(!reason.contains("secret"), "{reason}");
        assert!(Forwards::parse(" , ").is_err());
        assert!(Forwards::parse("none").unwrap().is_empty());
    }
}
