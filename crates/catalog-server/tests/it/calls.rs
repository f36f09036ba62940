//! All methods, with valid and invalid requests.

use catalog::api::{
    Bundle, ChannelEntry, Deprecation, ExperimentalListPackageCustomSchemasRequest,
    GetAllProvidersRequest, GetAllReplacementsRequest, GetBundleInChannelRequest, GetBundleRequest,
    GetDefaultProviderRequest, GetLatestProvidersRequest, GetPackageRequest, GetReplacementRequest,
    ListBundlesRequest, ListPackageRequest, Package, PackageName,
};
use prost_types::Struct;
use prost_types::value::Kind;
use tonic::{Code, Request, Status};

use crate::client::Client;
use crate::server::Server;

fn get_bundle([package, channel, name]: [&str; 3]) -> GetBundleRequest {
    GetBundleRequest {
        pkg_name: package.to_owned(),
        channel_name: channel.to_owned(),
        csv_name: name.to_owned(),
    }
}

fn in_channel([package, channel]: [&str; 2]) -> GetBundleInChannelRequest {
    GetBundleInChannelRequest {
        pkg_name: package.to_owned(),
        channel_name: channel.to_owned(),
    }
}

fn replacement([name, package, channel]: [&str; 3]) -> GetReplacementRequest {
    GetReplacementRequest {
        csv_name: name.to_owned(),
        pkg_name: package.to_owned(),
        channel_name: channel.to_owned(),
    }
}

macro_rules! provider {
    ($request:ident, $group:expr, $version:expr, $kind:expr) => {
        $request {
            group: $group.to_owned(),
            version: $version.to_owned(),
            kind: $kind.to_owned(),
            plural: "whatever".to_owned(),
        }
    };
}

fn replacements(name: &str) -> GetAllReplacementsRequest {
    let csv_name = name.to_owned();
    GetAllReplacementsRequest { csv_name }
}

fn places(entries: &[ChannelEntry]) -> Vec<[&str; 4]> {
    entries
        .iter()
        .map(|one| {
            [
                &*one.package_name,
                &one.channel_name,
                &one.bundle_name,
                &one.replaces,
            ]
        })
        .collect()
}

/// Asserts the message and the code UNKNOWN.
fn is_unknown<A: std::fmt::Debug>(answer: Result<A, Status>, text: &str) {
    let status = answer.unwrap_err();
    assert_eq!((status.code(), status.message()), (Code::Unknown, text));
}

#[tokio::test]
async fn packages_are_listed_and_returned() {
    let server = Server::start().await;
    let client = server.client().await;
    let names: Vec<PackageName> = client
        .all("ListPackages", ListPackageRequest {})
        .await
        .unwrap();
    assert!(names.iter().map(|one| &*one.name).eq(["a", "b", "c"]));
    let get = async |name: &str| -> Result<Package, Status> {
        let name = name.to_owned();
        client.one("GetPackage", GetPackageRequest { name }).await
    };
    let package = get("a").await.unwrap();
    let because = |message: &str| {
        Some(Deprecation {
            message: message.to_owned(),
        })
    };
    assert_eq!(package.default_channel_name, "stable");
    assert_eq!(package.deprecation, because("old package"));
    assert_eq!(package.channels[0].csv_name, "a.v1");
    assert_eq!(package.channels[0].deprecation, because("old channel"));
    let channels = get("b").await.unwrap().channels;
    assert!(channels.iter().map(|one| &*one.name).eq(["all", "fast"]));
    is_unknown(get("zz").await, r#"package "zz" not found"#);
    is_unknown(get("").await, r#"package "" not found"#);
    is_unknown(get("q\"\n").await, r#"package "q\"\n" not found"#);
}

#[tokio::test]
async fn get_bundle_returns_all_fields() {
    let server = Server::start().await;
    let client = server.client().await;
    let get = async |of: [&str; 3]| -> Result<Bundle, Status> {
        client.one("GetBundle", get_bundle(of)).await
    };
    let bundle = get(["a", "stable", "a.v1"]).await.unwrap();
    assert_eq!(bundle.bundle_path, "quay.io/x/a:1");
    assert_eq!(bundle.version, "1.0.0");
    let types = bundle.properties.iter().map(|one| &*one.r#type);
    assert!(types.eq([
        "olm.package",
        "olm.package.required",
        "olm.gvk.required",
        "other",
        "olm.gvk"
    ]));
    assert_eq!(bundle.properties[3].value, r#"{"a":"<&>","z":1.5}"#);
    let needs = bundle
        .dependencies
        .iter()
        .map(|one| (&*one.r#type, &*one.value));
    assert!(needs.eq([
        ("olm.package", r#"{"packageName":"b","version":">=1.0.0"}"#),
        ("olm.gvk", r#"{"group":"r","kind":"R","version":"v1"}"#),
    ]));
    assert_eq!(bundle.provided_apis[0].kind, "K");
    assert_eq!(bundle.required_apis[0].group, "r");
    assert!(bundle.csv_json.contains(r#""displayName":"A""#));
    assert_eq!(bundle.object, [&*bundle.csv_json]);
    assert_eq!(bundle.deprecation.unwrap().message, "old bundle");

    let bundle = get(["b", "fast", "b.v2"]).await.unwrap();
    assert_eq!((&*bundle.skip_range, &*bundle.replaces), ("<2.0.0", ""));
    assert!(bundle.skips.is_empty());
    is_unknown(get(["zz", "q", "r"]).await, r#"package "zz" not found"#);
    is_unknown(
        get(["b", "q", "r"]).await,
        r#"package "b", channel "q" not found"#,
    );
    let missing = r#"package "b", channel "all", bundle "r" not found"#;
    is_unknown(get(["b", "all", "r"]).await, missing);
}

#[tokio::test]
async fn get_bundle_for_channel_returns_the_head() {
    let server = Server::start().await;
    let client = server.client().await;
    let get = async |of: [&str; 2]| -> Result<Bundle, Status> {
        client.one("GetBundleForChannel", in_channel(of)).await
    };
    let head = get(["b", "all"]).await.unwrap();
    assert_eq!([&*head.csv_name, &*head.channel_name], ["b.v2", "all"]);
    is_unknown(get(["zz", "all"]).await, r#"package "zz" not found"#);
    is_unknown(
        get(["b", "q"]).await,
        r#"package "b", channel "q" not found"#,
    );
}

#[tokio::test]
async fn bundles_are_listed_by_channel_package_and_name() {
    let server = Server::start().await;
    let client = server.client().await;
    let all: Vec<Bundle> = client
        .all("ListBundles", ListBundlesRequest {})
        .await
        .unwrap();
    let places = all
        .iter()
        .map(|one| [&*one.channel_name, &one.package_name, &one.csv_name]);
    assert!(places.eq([
        ["all", "b", "b.v1"],
        ["all", "b", "b.v2"],
        ["fast", "b", "b.v1"],
        ["fast", "b", "b.v2"],
        ["new", "c", "c.v2"],
        ["old", "c", "c.v1"],
        ["stable", "a", "a.v1"],
    ]));
    assert_eq!(
        (&*all[3].replaces, &*all[3].skips),
        ("b.v1", &["b.v0".to_owned()][..])
    );
    // Clients get the manifests from the bundle image, if there is one.
    assert_eq!((&*all[6].csv_json, all[6].object.len()), ("", 0));
    assert!(!all[3].csv_json.is_empty());
}

#[tokio::test]
async fn replacing_bundles_and_entries_are_returned() {
    let server = Server::start().await;
    let client = server.client().await;
    let all = async |name: &str| -> Result<Vec<ChannelEntry>, Status> {
        client
            .all("GetChannelEntriesThatReplace", replacements(name))
            .await
    };
    let found = all("b.v1").await.unwrap();
    assert_eq!(
        places(&found),
        [["b", "all", "b.v2", ""], ["b", "fast", "b.v2", "b.v1"]]
    );
    let first = all("").await.unwrap();
    assert_eq!(first.len(), 6);
    is_unknown(all("zz").await, "no channel entries found that replace zz");

    let one = async |of: [&str; 3]| -> Result<Bundle, Status> {
        client.one("GetBundleThatReplaces", replacement(of)).await
    };
    assert_eq!(one(["b.v1", "b", "fast"]).await.unwrap().csv_name, "b.v2");
    assert_eq!(one(["b.v0", "b", "all"]).await.unwrap().channel_name, "all");
    is_unknown(one(["b.v1", "zz", "all"]).await, "package zz not found");
    is_unknown(
        one(["b.v1", "b", "q"]).await,
        r#"package "b", channel "q" not found"#,
    );
    let missing = r#"no entry found for package "b", channel "all""#;
    is_unknown(one(["q", "b", "all"]).await, missing);
}

#[tokio::test]
async fn providers_of_an_api_are_returned() {
    let server = Server::start().await;
    let client = server.client().await;
    let all = async |kind: &str| -> Result<Vec<ChannelEntry>, Status> {
        let request = provider!(GetAllProvidersRequest, "g", "v1", kind);
        client.all("GetChannelEntriesThatProvide", request).await
    };
    let found = all("K").await.unwrap();
    assert_eq!(
        places(&found),
        [
            ["a", "stable", "a.v1", ""],
            ["b", "all", "b.v2", ""],
            ["b", "all", "b.v2", "b.v1"],
            ["b", "all", "b.v2", "b.v0"],
            ["b", "fast", "b.v2", "b.v1"],
            ["b", "fast", "b.v2", "b.v0"],
        ]
    );
    let none = r#"no channel entries found that provide group:"g" version:"v1" kind:"k""#;
    is_unknown(all("k").await, none);

    let latest = async |kind: &str| -> Result<Vec<ChannelEntry>, Status> {
        let request = provider!(GetLatestProvidersRequest, "g", "v1", kind);
        client
            .all("GetLatestChannelEntriesThatProvide", request)
            .await
    };
    assert_eq!(latest("K").await.unwrap().len(), 4);
    is_unknown(latest("k").await, none);
}

#[tokio::test]
async fn the_default_provider_is_returned() {
    let server = Server::start().await;
    let client = server.client().await;
    let default = async |[group, kind]: [&str; 2]| -> Result<Bundle, Status> {
        let request = provider!(GetDefaultProviderRequest, group, "v1", kind);
        client.one("GetDefaultBundleThatProvides", request).await
    };
    assert_eq!(default(["g", "K"]).await.unwrap().csv_name, "a.v1");
    let none = r#"no channel entries found that provide group:"g" version:"v1" kind:"k""#;
    is_unknown(default(["g", "k"]).await, none);
    let only_elsewhere = r#"no entry found that provides group:"only" version:"v1" kind:"Old""#;
    is_unknown(default(["only", "Old"]).await, only_elsewhere);
}

async fn customs(
    client: &Client,
    schema: &str,
    package: &str,
    header: &'static str,
) -> Result<Vec<Struct>, Status> {
    let mut request = Request::new(ExperimentalListPackageCustomSchemasRequest {
        schema: schema.to_owned(),
        package_name: package.to_owned(),
    });
    if !header.is_empty() {
        let value = tonic::metadata::MetadataValue::from_static(header);
        request
            .metadata_mut()
            .insert("x-acknowledge-experimental", value);
    }
    let method = "ExperimentalListPackageCustomSchemas";
    client
        .sent("api.ExperimentalRegistry", method, request)
        .await
}

#[tokio::test]
async fn custom_documents_require_the_acknowledge_header() {
    let server = Server::start().await;
    let client = server.client().await;
    let names = async |package: &str| -> Vec<Kind> {
        let found = customs(&client, "example", package, "true").await.unwrap();
        let names = found
            .into_iter()
            .map(|mut one| one.fields.remove("name").unwrap());
        names.map(|name| name.kind.unwrap()).collect()
    };
    let text = |text: &str| Kind::StringValue(text.to_owned());
    assert_eq!(names("b").await, [text("one"), text("two")]);
    assert_eq!(names("").await, [text("of nobody")]);
    assert_eq!(names("zz").await, []);
    for (schema, package, header) in [
        ("example", "b", ""),
        ("example", "b", "TRUE"),
        ("", "b", ""),
        ("olm.bundle", "b", "true"),
        ("of.none", "b", "true"),
    ] {
        let answer = customs(&client, schema, package, header).await;
        assert_eq!(answer.unwrap(), [], "{schema} {package} {header}");
    }
    let refused = async |schema: &str, package: &str| {
        let status = customs(&client, schema, package, "true").await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument);
        status.message().to_owned()
    };
    assert_eq!(refused("", "b").await, "schema is required");
    let pattern = "must match ^[a-zA-Z0-9][a-zA-Z0-9._-]*$";
    assert_eq!(
        refused("a/b", "b").await,
        format!("invalid custom schema query: invalid schema \"a/b\": {pattern}")
    );
    assert_eq!(
        refused("a", "-b").await,
        format!("invalid custom schema query: invalid packageName \"-b\": {pattern}")
    );
}

#[tokio::test]
async fn replies_to_compressed_requests_are_compressed() {
    let server = Server::start().await;
    let plain: Vec<Bundle> = server
        .client()
        .await
        .all("ListBundles", ListBundlesRequest {})
        .await
        .unwrap();
    for client in [
        server.client().await.gzipped(),
        server.client().await.accepting_gzip(),
    ] {
        let same: Vec<Bundle> = client
            .all("ListBundles", ListBundlesRequest {})
            .await
            .unwrap();
        assert_eq!(same, plain);
    }
}

#[tokio::test]
async fn unknown_services_and_methods_are_unimplemented() {
    let server = Server::start().await;
    let client = server.client().await;
    for (service, method, text) in [
        (
            "api.Registry",
            "GetNothing",
            "unknown method GetNothing for service api.Registry",
        ),
        ("api.Nothing", "Get", "unknown service api.Nothing"),
    ] {
        let request = Request::new(ListPackageRequest {});
        let status = client
            .sent::<_, PackageName>(service, method, request)
            .await
            .unwrap_err();
        assert_eq!(
            (status.code(), status.message()),
            (Code::Unimplemented, text)
        );
    }
}

#[tokio::test]
async fn calls_before_the_first_load_are_unavailable() {
    let server = Server::empty(catalog_server::grpc::GrpcOptions::default()).await;
    let client = server.client().await;
    let answer: Result<Vec<PackageName>, _> =
        client.all("ListPackages", ListPackageRequest {}).await;
    assert_eq!(answer.unwrap_err().code(), Code::Unavailable);
}
