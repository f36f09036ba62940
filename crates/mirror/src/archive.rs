//! Archives of image sets, interchangeable with those of the peer's v1 or v2: plain tar, in files of a limited size.
//!
//! `plan` lays out every byte before anything is fetched, `writer` writes it as it arrives, `set` reads it and `verify`
//! checks it, on this machine or on a web server. Nothing here knows a registry. The one invariant: a file has its name only when all files of its set are
//! complete, the first one last.
//!
//! Members that the peer does not have: an index of all files of the set, and an optional signature. They follow the
//! metadata, so that a reader locates all content after two reads.

mod file;
mod found;
mod header;
mod index;
mod journal;
mod listing;
mod member;
mod name;
mod parts;
mod plan;
mod read;
mod set;
mod signature;
mod source;
mod space;
mod storage_tree;
mod takeover;
pub(crate) mod v2_paths;
mod verify;
mod walk;
mod writer;

pub(crate) use file::failed;
pub use file::{ArchiveFile, ArchiveReader, LocalArchive, WebArchive};
pub use found::{FoundSet, sets_below};
pub use member::{MemberKind, PlannedFile, PlannedMember};
pub use name::{ArchiveFormat, METADATA, SIGNATURES, file_name};
pub use parts::forget_finished;
pub use plan::{Contents, Extra, LocalBlob, SetPlan, size_limit};
pub use read::FilePlace;
pub(crate) use read::{METADATA_LIMIT_BYTES, metadata_of};
pub use set::{Set, describe};
pub use signature::{SIGNATURE_BYTES, Signer, Verifier};
pub use source::{ArchiveSource, WebArchives, archive_url};
pub use verify::{SetReport, verify};
pub use writer::{ArchiveWriter, BlobWriter, Missing};

#[cfg(test)]
mod tests;
