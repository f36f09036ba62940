//! The description of the API.

use serde_json::Value;

use crate::harness::Server;

#[tokio::test(flavor = "multi_thread")]
async fn the_description_is_served_as_text_and_as_a_page() {
    let server = Server::start().await;
    let answer = server.get("/openapi").await;
    assert!(answer.header("content-type").starts_with("text/plain"));
    assert!(answer.text.contains("\n  \"openapi\": \"3."), "indented");
    let document: Value = serde_json::from_str(&answer.text).unwrap();
    let base = &document["servers"][0]["url"];
    assert_eq!(base, "/api/assisted-install");
    assert!(document["paths"]["/v2/clusters"]["post"].is_object());
    assert_eq!(server.get("/v2/openapi").await.text, answer.text);
    for path in ["/docs", "/docs/style.css", "/docs/icon.svg"] {
        assert_eq!(server.plain(path).await, 200, "{path}");
    }
}
