//! `cargo xtask codegen`: generated files that are checked in. Messages and descriptors of `proto/`, so that no build
//! needs a protobuf compiler, and `docs/limits.md`, which `atoll`'s own tests compare with the programs.

use std::fs;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result};
use prost::Message as _;
use prost_types::FileDescriptorSet;

use crate::cargo::{Profile, build, root};
use crate::command::output;

const CATALOG: Protocol = Protocol {
    file: "registry.proto",
    messages: "crates/catalog/src/api/messages.rs",
};
/// Read by the client of `etcd`.
const ETCD: Protocol = Protocol {
    file: "etcd.proto",
    messages: "crates/etcd/src/messages.rs",
};
/// Of the catalog's protocol, for clients that ask the server for them.
const DESCRIPTORS: &str = "crates/catalog-server/src/grpc/descriptors.bin";

/// Limits of every server; a test of `atoll` finds stale ones, since it has the programs.
pub(crate) const LIMITS: &str = "docs/limits.md";
/// The services of `atoll serve`.
const SERVERS: [&str; 6] = [
    "api-server",
    "image-service",
    "registry",
    "catalog-server",
    "webui",
    "proxy",
];
const LIMITS_HEAD: &str = "\
# Limits

Bounds on the cost of clients, and the response above them, with default settings. \
`<server> settings --limits` prints the table of a server with its own settings. `cargo xtask codegen` writes this file.

A client address is the address of the connection, or the one that a trusted proxy reports (`TRUSTED_PROXIES`); \
IPv6 addresses count by /64. An owner is a user of an issuer of tokens, or the user's organisation with `ENABLE_ORG_TENANCY`; \
without an issuer there is one owner, who has the whole.

Share: the part of a bound of a whole server that one client address, owner or user may take, or why it has none.
";

/// A file of `proto/`, and the file of its messages.
struct Protocol {
    file: &'static str,
    messages: &'static str,
}

/// A file and its expected content.
struct Generated {
    path: &'static str,
    content: Vec<u8>,
}

/// Writes all generated files.
pub(crate) fn run() -> Result<ExitCode> {
    let limits = Generated {
        path: LIMITS,
        content: limits()?.into_bytes(),
    };
    for Generated { path, content } in generate()?.into_iter().chain([limits]) {
        fs::write(root().join(path), content).with_context(|| format!("writing {path}"))?;
        println!("{path}");
    }
    Ok(ExitCode::SUCCESS)
}

/// The limits of every server with its default settings, as the servers themselves print them.
fn limits() -> Result<String> {
    let programs = build(&["atoll"], Profile::Dev)?;
    let mut text = LIMITS_HEAD.to_owned();
    for server in SERVERS {
        let mut command = Command::new(programs.join("atoll"));
        // No variable of the caller's environment may act as a setting.
        command.env_clear();
        let table = output(command.args(["serve", server, "settings", "--limits"]))?;
        let table = String::from_utf8(table).context("a table of limits is not UTF-8")?;
        text.extend(["\n## ", server, "\n\n", &table]);
    }
    Ok(text)
}

/// Files of `proto/` whose content differs from the output of [`run`].
pub(crate) fn stale() -> Result<Vec<String>> {
    let is_stale = |one: &Generated| {
        let found = fs::read(root().join(one.path));
        !found.is_ok_and(|found| found == one.content)
    };
    let stale = generate()?.into_iter().filter(is_stale);
    Ok(stale.map(|one| one.path.to_owned()).collect())
}

fn generate() -> Result<[Generated; 3]> {
    let catalog = CATALOG.compile()?;
    // Without comments and positions: clients want names and numbers.
    let mut lean = catalog.clone();
    for file in &mut lean.file {
        file.source_code_info = None;
    }
    Ok([
        CATALOG.generate(catalog)?,
        ETCD.generate(ETCD.compile()?)?,
        Generated {
            path: DESCRIPTORS,
            content: lean.encode_to_vec(),
        },
    ])
}

impl Protocol {
    fn compile(&self) -> Result<FileDescriptorSet> {
        let folder = root().join("proto");
        Ok(protox::compile([folder.join(self.file)], [&folder])?)
    }

    /// Its messages, without those of files that it imports.
    fn generate(&self, descriptors: FileDescriptorSet) -> Result<Generated> {
        let mut generator = prost_build::Config::new();
        generator.default_package_filename("_");
        let files = descriptors.file.into_iter();
        let own = files.filter(|file| file.name().ends_with(self.file));
        let requests = own.map(|file| {
            (
                prost_build::Module::from_protobuf_package_name(file.package()),
                file,
            )
        });
        let modules = generator.generate(requests.collect())?;
        let messages = modules.into_values().next();
        let messages = messages.context("nothing was generated")?;
        Ok(Generated {
            path: self.messages,
            content: messages.into_bytes(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_have_the_names_and_numbers_of_the_protocol() {
        let [catalog, etcd, descriptors] = generate().unwrap();
        let text = String::from_utf8(catalog.content).unwrap();
        assert!(text.contains("pub struct ChannelEntry"), "{text}");
        assert!(text.contains("pub csv_name"), "{text}");
        let text = String::from_utf8(etcd.content).unwrap();
        assert!(text.contains("pub struct MemberListRequest"), "{text}");
        assert!(!descriptors.content.is_empty());
    }
}
