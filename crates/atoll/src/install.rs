//! `atoll install`: a bundle becomes a running pod, without any network.
//!
//! Everything is checked before the first byte is written: checksums and signature, architecture, space, ports, answers.
//! After that each step is idempotent, so that an interrupted installation is continued by the same command. A newer
//! bundle is an upgrade, after a backup; an older one a return to the backup that the upgrade made.

mod answers;
mod archives;
mod checks;
mod content;
mod images;
mod local_registry;
mod offer;
mod record;
mod space;
mod version_change;

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use ::bundle::BundleFile;
use ::bundle::assemble::{BOOT_IMAGE_LIST, PROGRAM};
use ::mirror::archive::Verifier;
use clap::Args;
use service::{Error, ResultExt as _};
use sha2::{Digest as _, Sha256};

use crate::bundle;
use crate::pod::compose::ComposeProject;
use crate::pod::init::{self, PodInitArgs};
use crate::pod::{lifecycle, proxy_settings};
use crate::terminal;
use answers::Answers;
use archives::BundledSet;
use local_registry::LocalRegistry;
use offer::OfferedVersions;
use record::InstallRecord;
use space::SpaceNeeds;

/// Units: bytes. Between two updates of the progress line.
const PROGRESS_BYTES: u64 = 64 << 20;
const SETTINGS: &str = ".env";
const REGISTRY: &str = "registry";
const RELEASE_IMAGES: &str = "RELEASE_IMAGES";

/// Arguments of `atoll install`.
#[derive(Debug, Clone, Args)]
pub(crate) struct InstallArgs {
    /// File of `atoll bundle`
    bundle: PathBuf,
    /// Folder of the pod, which is made
    #[arg(long, value_name = "DIR", default_value = "pod")]
    dir: PathBuf,
    /// Answers to all questions, as YAML: `host: NAME`, and `settings:` with variables of .env
    #[arg(long, value_name = "FILE")]
    answers: Option<PathBuf>,
    /// Host name or IP address of this host for users and booting machines
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// Public key that has to have signed the bundle: FILE.pub of `atoll mirror key FILE`
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Only load the images of the services into podman
    #[arg(long)]
    only_load: bool,
    /// Require log-ins: sets AUTH_TYPE=local with new keys, and prints a link that logs the administrator in once
    #[arg(long)]
    login: bool,
}

/// Installs a bundle.
///
/// Errors: a damaged or foreign bundle, too little space, no podman, a service that does not start.
pub(crate) fn run(arguments: &InstallArgs) -> Result<(), Error> {
    let bundle = open(arguments)?;
    let storage = checks::PodmanStorage::find()?;
    if arguments.only_load {
        SpaceNeeds::of_images(&bundle, &storage).check()?;
        verify(&bundle)?;
        return images::load(&bundle, Path::new("."));
    }
    let dir = std::path::absolute(&arguments.dir)
        .doing(|| format!("reading {}", arguments.dir.display()))?;
    checks::folder_name(&dir)?;
    let installed = InstallRecord::read(&dir)?;
    let change = version_change::VersionChange::of(installed.as_ref(), bundle.manifest(), &dir)?;
    let answers = Answers::collect(arguments, installed.as_ref())?;
    let domain = answers.domain()?;
    checks::ports(&dir, &answers)?;
    let sets = archives::sets(&bundle);
    SpaceNeeds::of(&bundle, &sets, &storage, &dir, &change)?.check()?;
    verify(&bundle)?;
    // From here on files are written.
    hand_over(&bundle, &dir)?;
    change.before(&dir, installed.as_ref(), &bundle.manifest().version)?;
    images::load(&bundle, &dir)?;
    change.restore(&dir)?;
    // The restore has replaced the folder.
    extract_program(&bundle, &dir)?;
    let pod = PodInitArgs::new(answers.host.clone(), domain, dir.clone());
    init::prepare(&pod.with_login(arguments.login))?;
    proxy_settings::set(&dir, &answers.settings)?;
    // The answers may have another port of the registry.
    init::complete_logins(&dir, &answers.host)?;
    content::boot_images(&bundle, &dir)?;
    // Another registry than the recorded one.
    let recorded = installed.as_ref().filter(|_| !change.restores());
    let offered = fill(&bundle, &sets, &dir, &answers, recorded)?;
    let project = ComposeProject::read(&dir)?;
    let services: Vec<&str> = project.active().collect();
    lifecycle::start(&project, &services)?;
    lifecycle::wait_ready(&project, &services)?;
    let record = InstallRecord::new(bundle.manifest(), &answers.host, &sets, offered);
    record.write(&dir)?;
    if let Some(text) = bundle::elsewhere(bundle.manifest()) {
        terminal::print(&text);
    }
    terminal::print(&summary(
        &project,
        &dir,
        &answers.host,
        &bundle.manifest().version,
    ));
    terminal::print(&init::access(&dir, arguments.login)?);
    Ok(())
}

/// Fills the local registry, and the settings with the versions that it and the bundle offer.
fn fill(
    bundle: &BundleFile,
    sets: &[BundledSet],
    dir: &Path,
    answers: &Answers,
    recorded: Option<&InstallRecord>,
) -> Result<OfferedVersions, Error> {
    let project = ComposeProject::read(dir)?;
    let previous = recorded.map_or_else(OfferedVersions::default, |it| it.offered.clone());
    if !content::has_any(bundle) && bundle.member(BOOT_IMAGE_LIST).is_none() {
        return Ok(previous);
    }
    let registry = LocalRegistry::of(&project, dir, &answers.host)?;
    lifecycle::start(&project, &[REGISTRY])?;
    lifecycle::wait_ready(&project, &[REGISTRY])?;
    content::push_images(bundle, &registry)?;
    archives::publish(sets, &registry, dir, recorded)?;
    let offered = OfferedVersions {
        boot_images: offer::boot_images(bundle, sets, &registry)?,
        releases: offer::releases(&registry)?,
    };
    offer::write(&offered, &previous, answers, &project, dir)?;
    Ok(offered.after(&previous))
}

fn open(arguments: &InstallArgs) -> Result<BundleFile, Error> {
    let file = &arguments.bundle;
    let key = arguments.key.as_deref().map(key).transpose()?;
    let bundle = BundleFile::open(file, key.as_ref());
    let bundle = bundle.map_err(|e| e.chain()).doing("reading the bundle")?;
    let manifest = bundle.manifest();
    if manifest.architecture != std::env::consts::ARCH {
        let reason = format!(
            "it is for {}, and this host is {}",
            manifest.architecture,
            std::env::consts::ARCH
        );
        return Err(Error::new(format!("reading {}", file.display()), reason));
    }
    let signed = match (bundle.is_signed(), key.is_some()) {
        (true, true) => "signature verified",
        (true, false) => "signed; --key verifies it",
        (false, _) => "not signed",
    };
    terminal::print(&format!(
        "{}: version {} for {}, {}, {} images, {signed}.",
        file.display(),
        manifest.version,
        manifest.architecture,
        terminal::mib(manifest.size),
        manifest.images.len(),
    ));
    Ok(bundle)
}

fn key(path: &Path) -> Result<Verifier, Error> {
    let doing = || format!("reading {}", path.display());
    let pem = std::fs::read(path).doing(doing)?;
    Verifier::from_pem(&pem).doing(doing)
}

fn verify(bundle: &BundleFile) -> Result<(), Error> {
    let whole = bundle.manifest().size;
    let mut shown = 0;
    let mut progress = |read: u64| {
        if read >= shown + PROGRESS_BYTES {
            shown = read;
            let (read, whole) = (terminal::mib(read), terminal::mib(whole));
            terminal::progress(&format!("verifying: {read} of {whole}"));
        }
    };
    let verified = bundle.verify(&mut progress);
    terminal::clear_progress();
    verified
        .map_err(|e| e.chain())
        .doing("verifying the bundle")
}

/// Keeps the program of the bundle in the folder, for later commands; returns its path.
fn extract_program(bundle: &BundleFile, dir: &Path) -> Result<PathBuf, Error> {
    let doing = "extracting the program";
    let member = bundle.member(PROGRAM);
    let member = member.ok_or_else(|| Error::new(doing, "it is not in the bundle"))?;
    crate::file::folder(dir, 0o755)?;
    let program = dir.join(PROGRAM);
    if sum(&program).as_ref() != Some(&member.sha256) {
        bundle
            .extract(member, &program)
            .map_err(|e| e.chain())
            .doing(doing)?;
    }
    Ok(program)
}

/// Continues with the program of the bundle, when this is another one: a version is installed by its own program.
fn hand_over(bundle: &BundleFile, dir: &Path) -> Result<(), Error> {
    let program = extract_program(bundle, dir)?;
    let own = sum(Path::new("/proc/self/exe"));
    if own.is_some() && own == bundle.member(PROGRAM).map(|it| it.sha256.clone()) {
        return Ok(());
    }
    terminal::print("Continuing with the program of the bundle.");
    let mut command = Command::new(&program);
    command.args(std::env::args_os().skip(1));
    // Another version may have another default.
    let names_dir = |it: std::ffi::OsString| it.to_string_lossy().starts_with("--dir");
    if !std::env::args_os().any(names_dir) {
        command.arg("--dir").arg(dir);
    }
    let error = command.exec();
    Err(Error::new(format!("running {}", program.display()), error))
}

/// SHA-256 of a file, in hexadecimal.
fn sum(path: &Path) -> Option<String> {
    let mut sha256 = Sha256::new();
    std::io::copy(&mut std::fs::File::open(path).ok()?, &mut sha256).ok()?;
    Some(hex::encode(sha256.finalize()))
}

fn summary(project: &ComposeProject, dir: &Path, host: &str, version: &str) -> String {
    let url = |name: &str, default: &str| {
        let published = project.setting(name).unwrap_or(default);
        let port = published.rsplit(':').next().unwrap_or(published).to_owned();
        format!("{}:{port}", init::in_url(host))
    };
    let is_empty = |name: &str| project.setting(name).is_none_or(|list| list == "[]");
    let boot_images = is_empty("OS_IMAGES") && project.setting("OS_IMAGES_FILE").is_none();
    let releases = is_empty(RELEASE_IMAGES);
    let missing: Vec<&str> = [(boot_images, "boot images"), (releases, "releases")]
        .into_iter()
        .filter_map(|(is_missing, name)| is_missing.then_some(name))
        .collect();
    let missing = if missing.is_empty() {
        String::new()
    } else {
        format!(
            "\nBefore clusters can be installed: name {} in {}, then `{} pod up --dir {}`.",
            missing.join(" and "),
            dir.join(SETTINGS).display(),
            dir.join(PROGRAM).display(),
            dir.display(),
        )
    };
    format!(
        "Version {version} is ready. Open http://{}\n\
         API: http://{}/api/assisted-install/v2, registry: {}, password in {}.{missing}",
        url("PUBLISH_WEBUI", "8080"),
        url("PUBLISH_API", "8090"),
        url("PUBLISH_REGISTRY", "5000"),
        dir.join("secrets/registry-password").display(),
    )
}
