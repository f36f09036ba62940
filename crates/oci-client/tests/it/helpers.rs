//! Credential helpers.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use oci_client::Credentials;
use secrecy::ExposeSecret as _;

/// The test that runs as a child process with helpers in its path.
const CHILD: &str = "helpers::child";
/// Marks the child process; holds its folder.
const FOLDER: &str = "HELPERS_FOLDER";

/// Installs a helper that runs `script` and logs its requests.
fn install(folder: &Path, name: &str, script: &str) {
    let path = folder.join(format!("docker-credential-{name}"));
    let text = format!(
        "#!/bin/sh\nread server\necho \"$1 $server\" >> {}\n{script}\n",
        folder.join("asked").display()
    );
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// In a child process, since `PATH` is read once per process.
#[test]
fn credential_helpers_return_logins() {
    let folder = tempfile::tempdir().unwrap();
    install(
        folder.path(),
        "good",
        r#"echo '{"ServerURL":"x","Username":"u","Secret":"hunter2"}'"#,
    );
    install(
        folder.path(),
        "nobody",
        "echo credentials not found in native keychain; exit 1",
    );
    install(folder.path(), "broken", "echo hunter2; exit 0");
    install(folder.path(), "failing", "echo hunter2; exit 3");
    install(
        folder.path(),
        "token",
        r#"echo '{"Username":"<token>","Secret":"hunter2"}'"#,
    );
    let path = format!("{}:/usr/bin:/bin", folder.path().display());
    let status = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", CHILD, "--include-ignored"])
        .env("PATH", path)
        .env(FOLDER, folder.path())
        .status();
    assert!(status.unwrap().success());
}

#[tokio::test]
#[ignore = "runs as a child of the test of programs"]
#[expect(
    clippy::disallowed_methods,
    reason = "the test that started it says so in its environment"
)]
async fn child() {
    let Ok(folder) = std::env::var(FOLDER) else {
        return;
    };
    let folder = Path::new(&folder);
    let text = r#"{
        "auths": {"own:1": {"auth": "bzpw"}, "kept:1": {}},
        "credHelpers": {"kept:1": "good", "none:1": "nobody", "broken:1": "broken", "failing:1": "failing", "token:1": "token", "lost:1": "absent", "path:1": "../good"},
        "credsStore": "good"
    }"#;
    let credentials = Credentials::from_auth_file(text).unwrap();
    let login = async |registry: &str| credentials.login(registry, None).await;
    assert_eq!(login("own:1").await.unwrap().unwrap().user, "o");
    for registry in ["kept:1", "other:1", "kept:1", "docker.io"] {
        let found = login(registry).await.unwrap().unwrap();
        assert_eq!(
            (found.user.as_str(), found.password.expose_secret()),
            ("u", "hunter2")
        );
    }
    assert!(login("none:1").await.unwrap().is_none());
    for registry in ["broken:1", "failing:1", "lost:1", "path:1"] {
        let refused = login(registry).await.unwrap_err().chain();
        assert!(
            refused.contains("docker-credential-") && refused.contains(registry),
            "{refused}"
        );
        assert!(!refused.contains("hunter2"), "{refused}");
    }
    let refused = login("token:1").await.unwrap_err().chain();
    assert!(
        refused.contains("token:1 has an identity token"),
        "{refused}"
    );
    let asked = fs::read_to_string(folder.join("asked")).unwrap();
    assert_eq!(asked.matches("get kept:1\n").count(), 1, "{asked}");
    assert!(
        asked.contains("get https://index.docker.io/v1/\n"),
        "{asked}"
    );
    assert!(!asked.contains("own:1"), "{asked}");
}
