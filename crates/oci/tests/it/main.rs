//! The store on a real disk, and the client against a server that misbehaves.

mod client;
mod disk;
mod wire;
