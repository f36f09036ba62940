//! `cargo xtask codegen`: what is made from `proto/` and checked in, so that no build needs a compiler of protocols.

use std::fs;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use prost::Message as _;
use prost_types::FileDescriptorSet;

use crate::cargo::root;

const PROTO: &str = "registry.proto";
const MESSAGES: &str = "crates/catalog/src/api/messages.rs";
const DESCRIPTORS: &str = "crates/catalog-server/src/grpc/descriptors.bin";

/// A file and what has to be in it.
struct Generated {
    path: &'static str,
    content: Vec<u8>,
}

/// Writes everything.
pub(crate) fn run() -> Result<ExitCode> {
    for Generated { path, content } in generate()? {
        fs::write(root().join(path), content).with_context(|| format!("writing {path}"))?;
        println!("{path}");
    }
    Ok(ExitCode::SUCCESS)
}

/// Files that hold something else than [`run`] would write.
pub(crate) fn stale() -> Result<Vec<String>> {
    let is_stale = |one: &Generated| {
        let found = fs::read(root().join(one.path));
        !found.is_ok_and(|found| found == one.content)
    };
    let stale = generate()?.into_iter().filter(is_stale);
    Ok(stale.map(|one| one.path.to_owned()).collect())
}

fn generate() -> Result<[Generated; 2]> {
    let folder = root().join("proto");
    let descriptors = protox::compile([folder.join(PROTO)], [&folder])?;
    // Without comments and positions: clients want names and numbers.
    let mut lean = descriptors.clone();
    for file in &mut lean.file {
        file.source_code_info = None;
    }
    let messages = messages(descriptors)?;
    Ok([
        Generated {
            path: MESSAGES,
            content: messages.into_bytes(),
        },
        Generated {
            path: DESCRIPTORS,
            content: lean.encode_to_vec(),
        },
    ])
}

fn messages(descriptors: FileDescriptorSet) -> Result<String> {
    let mut generator = prost_build::Config::new();
    generator.default_package_filename("_");
    let files = descriptors.file.into_iter();
    let own = files.filter(|file| file.name().ends_with(PROTO));
    let requests = own.map(|file| {
        (
            prost_build::Module::from_protobuf_package_name(file.package()),
            file,
        )
    });
    let modules = generator.generate(requests.collect())?;
    modules
        .into_values()
        .next()
        .context("nothing was generated")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_have_the_names_and_numbers_of_the_protocol() {
        let [messages, descriptors] = generate().unwrap();
        let text = String::from_utf8(messages.content).unwrap();
        assert!(text.contains("pub struct ChannelEntry"), "{text}");
        assert!(text.contains("pub csv_name"), "{text}");
        assert!(!descriptors.content.is_empty());
    }
}
