//! Operators to be installed with the cluster.

use model::Error;
use model::operators::{BundleCreateParams, OperatorCreateParams};

use super::refusal::refuse;

/// Checks operators and bundles: this service installs the platform alone.
pub fn olm_operators(
    operators: &[OperatorCreateParams],
    bundles: &[BundleCreateParams],
) -> Result<(), Error> {
    if let Some(operator) = operators.first() {
        return Err(refuse(
            "olm_operators",
            &operator.name,
            "is not offered here: install the cluster without it, and add it from the mirrored catalog afterwards",
        ));
    }
    if let Some(bundle) = bundles.first() {
        return Err(refuse(
            "operator_bundles",
            &bundle.id,
            "is not offered here: install the cluster without it, and add its operators from the mirrored catalog afterwards",
        ));
    }
    Ok(())
}
