//! The file, opened.

/// A catalog that is ready to be served.
#[derive(Debug)]
pub struct Cache {}
