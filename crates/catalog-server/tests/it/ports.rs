//! Several catalogs in one process.

use std::net::SocketAddr;

use catalog::api::{ListPackageRequest, PackageName};
use tempfile::TempDir;

use crate::client::Client;
use crate::content::{package, write};
use crate::operation::World;

/// Packages listed under the authority `name`.
async fn packages(name: &str, address: SocketAddr) -> Vec<String> {
    let client = Client::dialled(name, address).await;
    let listed = client.all::<_, PackageName>("ListPackages", ListPackageRequest {});
    let listed = listed.await.unwrap().into_iter();
    listed.map(|package| package.name).collect()
}

#[tokio::test]
async fn the_authority_selects_the_catalog_on_a_shared_port() {
    let folder = TempDir::new().unwrap();
    for name in ["first", "second", "apart"] {
        write(&folder.path().join(name), &package(name, "1.0.0"));
    }
    let catalogs = "first=FOLDER/first,second=FOLDER/second,apart:0=FOLDER/apart";
    let world = World::start_in(folder, catalogs).await;
    world
        .until("/readyz", |text| text.contains("\"ready\":true"))
        .await;
    let [shared, own] = *world.addresses() else {
        panic!("{:?}", world.addresses())
    };
    for (name, listed) in [
        ("first", "first"),
        ("second", "second"),
        ("SECOND:50051", "second"),
        ("second.catalogs.svc:50051", "second"),
        ("secondary:50051", "first"),
        ("catalogs.example.org", "first"),
        // It is served on its own port only.
        ("apart", "first"),
    ] {
        assert_eq!(packages(name, shared).await, [listed], "{name}");
        assert_eq!(packages(name, own).await, ["apart"], "{name}");
    }
}
