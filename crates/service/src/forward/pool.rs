//! Connection pool of one replica.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::connection::Connection;

/// Most idle connections of a replica; more are opened under load. With 64, one of 27 requests of 160 concurrent ones opened a
/// connection.
const IDLE_CONNECTIONS: usize = 256;

/// The idle connections to a replica.
#[derive(Default)]
pub(super) struct Pool(Mutex<IdleConnections>);

#[derive(Default)]
struct IdleConnections {
    connections: Vec<Connection>,
    is_closed: bool,
}

impl Pool {
    /// The most recently used connection that is ready; those that ended meanwhile are dropped. One that has just
    /// carried an upload is not ready at once.
    pub(super) fn take(&self) -> Option<Connection> {
        let mut idle = self.lock();
        let mut index = idle.connections.len();
        while let Some(before) = index.checked_sub(1) {
            index = before;
            if !idle.connections[index].is_usable() {
                idle.connections.remove(index);
            } else if idle.connections[index].is_ready() {
                return Some(idle.connections.remove(index));
            }
        }
        None
    }

    /// Pools a connection whose response has been read to its end.
    pub(super) fn put(&self, mut connection: Connection) {
        connection.park();
        let mut idle = self.lock();
        if !idle.is_closed && idle.connections.len() < IDLE_CONNECTIONS {
            idle.connections.push(connection);
        }
    }

    /// Closes the connections that were idle for too long.
    pub(super) fn expire(&self) {
        self.lock().connections.retain_mut(Connection::is_usable);
    }

    /// Closes all connections and pools none from now on.
    pub(super) fn close(&self) {
        let mut idle = self.lock();
        idle.is_closed = true;
        idle.connections.clear();
    }

    fn lock(&self) -> MutexGuard<'_, IdleConnections> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
