//! Step `ntp-synchronizer`: adds the sources to chrony, and reports the state of all.
//!
//! Source: assisted-installer-agent, src/ntp_synchronizer.

use std::time::Duration;

use model::steps::{NtpSource, NtpSynchronizationRequest, NtpSynchronizationResponse, SourceState};
use net::resolve::Resolver;

use super::context::{StepContext, StepOutcome, only};
use crate::command::succeed;

const TIMEOUT: Duration = Duration::from_secs(30);

pub(super) async fn run(
    context: &StepContext,
    arguments: &[String],
) -> Result<StepOutcome, String> {
    let request: NtpSynchronizationRequest = only(arguments)?;
    let sources = synchronize(&request).await;
    let problem = match &sources {
        Ok(sources) => is_unsynchronized(sources),
        Err(error) => Some(error.clone()),
    };
    context.status.check("Time", problem);
    let ntp_sources = sources?;
    StepOutcome::json(&NtpSynchronizationResponse { ntp_sources })
}

async fn synchronize(request: &NtpSynchronizationRequest) -> Result<Vec<NtpSource>, String> {
    let known = sources().await?;
    for server in request
        .ntp_source
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty())
    {
        if !is_name(server) {
            tracing::warn!(server, "time source not added: it is no name or address");
            continue;
        }
        if is_known(server, &known).await {
            continue;
        }
        let added = succeed("chronyc", &["add", "server", server, "iburst"], TIMEOUT).await;
        if let Err(error) = added {
            tracing::warn!(server, error = error.chain(), "time source not added");
        }
    }
    sources().await
}

async fn sources() -> Result<Vec<NtpSource>, String> {
    let output = succeed("chronyc", &["-n", "sources"], TIMEOUT).await;
    Ok(parse(&output.map_err(|error| error.chain())?))
}

/// Whether a text is no more than one word of chrony's command.
fn is_name(server: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b".:_-%".contains(&byte);
    !server.starts_with('-') && server.bytes().all(is_part)
}

async fn is_known(server: &str, known: &[NtpSource]) -> bool {
    let is_source = |name: &str| known.iter().any(|source| source.source_name == name);
    if is_source(server) {
        return true;
    }
    let addresses = Resolver::system().lookup(server).await.unwrap_or_default();
    addresses
        .iter()
        .any(|address| is_source(&address.to_string()))
}

/// Servers in the output of `chronyc -n sources`: lines that begin with `^` and the state.
fn parse(output: &str) -> Vec<NtpSource> {
    let source = |line: &str| {
        let mut fields = line.split_whitespace();
        let state = fields.next()?.strip_prefix('^')?;
        let state = match state.chars().next()? {
            '*' => SourceState::Synced,
            '+' => SourceState::Combined,
            '-' => SourceState::NotCombined,
            '?' => SourceState::Unreachable,
            '~' => SourceState::Variable,
            _ => SourceState::Error,
        };
        Some(NtpSource {
            source_name: fields.next()?.to_owned(),
            source_state: Some(state),
        })
    };
    output.lines().filter_map(source).collect()
}

fn is_unsynchronized(sources: &[NtpSource]) -> Option<String> {
    let is_synced = |source: &NtpSource| source.source_state == Some(SourceState::Synced);
    if sources.iter().any(is_synced) {
        return None;
    }
    let names: Vec<&str> = sources
        .iter()
        .map(|source| source.source_name.as_str())
        .collect();
    Some(match names.as_slice() {
        [] => "no time source is configured".to_owned(),
        names => format!("not synchronized with {}", names.join(", ")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_sources_are_names_or_addresses() {
        for server in ["0.pool.ntp.org", "10.0.0.1", "fe80::1%eno1", "a_b-c"] {
            assert!(is_name(server), "{server}");
        }
        for server in ["a trust", "a\nshutdown", "-h", "a;b", "a\tport 22"] {
            assert!(!is_name(server), "{server}");
        }
    }

    #[test]
    fn chrony_s_sources_are_read() {
        let output = "MS Name/IP address         Stratum Poll Reach LastRx Last sample\n\
            ===============================================================================\n\
            ^* 10.0.0.1                      2   6    17    24    -52us[ -133us] +/-   13ms\n\
            ^? 2001:db8::1                   0   6     0     -     +0ns[   +0ns] +/-    0ns\n\
            #- PPS0                          0   4   377    12   +1ns\n";
        let sources = parse(output);
        let found: Vec<_> = sources
            .iter()
            .map(|source| (source.source_name.as_str(), source.source_state))
            .collect();
        let expected = [
            ("10.0.0.1", Some(SourceState::Synced)),
            ("2001:db8::1", Some(SourceState::Unreachable)),
        ];
        assert_eq!(found, expected);
        assert_eq!(is_unsynchronized(&sources), None);
        let problem = is_unsynchronized(&sources[1..]).unwrap();
        assert_eq!(problem, "not synchronized with 2001:db8::1");
    }
}
