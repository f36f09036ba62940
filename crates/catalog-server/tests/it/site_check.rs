//! The check of served catalogs: each thing that breaks them is found.

use catalog_server::ServedCatalogError::{Call, NotLoaded, Unreachable};
use catalog_server::{grpc, served_packages};
use tempfile::TempDir;
use testkit::wire::{Wire, answer};

use crate::content::{package, write};
use crate::operation::World;
use crate::server::{CATALOG, Server};

#[tokio::test]
async fn packages_of_the_served_catalog_are_counted() {
    let server = Server::empty(grpc::GrpcOptions::default()).await;
    let address = server.address().trim_start_matches("http://").parse();
    let address = address.unwrap();
    assert_eq!(served_packages("catalog", address).await, Err(NotLoaded));
    server.serve("");
    assert_eq!(served_packages("catalog", address).await, Ok(0));
    server.serve(CATALOG);
    assert_eq!(served_packages("catalog", address).await, Ok(3));
    server.shutdown.cancel();
    server.wait().await;
    let found = served_packages("catalog", address).await;
    assert!(matches!(found, Err(Unreachable(_))), "{found:?}");
}

#[tokio::test]
async fn each_catalog_of_a_port_is_checked() {
    let folder = TempDir::new().unwrap();
    let two = [package("a", "1.0.0"), package("b", "1.0.0")].concat();
    write(&folder.path().join("first"), &package("a", "1.0.0"));
    write(&folder.path().join("second"), &two);
    let world = World::start_in(folder, "first=FOLDER/first,second=FOLDER/second").await;
    world
        .until("/readyz", |text| text.contains("\"ready\":true"))
        .await;
    let address = world.addresses()[0];
    assert_eq!(served_packages("first", address).await, Ok(1));
    assert_eq!(served_packages("second", address).await, Ok(2));
}

#[tokio::test]
async fn other_servers_are_no_catalog() {
    let other = Wire::answering(|_| answer("200 OK", "", "hello")).await;
    let found = served_packages("catalog", other.address).await;
    assert!(matches!(found, Err(Call(_))), "{found:?}");
}
