//! Errors that end a server.

/// A failure of a whole server, for the terminal and the log.
#[derive(Debug, thiserror::Error)]
#[error("{doing}: {source}")]
pub struct Error {
    /// Failed operation, with the setting's or file's name.
    pub doing: String,
    /// The cause.
    #[source]
    pub source: Box<dyn std::error::Error + Send + Sync>,
}

impl Error {
    /// A failure while `doing`.
    pub fn new(
        doing: impl Into<String>,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self {
            doing: doing.into(),
            source: source.into(),
        }
    }
}
