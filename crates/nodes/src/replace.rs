//! Replacement of a control node: a plan, a journal, and steps that can be stopped after each entry.

mod csr;
mod template;

pub use csr::{
    CertificateRequest, CsrApproval, CsrKind, CsrRefusal, ExpectedNode, MAX_CSR_BYTES, MAX_CSRS,
    decide_csrs,
};
pub use template::record_template;
