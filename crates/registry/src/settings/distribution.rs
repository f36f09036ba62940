//! Distribution's configuration: its YAML file, and variables that hold YAML. Both are taken apart into the names of
//! variables, so that each value is read in one way wherever it stands.

mod closed;
mod document;
mod key;
mod names;
mod sections;

use std::path::Path;

use service::settings::{FromValues as _, Problem, Problems, Shape, Values};

use super::{OWN_FILE, Settings};
use key::PREFIX;

/// The one version of the file. Source: distribution.
const VERSION: &str = "0.1";
const VERSION_NAME: &str = "registry_version";
/// Units: bytes. Longer files are no settings.
const FILE_LIMIT_BYTES: u64 = 1 << 20;
/// Distribution's defaults where ours differ: a configuration file means distribution's.
const MEANT: &[(&str, &str)] = &[("registry_storage_delete_enabled", "false")];
/// Older names of the same.
const RENAMED: &[(&str, &str)] = &[("registry_loglevel", "registry_log_level")];

/// Merges the file below the variables, and reports how each name is handled.
pub(crate) fn prepare(values: &mut Values, problems: &mut Problems, remarks: &mut Vec<Problem>) {
    take_apart(values);
    let path = values.text(OWN_FILE).unwrap_or_default().to_owned();
    if !path.is_empty()
        && let Err(reason) = add_file(values, Path::new(&path))
    {
        problems
            .0
            .push(Problem::new(OWN_FILE.to_uppercase(), reason));
    }
    for (old, new) in RENAMED {
        if let Some(text) = values.take(old) {
            values.set_below(new, &text, &old.to_uppercase());
        }
    }
    names::judge(values, problems, remarks);
}

/// Variables may hold maps and lists: `REGISTRY_STORAGE_MAINTENANCE_READONLY={"enabled":true}`.
fn take_apart(values: &mut Values) {
    let names: Vec<_> = values.names("registry_").map(str::to_owned).collect();
    for name in names {
        let text = values.text(&name).unwrap_or_default();
        if !text.trim_start().starts_with(['{', '[']) || is_taken_whole(&name) {
            continue;
        }
        // Text that only looks like a number stays text.
        let Ok(leaves) = document::leaves(text, &name) else {
            continue;
        };
        let place = name.to_uppercase();
        values.take(&name);
        for leaf in leaves {
            values.set_below(&leaf.name, &leaf.text, &place);
        }
    }
}

fn is_taken_whole(name: &str) -> bool {
    Settings::VARIABLES
        .iter()
        .any(|variable| variable.field == name && variable.shape == Shape::Whole)
}

fn add_file(values: &mut Values, path: &Path) -> Result<(), String> {
    let shown = path.display();
    let unreadable = |error| format!("{shown} cannot be read: {error}");
    if std::fs::metadata(path).map_err(unreadable)?.len() > FILE_LIMIT_BYTES {
        return Err(format!("{shown} is longer than {FILE_LIMIT_BYTES} bytes"));
    }
    let text = std::fs::read_to_string(path).map_err(unreadable)?;
    let leaves = document::leaves(&text, PREFIX)
        .map_err(|error| format!("{shown}, line {}: {}", error.at.line, error.reason))?;
    let version = leaves.iter().find(|leaf| leaf.name == VERSION_NAME);
    match version {
        Some(leaf) if leaf.text == VERSION => {}
        Some(leaf) => {
            let (line, found) = (leaf.line, &leaf.text);
            return Err(format!(
                "{shown}, line {line}: version is {found:?}, expected {VERSION}"
            ));
        }
        None => return Err(format!("{shown}: `version: {VERSION}` is missing")),
    }
    for leaf in leaves.iter().filter(|leaf| leaf.name != VERSION_NAME) {
        let place = format!("{shown}, line {}", leaf.line);
        values.set_below(&leaf.name, &leaf.text, &place);
    }
    for (name, text) in MEANT {
        values.set_below(name, text, &shown.to_string());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use service::program::ServerSettings as _;

    use super::*;

    struct Read {
        settings: Settings,
        problems: Vec<String>,
        remarks: Vec<String>,
    }

    fn read(yaml: Option<&str>, variables: &[(&str, &str)]) -> Read {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.yml");
        let mut values = Values::from_pairs(variables.iter().copied());
        if let Some(yaml) = yaml {
            std::fs::write(&path, yaml).unwrap();
            values.set(OWN_FILE, path.to_str().unwrap());
        }
        let (mut problems, mut remarks) = (Problems::default(), Vec::new());
        Settings::prepare(&mut values, &mut problems, &mut remarks);
        let settings = Settings::read(&values, &mut problems);
        let folder = format!("{}/", dir.path().display());
        let reported = |reported: Vec<Problem>| {
            let reported = reported.into_iter().map(|one| one.to_string());
            reported.map(|one| one.replace(&folder, "")).collect()
        };
        Read {
            settings,
            problems: reported(problems.0),
            remarks: reported(remarks),
        }
    }

    #[test]
    fn variables_win_over_the_file_over_defaults() {
        let yaml = "version: 0.1\nhttp:\n  addr: 127.0.0.1:1\n  relativeurls: true\nstorage:\n  filesystem:\n    rootdirectory: /a\n";
        let read = read(Some(yaml), &[("registry_http_addr", "127.0.0.1:2")]);
        assert_eq!(read.problems, [""; 0]);
        assert_eq!(read.remarks, [""; 0]);
        let settings = read.settings;
        assert_eq!(settings.registry_http_addr.0.port(), 2);
        assert!(settings.registry_http_relativeurls);
        let root = &settings.registry_storage_filesystem_rootdirectory;
        assert_eq!(root.to_str(), Some("/a"));
        assert_eq!(settings.registry_auth_htpasswd_realm, "Registry");
        // Without a word about it, distribution deletes nothing.
        assert!(!settings.registry_storage_delete_enabled);
    }

    #[test]
    fn variables_may_hold_maps_and_lists() {
        let read = read(
            None,
            &[
                (
                    "registry_storage_maintenance_readonly",
                    "{\"enabled\":true}",
                ),
                ("registry_http_headers_x-a", "['1', '2']"),
                ("registry_http_tls_clientcas", "[/a, /b]"),
                ("registry_http_relativeurls", "[not whole"),
            ],
        );
        let settings = read.settings;
        assert!(settings.registry_storage_maintenance_readonly_enabled);
        assert_eq!(*settings.registry_http_tls_clientcas, ["/a", "/b"]);
        let headers = settings.registry_http_headers.iter();
        let headers: Vec<_> = headers
            .map(|(name, value)| (name.as_str(), value.to_str().unwrap()))
            .collect();
        assert_eq!(headers, [("x-a", "1"), ("x-a", "2")]);
        assert_eq!(read.problems.len(), 1, "{:?}", read.problems);
        assert!(read.problems[0].starts_with("REGISTRY_HTTP_RELATIVEURLS: \"[not whole\""));
    }

    #[test]
    fn aliases_are_followed() {
        let yaml = "version: 0.1\nhttp:\n  addr: &a 127.0.0.1:1\n  debug:\n    addr: *a\n";
        let read = read(Some(yaml), &[]);
        assert_eq!(read.problems, [""; 0]);
        assert_eq!(read.settings.registry_http_addr.0.port(), 1);
    }

    #[test]
    fn ignored_keys_are_reported_once() {
        let yaml = "version: 0.1\nredis:\n  addrs: [a:1]\n  db: 1\nstorage:\n  cache:\n    blobdescriptor: inmemory\n";
        let read = read(Some(yaml), &[]);
        assert_eq!(read.problems, [""; 0]);
        assert_eq!(read.remarks.len(), 2, "{:?}", read.remarks);
        assert!(read.remarks[0].starts_with("REGISTRY_REDIS: config.yml, line 3: has no effect"));
        assert!(read.remarks[1].starts_with("REGISTRY_STORAGE_CACHE: config.yml, line 7"));
    }

    #[test]
    fn unknown_keys_are_reported_with_a_suggestion() {
        let yaml = "version: 0.1\nhttp:\n  adr: :5000\n";
        let read = read(
            Some(yaml),
            &[("registry_htp_secret", "x"), ("registry_zebra", "")],
        );
        assert_eq!(read.problems, [""; 0]);
        let reported = [
            "REGISTRY_HTP_SECRET: unknown and ignored; REGISTRY_HTTP_SECRET may be meant",
            "REGISTRY_HTTP_ADR: config.yml, line 3: unknown and ignored; REGISTRY_HTTP_ADDR may be meant",
            "REGISTRY_ZEBRA: unknown and ignored",
        ];
        assert_eq!(read.remarks, reported);
    }

    #[test]
    fn what_would_silently_not_be_done_is_refused() {
        for (yaml, variable, reason) in [
            (
                "storage:\n  gcs:\n    bucket: x\n",
                "REGISTRY_STORAGE_GCS_BUCKET",
                "line 4",
            ),
            ("storage: inmemory\n", "REGISTRY_STORAGE", "line 2"),
            (
                "auth:\n  silly:\n    realm: x\n",
                "REGISTRY_AUTH_SILLY_REALM",
                "line 4",
            ),
            (
                "auth: htpasswd\n",
                "REGISTRY_AUTH",
                "REGISTRY_AUTH_HTPASSWD_PATH",
            ),
            ("http:\n  net: unix\n", "REGISTRY_HTTP_NET", "line 3"),
            (
                "storage:\n  delete:\n    enabled: perhaps\n",
                "REGISTRY_STORAGE_DELETE_ENABLED",
                "line 4",
            ),
            (
                "http:\n  tls:\n    letsencrypt:\n      email: a@b\n",
                "REGISTRY_HTTP_TLS_LETSENCRYPT_EMAIL",
                "line 5",
            ),
        ] {
            let read = read(Some(&format!("version: 0.1\n{yaml}")), &[]);
            let reported = read.problems.join("; ");
            assert!(
                reported.starts_with(&format!("{variable}: ")),
                "{yaml}{reported}"
            );
            assert!(reported.contains(reason), "{yaml}{reported}");
        }
    }

    /// A file, the name and its report.
    const REFUSED: &[(&str, &str, &str)] = &[
        (
            "auth:\n  ldap: {}\n",
            "REGISTRY_AUTH_LDAP",
            "line 3: unknown key auth.ldap: users come from",
        ),
        (
            "auth:\n  htpaswd:\n    path: /a\n",
            "REGISTRY_AUTH_HTPASWD_PATH",
            "line 4: unknown key auth.htpaswd.path; auth.htpasswd.path may be meant",
        ),
        (
            "auth:\n  htpasswd:\n    pth: /a\n",
            "REGISTRY_AUTH_HTPASSWD_PTH",
            "line 4: unknown key auth.htpasswd.pth; auth.htpasswd.path may be meant",
        ),
        (
            "auth:\n  htpasswd:\n    realm: r\n",
            "REGISTRY_AUTH_HTPASSWD_REALM",
            "line 4: without auth.htpasswd.path every client could push",
        ),
        (
            "auth:\n  htpasswd: {}\n",
            "REGISTRY_AUTH_HTPASSWD",
            "line 3: without auth.htpasswd.path",
        ),
        (
            "auth:\n  htpasswd:\n    path: ''\n",
            "REGISTRY_AUTH_HTPASSWD_PATH",
            "line 4: without auth.htpasswd.path",
        ),
        (
            "auth:\n  token:\n",
            "REGISTRY_AUTH_TOKEN",
            "without auth.token.service",
        ),
        (
            "auth:\n  token:\n    relm: x\n",
            "REGISTRY_AUTH_TOKEN_RELM",
            "auth.token.realm may be meant",
        ),
        (
            "storage:\n  filesystem:\n    rootdirectory: /a\n  s3:\n    bucket: b\n",
            "REGISTRY_STORAGE",
            "line 4: storage.filesystem and storage.s3 exclude each other",
        ),
        (
            "storage:\n  filesystem: {}\n  s3:\n    bucket: b\n",
            "REGISTRY_STORAGE",
            "exclude each other",
        ),
        (
            "storage:\n  s3:\n    region: r\n",
            "REGISTRY_STORAGE_S3_REGION",
            "line 4: without storage.s3.bucket",
        ),
        (
            "storage:\n  filesytem:\n    rootdirectory: /a\n",
            "REGISTRY_STORAGE_FILESYTEM_ROOTDIRECTORY",
            "storage.filesystem.rootdirectory may be meant",
        ),
        (
            "storage:\n  ipfs: {}\n",
            "REGISTRY_STORAGE_IPFS",
            "line 3: unknown key storage.ipfs",
        ),
        (
            "http:\n  tls:\n    clientca: /a\n",
            "REGISTRY_HTTP_TLS_CLIENTCA",
            "http.tls.clientcas may be meant",
        ),
        (
            "http:\n  tls:\n    letsencrypt:\n      email: a@b\n",
            "REGISTRY_HTTP_TLS_LETSENCRYPT_EMAIL",
            "line 5",
        ),
    ];

    #[test]
    fn access_storage_and_tls_fail_closed() {
        for (yaml, variable, reason) in REFUSED {
            let read = read(Some(&format!("version: 0.1\n{yaml}")), &[]);
            let [reported] = &read.problems[..] else {
                panic!("{yaml}{:?}", read.problems);
            };
            assert!(
                reported.starts_with(&format!("{variable}: ")),
                "{yaml}{reported}"
            );
            assert!(reported.contains(reason), "{yaml}{reported}");
        }
    }

    #[test]
    fn variables_fail_closed_too() {
        let refused = |variables: &[(&str, &str)]| read(None, variables).problems.join("; ");
        let reported = refused(&[("registry_auth_htpasswd_realm", "r")]);
        assert!(
            reported.contains("REGISTRY_AUTH_HTPASSWD_REALM"),
            "{reported}"
        );
        let reported = refused(&[("registry_auth", "{ldap: {}}")]);
        assert!(reported.contains("unknown key auth.ldap"), "{reported}");
        let both = [
            ("registry_storage_filesystem_rootdirectory", "/a"),
            ("registry_storage_s3_bucket", "b"),
        ];
        assert!(refused(&both).contains("exclude each other"));
        let chosen = [both[0], both[1], ("registry_storage", "s3")];
        assert_eq!(refused(&chosen), "");
        for empty in ["registry_auth_htpasswd_path", "registry_auth_ldap"] {
            assert_eq!(refused(&[(empty, "")]), "", "{empty}");
        }
    }

    #[test]
    fn malformed_files_are_reported_with_their_line() {
        for (yaml, reason) in [
            ("version: 0.2\n", "line 1: version is \"0.2\", expected 0.1"),
            ("http: {}\n", "`version: 0.1` is missing"),
            ("version: 0.1\nhttp: [\n", "config.yml, line "),
            (
                "version: 0.1\nhttp:\n  addr: a\n  addr: b\n",
                "line 4: key \"addr\" is already in line 3",
            ),
            ("version: 0.1\na: *x\n", "line 2: "),
            ("- version\n", "line 1: "),
            ("", "`version: 0.1` is missing"),
        ] {
            let reported = read(Some(yaml), &[]).problems.join("; ");
            assert!(
                reported.starts_with("REGISTRY_CONFIGURATION_PATH: "),
                "{yaml}{reported}"
            );
            assert!(reported.contains(reason), "{yaml}{reported}");
        }
        let reported = read(None, &[(OWN_FILE, "/none")]).problems.join("; ");
        assert!(reported.contains("/none cannot be read"), "{reported}");
    }

    /// The file of Debian's package docker-registry 2.8.2.
    #[test]
    fn the_file_of_debians_package_is_taken() {
        let read = read(Some(include_str!("distribution/debian.yml")), &[]);
        assert_eq!(read.problems, [""; 0]);
        assert_eq!(read.remarks.len(), 2, "{:?}", read.remarks);
        let settings = read.settings;
        assert!(settings.registry_http_addr.0.ip().is_unspecified());
        assert!(settings.registry_storage_delete_enabled);
        assert_eq!(settings.registry_auth_htpasswd_realm, "basic-realm");
        assert_eq!(settings.registry_http_headers.iter().count(), 1);
        assert_eq!(settings.registry_health_storagedriver_threshold, 3);
    }
}
