//! `grpc_health_probe`: a client of the gRPC health service for probes of pods.
//!
//! Source: grpc-ecosystem/grpc-health-probe, its flags and exit codes.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use prost::Message as _;
use reqwest::header::{CONTENT_TYPE, TE};
use service::settings::Setting as _;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};

use crate::call::{PREFIX_BYTES, framed, grpc_error};

const EXIT_ARGUMENTS: u8 = 1;
const EXIT_CONNECTION: u8 = 2;
const EXIT_CALL: u8 = 3;
const EXIT_UNHEALTHY: u8 = 4;

/// Parsed flags.
#[derive(Debug, PartialEq, Eq)]
struct ProbeFlags {
    address: String,
    service: String,
    connect_timeout: Duration,
    call_timeout: Duration,
    is_tls: bool,
    is_insecure: bool,
    ca: Option<PathBuf>,
}

impl Default for ProbeFlags {
    fn default() -> Self {
        Self {
            address: String::new(),
            service: String::new(),
            connect_timeout: Duration::from_secs(1),
            call_timeout: Duration::from_secs(1),
            is_tls: false,
            is_insecure: false,
            ca: None,
        }
    }
}

impl ProbeFlags {
    /// Parses flags in Go's syntax: one or two dashes, values after `=` or in the next argument.
    fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Self, String> {
        let mut flags = Self::default();
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            let flag = argument
                .strip_prefix("--")
                .or_else(|| argument.strip_prefix('-'))
                .ok_or_else(|| format!("{argument:?} is not a flag"))?;
            let (name, value) = match flag.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (flag, None),
            };
            let is_switch = matches!(name, "tls" | "tls-no-verify" | "v" | "gzip");
            let value = match value {
                Some(value) => value,
                None if is_switch => "true".to_owned(),
                None => arguments
                    .next()
                    .ok_or_else(|| format!("-{name} has no value"))?,
            };
            flags
                .set(name, &value)
                .map_err(|reason| format!("-{name}: {reason}"))?;
        }
        if flags.address.is_empty() {
            return Err("-addr not specified".to_owned());
        }
        Ok(flags)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "addr" => value.clone_into(&mut self.address),
            "service" => value.clone_into(&mut self.service),
            "connect-timeout" => self.connect_timeout = Duration::parse(value)?,
            "rpc-timeout" => self.call_timeout = Duration::parse(value)?,
            "tls" => self.is_tls = bool::parse(value)?,
            "tls-no-verify" => self.is_insecure = bool::parse(value)?,
            "tls-ca-cert" => self.ca = Some(value.into()),
            // Accepted, without effect.
            "v" | "gzip" | "user-agent" => {}
            _ => return Err("unknown flag".to_owned()),
        }
        Ok(())
    }

    fn url(&self) -> String {
        let scheme = if self.is_tls { "https" } else { "http" };
        // As in Go, an empty host is localhost.
        let host = if self.address.starts_with(':') {
            "localhost"
        } else {
            ""
        };
        let address = &self.address;
        format!("{scheme}://{host}{address}/grpc.health.v1.Health/Check")
    }
}

/// A failed probe: exit code and message.
#[derive(Debug)]
struct ProbeError {
    code: u8,
    text: String,
}

fn failure(code: u8, text: impl Into<String>) -> ProbeError {
    let text = text.into();
    ProbeError { code, text }
}

/// Runs one check; returns the exit code and the message.
pub(super) fn main(arguments: Vec<OsString>) -> (ExitCode, String) {
    let arguments = arguments
        .into_iter()
        .map(|argument| argument.to_string_lossy().into_owned());
    let checked = ProbeFlags::parse(arguments)
        .map_err(|reason| failure(EXIT_ARGUMENTS, format!("error: {reason}")))
        .and_then(|flags| {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .map_err(|e| failure(EXIT_CONNECTION, e.to_string()))?;
            runtime.block_on(check(&flags))
        });
    match checked {
        Ok(()) => (ExitCode::SUCCESS, "status: SERVING".to_owned()),
        Err(ProbeError { code, text }) => (ExitCode::from(code), text),
    }
}

async fn check(flags: &ProbeFlags) -> Result<(), ProbeError> {
    let client = client(flags).map_err(|text| failure(EXIT_ARGUMENTS, text))?;
    let message = HealthCheckRequest {
        service: flags.service.clone(),
    };
    let request = client
        .post(flags.url())
        .header(CONTENT_TYPE, "application/grpc")
        .header(TE, "trailers")
        .body(framed(&message.encode_to_vec()));
    let response = request.send().await.map_err(|error| {
        let code = if error.is_connect() {
            EXIT_CONNECTION
        } else {
            EXIT_CALL
        };
        let error = error.without_url();
        failure(code, format!("failed to ask {}: {error}", flags.address))
    })?;
    if let Some(grpc_error) = grpc_error(response.headers()) {
        return Err(failure(
            EXIT_CALL,
            format!("error: health rpc failed: {grpc_error}"),
        ));
    }
    let body = response.bytes().await;
    let body = body.map_err(|e| failure(EXIT_CALL, e.without_url().to_string()))?;
    let answer = body
        .get(PREFIX_BYTES..)
        .and_then(|message| HealthCheckResponse::decode(message).ok())
        .ok_or_else(|| failure(EXIT_CALL, "error: health rpc failed: no answer"))?;
    match answer.status() {
        ServingStatus::Serving => Ok(()),
        other => {
            let status = other.as_str_name();
            let text = format!("service unhealthy (responded with {status:?})");
            Err(failure(EXIT_UNHEALTHY, text))
        }
    }
}

fn client(flags: &ProbeFlags) -> Result<reqwest::Client, String> {
    let ca = flags.ca.as_ref().map(std::fs::read).transpose();
    let ca = ca.map_err(|e| format!("-tls-ca-cert: {e}"))?;
    let tls = net::trust::client_config(ca.as_deref(), flags.is_insecure);
    reqwest::Client::builder()
        .no_proxy()
        .http2_prior_knowledge()
        .dns_resolver(net::resolve::Resolver::system())
        .tls_backend_preconfigured(tls.map_err(|e| e.to_string())?)
        .connect_timeout(flags.connect_timeout)
        .timeout(flags.connect_timeout + flags.call_timeout)
        .build()
        .map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<ProbeFlags, String> {
        ProbeFlags::parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn flags_as_pods_write_them() {
        let flags = parse("-addr=:50051").unwrap();
        assert_eq!(
            flags.url(),
            "http://localhost:50051/grpc.health.v1.Health/Check"
        );
        let line = "--addr 10.0.0.1:1 -service=api.Registry -rpc-timeout 5s -connect-timeout=250ms -tls -v -tls-no-verify=false";
        let flags = parse(line).unwrap();
        assert!(flags.url().starts_with("https://10.0.0.1:1/"));
        assert_eq!(flags.service, "api.Registry");
        assert_eq!(flags.call_timeout, Duration::from_secs(5));
        assert_eq!(flags.connect_timeout, Duration::from_millis(250));
        assert!(flags.is_tls && !flags.is_insecure);
    }

    #[test]
    fn wrong_flags_are_named() {
        for (line, reason) in [
            ("", "-addr"),
            ("-addr", "-addr"),
            ("addr", "is not a flag"),
            ("-addr=x -rpc-timeout=soon", "-rpc-timeout"),
            ("-addr=x -spiffe", "-spiffe"),
        ] {
            let refused = parse(line).unwrap_err();
            assert!(refused.contains(reason), "{line}: {refused}");
        }
    }
}
