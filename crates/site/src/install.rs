//! Installations: a bundle becomes a running pod, without any network.
//!
//! Everything is checked before the first byte is written: checksums and signature, architecture, space, ports, answers.
//! After that each step is idempotent, so that an interrupted installation is continued by the same command. A newer
//! bundle is an upgrade, after a backup; an older one a return to the backup that the upgrade made.

mod answers;
mod archives;
mod boot_images;
mod bundled_set;
mod checks;
mod images;
mod local_registry;
mod program;
mod record;
mod registry_content;
mod registry_port;
mod request;
mod space;
mod version_change;
mod written_entries;

use std::path::{Path, PathBuf};

use ::bundle::{BundleFile, BundleManifest};
use credentials::host_name::in_url;
use mirror::archive::Verifier;
use serde_json::Value;
use service::{Error, ResultExt as _};

use crate::event::{BundleSignature, SiteEvent, SiteObserver, SiteWork};
use crate::pod::compose::ComposeProject;
use crate::pod::folder::{self, NewPod, PodAccess};
use crate::pod::{REGISTRY, lifecycle, proxy_settings};
use answers::Answers;
use bundled_set::BundledSet;
use local_registry::LocalRegistry;
use record::InstallRecord;
use space::SpaceNeeds;
use version_change::VersionChange;

pub use request::{Dialogue, InstallRequest};

/// Units: bytes. Between two reports of a verification.
const PROGRESS_BYTES: u64 = 64 << 20;

/// A pod that was installed.
#[derive(Clone)]
pub struct InstalledPod {
    pub manifest: BundleManifest,
    /// Its folder.
    pub dir: PathBuf,
    /// Host and port of the web UI, the API and the registry.
    pub webui: String,
    pub api: String,
    pub registry: String,
    pub access: PodAccess,
}

/// Installs a bundle; none if only images were loaded.
///
/// | stage | record |
/// |---|---|
/// | 1 check | [`CheckedInstall`]: nothing is written, and everything is known |
/// | 2 hand over | the bundle's own program takes over |
/// | 3 change | images are loaded, the installed version is backed up or replaced by an older one |
/// | 4 prepare | the folder of the pod, with settings and secrets |
/// | 5 fill | the content of the registry, which is on offer |
/// | 6 start | all services are ready |
/// | 7 record | [`InstalledPod`] |
///
/// Errors: a damaged or foreign bundle, too little space, no podman, a service that does not start.
pub fn run(
    request: &InstallRequest,
    dialogue: &dyn Dialogue,
    observe: SiteObserver<'_>,
) -> Result<Option<InstalledPod>, Error> {
    let bundle = open(request, observe)?;
    let storage = checks::PodmanStorage::find()?;
    if request.only_load {
        SpaceNeeds::of_images(&bundle, &storage).check()?;
        verify(&bundle, observe)?;
        images::load(&bundle, Path::new("."), observe)?;
        return Ok(None);
    }
    let install = CheckedInstall::new(bundle, &storage, request, dialogue, observe)?;
    program::hand_over(&install.bundle, &install.dir, observe)?;
    install.change(observe)?;
    install.prepare(request.login, observe)?;
    install.fill(dialogue, observe)?;
    let project = install.start(observe)?;
    install.record(&project, request.login).map(Some)
}

/// An installation that can begin.
struct CheckedInstall {
    bundle: BundleFile,
    /// Absolute.
    dir: PathBuf,
    installed: Option<InstallRecord>,
    change: VersionChange,
    answers: Answers,
    /// Network domain, if it is given.
    domain: Option<String>,
    sets: Vec<BundledSet>,
}

impl CheckedInstall {
    fn new(
        bundle: BundleFile,
        storage: &checks::PodmanStorage,
        request: &InstallRequest,
        dialogue: &dyn Dialogue,
        observe: SiteObserver<'_>,
    ) -> Result<Self, Error> {
        let dir = std::path::absolute(&request.dir);
        let dir = dir.doing(|| format!("reading {}", request.dir.display()))?;
        checks::folder_name(&dir)?;
        let installed = InstallRecord::read(&dir)?;
        let change = VersionChange::of(installed.as_ref(), bundle.manifest(), &dir)?;
        let answers = Answers::collect(request, installed.as_ref(), dialogue)?;
        let domain = answers.domain()?;
        checks::ports(&dir, &answers)?;
        let sets = bundled_set::sets(&bundle);
        let mut needs = SpaceNeeds::of(&bundle, &sets, storage, &dir, &change)?;
        needs.add_extracted(installed.as_ref(), storage, &dir);
        needs.check()?;
        verify(&bundle, observe)?;
        Ok(Self {
            bundle,
            dir,
            installed,
            change,
            answers,
            domain,
            sets,
        })
    }

    fn change(&self, observe: SiteObserver<'_>) -> Result<(), Error> {
        let (dir, to) = (&self.dir, &self.bundle.manifest().version);
        self.change
            .before(dir, self.installed.as_ref(), to, observe)?;
        images::load(&self.bundle, dir, observe)?;
        self.change.restore(dir, observe)
    }

    fn prepare(&self, login: bool, observe: SiteObserver<'_>) -> Result<(), Error> {
        if self.change.restores() {
            // The restore has replaced the folder.
            program::extract(&self.bundle, &self.dir)?;
        }
        let pod = NewPod {
            host: self.answers.host.clone(),
            domain: self.domain.clone(),
            dir: self.dir.clone(),
            login,
        };
        folder::prepare(&pod, observe)?;
        proxy_settings::set(&self.dir, &self.answers.settings)?;
        registry_port::follow(&self.dir, &self.answers)?;
        // The answers may have another port of the registry.
        folder::complete_logins(&self.dir, &self.answers.host)
    }

    /// Fills the local registry, and takes lists out of the settings that earlier versions wrote there.
    fn fill(&self, dialogue: &dyn Dialogue, observe: SiteObserver<'_>) -> Result<(), Error> {
        // After a restore, the registry is another one than the recorded.
        let recorded = self.installed.as_ref();
        let recorded = recorded.filter(|_| !self.change.restores());
        let written = recorded.map(|it| it.offered.clone()).unwrap_or_default();
        let (bundle, dir, answers) = (&self.bundle, &self.dir, &self.answers);
        let project = ComposeProject::read(dir)?;
        if registry_content::has_any(bundle) || !written.is_empty() {
            let registry = LocalRegistry::of(&project, dir, &answers.host)?;
            lifecycle::start(&project, &[REGISTRY])?;
            lifecycle::wait_ready(&project, &[REGISTRY], observe)?;
            registry_content::push_images(bundle, &registry, observe)?;
            archives::publish(&self.sets, &registry, dir, recorded, dialogue, observe)?;
            boot_images::push_bundled(bundle, &registry, observe)?;
            boot_images::push_extracted(&written.boot_images, dir, &registry, observe)?;
        }
        // At the end: an interrupted installation offers these entries in either way.
        if written.remove(&project, dir, answers)? {
            observe(SiteEvent::Noted(&removed_lists(&written.boot_images, dir)));
        }
        Ok(())
    }

    /// Starts all services with the settings as they are now.
    fn start(&self, observe: SiteObserver<'_>) -> Result<ComposeProject, Error> {
        let project = ComposeProject::read(&self.dir)?;
        let services: Vec<&str> = project.active().collect();
        lifecycle::start(&project, &services)?;
        lifecycle::wait_ready(&project, &services, observe)?;
        Ok(project)
    }

    fn record(&self, project: &ComposeProject, login: bool) -> Result<InstalledPod, Error> {
        let (manifest, host) = (self.bundle.manifest(), &self.answers.host);
        InstallRecord::new(manifest, host, &self.sets).write(&self.dir)?;
        let address = |name: &str, default: &str| {
            let published = project.setting(name).unwrap_or(default);
            let port = published.rsplit(':').next().unwrap_or(published);
            format!("{}:{port}", in_url(host))
        };
        Ok(InstalledPod {
            manifest: manifest.clone(),
            dir: self.dir.clone(),
            webui: address("PUBLISH_WEBUI", "8080"),
            api: address("PUBLISH_API", "8090"),
            registry: address("PUBLISH_REGISTRY", "5000"),
            access: folder::access(&self.dir, login)?,
        })
    }
}

/// The note after lists of earlier versions were taken out of the settings.
fn removed_lists(boot_images: &[Value], dir: &Path) -> String {
    let note = "lists of earlier versions are removed from .env: the releases and boot images in the registry are on offer";
    let files = boot_images::extracted(boot_images, dir).into_iter();
    let files: Vec<_> = files.map(|(path, _)| path.display().to_string()).collect();
    if files.is_empty() {
        return note.to_owned();
    }
    let files = files.join(", ");
    format!("{note}; only a return to the earlier version needs the copies in {files}")
}

fn open(request: &InstallRequest, observe: SiteObserver<'_>) -> Result<BundleFile, Error> {
    let file = &request.bundle;
    let key = request.key.as_deref().map(key).transpose()?;
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
    observe(SiteEvent::BundleOpened {
        path: file,
        manifest,
        signature: match (bundle.is_signed(), key.is_some()) {
            (true, true) => BundleSignature::Verified,
            (true, false) => BundleSignature::Unchecked,
            (false, _) => BundleSignature::None,
        },
    });
    Ok(bundle)
}

fn key(path: &Path) -> Result<Verifier, Error> {
    let doing = || format!("reading {}", path.display());
    let pem = std::fs::read(path).doing(doing)?;
    Verifier::from_pem(&pem).doing(doing)
}

fn verify(bundle: &BundleFile, observe: SiteObserver<'_>) -> Result<(), Error> {
    let whole = bundle.manifest().size;
    let mut shown = 0;
    let mut progress = |read: u64| {
        if read >= shown + PROGRESS_BYTES {
            shown = read;
            observe(SiteEvent::Working(SiteWork::Verifying { read, whole }));
        }
    };
    let verified = bundle.verify(&mut progress);
    observe(SiteEvent::Rested);
    verified
        .map_err(|e| e.chain())
        .doing("verifying the bundle")
}
