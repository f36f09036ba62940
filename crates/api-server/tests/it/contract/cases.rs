//! Refused variants of a valid request, derived from the description of its operation.

use reqwest::Method;
use serde_json::{Value, json};

use super::description::{ApiShapes, DescribedOperation, MemberShapes, inner, split};

/// An id that nothing has.
pub(super) const UNKNOWN_ID: &str = "0badc0de-0000-4000-8000-000000000000";
const UNKNOWN_MEMBER: &str = "member_of_nothing";
const METHODS: [Method; 5] = [
    Method::GET,
    Method::POST,
    Method::PUT,
    Method::PATCH,
    Method::DELETE,
];

/// A request of one operation.
#[derive(Debug, Clone)]
pub(super) struct ContractRequest {
    pub(super) method: Method,
    /// Path with parameters in braces.
    pub(super) path: String,
    /// Values of the path's parameters.
    pub(super) parameters: Vec<(&'static str, String)>,
    pub(super) query: Vec<(String, String)>,
    pub(super) body: Option<Value>,
}

impl ContractRequest {
    /// The path with its parameters and query.
    pub(super) fn url(&self) -> String {
        let mut path = self.path.clone();
        for (name, value) in &self.parameters {
            path = path.replace(&format!("{{{name}}}"), value);
        }
        if self.query.is_empty() {
            return path;
        }
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(&self.query);
        format!("{path}?{}", query.finish())
    }

    fn body(&self, body: Value) -> Self {
        Self {
            body: Some(body),
            ..self.clone()
        }
    }

    /// With another value of a query parameter, or without it.
    fn query(&self, name: &str, value: Option<&str>) -> Self {
        let mut changed = self.clone();
        changed.query.retain(|(key, _)| key != name);
        let value = value.map(|value| (name.to_owned(), value.to_owned()));
        changed.query.extend(value);
        changed
    }
}

/// The reason why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RequestFlaw {
    MissingField,
    WrongType,
    UnknownField,
    UnknownId,
    WrongMethod,
}

/// A refused request, with the parts of its answer.
#[derive(Debug)]
pub(super) struct RefusedCase {
    pub(super) flaw: RequestFlaw,
    pub(super) request: ContractRequest,
    pub(super) status: u16,
    /// Part of the text of the answer.
    pub(super) mentions: String,
}

/// Statuses of operations without a 404 for an unknown id of that parameter.
const OTHER_UNKNOWN: &[(&str, &str, u16)] = &[
    // The installer polls before and after a cluster's life.
    ("ListClusterHosts", "cluster_id", 200),
    ("v2ResetHostValidation", "validation_id", 400),
];

/// Every refused variant of a valid request.
pub(super) fn refused(
    description: &ApiShapes,
    id: &str,
    valid: &ContractRequest,
) -> Vec<RefusedCase> {
    let operation = &description.operations[id];
    let mut cases = wrong_methods(description, valid);
    cases.extend(wrong_parameters(id, valid));
    cases.extend(wrong_queries(operation, valid));
    for (key, shape) in &operation.body {
        let (name, is_required) = split(key);
        cases.extend(wrong_bodies(description, shape, name, valid));
        if is_required {
            let missing = ContractRequest {
                body: None,
                ..valid.clone()
            };
            let mentions = format!("{name} in body is required");
            cases.push(refusal(RequestFlaw::MissingField, missing, mentions));
        }
    }
    cases
}

fn refusal(
    flaw: RequestFlaw,
    request: ContractRequest,
    mentions: impl Into<String>,
) -> RefusedCase {
    RefusedCase {
        flaw,
        request,
        status: 400,
        mentions: mentions.into(),
    }
}

/// Methods that no operation of the path has.
fn wrong_methods(description: &ApiShapes, valid: &ContractRequest) -> Vec<RefusedCase> {
    let operations = description.operations.values();
    let mut allowed: Vec<&str> = operations
        .filter(|operation| operation.path() == valid.path)
        .map(DescribedOperation::method)
        .collect();
    allowed.sort_unstable();
    let wrong = METHODS
        .into_iter()
        .filter(|method| !allowed.contains(&method.as_str()));
    let case = |method: Method| RefusedCase {
        flaw: RequestFlaw::WrongMethod,
        status: 405,
        mentions: format!(
            "method {method} is not allowed, but [{}] are",
            allowed.join(",")
        ),
        request: ContractRequest {
            method,
            ..valid.clone()
        },
    };
    wrong.map(case).collect()
}

fn wrong_parameters(id: &str, valid: &ContractRequest) -> Vec<RefusedCase> {
    let mut cases = Vec::new();
    let in_path = valid.parameters.iter().enumerate();
    let in_path = in_path.filter(|(_, (name, _))| valid.path.contains(&format!("{{{name}}}")));
    for (index, (name, value)) in in_path {
        let with = |value: &str| {
            let mut request = valid.clone();
            value.clone_into(&mut request.parameters[index].1);
            request
        };
        let mut other = OTHER_UNKNOWN.iter();
        let other = other.find(|(operation, parameter, _)| (operation, parameter) == (&id, name));
        let status = other.map_or(404, |(_, _, status)| *status);
        cases.push(RefusedCase {
            flaw: RequestFlaw::UnknownId,
            request: with(UNKNOWN_ID),
            status,
            mentions: match status {
                200 => "[]",
                404 => "was not found",
                _ => UNKNOWN_ID,
            }
            .to_owned(),
        });
        if uuid::Uuid::parse_str(value).is_ok() {
            let mentions = format!("{name} in path must be of type uuid: \"x\"");
            cases.push(refusal(RequestFlaw::WrongType, with("x"), mentions));
        }
    }
    cases
}

fn wrong_queries(operation: &DescribedOperation, valid: &ContractRequest) -> Vec<RefusedCase> {
    let mut cases = Vec::new();
    for (key, shape) in &operation.query {
        let (name, is_required) = split(key);
        if is_required {
            let mentions = format!("{name} in query is required");
            cases.push(refusal(
                RequestFlaw::MissingField,
                valid.query(name, None),
                mentions,
            ));
        }
        let item = if shape.starts_with('[') {
            inner(shape)
        } else {
            shape
        };
        let problem = match item {
            "uuid" => "must be of type uuid: \"a-b\"",
            "integer" => "must be of type int64: \"a-b\"",
            set if set.starts_with('=') => "should be one of [",
            // Every text is a text, and a malformed boolean is false.
            _ => continue,
        };
        let mentions = format!("{name} in query {problem}");
        cases.push(refusal(
            RequestFlaw::WrongType,
            valid.query(name, Some("a-b")),
            mentions,
        ));
    }
    cases
}

fn wrong_bodies(
    description: &ApiShapes,
    shape: &str,
    name: &str,
    valid: &ContractRequest,
) -> Vec<RefusedCase> {
    let body = valid.body.clone().unwrap_or_default();
    let Some(record) = shape.strip_prefix('@') else {
        let case = refusal(RequestFlaw::WrongType, valid.body(json!({ "a": 1 })), name);
        return vec![case];
    };
    let mut walk = BodyWalk {
        description,
        valid,
        cases: Vec::new(),
    };
    walk.record(&body, "", &description.bodies[record]);
    walk.cases
}

/// Wrong bodies of every member of a record, also of records within it.
struct BodyWalk<'a> {
    description: &'a ApiShapes,
    valid: &'a ContractRequest,
    cases: Vec<RefusedCase>,
}

impl BodyWalk<'_> {
    /// `body` has that record at a JSON pointer.
    fn record(&mut self, body: &Value, pointer: &str, members: &MemberShapes) {
        let with = |name: &str, value: Option<Value>| {
            let mut changed = body.clone();
            let record = changed
                .pointer_mut(pointer)
                .unwrap()
                .as_object_mut()
                .unwrap();
            match value {
                Some(value) => drop(record.insert(name.to_owned(), value)),
                None => drop(record.remove(name)),
            }
            changed
        };
        let unknown = with(UNKNOWN_MEMBER, Some(json!(1)));
        self.refuse(RequestFlaw::UnknownField, unknown, UNKNOWN_MEMBER);
        for (key, shape) in members {
            let (name, is_required) = split(key);
            self.refuse(
                RequestFlaw::WrongType,
                with(name, Some(wrong_value(shape))),
                name,
            );
            if is_required {
                let mentions = format!("{name} in body is required");
                self.refuse(RequestFlaw::MissingField, with(name, None), &mentions);
                self.refuse(
                    RequestFlaw::MissingField,
                    with(name, Some(Value::Null)),
                    &mentions,
                );
            }
            let (record, is_list) = match shape.split_at(1) {
                ("@", record) => (record, false),
                ("[", item) => match item.trim_end_matches(']').strip_prefix('@') {
                    Some(record) => (record, true),
                    None => continue,
                },
                _ => continue,
            };
            let members = &self.description.bodies[record];
            let index = if is_list { "/0" } else { "" };
            let pointer = format!("{pointer}/{name}{index}");
            // Members that the valid body has not are added with every required member.
            let found = body.pointer(&pointer).cloned();
            let inner = found.unwrap_or_else(|| example(members));
            let value = if is_list { json!([inner]) } else { inner };
            self.record(&with(name, Some(value)), &pointer, members);
        }
    }

    fn refuse(&mut self, flaw: RequestFlaw, body: Value, mentions: &str) {
        self.cases
            .push(refusal(flaw, self.valid.body(body), mentions));
    }
}

/// The record with its required members.
fn example(members: &MemberShapes) -> Value {
    let required = members.iter().filter_map(|(key, shape)| {
        let (name, is_required) = split(key);
        is_required.then(|| (name.to_owned(), right_value(shape)))
    });
    Value::Object(required.collect())
}

fn wrong_value(shape: &str) -> Value {
    match shape.as_bytes()[0] {
        b'=' => json!("one of nothing"),
        _ if shape == "string" => json!(7),
        _ => json!("x"),
    }
}

fn right_value(shape: &str) -> Value {
    match shape {
        "string" => json!("x"),
        "uuid" => json!(UNKNOWN_ID),
        "boolean" => json!(true),
        "integer" => json!(1),
        set => {
            let first = set.strip_prefix('=').and_then(|set| set.split('|').next());
            json!(first.unwrap_or_else(|| panic!("a required member is {set}")))
        }
    }
}
