use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use super::*;

fn file(path: &str, content: &(impl ToString + ?Sized)) -> BundleFile {
    BundleFile {
        path: path.to_owned(),
        content: content.to_string().into_bytes(),
    }
}

fn csv() -> Value {
    json!({"apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
        "metadata": {"name": "web.v1.2.3", "annotations": {"olm.properties": "[{\"type\":\"mine\",\"value\":{\"b\":1,\"a\":\"<\"}}]"}},
        "spec": {"version": "1.2.3", "description": "A <web>", "displayName": "Web",
            "customresourcedefinitions": {
                "owned": [{"name": "webs.example.org", "version": "v1", "kind": "Web"}],
                "required": [{"name": "dbs.example.com", "version": "v2", "kind": "Db"}]},
            "icon": [{"base64data": "aWNvbg==", "mediatype": "image/png"}],
            "install": {"strategy": "deployment", "spec": {"deployments": [{"name": "web", "spec": {"template": {"spec": {
                "containers": [{"image": "quay.io/x/web:1"}], "initContainers": [{"image": "quay.io/x/init:1"}]}}}}]}},
            "relatedImages": [{"name": "web", "image": "quay.io/x/web:1"}]}})
}

const CRD: &str = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: webs.example.org}\n\
    spec:\n  group: example.org\n  names: {kind: Web, plural: webs}\n  versions: [{name: v1}, {name: v1beta1}]\n";
const ANNOTATIONS: &str = "annotations:\n  operators.operatorframework.io.bundle.package.v1: web\n  operators.operatorframework.io.bundle.channels.v1: stable\n";

fn bundle() -> BundleFolder {
    BundleFolder {
        manifests: vec![
            file(
                "manifests/a.yaml",
                "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\nkind: Lost\n",
            ),
            file("manifests/b.txt", "# nothing"),
            file("manifests/crd.yaml", CRD),
            file("manifests/csv.json", &csv()),
        ],
        metadata: vec![
            file("metadata/annotations.yaml", ANNOTATIONS),
            file(
                "metadata/dependencies.yaml",
                "dependencies:\n- type: olm.package\n  value: {packageName: db, version: '>=1.0.0'}\n- type: olm.gvk\n  value: {group: g, kind: K, version: v1}\n",
            ),
            file(
                "metadata/properties.yaml",
                "properties:\n- type: olm.maxOpenShiftVersion\n  value: '4.18'\n",
            ),
        ],
    }
}

fn rendered(bundle: &BundleFolder) -> Result<RenderedBundle, String> {
    render(
        bundle,
        "quay.io/x/bundle:1",
        &DocumentOrigin::new("bundle", 1),
    )
}

/// Types and values of properties besides manifests.
fn properties(bundle: &RenderedBundle) -> Vec<String> {
    let document: Value = serde_json::from_str(&bundle.document.json).unwrap();
    let all = document["properties"].as_array().unwrap().iter();
    all.filter(|it| it["type"] != "olm.bundle.object")
        .map(|it| format!("{} {}", it["type"].as_str().unwrap(), it["value"]))
        .collect()
}

#[test]
fn bundles_are_rendered_as_opm_does() {
    let found = rendered(&bundle()).unwrap();
    assert_eq!(
        (
            found.document.package.as_str(),
            found.document.name.as_str()
        ),
        ("web", "web.v1.2.3")
    );
    assert_eq!(
        properties(&found),
        [
            r#"mine {"a":"<","b":1}"#,
            r#"olm.gvk {"group":"example.org","kind":"Web","version":"v1"}"#,
            r#"olm.gvk {"group":"example.org","kind":"Web","version":"v1beta1"}"#,
            r#"olm.gvk.required {"group":"example.com","kind":"Db","version":"v2"}"#,
            r#"olm.gvk.required {"group":"g","kind":"K","version":"v1"}"#,
            r#"olm.maxOpenShiftVersion "4.18""#,
            r#"olm.package {"packageName":"web","version":"1.2.3"}"#,
            r#"olm.package.required {"packageName":"db","versionRange":">=1.0.0"}"#,
        ]
    );
    let document: Value = serde_json::from_str(&found.document.json).unwrap();
    assert_eq!(document["properties"].as_array().unwrap().len(), 8 + 3);
    assert_eq!(
        document["relatedImages"],
        json!([{"name": "", "image": "quay.io/x/bundle:1"}, {"name": "", "image": "quay.io/x/init:1"}, {"name": "web", "image": "quay.io/x/web:1"}])
    );
    let objects = document["properties"].as_array().unwrap().iter();
    let objects =
        objects.filter_map(|it| BASE64_STANDARD.decode(it["value"]["data"].as_str()?).ok());
    let csv = objects
        .map(|it| String::from_utf8(it).unwrap())
        .find(|it| it.contains("ClusterServiceVersion"));
    assert!(
        csv.unwrap().contains(r"A \u003cweb\u003e"),
        "objects are as Go prints them"
    );
    assert_eq!(found.description, "A <web>");
    assert_eq!(found.icon.unwrap().data, b"icon");
    assert_eq!(found.notes.len(), 1, "{:?}", found.notes);
}

#[test]
fn manifests_are_migrated_to_metadata() {
    let found = rendered(&bundle()).unwrap();
    let migrated = with_csv_metadata(&found.document).unwrap();
    let document: Value = serde_json::from_str(&migrated.json).unwrap();
    let last = document["properties"].as_array().unwrap().last().unwrap();
    assert_eq!(last["type"], "olm.csv.metadata");
    assert_eq!(last["value"]["displayName"], "Web");
    assert_eq!(last["value"]["description"], "A <web>");
    assert_eq!(last["value"]["apiServiceDefinitions"], json!({}));
    assert!(!migrated.json.contains("olm.bundle.object"));
    assert_eq!(with_csv_metadata(&migrated).unwrap(), migrated);
}

#[test]
fn broken_bundles_are_named() {
    let without = |path: &str| {
        let mut bundle = bundle();
        bundle.manifests.retain(|it| it.path != path);
        bundle.metadata.retain(|it| it.path != path);
        rendered(&bundle).unwrap_err()
    };
    assert_eq!(
        without("manifests/csv.json"),
        "no ClusterServiceVersion in manifests; manifests/b.txt is left out: its first document is no object"
    );
    assert!(
        without("manifests/crd.yaml")
            .starts_with("manifests/csv.json: the CSV owns Web v1 (webs.example.org)")
    );
    assert_eq!(
        without("metadata/annotations.yaml"),
        "no annotations found in metadata"
    );
    let mut odd = csv();
    odd["spec"]["version"] = json!(1);
    let mut broken = bundle();
    broken.manifests[3] = file("manifests/csv.json", &odd);
    let error = rendered(&broken).unwrap_err();
    assert!(
        error.starts_with("manifests/csv.json: spec: version:"),
        "{error}"
    );
    let empty = rendered(&BundleFolder::default()).unwrap_err();
    assert_eq!(empty, "no bundle objects found in manifests");
}
