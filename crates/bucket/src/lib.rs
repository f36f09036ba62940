//! The client of buckets that speak S3: objects, multipart uploads and listings, each request with a timeout.
//!
//! Not here: the layout of keys. The one invariant: an object counts as missing only when S3 itself reports that; a missing
//! bucket, a refusal and a proxy's 404 are errors.

mod bucket;
mod connect;
mod error;

pub use object_store::PutPayload;
pub use object_store::multipart::PartId;
pub use object_store::path::Path;

pub use bucket::{Bucket, ListingPage, ObjectEntry, ObjectInfo, Objects, Position};
pub use connect::{PART_BYTES_MIN, S3Options, s3};
pub use error::{BucketError, BucketResult};
