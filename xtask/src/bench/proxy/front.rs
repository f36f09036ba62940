//! The compared proxies and the servers behind them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use super::{OURS, SMALL};
use crate::apt::find_program;
use crate::bench::file_server::{BenchServer, nginx_program};
use crate::scratch::free_ports;

const DOMAIN: &str = "bench.test";
/// Host of the files behind the proxy.
pub(super) const HOST: &str = "api.bench.test";
/// Host of an upstream that is down.
pub(super) const DOWN_HOST: &str = "web.bench.test";
/// Host of the server whose TLS passes.
pub(super) const REGISTRY_HOST: &str = "registry.bench.test";

/// Servers behind the proxies: files, and the same with TLS.
pub(super) struct Backend {
    _server: BenchServer,
    plain: u16,
    tls: u16,
    /// Certificate, then key.
    bundle: PathBuf,
}

/// A proxy.
pub(super) struct Front {
    pub(super) server: BenchServer,
    pub(super) http: u16,
    pub(super) https: u16,
    /// Whether it passes TLS connections by their server name.
    pub(super) passes: bool,
}

impl Backend {
    /// nginx with the files of `root`.
    pub(super) fn start(folder: &Path, root: &Path) -> Result<Self> {
        let bundle = folder.join("bench.pem");
        let (cert, key) = (folder.join("cert.pem"), folder.join("key.pem"));
        let mut openssl = Command::new("openssl");
        openssl.args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
        ]);
        openssl.args([
            "-days",
            "30",
            "-subj",
            "/CN=bench",
            "-addext",
            "subjectAltName=DNS:*.bench.test",
        ]);
        crate::command::output(openssl.arg("-keyout").arg(&key).arg("-out").arg(&cert))?;
        fs::write(
            &bundle,
            fs::read_to_string(&cert)? + &fs::read_to_string(&key)?,
        )?;
        fs::write(folder.join("crt-list.txt"), "bench.pem\n")?;
        let ports = free_ports(2)?;
        let server = format!(
            "server {{ listen 127.0.0.1:{ports}; listen 127.0.0.1:{} ssl; ssl_certificate {bundle}; ssl_certificate_key {bundle};\n  \
             root {}; location = /ready {{ return 200; }} }}",
            ports + 1,
            root.display(),
            bundle = bundle.display(),
        );
        let command = nginx(folder, "backend", &server)?;
        Ok(Self {
            _server: BenchServer::start("backend", command, ports, SMALL)?,
            plain: ports,
            tls: ports + 1,
            bundle,
        })
    }
}

impl Front {
    pub(super) fn ours(program: &Path, folder: &Path, backend: &Backend) -> Result<Self> {
        let ports = free_ports(4)?;
        let mut command = Command::new(program);
        command
            .env("LISTEN_ADDRESS", "127.0.0.1")
            .env("FORWARDS", "none")
            .env("PROXY_STATUS_PORT", (ports + 2).to_string())
            .env("NETWORK_DOMAIN", DOMAIN)
            .env("PROXY_HTTP_PORT", ports.to_string())
            .env("PROXY_HTTPS_PORT", (ports + 1).to_string())
            .env("CERTIFICATE_LIST", folder.join("crt-list.txt"))
            .env("API_URL", format!("http://127.0.0.1:{}", backend.plain))
            // A port that is free, and closed.
            .env("WEB_URL", format!("http://127.0.0.1:{}", ports + 3))
            .env("REGISTRY_ADDRESS", format!("127.0.0.1:{}", backend.tls));
        Self::start(OURS, command, ports, true)
    }

    /// haproxy, if it is installed: the split by server name in front of TLS, as in the documented site.
    pub(super) fn haproxy(folder: &Path, backend: &Backend) -> Result<Option<Self>> {
        let sbin = PathBuf::from("/usr/sbin/haproxy");
        let Some(program) = find_program("haproxy").or_else(|| sbin.is_file().then_some(sbin))
        else {
            println!("haproxy is not installed: apt install haproxy");
            return Ok(None);
        };
        let ports = free_ports(3)?;
        let text = format!(
            "global\n maxconn 4000\n\
             defaults\n mode http\n timeout connect 5s\n timeout client 10h\n timeout server 10h\n\
             frontend http\n bind 127.0.0.1:{http}\n http-request redirect scheme https code 301\n\
             frontend split\n mode tcp\n bind 127.0.0.1:{https}\n tcp-request inspect-delay 5s\n \
             tcp-request content accept if {{ req.ssl_hello_type 1 }}\n \
             use_backend registry if {{ req.ssl_sni -i {REGISTRY_HOST} }}\n default_backend decrypt\n\
             backend registry\n mode tcp\n option splice-auto\n server r 127.0.0.1:{tls}\n\
             backend decrypt\n mode tcp\n server t abns@bench{https} send-proxy-v2\n\
             frontend https\n bind abns@bench{https} accept-proxy ssl crt {bundle} alpn h2,http/1.1\n \
             http-request add-header X-Forwarded-Proto https\n \
             http-response set-header Strict-Transport-Security max-age=16000000\n \
             use_backend down if {{ hdr(host) -i {DOWN_HOST} }}\n default_backend files\n\
             backend files\n server f 127.0.0.1:{plain}\n\
             backend down\n server d 127.0.0.1:{down}\n",
            http = ports,
            https = ports + 1,
            down = ports + 2,
            plain = backend.plain,
            tls = backend.tls,
            bundle = backend.bundle.display(),
        );
        let config = folder.join("haproxy.cfg");
        fs::write(&config, text)?;
        let mut command = Command::new(program);
        command.arg("-db").arg("-f").arg(&config);
        Self::start("haproxy", command, ports, true).map(Some)
    }

    /// nginx, if it is installed; it ends TLS itself, without a split by server name.
    pub(super) fn nginx(folder: &Path, backend: &Backend) -> Result<Option<Self>> {
        let ports = free_ports(3)?;
        let proxied = |name: &str, port: u16| {
            format!(
                "server {{ listen 127.0.0.1:{https} ssl http2; server_name {name}; ssl_certificate {bundle}; ssl_certificate_key {bundle};\n  \
                 location / {{ proxy_pass http://u{port}; proxy_http_version 1.1; proxy_set_header Connection ''; proxy_set_header Host $host;\n  \
                 proxy_set_header X-Forwarded-Proto https; add_header Strict-Transport-Security max-age=16000000; }} }}\n\
                 upstream u{port} {{ server 127.0.0.1:{port}; keepalive 64; }}\n",
                https = ports + 1,
                bundle = backend.bundle.display(),
            )
        };
        let servers = format!(
            "server {{ listen 127.0.0.1:{ports}; return 301 https://$host$request_uri; }}\n{}{}",
            proxied(HOST, backend.plain),
            proxied(DOWN_HOST, ports + 2),
        );
        let command = nginx(folder, "front", &servers)?;
        Self::start("nginx", command, ports, false).map(Some)
    }

    fn start(name: &'static str, command: Command, ports: u16, passes: bool) -> Result<Self> {
        Ok(Self {
            server: BenchServer::start_expecting(name, command, ports, ("/", 301))?,
            http: ports,
            https: ports + 1,
            passes,
        })
    }
}

fn nginx(folder: &Path, name: &str, servers: &str) -> Result<Command> {
    let text = format!(
        "daemon off; worker_processes auto; user root; pid {0}/{name}.pid; error_log stderr crit;\n\
         events {{ worker_connections 4096; }}\n\
         http {{ access_log off; sendfile on; tcp_nopush on; keepalive_requests 1000000000;\n\
         ssl_protocols TLSv1.2 TLSv1.3;\n{servers}\n}}\n",
        folder.display(),
    );
    let config = folder.join(format!("{name}.conf"));
    fs::write(&config, text)?;
    let mut command = Command::new(nginx_program()?);
    command.arg("-c").arg(&config);
    Ok(command)
}
