//! How clients come to trust the authority of a site.

use std::path::Path;

use credentials::certificate::SiteAuthority;

/// One kind of client, and its commands. `CA` is the path of the certificate, `DOMAIN` the network domain.
struct Client {
    name: &'static str,
    commands: &'static [&'static str],
}

static CLIENTS: &[Client] = &[
    Client {
        name: "RHEL, Fedora, CentOS: all programs, as root",
        commands: &["cp CA /etc/pki/ca-trust/source/anchors/DOMAIN.crt && update-ca-trust"],
    },
    Client {
        name: "Debian, Ubuntu: all programs, as root",
        commands: &["cp CA /usr/local/share/ca-certificates/DOMAIN.crt && update-ca-certificates"],
    },
    Client {
        name: "podman, skopeo, buildah, oc-mirror: this registry only, as root (rootless: in ~/.config/containers/certs.d)",
        commands: &["install -D -m 644 CA /etc/containers/certs.d/registry.DOMAIN/ca.crt"],
    },
    Client {
        name: "oc-mirror, oc, and other programs in Go, without root: these authorities only",
        commands: &["SSL_CERT_FILE=CA oc-mirror …"],
    },
    Client {
        name: "atoll mirror",
        commands: &["atoll mirror --ca CA …"],
    },
    Client {
        name: "curl",
        commands: &["curl --cacert CA https://api.DOMAIN/"],
    },
    Client {
        name: "Firefox: about:preferences#privacy, View Certificates, Authorities, Import; or for each profile",
        commands: &["certutil -A -d sql:PROFILE -n DOMAIN -t C,, -i CA"],
    },
    Client {
        name: "Chromium on Linux",
        commands: &["certutil -A -d sql:$HOME/.pki/nssdb -n DOMAIN -t C,, -i CA"],
    },
    Client {
        name: "Windows (Edge, Chrome), as administrator",
        commands: &["certutil -addstore -f Root ca.crt"],
    },
    Client {
        name: "macOS (Safari, Chrome)",
        commands: &[
            "sudo security add-trusted-cert -d -r trustRoot -k /Library/Keychains/System.keychain ca.crt",
        ],
    },
    Client {
        name: "OpenShift, a new cluster: install-config.yaml",
        commands: &[
            "printf 'additionalTrustBundlePolicy: Always\\nadditionalTrustBundle: |\\n' >> install-config.yaml",
            "sed 's/^/  /' CA >> install-config.yaml",
        ],
    },
    Client {
        name: "OpenShift, a running cluster: its nodes and operators, and its pulls of images",
        commands: &[
            "oc create configmap site-ca -n openshift-config --from-file=ca-bundle.crt=CA --from-file=registry.DOMAIN=CA --from-file=registry.DOMAIN..5000=CA",
            "oc patch proxy/cluster --type merge -p '{\"spec\":{\"trustedCA\":{\"name\":\"site-ca\"}}}'",
            "oc patch image.config.openshift.io/cluster --type merge -p '{\"spec\":{\"additionalTrustedCA\":{\"name\":\"site-ca\"}}}'",
        ],
    },
    Client {
        name: "Discovery images: the infra-env, and the clusters that are installed with it",
        commands: &[
            "jq -Rs '{additional_trust_bundle: .}' CA | curl --cacert CA -X PATCH -H content-type:application/json -d @- https://api.DOMAIN/api/assisted-install/v2/infra-envs/ID",
        ],
    },
    Client {
        name: "Discovery images of other installers: ignition_config_override",
        commands: &[
            "{\"ignition\":{\"version\":\"3.1.0\"},\"storage\":{\"files\":[{\"path\":\"/etc/pki/ca-trust/source/anchors/DOMAIN.crt\",\"mode\":420,\"contents\":{\"source\":\"data:;base64,BASE64\"}}]}}",
        ],
    },
];

/// Printed below the clients.
const HSTS: &str = "\
Before the first visit: the proxy's answers have HSTS with includeSubDomains, so browsers refuse every name below DOMAIN
for 185 days without an exception when its certificate is not trusted. Have browsers trust ca.crt first, or switch HSTS
off until then. Keep ca.key: with a new authority all clients have to trust it before the certificates change.";

/// Commands for all clients of `domain`.
pub(super) fn instructions(authority: &SiteAuthority, domain: &str) -> String {
    let path = authority.certificate();
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut text = format!("To trust {} on clients:\n", path.display());
    for client in CLIENTS {
        text.push_str("  ");
        text.push_str(client.name);
        text.push('\n');
        for command in client.commands {
            text.push_str("    ");
            text.push_str(&filled(command, authority, &path, domain));
            text.push('\n');
        }
    }
    text.push('\n');
    text.push_str(&HSTS.replace("DOMAIN", domain));
    text
}

fn filled(command: &str, authority: &SiteAuthority, path: &Path, domain: &str) -> String {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;

    let quoted = quoted(&path.display().to_string());
    let base64 = || STANDARD.encode(authority.pem());
    // The path last: it may contain any of the words.
    let command = command.replace("DOMAIN", domain);
    let command = if command.contains("BASE64") {
        command.replace("BASE64", &base64())
    } else {
        command
    };
    command
        .split(' ')
        .map(|word| match word {
            "CA" => quoted.clone(),
            word => match word.strip_suffix("=CA") {
                Some(option) => format!("{option}={quoted}"),
                None => word.to_owned(),
            },
        })
        .collect::<Vec<_>>()
        .join(" ")
}

/// A path as one word of a shell.
fn quoted(path: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@".contains(c);
    if path.chars().all(is_plain) {
        path.to_owned()
    } else {
        format!("'{}'", path.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_complete() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("my CA");
        std::fs::create_dir(&folder).unwrap();
        let authority = SiteAuthority::ensure(&folder, "lab.example", &[]).unwrap();
        let text = instructions(&authority, "lab.example");
        for placeholder in ["DOMAIN", "BASE64", " CA ", "=CA"] {
            assert!(!text.contains(placeholder), "{placeholder}: {text}");
        }
        let quoted = format!("'{}'", folder.join("ca.crt").display());
        for expected in [
            format!(
                "cp {quoted} /etc/pki/ca-trust/source/anchors/lab.example.crt && update-ca-trust"
            ),
            format!(
                "install -D -m 644 {quoted} /etc/containers/certs.d/registry.lab.example/ca.crt"
            ),
            format!("--from-file=registry.lab.example..5000={quoted}"),
            format!("curl --cacert {quoted} https://api.lab.example/"),
            "includeSubDomains".to_owned(),
        ] {
            assert!(text.contains(&expected), "{expected}: {text}");
        }
    }
}
