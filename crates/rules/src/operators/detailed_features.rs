//! Support levels of features, operators apart.

use model::Error;
use model::support::{DetailedSupportedFeatures, OperatorFeature};

use super::{OPERATORS, dependency_features};
use crate::operators::support::{self, SupportQuery};

/// Features and, with their dependencies, operators.
///
/// Errors: `Invalid` on `cpu_architecture` or `platform_type` – the version does not support it.
pub fn detailed_features(query: &SupportQuery) -> Result<DetailedSupportedFeatures, Error> {
    query.check()?;
    let mut response = DetailedSupportedFeatures::default();
    for feature in support::features(query) {
        match OPERATORS.iter().find(|one| one.feature == feature.id) {
            Some(operator) => response.operators.push(OperatorFeature {
                feature,
                name: operator.name.to_owned(),
                dependencies: dependency_features(operator),
            }),
            None => response.features.push(feature),
        }
    }
    Ok(response)
}
