//! Messages of the pipe: JSON-RPC 2.0, one message per line.

use framegauge_drivers::OsError;
use framegauge_drivers::rack::requirements::Requirement;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// The version of the pipe's protocol.
pub const PROTOCOL: u64 = 1;

/// Bytes of a line: far more than any request takes.
pub const LONGEST_LINE: u64 = 16 << 20;

/// A request.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// Always "2.0".
    pub jsonrpc: String,
    /// The caller's number for it.
    pub id: u64,
    /// What to do.
    pub method: String,
    /// Its parameters.
    #[serde(default)]
    pub params: Value,
}

/// A failure as the pipe reports it.
#[derive(Debug, Clone, PartialEq)]
pub struct Failure {
    /// See the table in `pipe/README.md`.
    pub code: i64,
    /// One line that says what to do.
    pub message: String,
    /// Details for machines.
    pub data: Value,
}

/// What a command answers.
pub type Answer = Result<Value, Failure>;

impl Failure {
    fn new(code: i64, message: impl Into<String>, data: Value) -> Self {
        Self { code, message: message.into(), data }
    }

    /// The line is no JSON.
    pub fn parse(error: &serde_json::Error) -> Self {
        Self::new(-32700, format!("not JSON: {error}"), json!({"column": error.column()}))
    }

    /// The JSON is no request.
    pub fn invalid_request(message: impl Into<String>) -> Self {
        Self::new(-32600, message, json!({}))
    }

    /// No such method.
    pub fn unknown_method(method: &str, role: &str) -> Self {
        Self::new(-32601, format!("a {role} agent has no method {method:?}"), json!({"method": method}))
    }

    /// The parameters do not fit.
    pub fn invalid_params(method: &str, message: impl std::fmt::Display) -> Self {
        Self::new(-32602, format!("{method}: {message}"), json!({"method": method}))
    }

    /// The two ends speak different versions.
    pub fn protocol(client: u64) -> Self {
        let message =
            format!("this agent speaks protocol {PROTOCOL}, the client {client}; use matching versions");
        Self::new(-32001, message, json!({"agent_protocol": PROTOCOL, "client_protocol": client}))
    }

    /// The machine lacks something.
    pub fn missing(requirements: &[Requirement]) -> Self {
        let names: Vec<&str> = requirements.iter().map(|requirement| requirement.name).collect();
        let list: Vec<Value> = requirements.iter().map(requirement).collect();
        Self::new(-32002, format!("missing: {}", names.join(", ")), json!({"missing": list}))
    }

    /// The kernel or device cannot honour it.
    pub fn refused(subject: &str, amount: impl Into<Value>, limit: impl Into<Value>) -> Self {
        let (amount, limit) = (amount.into(), limit.into());
        let message = format!("{subject}: asked for {amount}, the limit is {limit}");
        Self::new(-32003, message, json!({"what": subject, "asked": amount, "limit": limit}))
    }

    /// Asked to stop.
    pub fn cancelled() -> Self {
        Self::new(-32005, "cancelled", json!({}))
    }

    /// Not now.
    pub fn state(text: impl Into<String>) -> Self {
        let text = text.into();
        Self::new(-32006, text.clone(), json!({"what": text}))
    }

    /// The other end is gone.
    pub fn lost(text: impl Into<String>) -> Self {
        let text = text.into();
        Self::new(-32007, text.clone(), json!({"what": text}))
    }

    /// As a JSON-RPC error object.
    pub fn value(&self) -> Value {
        json!({"code": self.code, "message": self.message, "data": self.data})
    }

    /// From a JSON-RPC error object of a child.
    pub fn from_value(error: &Value) -> Self {
        Self {
            code: error["code"].as_i64().unwrap_or(-32007),
            message: error["message"].as_str().unwrap_or("an error without a message").to_string(),
            data: error["data"].clone(),
        }
    }
}

impl From<OsError> for Failure {
    fn from(error: OsError) -> Self {
        let (operation, source) = (error.operation.as_str(), error.source.to_string());
        let data = json!({"operation": operation, "errno": error.code(), "error": source});
        match error.code() {
            125 => Self::cancelled(),
            // Reset, and written to after it: the other end is gone.
            104 | 32 => Self::new(-32007, error.to_string(), json!({"what": operation})),
            _ => Self::new(-32004, error.to_string(), data),
        }
    }
}

/// A requirement as the pipe shows it.
pub fn requirement(requirement: &Requirement) -> Value {
    json!({"name": requirement.name, "needed_for": requirement.needed_for,
           "found": requirement.found, "remedy": requirement.remedy})
}

/// Reads parameters; every unknown key is an error.
pub fn params<T: DeserializeOwned>(request: &Request) -> Result<T, Failure> {
    let value = if request.params.is_null() { json!({}) } else { request.params.clone() };
    serde_json::from_value(value).map_err(|error| Failure::invalid_params(&request.method, error))
}

/// No parameters.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Nothing {}

/// Reads a request from a line; a failure comes with the id to answer to, where there is one.
pub fn read(line: &[u8]) -> Result<Request, (Option<u64>, Failure)> {
    if line.len() as u64 > LONGEST_LINE {
        let failure = Failure::invalid_request(format!("found a line of more than {LONGEST_LINE} bytes"));
        return Err((None, failure));
    }
    let value: Value = serde_json::from_slice(line).map_err(|error| (None, Failure::parse(&error)))?;
    let id = value["id"].as_u64();
    let request: Request = serde_json::from_value(value)
        .map_err(|error| (id, Failure::invalid_request(format!("not a request: {error}"))))?;
    if request.jsonrpc != "2.0" {
        return Err((id, Failure::invalid_request("not a request: jsonrpc must be \"2.0\"")));
    }
    Ok(request)
}
