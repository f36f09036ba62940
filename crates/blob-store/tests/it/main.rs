//! The stores on a real disk and in a bucket.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends where it fails, also in the functions beside the tests"
)]

mod adoption;
mod bucket;
mod campaign;
mod disk;
mod index;
mod orphans;
