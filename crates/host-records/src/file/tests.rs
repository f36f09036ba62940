use proptest::prelude::*;
use secrecy::ExposeSecret as _;
use serde_json::{Value as Json, json};

use super::*;
use crate::{BareMetalHost, CredentialError, CredentialSecret, MachineRecord};

const CONTROL_NODE: &str = include_str!("../../fixtures/control-node.yaml");

fn file(text: &str) -> RecordFile {
    RecordFile::read("f.yaml", text.as_bytes())
}

fn kinds(file: &RecordFile) -> Vec<String> {
    let each = file.records();
    each.map(|record| format!("{}/{}", record.kind(), record.name()))
        .collect()
}

/// Line, column and reason of the only broken document.
fn broken(content: &[u8]) -> (usize, usize, String) {
    let file = RecordFile::read("f.yaml", content);
    let [broken] = &file.broken[..] else {
        panic!("{file:?}");
    };
    (
        broken.place.line,
        broken.place.column,
        broken.reason.clone(),
    )
}

fn values(file: &RecordFile) -> Vec<Json> {
    let each = file.records();
    each.map(|record| record.decode::<Json>().unwrap())
        .collect()
}

#[test]
fn the_records_of_a_control_node_are_read() {
    let file = file(CONTROL_NODE);
    assert_eq!(
        kinds(&file),
        [
            "Secret/cp-0-bmc-secret",
            "BareMetalHost/cp-0",
            "Machine/prod-x7k2p-cp-0"
        ]
    );
    let records: Vec<_> = file.records().collect();
    let secret = CredentialSecret::read(&records[0]).unwrap();
    assert_eq!(
        (secret.username.as_str(), secret.password.expose_secret()),
        ("root", "calvin")
    );
    let host: BareMetalHost = records[1].decode().unwrap();
    assert!(host.spec.online && host.spec.externally_provisioned);
    assert!(host.spec.bmc.disable_certificate_verification);
    assert_eq!(
        host.spec.boot_mac_address.as_deref(),
        Some("52:54:00:00:00:10")
    );
    assert_eq!(host.spec.other, serde_json::Map::new());
    let machine: MachineRecord = records[2].decode().unwrap();
    let provider = machine.provider().unwrap();
    assert_eq!(provider.custom_deploy.unwrap().method, "install_coreos");
    assert_eq!(machine.status.unwrap().node_ref.unwrap().name, "cp-0");
}

#[test]
fn typed_records_are_written_as_they_were_read() {
    let file = file(CONTROL_NODE);
    let records: Vec<_> = file.records().collect();
    let host: BareMetalHost = records[1].decode().unwrap();
    assert_eq!(
        serde_json::to_value(host).unwrap(),
        records[1].decode::<Json>().unwrap()
    );
    let machine: MachineRecord = records[2].decode().unwrap();
    assert_eq!(
        serde_json::to_value(machine).unwrap(),
        records[2].decode::<Json>().unwrap()
    );
    let secret = CredentialSecret::read(&records[0]).unwrap();
    assert_eq!(secret.to_record(), records[0].decode::<Json>().unwrap());
}

#[test]
fn unknown_members_are_kept() {
    let text = "kind: BareMetalHost\napiVersion: metal3.io/v1alpha1\nextra: {b: 1, a: 2}\n\
                metadata: {name: a, x: z}\nspec: {online: false, hint: [~, 1.5, 'no']}\n\
                status: {provisioning: {state: available, z: 1}, hardware: {}}\n";
    let file = file(text);
    let record = file.records().next().unwrap();
    let host: BareMetalHost = record.decode().unwrap();
    let written = serde_json::to_value(&host).unwrap();
    assert_eq!(written["extra"], json!({"a": 2, "b": 1}));
    assert_eq!(written["metadata"]["x"], "z");
    assert_eq!(written["spec"]["hint"], json!([null, 1.5, "no"]));
    assert_eq!(written["status"]["provisioning"]["z"], 1);
    assert_eq!(written["status"]["hardware"], json!({}));
}

#[test]
fn documents_and_members_keep_their_order() {
    let text = "# c\nkind: B\nspec: {z: 1, a: 'yes', m: [on, \"on\", 0x10, 052, '052', ~]}\n---\n---\nkind: A\nb: |\n  x\n  y\n";
    let file = file(text);
    let yaml = file.to_yaml().unwrap();
    assert_eq!(
        yaml,
        "---\nkind: B\nspec:\n  z: 1\n  a: \"yes\"\n  m:\n  - true\n  - \"on\"\n  - 16\n  - 42\n  - \"052\"\n  - null\n---\nkind: A\nb: |\n  x\n  y\n"
    );
    let json = file.to_json().unwrap();
    assert!(json.find("\"z\"") < json.find("\"a\""), "{json}");
    for again in [yaml, json] {
        let again = RecordFile::read("g", again.as_bytes());
        assert_eq!(values(&again), values(&file));
        assert_eq!(kinds(&again), ["B/", "A/"]);
    }
}

#[test]
fn items_of_lists_are_records() {
    let text = "kind: List\nitems:\n- kind: Secret\n  metadata: {name: a}\n- {kind: Machine}\n---\n{\"kind\": \"BareMetalHostList\", \"items\": []}\n---\nkind: Playlist\nitems: 5\n";
    let file = file(text);
    assert_eq!(kinds(&file), ["Secret/a", "Machine/", "Playlist/"]);
    let place = file.records().next().unwrap().root.place;
    assert_eq!((place.line, place.column), (3, 3));
}

#[test]
fn json_with_tabs_and_byte_order_mark_is_read() {
    let file = file("\u{feff}{\r\n\t\"kind\": \"A\",\r\n\t\"b\": [1]\r\n}\r\n{\"kind\": \"B\"}");
    assert_eq!(kinds(&file), ["A/", "B/"]);
}

#[test]
fn lookups_name_the_place_and_the_field() {
    let file = file("---\n---\nspec:\n  list:\n  - {a: 1}\n  a.b/c: x\n");
    let record = file.records().next().unwrap();
    for (path, line, column, field, is_there) in [
        (&["spec"][..], 4, 3, "spec", true),
        (&["spec", "list", "0", "a"], 5, 9, "spec.list[0].a", true),
        (&["spec", "list", "1"], 5, 5, "spec.list[1]", false),
        (&["spec", "a.b/c"], 6, 10, "spec[a.b/c]", true),
        (&["metadata", "name"], 3, 1, "metadata.name", false),
    ] {
        let lookup = record.lookup(path);
        assert_eq!(
            (lookup.place.line, lookup.place.column),
            (line, column),
            "{path:?}"
        );
        assert_eq!(
            (lookup.field.as_str(), lookup.value.is_some()),
            (field, is_there)
        );
    }
}

#[test]
fn mistakes_have_positions() {
    let (line, column, reason) = broken(b"a: 1\n---\nb: [\n");
    assert!(line >= 3, "{line}:{column} {reason}");
    let (line, column, _) = broken(b"a: 1\n---\nb: {<<: 5}\n");
    assert_eq!((line, column), (3, 9));
    let (line, column, reason) = broken(b"a: \xc3\xa4\nb: \xc3\xb6\xff");
    assert_eq!((line, column), (2, 5), "{reason}");
    let whole = RecordFile::read("f", b"a: [\n---\nkind: B\n");
    assert_eq!((whole.broken.len(), whole.documents.len()), (1, 1));
    assert!(whole.to_yaml().is_err());
}

#[test]
fn sizes_are_bounded() {
    let text = |length: usize| format!("a: {}", "x".repeat(length - 3)).into_bytes();
    assert!(RecordFile::read("f", &text(MAX_FILE)).broken.is_empty());
    assert!(broken(&text(MAX_FILE + 1)).2.contains("8 MiB"));
    let many = |count: usize| "---\na: 1\n".repeat(count).into_bytes();
    let most = RecordFile::read("f", &many(MAX_DOCUMENTS));
    assert_eq!(
        (most.documents.len(), most.broken.len()),
        (MAX_DOCUMENTS, 0)
    );
    let (line, _, reason) = broken(&many(MAX_DOCUMENTS + 1));
    assert_eq!(line, 2 * MAX_DOCUMENTS + 1, "{reason}");
}

#[test]
fn broken_documents_are_bounded() {
    let file = |count: usize| RecordFile::read("f", "---\n]\n".repeat(count).as_bytes());
    assert_eq!(file(100).broken.len(), 100);
    let above = file(1000);
    assert_eq!(above.broken.len(), 101);
    assert_eq!(above.broken[100].place.line, 201);
}

#[test]
fn values_are_bounded_over_all_documents() {
    // Each document has 200 002 values.
    let document = format!("a: [{}]\n---\n", "1,".repeat(200_000));
    let file = |count: usize| RecordFile::read("f", document.repeat(count).as_bytes());
    assert!(file(2).broken.is_empty());
    let above = file(3);
    assert_eq!((above.documents.len(), above.broken.len()), (2, 1));
}

#[test]
fn bombs_are_refused() {
    let mut laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for n in 1..9 {
        let alias = vec![format!("*a{}", n - 1); 10].join(", ");
        laughs.extend([
            "a",
            &n.to_string(),
            ": &a",
            &n.to_string(),
            " [",
            &alias,
            "]\n",
        ]);
    }
    broken(laughs.as_bytes());
    let long = format!(
        "a: &a {}\nb: [{}]\n",
        "x".repeat(1 << 20),
        "*a, ".repeat(100)
    );
    broken(long.as_bytes());
    let per_document = format!(
        "a: &a {}\nb: [{}]\n---\n",
        "x".repeat(1 << 20),
        "*a, ".repeat(50)
    );
    let file = RecordFile::read("f", per_document.repeat(3).as_bytes());
    assert_eq!((file.documents.len(), file.broken.len()), (1, 1));
    for (open, close) in [("[", "]"), ("{a: ", "}"), ("{\"a\":", "}")] {
        let deep = format!("{}1{}", open.repeat(100_000), close.repeat(100_000));
        broken(deep.as_bytes());
    }
    broken(b"a: &a [*a]\n");
}

#[test]
fn infinite_numbers_are_not_written() {
    let file = file("a: 1\n---\nb: .inf\n");
    let error = file.to_json().unwrap_err();
    assert_eq!(error.place.line, 3);
    assert!(file.to_yaml().is_err());
}

#[test]
fn credentials_are_read_as_in_a_cluster() {
    for (data, expected) in [
        (
            "data: {username: cm9vdA==, password: Y2Fsdmlu}",
            Ok(("root", "calvin")),
        ),
        (
            "data: {username: cm9vdA==, password: 'Y2Fs\n\n  dmlu'}",
            Ok(("root", "calvin")),
        ),
        (
            "data: {username: cm9vdA==, password: Y2Fsdmlu}\nstringData: {password: other}",
            Ok(("root", "other")),
        ),
        (
            "data: {username: cm9vdA==}",
            Err(CredentialError::Missing("password")),
        ),
        (
            "data: {username: '', password: Y2Fsdmlu}",
            Err(CredentialError::Empty("username")),
        ),
        (
            "data: {username: root!, password: Y2Fsdmlu}",
            Err(CredentialError::Base64("username")),
        ),
        (
            "data: {username: /w==, password: Y2Fsdmlu}",
            Err(CredentialError::Utf8("username")),
        ),
        ("data: 5", Err(CredentialError::Missing("username"))),
    ] {
        let file = file(&format!("kind: Secret\nmetadata: {{name: a}}\n{data}\n"));
        let secret = CredentialSecret::read(&file.records().next().unwrap());
        let found = secret
            .as_ref()
            .map(|it| (it.username.as_str(), it.password.expose_secret()))
            .map_err(Clone::clone);
        assert_eq!(found, expected, "{data}");
    }
    for (length, is_good) in [(4096, true), (4097, false)] {
        let text = format!(
            "kind: Secret\nstringData: {{username: a, password: {}}}",
            "x".repeat(length)
        );
        let file = file(&text);
        let secret = CredentialSecret::read(&file.records().next().unwrap());
        assert_eq!(secret.is_ok(), is_good, "{length}");
    }
}

#[test]
fn secrets_are_not_in_debug_output() {
    let file = file(CONTROL_NODE);
    let secret = CredentialSecret::read(&file.records().next().unwrap()).unwrap();
    let shown = format!("{file:?} {secret:?}");
    assert!(
        !shown.contains("calvin") && !shown.contains("Y2Fsdmlu"),
        "{shown}"
    );
}

#[test]
fn decode_errors_name_the_field_and_no_value() {
    let file = file("apiVersion: a\nkind: BareMetalHost\nspec: {online: hidden}\n");
    let error = file
        .records()
        .next()
        .unwrap()
        .decode::<BareMetalHost>()
        .unwrap_err();
    assert!(!error.to_string().contains("hidden"), "{error}");
}

fn any_json() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        any::<u64>().prop_map(Json::from),
        (-1.0e9..1.0e9f64).prop_map(Json::from),
        "\\PC{0,12}|(yes|no|on|~|null|<<|0x1|1e3|=|---|\\.\\.\\.|- |: | #|\n|\t|'|\"|&a|\\*a|!!str|[0-9:._]{1,6}){0,4}".prop_map(Json::from),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Json::from),
            prop::collection::btree_map("[a-z<.~/0-9]{0,5}|yes|\\PC{0,4}", inner, 0..5)
                .prop_map(|members| Json::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn records_survive_both_formats(documents in prop::collection::vec(any_json(), 1..4)) {
        let documents: Vec<Json> = documents
            .into_iter()
            .map(|value| json!({"kind": "A", "value": value}))
            .collect();
        let text: String = documents.iter().flat_map(|it| [it.to_string(), "\n".to_owned()]).collect();
        let file = RecordFile::read("f", text.as_bytes());
        prop_assert!(file.broken.is_empty(), "{:?}", file.broken);
        for text in [file.to_yaml().unwrap(), file.to_json().unwrap()] {
            let again = RecordFile::read("g", text.as_bytes());
            prop_assert!(again.broken.is_empty(), "{:?}\n{}", again.broken, text);
            prop_assert_eq!(values(&again), values(&file));
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        RecordFile::read("f", &bytes);
    }

    #[test]
    fn any_text_is_read_or_refused(
        text in "(kind: A|---|\n {0,4}|[a-z]: |- |\\[|\\]|\\{|\\}|\"|'|&a |\\*a|<<: |\\||>|~|1){0,24}"
    ) {
        let file = RecordFile::read("f", text.as_bytes());
        file.records().for_each(|record| drop(record.decode::<Json>()));
    }
}
