//! Machine, with the provider's part for hosts with BMCs.

use super::{CUSTOM_DEPLOY, METADATA, ObjectSchema, SECRET_REFERENCE, any, object, of, text};

pub(crate) static MACHINE: ObjectSchema = of(&[
    text("apiVersion").required(),
    text("kind").required(),
    object("metadata", &METADATA).required(),
    object("spec", &SPEC).required(),
    any("status"),
]);

static SPEC: ObjectSchema = of(&[
    text("authoritativeAPI"),
    any("lifecycleHooks"),
    any("metadata"),
    text("providerID"),
    object("providerSpec", &PROVIDER_SPEC).required(),
    any("taints"),
]);

static PROVIDER_SPEC: ObjectSchema = of(&[object("value", &PROVIDER).required()]);

static PROVIDER: ObjectSchema = of(&[
    text("apiVersion").required(),
    object("customDeploy", &CUSTOM_DEPLOY),
    any("hostSelector"),
    object("image", &IMAGE),
    text("kind").required(),
    any("metadata"),
    object("userData", &SECRET_REFERENCE),
]);

static IMAGE: ObjectSchema = of(&[text("checksum"), text("url")]);
