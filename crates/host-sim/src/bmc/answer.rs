//! Answers of simulated BMCs, also the broken ones.

use std::io;

use bytes::Bytes;
use futures_util::stream;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::Frame;
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE};
use hyper::{Response, StatusCode};
use serde_json::{Value, json};

/// A body of an answer.
pub(super) type AnswerBody = UnsyncBoxBody<Bytes, io::Error>;

/// Form of an answer.
#[derive(Debug, Clone)]
enum AnswerForm {
    Whole,
    /// Without its second half, and its whole length.
    Truncated,
    /// Without an end.
    Endless,
}

/// An answer.
#[derive(Debug, Clone)]
pub(super) struct BmcAnswer {
    pub(super) status: u16,
    headers: Vec<(&'static str, String)>,
    pub(super) body: Value,
    /// In place of the body.
    text: Option<String>,
    form: AnswerForm,
}

impl BmcAnswer {
    pub(super) fn json(status: u16, body: Value) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body,
            text: None,
            form: AnswerForm::Whole,
        }
    }

    pub(super) fn empty(status: u16) -> Self {
        Self::json(status, Value::Null)
    }

    pub(super) fn text(text: String) -> Self {
        Self {
            text: Some(text),
            ..Self::empty(200)
        }
    }

    /// A refusal. Source: DSP0266 "Error responses".
    pub(super) fn error(status: u16, id: &str, message: &str, properties: &[&str]) -> Self {
        let related: Vec<String> = properties.iter().map(|it| format!("#/{it}")).collect();
        let info = json!([{
            "@odata.type": "#Message.v1_1_1.Message",
            "MessageId": format!("Base.1.8.{id}"),
            "Message": message,
            "RelatedProperties": related,
            "Severity": "Critical",
        }]);
        Self::json(
            status,
            json!({ "error": {
                "code": "Base.1.8.GeneralError",
                "message": "See ExtendedInfo for more information.",
                "@Message.ExtendedInfo": info,
            } }),
        )
    }

    pub(super) fn not_found() -> Self {
        Self::error(
            404,
            "ResourceMissingAtURI",
            "the resource does not exist",
            &[],
        )
    }

    pub(super) fn with_header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    pub(super) fn truncated(mut self) -> Self {
        self.form = AnswerForm::Truncated;
        self
    }

    pub(super) fn endless(mut self) -> Self {
        self.form = AnswerForm::Endless;
        self
    }

    /// The body as sent.
    pub(super) fn content(&self) -> String {
        match (&self.text, &self.body) {
            (Some(text), _) => text.clone(),
            (None, Value::Null) => String::new(),
            (None, body) => body.to_string(),
        }
    }

    pub(super) fn response(self) -> Response<AnswerBody> {
        let content = self.content();
        let length = content.len();
        let body = match self.form {
            AnswerForm::Whole => Full::from(content).map_err(|e| match e {}).boxed_unsync(),
            AnswerForm::Truncated => {
                let half = Bytes::from(content).slice(..length / 2);
                let frames = [Ok(Frame::data(half)), Err(io::ErrorKind::BrokenPipe.into())];
                StreamBody::new(stream::iter(frames)).boxed_unsync()
            }
            AnswerForm::Endless => {
                let blanks = Bytes::from(vec![b' '; 64 << 10]);
                let frames = stream::repeat_with(move || Ok(Frame::data(blanks.clone())));
                StreamBody::new(frames).boxed_unsync()
            }
        };
        let mut response = Response::new(body);
        let status = StatusCode::from_u16(self.status);
        *response.status_mut() = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = response.headers_mut();
        headers.insert(
            CONTENT_TYPE,
            hyper::header::HeaderValue::from_static("application/json"),
        );
        if matches!(self.form, AnswerForm::Truncated) {
            headers.insert(CONTENT_LENGTH, length.into());
        }
        for (name, value) in self.headers {
            if let Ok(value) = value.parse() {
                headers.insert(name, value);
            }
        }
        response
    }
}
