//! A gRPC client by method name.

use std::net::SocketAddr;

use futures_util::TryStreamExt as _;
use prost::Message;
use tonic::client::Grpc;
use tonic::codec::CompressionEncoding;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Response, Status, Streaming};
use tonic_prost::ProstCodec;

/// Above any message here. Units: bytes.
const MAX_MESSAGE: usize = 64 << 20;
/// Below most replies. Units: bytes.
const NARROW: u32 = 1 << 10;

#[derive(Debug, Clone)]
pub(crate) struct Client {
    grpc: Grpc<Channel>,
}

impl Client {
    pub(crate) async fn new(address: &str) -> Self {
        Self::connect(Endpoint::from_shared(address.to_owned()).unwrap()).await
    }

    /// With small flow-control windows.
    pub(crate) async fn narrow(address: &str) -> Self {
        let endpoint = Endpoint::from_shared(address.to_owned()).unwrap();
        Self::connect(endpoint.initial_stream_window_size(NARROW)).await
    }

    /// Connects to `address` with the authority `name`.
    pub(crate) async fn dialled(name: &str, address: SocketAddr) -> Self {
        let endpoint = Endpoint::from_shared(format!("http://{address}")).unwrap();
        let origin = format!("http://{name}").parse().unwrap();
        Self::connect(endpoint.origin(origin)).await
    }

    async fn connect(endpoint: Endpoint) -> Self {
        let channel = endpoint.connect().await.unwrap();
        let grpc = Grpc::new(channel).max_decoding_message_size(MAX_MESSAGE);
        Self { grpc }
    }

    /// Compresses requests and accepts compressed replies.
    pub(crate) fn gzipped(self) -> Self {
        let grpc = self.grpc.send_compressed(CompressionEncoding::Gzip);
        let grpc = grpc.accept_compressed(CompressionEncoding::Gzip);
        Self { grpc }
    }

    /// Accepts compressed replies without compressing requests.
    pub(crate) fn accepting_gzip(self) -> Self {
        let grpc = self.grpc.accept_compressed(CompressionEncoding::Gzip);
        Self { grpc }
    }

    /// The first message of a reply.
    pub(crate) async fn one<Q, A>(&self, method: &str, request: Q) -> Result<A, Status>
    where
        Q: Message + Default + 'static,
        A: Message + Default + 'static,
    {
        Ok(self.all(method, request).await?.remove(0))
    }

    /// All messages of a reply.
    pub(crate) async fn all<Q, A>(&self, method: &str, request: Q) -> Result<Vec<A>, Status>
    where
        Q: Message + Default + 'static,
        A: Message + Default + 'static,
    {
        self.sent("api.Registry", method, Request::new(request))
            .await
    }

    /// As [`Self::all`], of any service, with metadata.
    pub(crate) async fn sent<Q, A>(
        &self,
        service: &str,
        method: &str,
        request: Request<Q>,
    ) -> Result<Vec<A>, Status>
    where
        Q: Message + Default + 'static,
        A: Message + Default + 'static,
    {
        let mut stream = self.begin(service, method, request).await?;
        let mut messages = Vec::new();
        while let Some(message) = stream.message().await? {
            messages.push(message);
        }
        Ok(messages)
    }

    /// Messages of a call with several requests.
    pub(crate) async fn conversation<Q, A>(
        &self,
        service: &str,
        method: &str,
        requests: Vec<Q>,
    ) -> Result<Vec<A>, Status>
    where
        Q: Message + Default + 'static,
        A: Message + Default + 'static,
    {
        let (mut grpc, path) = self.ready(service, method).await?;
        let requests = Request::new(futures_util::stream::iter(requests));
        let codec = ProstCodec::<Q, A>::default();
        let stream = grpc.streaming(requests, path, codec).await?.into_inner();
        stream.try_collect().await
    }

    /// Starts a call.
    pub(crate) async fn begin<Q, A>(
        &self,
        service: &str,
        method: &str,
        request: Request<Q>,
    ) -> Result<Streaming<A>, Status>
    where
        Q: Message + Default + 'static,
        A: Message + Default + 'static,
    {
        let response = self.response(service, method, request).await?;
        Ok(response.into_inner())
    }

    /// The response with its message stream.
    pub(crate) async fn response<Q, A>(
        &self,
        service: &str,
        method: &str,
        request: Request<Q>,
    ) -> Result<Response<Streaming<A>>, Status>
    where
        Q: Message + Default + 'static,
        A: Message + Default + 'static,
    {
        let (mut grpc, path) = self.ready(service, method).await?;
        let codec = ProstCodec::<Q, A>::default();
        grpc.server_streaming(request, path, codec).await
    }

    async fn ready(
        &self,
        service: &str,
        method: &str,
    ) -> Result<(Grpc<Channel>, PathAndQuery), Status> {
        let mut grpc = self.grpc.clone();
        grpc.ready()
            .await
            .map_err(|error| Status::unavailable(error.to_string()))?;
        let path = format!("/{service}/{method}").parse().unwrap();
        Ok((grpc, path))
    }
}
