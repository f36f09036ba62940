//! Log collection.
//!
//! Source: the installer API description (wire names, presence rules).

use crate::wire::wire_enum;
use serde::{Deserialize, Serialize};

/// `logs-progress-params` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogsProgressParams {
    pub logs_state: LogsState,
}

wire_enum! {
    /// Values of `LogsState`.
    pub enum LogsState {
        Requested = "requested",
        Collecting = "collecting",
        Completed = "completed",
        Timeout = "timeout",
        Unset = "",
    }
}

wire_enum! {
    /// Values of `LogsType`.
    pub enum LogsType {
        Host = "host",
        Controller = "controller",
        All = "all",
        Unset = "",
    }
}
