//! Errors that end a server, and the statuses of those that answer a request.

use axum::http::StatusCode;

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

/// Failures with the name of their operation.
pub trait ResultExt<T> {
    /// The value, or an [`Error`] with the operation and its cause.
    ///
    /// # Examples
    /// ```
    /// use service::ResultExt as _;
    ///
    /// let number = "x".parse::<u8>().doing("reading the number");
    /// assert_eq!(number.unwrap_err().to_string(), "reading the number: invalid digit found in string");
    /// ```
    fn doing(self, operation: impl OperationName) -> Result<T, Error>;
}

impl<T, E: Into<Box<dyn std::error::Error + Send + Sync>>> ResultExt<T> for Result<T, E> {
    fn doing(self, operation: impl OperationName) -> Result<T, Error> {
        self.map_err(|source| Error::new(operation.name(), source))
    }
}

/// The name of an operation: a text, or a function that makes it when it has failed.
pub trait OperationName {
    /// As in "reading the settings".
    fn name(self) -> String;
}

impl OperationName for &str {
    fn name(self) -> String {
        self.to_owned()
    }
}

impl OperationName for String {
    fn name(self) -> String {
        self
    }
}

impl<F: FnOnce() -> String> OperationName for F {
    fn name(self) -> String {
        self()
    }
}

/// The status of a response that an error becomes.
pub fn status_code(error: &model::Error) -> StatusCode {
    use model::Error;
    match error {
        Error::NotFound { .. } => StatusCode::NOT_FOUND,
        Error::Invalid { .. } => StatusCode::BAD_REQUEST,
        Error::Conflict { .. } => StatusCode::CONFLICT,
        Error::Unauthenticated { .. } => StatusCode::UNAUTHORIZED,
        Error::Forbidden { .. } => StatusCode::FORBIDDEN,
        Error::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
        Error::Unavailable { .. } => StatusCode::SERVICE_UNAVAILABLE,
        Error::Internal { .. } => StatusCode::INTERNAL_SERVER_ERROR,
    }
}
