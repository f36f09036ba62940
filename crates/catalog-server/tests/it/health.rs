//! Health and reflection.

use std::sync::Arc;

use tonic::Request;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;
use tonic_reflection::pb::v1::{ServerReflectionRequest, ServerReflectionResponse};

use crate::client::Client;
use crate::server::{CATALOG, Server};

const HEALTH: &str = "grpc.health.v1.Health";

fn about(service: &str) -> Request<HealthCheckRequest> {
    let service = service.to_owned();
    Request::new(HealthCheckRequest { service })
}

async fn check(client: &Client, service: &str) -> ServingStatus {
    let mut answer = client.sent(HEALTH, "Check", about(service)).await.unwrap();
    let answer: HealthCheckResponse = answer.remove(0);
    answer.status()
}

#[tokio::test]
async fn every_service_name_is_serving_once_a_catalog_is_loaded() {
    let server = Server::empty(catalog_server::grpc::GrpcOptions::default()).await;
    let client = server.client().await;
    assert_eq!(check(&client, "").await, ServingStatus::NotServing);
    server.serve(CATALOG);
    for service in ["", "api.Registry", "no.such.Service"] {
        assert_eq!(
            check(&client, service).await,
            ServingStatus::Serving,
            "{service}"
        );
    }
}

#[tokio::test]
async fn watches_stream_changes_and_the_shutdown() {
    let server = Server::empty(catalog_server::grpc::GrpcOptions::default()).await;
    let client = server.client().await;
    let mut statuses = client
        .begin::<_, HealthCheckResponse>(HEALTH, "Watch", about("api.Registry"))
        .await
        .unwrap();
    let mut next = async || statuses.message().await.unwrap().map(|one| one.status());
    assert_eq!(next().await, Some(ServingStatus::NotServing));
    server.serve(CATALOG);
    assert_eq!(next().await, Some(ServingStatus::Serving));
    // A reload changes no status.
    server
        .catalog
        .replace(Arc::clone(&server.catalog.current().unwrap()));
    server.shutdown.cancel();
    assert_eq!(next().await, Some(ServingStatus::NotServing));
    assert_eq!(next().await, None);
    server.wait().await;
}

async fn reflect(client: &Client, ask: MessageRequest) -> MessageResponse {
    let request = ServerReflectionRequest {
        host: String::new(),
        message_request: Some(ask),
    };
    let service = "grpc.reflection.v1.ServerReflection";
    let answers = client
        .sent(service, "ServerReflectionInfo", Request::new(request))
        .await;
    let answer: ServerReflectionResponse = answers.unwrap().remove(0);
    answer.message_response.unwrap()
}

#[tokio::test]
async fn reflection_lists_five_services_and_their_files() {
    let server = Server::start().await;
    let client = server.client().await;
    let MessageResponse::ListServicesResponse(list) =
        reflect(&client, MessageRequest::ListServices(String::new())).await
    else {
        panic!("another answer")
    };
    let mut names: Vec<_> = list.service.iter().map(|one| &*one.name).collect();
    names.sort_unstable();
    let wanted = [
        "api.ExperimentalRegistry",
        "api.Registry",
        HEALTH,
        "grpc.reflection.v1.ServerReflection",
        "grpc.reflection.v1alpha.ServerReflection",
    ];
    assert_eq!(names, wanted);
    for symbol in wanted {
        let ask = MessageRequest::FileContainingSymbol(symbol.to_owned());
        let answer = reflect(&client, ask).await;
        assert!(
            matches!(answer, MessageResponse::FileDescriptorResponse(_)),
            "{symbol}"
        );
    }
}

#[tokio::test]
async fn an_unknown_name_does_not_end_the_reflection() {
    let server = Server::start().await;
    let client = server.client().await;
    let asks = [
        MessageRequest::FileContainingSymbol("api.Nothing".to_owned()),
        MessageRequest::FileByFilename("nothing.proto".to_owned()),
        MessageRequest::AllExtensionNumbersOfType("api.Nothing".to_owned()),
        MessageRequest::AllExtensionNumbersOfType("api.Package".to_owned()),
        MessageRequest::FileContainingSymbol("api.Registry".to_owned()),
    ];
    let requests = asks.map(|ask| ServerReflectionRequest {
        host: "here".to_owned(),
        message_request: Some(ask),
    });
    // Both versions have the same messages.
    for version in ["v1", "v1alpha"] {
        let service = format!("grpc.reflection.{version}.ServerReflection");
        let answers: Vec<ServerReflectionResponse> = client
            .conversation(&service, "ServerReflectionInfo", requests.to_vec())
            .await
            .unwrap();
        for (answer, request) in answers.iter().zip(&requests) {
            assert_eq!(answer.original_request.as_ref(), Some(request));
            assert_eq!(answer.valid_host, "here");
        }
        let answers: Vec<_> = answers
            .into_iter()
            .map(|answer| answer.message_response.unwrap())
            .collect();
        let [
            MessageResponse::ErrorResponse(symbol),
            MessageResponse::ErrorResponse(file),
            MessageResponse::ErrorResponse(extended),
            MessageResponse::AllExtensionNumbersResponse(numbers),
            MessageResponse::FileDescriptorResponse(_),
        ] = &answers[..]
        else {
            panic!("{answers:?}")
        };
        let codes = [symbol, file, extended].map(|error| error.error_code);
        assert_eq!(codes, [5; 3]);
        assert_eq!(numbers.base_type_name, "api.Package");
        assert!(numbers.extension_number.is_empty());
    }
}
