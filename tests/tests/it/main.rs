//! The whole system as it runs at users: everything is started, killed, stopped and asked from outside.

mod download;
mod faults;
