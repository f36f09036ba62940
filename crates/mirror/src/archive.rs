//! Archives of image sets, interchangeable with those of the peer's v1: plain tar, in files of a limited size.
//!
//! `plan` says which byte lies where before anything is fetched, `writer` puts it there while it arrives, `set` finds it
//! again and `verify` compares it with what it should be. Nothing here knows a registry. The one invariant: a file has
//! its name only when all files of its set are whole, the first one last.
//!
//! Members that the peer does not have: an index of all files of the set, and perhaps its signature. They come right
//! after the metadata, so that a reader knows where everything lies after two reads.

mod header;
mod index;
mod journal;
mod name;
mod parts;
mod plan;
mod read;
mod set;
mod signature;
mod space;
mod takeover;
mod verify;
mod walk;
mod writer;

pub use name::{METADATA, SIGNATURES, file_name};
pub use parts::forget_finished;
pub use plan::{Contents, Extra, File, Kind, Member, Plan, size_limit};
pub use read::Place;
pub(crate) use read::{METADATA_LIMIT_BYTES, metadata_of};
pub use set::{Set, describe};
pub use signature::{Signer, Verifier};
pub use verify::{Report, verify};
pub use writer::{BlobWriter, Missing, Writer};

#[cfg(test)]
mod tests;
