//! Reflection by tonic, in which an unknown name ends the stream. Here it is a response, and the stream continues.
//! Source: `ErrorResponse` of the reflection protocol, as grpc-go sends it.

use std::pin::Pin;

use axum::body::HttpBody;
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, stream};
use tonic::body::Body;
use tonic::client::GrpcService;
use tonic::{Code, Request, Response, Status, Streaming};
use tonic_reflection::server::Builder;

/// Implements a version of the protocol by a client of tonic's service in the same process: its answers are found by
/// private code. Each request is a call of its own there.
macro_rules! reflection {
    ($version:ident, $build:ident) => {
        pub(super) mod $version {
            use tonic_reflection::pb::$version::server_reflection_client::ServerReflectionClient;
            use tonic_reflection::pb::$version::server_reflection_request::MessageRequest;
            use tonic_reflection::pb::$version::server_reflection_response::MessageResponse;
            use tonic_reflection::pb::$version::server_reflection_server::{
                ServerReflection, ServerReflectionServer,
            };
            use tonic_reflection::pb::$version::{
                ErrorResponse, ExtensionNumberResponse, ServerReflectionRequest,
                ServerReflectionResponse,
            };

            use super::*;

            struct Reflection<S>(ServerReflectionClient<S>);

            /// The service of the descriptors in `builder`. Units of `limit`: bytes of a request.
            pub(in super::super) fn service(
                builder: Builder<'static>,
                limit: usize,
            ) -> ServerReflectionServer<impl ServerReflection> {
                let tonics = builder.$build().expect("the descriptors are whole");
                let client = ServerReflectionClient::new(tonics);
                ServerReflectionServer::new(Reflection(client)).max_decoding_message_size(limit)
            }

            #[tonic::async_trait]
            impl<S> ServerReflection for Reflection<S>
            where
                S: GrpcService<Body, Future: Send> + Clone + Send + Sync + 'static,
                S::ResponseBody:
                    HttpBody<Data = Bytes, Error: Into<axum::BoxError> + Send> + Send + 'static,
            {
                type ServerReflectionInfoStream =
                    Pin<Box<dyn Stream<Item = Result<ServerReflectionResponse, Status>> + Send>>;

                async fn server_reflection_info(
                    &self,
                    requests: Request<Streaming<ServerReflectionRequest>>,
                ) -> Result<Response<Self::ServerReflectionInfoStream>, Status> {
                    let client = self.0.clone();
                    let responses = requests.into_inner().then(move |request| {
                        let client = client.clone();
                        async move { respond(client, request?).await }
                    });
                    Ok(Response::new(Box::pin(responses)))
                }
            }

            async fn respond<S>(
                mut client: ServerReflectionClient<S>,
                request: ServerReflectionRequest,
            ) -> Result<ServerReflectionResponse, Status>
            where
                S: GrpcService<Body>,
                S::ResponseBody:
                    HttpBody<Data = Bytes, Error: Into<axum::BoxError> + Send> + Send + 'static,
            {
                let extended = match &request.message_request {
                    Some(MessageRequest::AllExtensionNumbersOfType(name)) => Some(name.clone()),
                    _ => None,
                };
                let mut asked = request.clone();
                if let Some(name) = &extended {
                    // tonic gives the same answer for every name, known or not.
                    asked.message_request =
                        Some(MessageRequest::FileContainingSymbol(name.clone()));
                }
                let call = stream::iter([asked]);
                let mut responses = client.server_reflection_info(call).await?.into_inner();
                match responses.message().await {
                    Ok(Some(mut response)) => {
                        if let Some(base_type_name) = extended {
                            let numbers = ExtensionNumberResponse {
                                base_type_name,
                                extension_number: Vec::new(),
                            };
                            response.original_request = Some(request);
                            response.message_response =
                                Some(MessageResponse::AllExtensionNumbersResponse(numbers));
                        }
                        Ok(response)
                    }
                    Ok(None) => Err(Status::internal("reflection gave no response")),
                    Err(status) if status.code() == Code::NotFound => {
                        Ok(ServerReflectionResponse {
                            valid_host: request.host.clone(),
                            original_request: Some(request),
                            message_response: Some(MessageResponse::ErrorResponse(ErrorResponse {
                                error_code: status.code().into(),
                                error_message: status.message().to_owned(),
                            })),
                        })
                    }
                    Err(status) => Err(status),
                }
            }
        }
    };
}

reflection!(v1, build_v1);
reflection!(v1alpha, build_v1alpha);
