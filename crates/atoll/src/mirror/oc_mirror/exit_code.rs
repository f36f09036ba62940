//! Exit codes: a bit for each part of an image set with missing images. Source: oc-mirror v2.

use std::process::ExitCode;

use ::mirror::content::{SelectedImage, Why};
use model::mirror_metadata::ImageType;
use service::Error;

use crate::mirror::run::RunError;

const ANYTHING: u8 = 1;
const RELEASE: u8 = 1 << 1;
const OPERATOR: u8 = 1 << 2;
const ADDITIONAL: u8 = 1 << 3;
const HELM: u8 = 1 << 4;

/// Exit code of an error.
pub(super) fn of(error: &Error) -> ExitCode {
    let bits = match error.source.downcast_ref() {
        Some(RunError::Incomplete {
            images,
            charts,
            catalog_parts,
        }) => {
            let charts = if *charts > 0 { HELM } else { 0 };
            let catalogs = if *catalog_parts > 0 { OPERATOR } else { 0 };
            let bits = charts | catalogs;
            images.iter().fold(bits, |bits, it| bits | part(it))
        }
        _ => ANYTHING,
    };
    ExitCode::from(bits)
}

/// Bits of the parts an image belongs to. Archives do not record which images came with charts.
fn part(image: &SelectedImage) -> u8 {
    match image.kind {
        ImageType::OcpRelease | ImageType::OcpReleaseContent | ImageType::CincinnatiGraph => {
            RELEASE
        }
        ImageType::OperatorCatalog
        | ImageType::OperatorBundle
        | ImageType::OperatorRelatedImage => OPERATOR,
        ImageType::HelmImage => HELM,
        ImageType::Generic => image.why.iter().fold(0, |bits, why| {
            bits | match why {
                Why::Chart { .. } => HELM,
                _ => ADDITIONAL,
            }
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(kind: ImageType, why: Why) -> SelectedImage {
        SelectedImage {
            source: "r.io/a/b:1".parse().unwrap(),
            repository: "a/b".parse().unwrap(),
            tag: "1".parse().unwrap(),
            kind,
            why: vec![why],
            platforms: Vec::new(),
            may_be_missing: false,
        }
    }

    #[test]
    fn exit_codes_have_a_bit_per_incomplete_part() {
        let chart = Why::Chart { chart: "c".into() };
        let missing = [
            image(ImageType::OperatorBundle, Why::Archive),
            image(ImageType::Generic, chart),
        ];
        let code = |failure: RunError| of(&Error::new("mirroring", failure));
        for (count, charts, catalog_parts, bits) in [
            (1, 0, 0, OPERATOR),
            (2, 0, 0, OPERATOR | HELM),
            (0, 1, 0, HELM),
            (0, 0, 1, OPERATOR),
        ] {
            let images = missing[..count].to_vec();
            let failure = RunError::Incomplete {
                images,
                charts,
                catalog_parts,
            };
            assert_eq!(code(failure), ExitCode::from(bits));
        }
        let release = image(ImageType::OcpReleaseContent, Why::Archive);
        let extra = image(ImageType::Generic, Why::Additional);
        let (images, charts) = (vec![release, extra], 0);
        let failure = RunError::Incomplete {
            images,
            charts,
            catalog_parts: 0,
        };
        assert_eq!(code(failure), ExitCode::from(10));
        let other = model::Error::conflict("the archive is older");
        assert_eq!(code(other.into()), ExitCode::FAILURE);
    }
}
