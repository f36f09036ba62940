//! Members of the short form.

use crate::LABEL;
use crate::check::schema::FieldKind::{FlagOrName, List, Object, Text, Texts};
use crate::check::schema::{ObjectSchema, choice, field, flag, list, object, of, text, whole};

/// The whole configuration.
pub(super) static NETWORK: ObjectSchema = of(&[
    text("hostname"),
    list("dns", &Text),
    list("search", &Text),
    field("interfaces", List(&Object(&INTERFACE))).required(),
]);

static INTERFACE: ObjectSchema = ObjectSchema {
    elsewhere: &[
        ("ip", "addresses"),
        ("address", "addresses"),
        ("gateway", "gateways"),
        ("ports", "bond.ports"),
        ("mac-address", "mac"),
    ],
    ..of(&[
        text("name").required(),
        text("mac"),
        whole("mtu", 68),
        object("bond", &BOND),
        object("vlan", &VLAN),
        list("addresses", &Text),
        list("gateways", &Text),
        field("dhcp", FlagOrName(LABEL)),
        flag("ipv4"),
        flag("ipv6"),
        list("dns", &Text),
        list("search", &Text),
        list("routes", &Object(&ROUTE)),
    ])
};

/// Source: kernel, Documentation/networking/bonding.rst.
static BOND: ObjectSchema = of(&[
    list("ports", &Text).required(),
    choice(
        "mode",
        &[
            "balance-rr",
            "active-backup",
            "balance-xor",
            "broadcast",
            "802.3ad",
            "balance-tlb",
            "balance-alb",
        ],
    )
    .required(),
    field("options", Texts),
]);

static VLAN: ObjectSchema = of(&[text("parent").required(), whole("id", 1).required()]);

static ROUTE: ObjectSchema = of(&[text("to").required(), text("via"), whole("metric", 0)]);
