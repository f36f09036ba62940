//! What the catalog server reads.

use std::net::{IpAddr, SocketAddr};

use service::program::ServerSettings;
use service::server::Listen;

service::settings! {
    /// Settings of the catalog server.
    pub struct Settings {
        /// Address of the port for clients of catalogs.
        listen_address: IpAddr = "0.0.0.0",
        /// Port for clients of catalogs.
        port: u16 = "50051",
    }
}

impl ServerSettings for Settings {
    fn listen(&self) -> Vec<Listen> {
        let address = SocketAddr::new(self.listen_address, self.port);
        vec![Listen::new(address, None)]
    }
}
