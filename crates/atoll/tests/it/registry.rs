//! `atoll registry`: users, certificates and administrative requests, with registries and their clients.

use std::fs;
use std::io::Write as _;
use std::net::{Ipv6Addr, TcpListener};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use registry::{HttpAddr, Settings};
use service::CancellationToken;
use service::server::Running;
use service::settings::{CommaList, Setting as _};
use testkit::certificates::Authority;

/// Runs `atoll registry` with `arguments`, and `input` on standard input.
fn atoll(arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_atoll"))
        .arg("registry")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // It may exit without reading.
    stdin.write_all(input.as_bytes()).ok();
    drop(stdin);
    child.wait_with_output().unwrap()
}

/// Standard output of a successful command.
fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{}", refused(output));
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn refused(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Output of a program; none, and a skipped test, if it is not installed.
///
/// Panics: when it fails.
fn asked(program: &str, arguments: &[&str]) -> Option<String> {
    let Ok(output) = Command::new(program).args(arguments).output() else {
        testkit::skipped(&format!("{program} is not installed"));
        return None;
    };
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{program} {arguments:?}: {printed}"
    );
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// Creates a certificate for this machine; its files.
fn certificate(dir: &Path, more: &[&str]) -> (PathBuf, PathBuf) {
    let folder = dir.join("made");
    let fixed = ["cert", "--host", "localhost", "127.0.0.1", "[::1]", "--dir"];
    let mut arguments = fixed.to_vec();
    arguments.push(folder.to_str().unwrap());
    arguments.extend(more);
    let printed = stdout(&atoll(&arguments, ""));
    let (cert, key) = (folder.join("localhost.crt"), folder.join("localhost.key"));
    for expected in [
        cert.to_str().unwrap(),
        key.to_str().unwrap(),
        "update-ca-trust",
        "update-ca-certificates",
        "/etc/containers/certs.d/localhost:5000/ca.crt",
        "/etc/docker/certs.d/[::1]:5000/ca.crt",
        "additionalTrustBundle",
    ] {
        assert!(printed.contains(expected), "{expected}: {printed}");
    }
    assert_eq!((mode(&cert), mode(&key)), (0o644, 0o600));
    (cert, key)
}

/// A registry on every address, with settings changed by `change`.
async fn serve(dir: &Path, change: impl FnOnce(&mut Settings)) -> Running {
    let mut settings = Settings {
        registry_http_addr: HttpAddr::parse(":0").unwrap(),
        registry_storage_filesystem_rootdirectory: dir.join("data"),
        ..Settings::default()
    };
    change(&mut settings);
    registry::start(settings, CancellationToken::new())
        .await
        .unwrap()
}

/// Our client and curl trust a registry with the certificate under each of its names, and under no other.
async fn is_trusted(dir: &Path, cert: &Path, key: &Path) {
    let running = serve(dir, |settings| {
        settings.registry_http_tls_certificate = Some(cert.to_owned());
        settings.registry_http_tls_key = Some(key.to_owned());
    })
    .await;
    let port = running.address().port();
    let pem = fs::read(cert).unwrap();
    let client = oci_client::Client::new(oci_client::ClientOptions {
        ca_pem: Some(pem),
        ..oci_client::ClientOptions::default()
    })
    .unwrap();
    let mut hosts = vec!["localhost", "127.0.0.1"];
    if TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_ok() {
        hosts.push("[::1]");
    }
    for host in hosts {
        let found = client.catalog(&format!("{host}:{port}")).await;
        assert_eq!(found.unwrap(), Vec::<String>::new(), "{host}");
        let url = format!("https://{host}:{port}/v2/");
        let trusting = [
            "--silent",
            "--show-error",
            "--fail",
            "--noproxy",
            "*",
            "--cacert",
        ];
        let arguments = [&trusting[..], &[cert.to_str().unwrap(), &url]].concat();
        asked("curl", &arguments);
    }
    let refused = client.catalog(&format!("127.0.0.2:{port}")).await;
    let printed = refused.unwrap_err().chain();
    assert!(printed.contains("certificate"), "{printed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_trust_the_certificate() {
    let dir = tempfile::tempdir().unwrap();
    let (cert, key) = certificate(dir.path(), &[]);
    let file = cert.to_str().unwrap();
    asked(
        "openssl",
        &[
            "verify",
            "-x509_strict",
            "-purpose",
            "sslserver",
            "-CAfile",
            file,
            file,
        ],
    );
    if let Some(text) = asked("openssl", &["x509", "-noout", "-text", "-in", file]) {
        for expected in [
            "ecdsa-with-SHA256",
            "prime256v1",
            "DNS:localhost, IP Address:127.0.0.1, IP Address:0:0:0:0:0:0:0:1",
            // Trust stores accept CA certificates only.
            "CA:TRUE",
            "Certificate Sign",
        ] {
            assert!(text.contains(expected), "{expected}: {text}");
        }
    }
    is_trusted(dir.path(), &cert, &key).await;

    let made = (fs::read(&cert).unwrap(), fs::read(&key).unwrap());
    let again = [
        "cert",
        "--host",
        "localhost",
        "--dir",
        cert.parent().unwrap().to_str().unwrap(),
    ];
    let printed = refused(&atoll(&again, ""));
    assert!(printed.contains("--force"), "{printed}");
    assert_eq!(made, (fs::read(&cert).unwrap(), fs::read(&key).unwrap()));
    stdout(&atoll(
        &[&again[..], &["--force", "--days", "2"]].concat(),
        "",
    ));
    assert_ne!(made.0, fs::read(&cert).unwrap());
    let days = ["x509", "-noout", "-in", file, "-checkend"];
    asked("openssl", &[&days[..], &["86400"]].concat());
    if let Ok(status) = Command::new("openssl").args(days).arg("259200").status() {
        assert!(!status.success(), "valid for more than two days");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rsa_takes_openssl() {
    let dir = tempfile::tempdir().unwrap();
    let without = Command::new(env!("CARGO_BIN_EXE_atoll"))
        .args(["registry", "cert", "--rsa", "--host", "a", "--dir"])
        .arg(dir.path())
        .env("PATH", dir.path())
        .output()
        .unwrap();
    let printed = refused(&without);
    assert!(
        !without.status.success() && printed.contains("not installed"),
        "{printed}"
    );
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);

    if asked("openssl", &["version"]).is_none() {
        return;
    }
    let (cert, key) = certificate(dir.path(), &["--rsa"]);
    let file = cert.to_str().unwrap();
    let text = asked("openssl", &["x509", "-noout", "-text", "-in", file]).unwrap();
    for expected in ["sha256WithRSAEncryption", "(4096 bit)", "CA:TRUE"] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    is_trusted(dir.path(), &cert, &key).await;
}

#[test]
fn malformed_hosts_are_refused() {
    for wrong in ["a:5000", "https://a", "192.0.2.300"] {
        let printed = refused(&atoll(&["cert", "--host", wrong], ""));
        assert!(printed.contains("without port"), "{printed}");
    }
    assert!(!atoll(&["cert"], "").status.success());
}

/// Adding, changing and deleting while a registry runs on the file.
#[tokio::test(flavor = "multi_thread")]
async fn a_running_registry_reloads_its_users() {
    let dir = tempfile::tempdir().unwrap();
    let (file, link) = (dir.path().join("users"), dir.path().join("link"));
    symlink(&file, &link).unwrap();
    let path = link.to_str().unwrap();
    let other = registry::htpasswd::line("other", "x").unwrap();
    let before = format!("# kept\r\n\n {other} ");
    fs::write(&file, &before).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let running = serve(dir.path(), |settings| {
        settings.registry_auth_htpasswd_path = Some(file.clone());
    })
    .await;
    service::tls::install_provider();
    let http = reqwest::Client::builder()
        .tls_certs_only([])
        .build()
        .unwrap();
    let url = format!("http://127.0.0.1:{}/v2/", running.address().port());
    let lets_in = async |user: &str, password: &str| {
        let request = http.get(&url).basic_auth(user, Some(password));
        request.send().await.unwrap().status().is_success()
    };
    assert!(!lets_in("me", "one").await);

    let printed = stdout(&atoll(&["htpasswd", path, "me"], "one\n"));
    assert!(printed.contains("me is added"), "{printed}");
    assert!(lets_in("me", "one").await && lets_in("other", "x").await);
    let printed = stdout(&atoll(&["htpasswd", path, "me"], "two words"));
    assert!(printed.contains("new password"), "{printed}");
    assert!(!lets_in("me", "one").await && lets_in("me", "two words").await);
    let made = stdout(&atoll(&["htpasswd", path, "me", "--generate"], ""));
    let made = made.strip_suffix('\n').unwrap();
    assert!(made.len() >= 20 && lets_in("me", made).await, "{made}");

    let text = fs::read_to_string(&file).unwrap();
    assert!(text.starts_with(&format!("{before}\nme:$2")), "{text}");
    assert_eq!(text.lines().count(), 4, "{text}");
    assert_eq!(mode(&file), 0o644);
    stdout(&atoll(&["htpasswd", path, "me", "--delete"], ""));
    assert_eq!(fs::read_to_string(&file).unwrap(), format!("{before}\n"));
    assert!(!lets_in("me", made).await && lets_in("other", "x").await);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
}

#[tokio::test(flavor = "multi_thread")]
async fn garbage_is_collected_on_request() {
    let dir = tempfile::tempdir().unwrap();
    let users = dir.path().join("users");
    fs::write(&users, registry::htpasswd::line("me", "right").unwrap()).unwrap();
    let running = serve(dir.path(), |settings| {
        settings.registry_auth_htpasswd_path = Some(users);
        settings.registry_storage_maintenance_gc_grace = std::time::Duration::ZERO;
    })
    .await;
    let url = format!("http://127.0.0.1:{}/", running.address().port());
    service::tls::install_provider();
    let http = reqwest::Client::builder()
        .tls_certs_only([])
        .build()
        .unwrap();
    let digest = oci::Digest::sha256(b"nobody needs this");
    let upload = http
        .post(format!("{url}v2/a/blobs/uploads/?digest={digest}"))
        .basic_auth("me", Some("right"))
        .body("nobody needs this");
    assert_eq!(upload.send().await.unwrap().status(), 201);
    let gc = |more: &[&str], password: &str| {
        atoll(
            &[&["gc", url.as_str(), "--user", "me"], more].concat(),
            password,
        )
    };
    let printed = stdout(&gc(&["--dry-run"], "right"));
    assert!(
        printed.contains(" 1 unreferenced blobs") && printed.contains("would be removed"),
        "{printed}"
    );
    let printed = refused(&gc(&[], "wrong"));
    assert!(printed.contains("authentication required"), "{printed}");
    let printed = stdout(&gc(&[], "right"));
    assert!(
        printed.contains("1 unlinked contents") && printed.contains(" removed."),
        "{printed}"
    );
    let printed = refused(&atoll(&["gc", "http://127.0.0.1:1"], ""));
    assert!(
        printed.contains("requesting http://127.0.0.1:1"),
        "{printed}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_registry_is_verified() {
    let dir = tempfile::tempdir().unwrap();
    let running = serve(dir.path(), |settings| {
        settings.registry_storage_maintenance_scrub_rate = registry::Size(0);
    })
    .await;
    let url = format!("http://127.0.0.1:{}", running.address().port());
    service::tls::install_provider();
    let http = reqwest::Client::builder()
        .tls_certs_only([])
        .build()
        .unwrap();
    let digest = oci::Digest::sha256(b"a blob");
    let upload = http
        .post(format!("{url}/v2/a/blobs/uploads/?digest={digest}"))
        .body("a blob");
    assert_eq!(upload.send().await.unwrap().status(), 201);
    let printed = stdout(&atoll(&["verify", &url], ""));
    assert!(printed.contains("1 contents verified"), "{printed}");
    let hex = digest.hex();
    let below = format!(
        "data/docker/registry/v2/blobs/sha256/{}/{hex}/data",
        &hex[..2]
    );
    fs::write(dir.path().join(below), "a blab").unwrap();
    let output = atoll(&["verify", &url, "--json"], "");
    assert_eq!(output.status.code(), Some(1));
    let printed = refused(&output);
    assert!(printed.contains("1 contents are damaged"), "{printed}");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["findings"][0]["digest"], digest.to_string());
    assert_eq!(report["findings"][0]["repositories"][0], "a");
}

#[test]
fn the_folder_of_a_registry_is_verified() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().to_str().unwrap();
    let place = |below: String, text: &str| {
        let path = dir.path().join("docker/registry/v2").join(below);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let digest = oci::Digest::sha256(b"a blob");
    let hex = digest.hex();
    let bytes = format!("blobs/sha256/{}/{hex}/data", &hex[..2]);
    place(bytes.clone(), "a blob");
    let link = format!("repositories/a/_layers/sha256/{hex}/link");
    place(link, &digest.to_string());
    let printed = stdout(&atoll(&["verify", folder], ""));
    assert!(
        printed.contains("1 contents") && printed.contains("1 links"),
        "{printed}"
    );
    place(bytes.clone(), "a blab");
    for _ in 0..2 {
        let output = atoll(&["verify", folder, "--quarantine"], "");
        assert_eq!(output.status.code(), Some(1));
        let printed = String::from_utf8(output.stdout).unwrap();
        assert!(printed.contains(hex), "{printed}");
    }
    // Quarantined the first time, and missing the second time.
    let printed = refused(&atoll(&["verify", folder], ""));
    assert!(printed.contains("found 1 dangling"), "{printed}");
    assert!(
        dir.path()
            .join(".atoll/quarantine/sha256")
            .join(hex)
            .is_file()
    );
    place(bytes, "a blob");
    stdout(&atoll(&["verify", folder], ""));
    let printed = refused(&atoll(&["verify", "/none"], ""));
    assert!(printed.contains("neither a folder nor a URL"), "{printed}");
}

#[test]
fn failed_commands_change_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("users");
    let path = file.to_str().unwrap();
    for (arguments, input, expected) in [
        (&["htpasswd", path, "me"][..], "", "1 to 72 bytes"),
        (&["htpasswd", path, "me"], "a\nb\n", "one line"),
        (&["htpasswd", path, "a:b"], "x", "without colon"),
        (&["htpasswd", path, "me", "--delete"], "", "no such user"),
        (&["htpasswd", "/none/users", "me"], "x", "/none"),
        (
            &["htpasswd", path, "me", "--delete", "--generate"],
            "",
            "cannot be used",
        ),
    ] {
        let output = atoll(arguments, input);
        let printed = refused(&output);
        assert!(
            !output.status.success() && printed.contains(expected),
            "{expected}: {printed}"
        );
        assert!(!file.exists(), "{arguments:?}");
    }
    fs::write(&file, "garbage\n").unwrap();
    let printed = refused(&atoll(&["htpasswd", path, "me"], "x"));
    assert!(printed.contains("line 1"), "{printed}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "garbage\n");

    fs::remove_file(&file).unwrap();
    stdout(&atoll(&["htpasswd", path, "me"], "x"));
    assert_eq!(mode(&file), 0o600);
}

#[test]
fn concurrent_changes_lose_no_user() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("users");
    std::thread::scope(|scope| {
        for user in 0..6 {
            let path = file.to_str().unwrap();
            scope.spawn(move || stdout(&atoll(&["htpasswd", path, &format!("u{user}")], "x")));
        }
    });
    let text = fs::read_to_string(&file).unwrap();
    assert_eq!(text.lines().count(), 6, "{text}");
}

/// The health check of a container presents the registry's own certificate.
#[tokio::test(flavor = "multi_thread")]
async fn health_works_with_required_client_certificates() {
    let dir = tempfile::tempdir().unwrap();
    let (cert, key) = certificate(dir.path(), &[]);
    let authority = Authority::new("clients").unwrap();
    let ca = dir.path().join("ca");
    fs::write(&ca, authority.certificate).unwrap();
    let running = serve(dir.path(), |settings| {
        settings.registry_http_tls_certificate = Some(cert.clone());
        settings.registry_http_tls_key = Some(key.clone());
        settings.registry_http_tls_clientcas = CommaList(vec![ca.display().to_string()]);
    })
    .await;
    let port = running.address().port();
    let health = |ca: Option<&Path>| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_atoll"));
        command
            .args(["serve", "registry", "health", "--ready"])
            .env("REGISTRY_HTTP_ADDR", format!("127.0.0.1:{port}"))
            .env("REGISTRY_HTTP_TLS_CERTIFICATE", &cert)
            .env("REGISTRY_HTTP_TLS_KEY", &key);
        if let Some(ca) = ca {
            command.env("REGISTRY_HTTP_TLS_CLIENTCAS_0", ca);
        }
        command.output().unwrap()
    };
    let printed = health(Some(&ca));
    assert!(printed.status.success(), "{}", refused(&printed));
    assert!(
        !health(None).status.success(),
        "no client certificate is required"
    );
}

/// Pushes a blob and an image without layers to repository `a`.
async fn push(url: &str) {
    let http = service::http_client(None, false).unwrap();
    let config = oci::Digest::sha256(b"{}");
    let upload = http
        .post(format!("{url}/v2/a/blobs/uploads/?digest={config}"))
        .body("{}");
    assert_eq!(upload.send().await.unwrap().status(), 201);
    let kind = oci::media_type::OCI_MANIFEST;
    let config = serde_json::json!({
        "mediaType": oci::media_type::OCI_CONFIG, "digest": config, "size": 2,
    });
    let manifest = serde_json::json!({
        "schemaVersion": 2, "mediaType": kind, "config": config, "layers": [],
    });
    let put = http.put(format!("{url}/v2/a/manifests/v1"));
    let put = put.header("content-type", kind).body(manifest.to_string());
    assert_eq!(put.send().await.unwrap().status(), 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_index_is_rebuilt_on_request() {
    let dir = tempfile::tempdir().unwrap();
    let running = serve(dir.path(), |_| {}).await;
    let url = format!("http://127.0.0.1:{}", running.address().port());
    push(&url).await;
    let copy = |from: &Path, to: &Path| {
        fs::create_dir_all(to).unwrap();
        let from = format!("{}/.", from.display());
        let copied = Command::new("cp").arg("-a").arg(from).arg(to).status();
        assert!(copied.unwrap().success());
    };
    let data = dir.path().join("data");
    let repositories = data.join("docker/registry/v2/repositories");
    copy(&repositories.join("a"), &repositories.join("b"));
    let printed = stdout(&atoll(&["reindex", &url], ""));
    assert!(
        printed.contains("2 repositories compared, 1 read into the index"),
        "{printed}"
    );
    let http = service::http_client(None, false).unwrap();
    let found = http.head(format!("{url}/v2/b/manifests/v1")).send().await;
    assert_eq!(found.unwrap().status(), 200);
    // The folder of a running registry is refused; a copy is indexed.
    let printed = refused(&atoll(&["reindex", data.to_str().unwrap()], ""));
    assert!(printed.contains("another process has it open"), "{printed}");
    let other = dir.path().join("other");
    copy(&data.join("docker"), &other.join("docker"));
    let printed = stdout(&atoll(&["reindex", other.to_str().unwrap()], ""));
    assert!(
        printed.contains("2 repositories compared, 2 read into the index"),
        "{printed}"
    );
    assert!(other.join(".atoll/index.redb").exists());
    let printed = refused(&atoll(&["reindex", "nowhere"], ""));
    assert!(printed.contains("neither a folder nor a URL"), "{printed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn connection_errors_have_a_remedy() {
    let dir = tempfile::tempdir().unwrap();
    let (cert, key) = certificate(dir.path(), &[]);
    let running = serve(dir.path(), |settings| {
        settings.registry_http_tls_certificate = Some(cert.clone());
        settings.registry_http_tls_key = Some(key);
    })
    .await;
    let plain = serve(&dir.path().join("plain"), |_| {}).await;
    let url = format!("https://localhost:{}", running.address().port());
    let no_tls = format!("https://localhost:{}", plain.address().port());
    let ca = ["--ca", cert.to_str().unwrap()];
    for verb in ["gc", "verify", "reindex"] {
        let ask = |more: &[&str]| atoll(&[&[verb], more].concat(), "");
        for (url, why, remedy) in [
            (&*url, "certificate verification failed", "--ca FILE"),
            (&no_tls, "no TLS on this port", "use http://"),
            (
                "http://127.0.0.1:1",
                "connection refused",
                "nothing listens on this port",
            ),
        ] {
            let printed = refused(&ask(&[url]));
            assert!(printed.contains(&format!("requesting {url}")), "{printed}");
            assert!(
                printed.contains(why) && printed.contains(remedy),
                "{printed}"
            );
        }
        stdout(&ask(&[&[&*url], &ca[..]].concat()));
    }
    let printed = refused(&atoll(&["gc", "https://registry.invalid"], ""));
    assert!(printed.contains("name resolution failed"), "{printed}");
    let missing = refused(&atoll(&["gc", &url, "--ca", "missing.pem"], ""));
    assert!(missing.contains("reading missing.pem"), "{missing}");
}
