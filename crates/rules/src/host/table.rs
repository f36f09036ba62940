//! The state machine of a host, in two tables: event rules and refresh rules.

use super::event_rules::EVENT_RULES;
use super::refresh_rules::REFRESH_RULES;
use super::rule::HostRule;

/// Every transition of a host, and every refusal.
pub static TABLE: &[&[HostRule]] = &[EVENT_RULES, REFRESH_RULES];
