//! Guessing passwords.

use reqwest::Method;
use reqwest::header::RETRY_AFTER;

use super::{guarded, request_as};
use crate::server::{Server, USER, header, is, refusal};

async fn guess(server: &Server, path: &str) -> reqwest::Response {
    let request = server
        .request(Method::GET, path)
        .basic_auth(USER, Some("guess"));
    request.send().await.unwrap()
}

#[tokio::test]
async fn guesses_have_to_wait_and_who_has_logged_in_does_not() {
    let (_dir, server) = guarded(&["late"], |_, _| {}).await;
    let status = async |user: &str| {
        let request = request_as(&server, user, Method::GET, "/v2/");
        request.send().await.unwrap().status().as_u16()
    };
    assert_eq!(status(USER).await, 200);
    for _ in 0..5 {
        assert_eq!(
            refusal(guess(&server, "/v2/").await).await,
            is(401, "UNAUTHORIZED")
        );
    }
    for path in ["/v2/", "/auth/token"] {
        // A slow machine may have waited long enough already; each further guess waits twice as long.
        let refused = loop {
            let refused = guess(&server, path).await;
            if refused.status() != 401 {
                break refused;
            }
        };
        let wait: u64 = header(&refused, &RETRY_AFTER).parse().unwrap();
        assert!((1..=300).contains(&wait), "{wait}");
        assert_eq!(refusal(refused).await, is(429, "TOOMANYREQUESTS"));
    }
    assert_eq!(status(USER).await, 200, "remembered");
    assert_eq!(
        status("late").await,
        200,
        "another user behind the same address"
    );
}
