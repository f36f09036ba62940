//! Tags and catalog.

use reqwest::StatusCode;

use crate::server::{Server, is, named, refusal};

async fn list(server: &Server, path: &str, member: &str) -> (Vec<String>, String) {
    let response = server.get(path).await;
    assert_eq!(response.status(), StatusCode::OK);
    let link = named(&response, "link");
    let body: serde_json::Value = response.json().await.unwrap();
    let entries = body[member].as_array().unwrap().iter();
    (
        entries
            .map(|entry| entry.as_str().unwrap().to_owned())
            .collect(),
        link,
    )
}

#[tokio::test]
async fn tags_page_by_page() {
    let server = Server::plain().await;
    for tag in ["v2", "v1", "V1", "1.0"] {
        server.push_image("a/b", tag, "x").await;
    }
    let path = "/v2/a/b/tags/list";
    assert_eq!(
        list(&server, path, "tags").await,
        (
            ["1.0", "V1", "v1", "v2"].map(str::to_owned).to_vec(),
            String::new()
        )
    );
    let (first, link) = list(&server, &format!("{path}?n=3"), "tags").await;
    assert_eq!(
        (first.len(), link.as_str()),
        (3, "</v2/a/b/tags/list?last=v1&n=3>; rel=\"next\"")
    );
    let next = link.trim_start_matches('<').split('>').next().unwrap();
    assert_eq!(
        list(&server, next, "tags").await,
        (vec!["v2".to_owned()], String::new())
    );
    assert_eq!(
        list(&server, &format!("{path}?n=0"), "tags").await,
        (vec![], String::new())
    );
    assert_eq!(
        refusal(server.get(&format!("{path}?n=-1")).await).await,
        is(400, "PAGINATION_NUMBER_INVALID")
    );
    server.delete("/v2/a/b/manifests/V1").await;
    assert_eq!(list(&server, path, "tags").await.0.len(), 3);
}

#[tokio::test]
async fn repositories_without_manifests_are_unknown() {
    let server = Server::plain().await;
    server.push_blob("bare", b"x").await;
    for name in ["bare", "none"] {
        assert_eq!(
            refusal(server.get(&format!("/v2/{name}/tags/list")).await).await,
            is(404, "NAME_UNKNOWN")
        );
    }
    assert_eq!(
        list(&server, "/v2/_catalog", "repositories").await.0,
        Vec::<String>::new()
    );
}

#[tokio::test]
async fn the_catalog_has_nested_names_in_order() {
    let server = Server::plain().await;
    for name in ["b", "a/b", "a", "a-b"] {
        server.push_image(name, "t", "x").await;
    }
    let (names, link) = list(&server, "/v2/_catalog", "repositories").await;
    assert_eq!(
        (names, link),
        (
            ["a", "a-b", "a/b", "b"].map(str::to_owned).to_vec(),
            String::new()
        )
    );
    let (_, link) = list(&server, "/v2/_catalog?n=3", "repositories").await;
    assert_eq!(link, "</v2/_catalog?last=a%2Fb&n=3>; rel=\"next\"");
    let (names, _) = list(&server, "/v2/_catalog?last=a%2Fb&n=3", "repositories").await;
    assert_eq!(names, ["b"]);
}
