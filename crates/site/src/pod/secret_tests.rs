//! The secrets of .env: compose gives each only to the service that uses it.

use serde_json::Value;
use service::settings::{FromValues, Variable};

const COMPOSE: &str = include_str!("../../../../compose.yaml");
/// Secrets beside those that settings declare: the service, and the variable.
const MORE: [(&str, &str); 3] = [
    // Tokens of servers, as JSON.
    ("image-service", "OS_IMAGES_REQUEST_HEADERS"),
    ("image-service", "OS_IMAGES_REQUEST_QUERY_PARAMS"),
    // Of PostgreSQL images other than the pod's.
    ("db", "POSTGRESQL_PASSWORD"),
];

fn secrets<S: FromValues>(service: &'static str) -> Vec<(&'static str, String)> {
    let variables = S::VARIABLES
        .iter()
        .chain(S::GROUPS.iter().copied().flatten());
    let is_secret = |variable: &&Variable| variable.is_secret;
    variables
        .filter(is_secret)
        .map(|variable| (service, variable.field.to_uppercase()))
        .collect()
}

/// The secret that a proxy and the servers behind it share.
const OF_ALL_SERVERS: &str = "TRUSTED_PROXY_SECRET";

#[test]
fn each_service_gets_only_its_own_secrets() {
    let more = MORE.map(|(service, variable)| (service, variable.to_owned()));
    let secrets = [
        secrets::<api_server::Settings>("api-server"),
        secrets::<image_service::Settings>("image-service"),
        secrets::<webui::Settings>("webui"),
        more.to_vec(),
    ]
    .concat();
    let names: Vec<&str> = secrets.iter().map(|(_, name)| name.as_str()).collect();
    for name in ["EC_PRIVATE_KEY_PEM", "OIDC_CLIENT_SECRET", "SESSION_KEY"] {
        assert!(names.contains(&name), "{names:?}");
    }
    let compose: Value = serde_yaml::from_str(COMPOSE).unwrap();
    let services = compose["services"].as_object().unwrap();
    let mut readers_of_env = Vec::new();
    for (service, config) in services {
        let own = config["environment"].as_object().unwrap();
        let reads_env = config.get("env_file").is_some();
        if reads_env {
            readers_of_env.push(service.as_str());
        }
        for (owner, name) in &secrets {
            if name == OF_ALL_SERVERS {
                continue;
            }
            let given = own.get(name).and_then(Value::as_str);
            let expected = if reads_env {
                // Blank over the line of .env, which is in effect at its owner.
                (owner != service).then(String::new)
            } else {
                (owner == service).then(|| format!("${{{name}:-}}"))
            };
            assert_eq!(given, expected.as_deref(), "{name} in {service}");
        }
    }
    let of_db = &compose["services"]["db"]["environment"];
    assert_eq!(of_db[OF_ALL_SERVERS], "");
    assert_eq!(readers_of_env, ["api-server", "db", "image-service"]);
}
