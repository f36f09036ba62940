//! Loader and libraries of a dynamically linked installer, extracted from its own image.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cluster_files::make_folder;
use oci::Reference;
use oci_client::image::{FileSelection, FileTree};
use sandbox::ProgramOutcome;

use crate::confinement::{self, Confinement};
use crate::failure::{PreparationFailure, blocking};
use crate::installer_cache;
use crate::launch::{LIBRARIES, Launch, OPENSSL_CONFIG, PROVIDERS};
use crate::registry::{Images, ScratchFolder};

/// Library folders of an image, in search order; the loader's own folder follows.
const FOLDERS: [&str; 2] = ["lib64", "usr/lib64"];
/// OpenSSL's configuration in an image; without it no FIPS provider is loaded.
const OPENSSL_CONFIG_PATH: &str = "etc/pki/tls/openssl.cnf";
/// Limit of extracted files; an installer image has some 500 libraries, each with a link or two.
const LIMIT_FILES: usize = 10_000;
/// Limit of their total size; the libraries of an installer image have some 150 MiB. Units: bytes.
const LIMIT_BYTES: u64 = 2 << 30;
/// The loader's standard error in an error is truncated to this length. Units: bytes.
const STDERR_BYTES: usize = 500;

/// Extracts the loader `interpreter` and the libraries of `program` from `image`; `path` is its path in the image.
///
/// Errors: the files that the image lacks.
pub(crate) async fn extract(
    confinement: &Confinement,
    images: &Images,
    image: &Reference,
    path: &str,
    program: PathBuf,
    interpreter: &str,
) -> Result<(), PreparationFailure> {
    let folder = program.parent().unwrap_or(&program).to_owned();
    let scratch = ScratchFolder::make(&folder).await?;
    let folders = folders(interpreter);
    let selection = selection(folders.clone());
    let tree = images
        .tree(image, &selection, &scratch.0)
        .await
        .map_err(|error| {
            PreparationFailure::new(format!(
                "the libraries of {path} cannot be extracted from image {image}: {}",
                error.chain()
            ))
        })?;
    let libraries = folder.join(LIBRARIES);
    let loader = interpreter.to_owned();
    let is_complete = blocking(move || {
        install_libraries(&tree, &loader, &folders, &libraries).map_err(|error| {
            PreparationFailure::new(format!(
                "{} cannot be written: {error}",
                libraries.display()
            ))
        })
    })
    .await?;
    if !is_complete {
        return Err(PreparationFailure::new(format!(
            "{path} of image {image} is dynamically linked and needs the loader {interpreter}, which the image lacks"
        )));
    }
    let readable = folder.clone();
    blocking(move || {
        installer_cache::make_readable(&readable).map_err(|error| {
            PreparationFailure::new(format!("{} cannot be written: {error}", readable.display()))
        })
    })
    .await?;
    check(confinement, program, interpreter)
        .await
        .map_err(|why| {
            PreparationFailure::new(format!("{path} of image {image} cannot be run: {why}"))
        })
}

/// Library folders of a program with this loader, in search order.
fn folders(interpreter: &str) -> Vec<String> {
    let path = interpreter.trim_start_matches('/');
    let own = path.rsplit_once('/').map(|(folder, _)| folder.to_owned());
    // Where `/lib` is a symlink to `/usr/lib`, layers have files only under the latter.
    let linked = own.iter().map(|folder| format!("usr/{folder}"));
    let mut seen = BTreeSet::new();
    FOLDERS
        .into_iter()
        .map(str::to_owned)
        .chain(own.clone())
        .chain(linked)
        .filter(|folder| seen.insert(folder.clone()))
        .collect()
}

fn selection(folders: Vec<String>) -> FileSelection {
    let is_wanted = move |path: &str| {
        let Some((folder, name)) = path.rsplit_once('/') else {
            return false;
        };
        let is_in = |folder: &str| folders.iter().any(|known| known == folder);
        let providers = folder.strip_suffix(PROVIDERS);
        path == OPENSSL_CONFIG_PATH
            || is_in(folder) && is_library(name)
            || providers.is_some_and(|above| is_in(above.trim_end_matches('/')))
                && is_provider(name)
    };
    FileSelection {
        is_wanted: Arc::new(is_wanted),
        limit_files: LIMIT_FILES,
        limit_bytes: LIMIT_BYTES,
    }
}

/// `libcrypto.so.3`, `ld-linux-x86-64.so.2`, `ld64.so.1`; and `.libcrypto.so.1.1.hmac`, the checksum for the self-test
/// of OpenSSL 1.1 in FIPS mode.
fn is_library(name: &str) -> bool {
    let is_code = (name.starts_with("lib") || name.starts_with("ld")) && name.contains(".so");
    is_code || name.starts_with(".lib") && name.contains(".so") && ends_in(name, "hmac")
}

fn is_provider(name: &str) -> bool {
    ends_in(name, "so")
}

fn ends_in(name: &str, extension: &str) -> bool {
    Path::new(name)
        .extension()
        .is_some_and(|found| found == extension)
}

/// Links loader and libraries into `libraries`, each under all its names; false if the loader is missing.
fn install_libraries(
    tree: &FileTree,
    interpreter: &str,
    folders: &[String],
    libraries: &Path,
) -> io::Result<bool> {
    let Some(loader) = tree.file(interpreter) else {
        return Ok(false);
    };
    let providers = libraries.join(PROVIDERS);
    make_folder(libraries)?;
    let name = interpreter.rsplit('/').next().unwrap_or(interpreter);
    let own = libraries.join(name);
    put(loader, &own)?;
    fs::set_permissions(own, fs::Permissions::from_mode(0o500))?;
    for folder in folders {
        put_all(tree, folder, is_library, libraries)?;
        put_all(
            tree,
            &format!("{folder}/{PROVIDERS}"),
            is_provider,
            &providers,
        )?;
    }
    if let Some(config) = tree.file(OPENSSL_CONFIG_PATH) {
        put(config, &libraries.join(OPENSSL_CONFIG))?;
    }
    Ok(true)
}

fn put_all(
    tree: &FileTree,
    folder: &str,
    is_wanted: impl Fn(&str) -> bool,
    into: &Path,
) -> io::Result<()> {
    for name in tree.names_in(folder).filter(|name| is_wanted(name)) {
        if let Some(file) = tree.file(&format!("{folder}/{name}")) {
            make_folder(into)?;
            put(file, &into.join(name))?;
        }
    }
    Ok(())
}

/// Hard-links `file`, unless the name exists; copies it if the file system has no hard links.
fn put(file: &Path, name: &Path) -> io::Result<()> {
    match fs::hard_link(file, name) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(_) => fs::copy(file, name).map(drop),
        Ok(()) => Ok(()),
    }
}

/// Lists the libraries with the loader, and checks that none is missing.
async fn check(
    confinement: &Confinement,
    program: PathBuf,
    interpreter: &str,
) -> Result<(), String> {
    let launch = Launch::new(program, Some(interpreter));
    let Some(command) = launch.list_command() else {
        return Ok(());
    };
    let folder = launch.folder();
    // Beside the program's folder, which is read-only for the loader.
    let beside = ScratchFolder::make(folder.parent().unwrap_or(&folder))
        .await
        .map_err(|failure| failure.reason)?;
    let [work, scratch] = ["work", "tmp"].map(|name| beside.0.join(name));
    for folder in [&work, &scratch] {
        make_folder(folder)
            .map_err(|error| format!("the folder of its loader cannot be created: {error}"))?;
    }
    let program = confinement::ConfinedProgram {
        command,
        launch: &launch,
        environment: Vec::new(),
        work: &work,
        scratch: &scratch,
    };
    // All lines are kept: any of them may be the missing library.
    let run = confinement.run(program, LIMIT_FILES, None).await;
    let run = run.map_err(|error| format!("its loader cannot be started: {error}"))?;
    let Some(run) = run else {
        return Err("its loader did not exit".to_owned());
    };
    let mut missing = missing(&run.stdout, &launch.libraries(), interpreter);
    missing.extend(run.stderr.iter().filter_map(|line| not_opened(line)));
    if !missing.is_empty() {
        let names = missing.join(", ");
        return Err(format!("the image lacks its libraries: {names}"));
    }
    if run.outcome == ProgramOutcome::Exited(0) {
        return Ok(());
    }
    let mut stderr = run.stderr.join("; ");
    stderr.truncate(stderr.floor_char_boundary(STDERR_BYTES));
    Err(format!("its loader failed ({}): {stderr}", run.outcome))
}

/// Libraries in a loader's list (`name => path (address)`) that are not in `libraries`: missing, or found on this
/// machine by chance. The loader's own line is ignored, as its form differs between loaders.
fn missing(lines: &[String], libraries: &Path, loader: &str) -> Vec<String> {
    let loader = Path::new(loader).file_name();
    let needed = lines.iter().filter_map(|line| line.split_once(" => "));
    needed
        .map(|(name, found)| (name.trim(), found))
        .filter(|(name, _)| Path::new(name).file_name() != loader)
        .filter(|(_, found)| !Path::new(found).starts_with(libraries))
        .map(|(name, _)| name.to_owned())
        .collect()
}

/// The library in a loader's error message.
fn not_opened(line: &str) -> Option<String> {
    let (_, rest) = line.split_once("error while loading shared libraries: ")?;
    let (name, _) = rest.split_once(": cannot open shared object file")?;
    Some(name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output_tail::tail;

    #[test]
    fn libraries_are_selected_by_folder_and_name() {
        let selection = selection(folders("/lib/ld64.so.1"));
        for path in [
            "lib64/libc.so.6",
            "usr/lib64/libvirt.so.0.8000.0",
            "usr/lib/ld64.so.1",
            "lib/ld-2.28.so",
            "usr/lib64/.libcrypto.so.1.1.1k.hmac",
            "usr/lib64/ossl-modules/fips.so",
            "etc/pki/tls/openssl.cnf",
        ] {
            assert!((selection.is_wanted)(path), "{path}");
        }
        for path in [
            "libc.so.6",
            "opt/lib64/libc.so.6",
            "usr/lib64/gconv/libc.so",
            "usr/lib64/python3.so",
            "usr/lib64/libc.a",
            "usr/lib64/.libc.so",
            "usr/lib64/ossl-modules/README",
            "usr/lib64x/ossl-modules/fips.so",
            "ossl-modules/fips.so",
            "etc/pki/tls/private/key.pem",
        ] {
            assert!(!(selection.is_wanted)(path), "{path}");
        }
    }

    #[test]
    fn loader_folder_is_searched_last() {
        assert_eq!(folders("/lib64/ld64.so.2"), ["lib64", "usr/lib64"]);
        let folders = folders("/lib/ld-linux-aarch64.so.1");
        assert_eq!(folders, ["lib64", "usr/lib64", "lib", "usr/lib"]);
    }

    #[tokio::test]
    async fn missing_libraries_are_found_in_long_lists() {
        let found: Vec<String> = (0..500)
            .map(|number| format!("lib{number}.so => /cache/a/lib/lib{number}.so (0x7f)\n"))
            .collect();
        let text = format!("libvirt.so.0 => not found\n{}", found.concat());
        let lines = tail(Some(text.as_bytes()), LIMIT_FILES).await;
        let missing = missing(&lines, Path::new("/cache/a/lib"), "/lib64/ld.so");
        assert_eq!(missing, ["libvirt.so.0"]);
    }

    #[test]
    fn missing_libraries_are_parsed_from_errors() {
        let line = "/a/installer: error while loading shared libraries: libc.so.6: cannot open shared object file: \
                    No such file or directory";
        assert_eq!(not_opened(line).as_deref(), Some("libc.so.6"));
        assert_eq!(not_opened("libc.so.6: version not found"), None);
    }

    #[test]
    fn libraries_outside_the_folder_are_missing() {
        let lines = [
            "\tlinux-vdso.so.1 (0x00007f)",
            "\tlibvirt.so.0 => not found",
            "\tlibc.so.6 => /cache/a/lib/libc.so.6 (0x00007f)",
            "\tlibm.so.6 => /lib64/libm.so.6 (0x00007f)",
            "\tld-linux-x86-64.so.2 => /lib64/ld-linux-x86-64.so.2 (0x00007f)",
        ]
        .map(str::to_owned);
        let missing = missing(
            &lines,
            Path::new("/cache/a/lib"),
            "/lib64/ld-linux-x86-64.so.2",
        );
        assert_eq!(missing, ["libvirt.so.0", "libm.so.6"]);
    }
}
