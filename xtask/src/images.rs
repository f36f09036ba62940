//! `cargo xtask images`: a container image of each service, from the program of all services alone.
//!
//! The images of services share one layer with the program; nothing of a distribution is below it. The same input gives
//! the same digest: unchanged images need not be carried to an isolated machine again.

mod authorities;
mod context;
mod db;
mod elf;
mod engine;
mod layout;
mod libraries;
mod list;
pub(crate) mod programs;
mod record;
mod report;
mod sbom;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, ensure};
use clap::Args;
use clap::builder::FalseyValueParser;

use crate::cargo::{self, Profile, root, target_directory};
use crate::scratch::ScratchFolder;
use crate::web;
use context::{ImageSource, SourceFolders};
use engine::{ImageBuild, ImageEngine, Stored};
use list::{BASE, IMAGES, ServiceImage, ServiceImageContent, VERSION};
use record::PackingRecord;
use report::{ImageReport, ImageRow};

pub(crate) use list::{AGENT, SERVICES, agent_name};
pub(crate) use report::Figure;

/// In the folder of images: the size of the last shipped build.
const FIGURE: &str = "size.json";

/// Arguments of `images`.
#[derive(Debug, Args)]
pub(crate) struct ImagesArgs {
    /// Only these images
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Pack the programs of the tests' build, with their libraries: for tests, not to be shipped
    #[arg(long)]
    quick: bool,
    /// Also write each as an OCI layout to target/images/NAME
    #[arg(long, env = "CI", value_parser = FalseyValueParser::new())]
    ci: bool,
    /// Also write all to FILE (.tar or .tar.zst), for `podman load` on an isolated machine
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
}

impl ImagesArgs {
    /// All images, also as layouts.
    pub(crate) fn layouts() -> Self {
        Self {
            names: Vec::new(),
            quick: false,
            ci: true,
            save: None,
        }
    }
}

/// Builds the images, packs those that changed, and prints a table.
pub(crate) fn run(arguments: &ImagesArgs) -> Result<ExitCode> {
    let mut images = list::select(&arguments.names)?;
    if arguments.quick {
        // The tests of the pod have no hosts that pull.
        images.retain(|image| image.pulled_as.is_none());
    }
    let engine = ImageEngine::ensure()?;
    if let Some(path) = &arguments.save {
        engine.can_save(path)?;
    }
    let profile = if arguments.quick {
        Profile::Tests
    } else {
        Profile::Dist
    };
    let programs = build(&images, profile)?;
    // The tests of the pod work without them: they are in the images if they are built anyway.
    let pages = if arguments.quick {
        web::built()
    } else {
        Some(web::build()?)
    };
    let folder = target_directory()?.join("images");
    fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
    let packing = ImagePacking {
        engine,
        sources: SourceFolders {
            deploy: &root().join("deploy"),
            programs: &programs,
            is_shipped: !arguments.quick,
            pages: pages.as_deref(),
        },
        records: &folder,
    };
    let mut report = ImageReport::default();
    let mut base = None;
    if images.iter().any(|image| image.is_service()) {
        let packed = packing.pack(&BASE, None)?;
        report.rows.push(packed.row(&BASE, 0));
        base = Some(packed.stored);
    }
    for image in &images {
        let base = base.as_ref().filter(|_| image.is_service());
        let packed = packing.pack(image, base)?;
        let row = packed.row(image, base.map_or(0, |base| base.size_bytes));
        if arguments.ci {
            let layout = folder.join(image.name);
            layout::write(engine, &image.reference(), &row.digest, &layout)?;
        }
        let bill = sbom::of(image, &row.digest, &triple(&programs), pages.as_deref())?;
        let path = bill_path(&folder, image);
        fs::write(&path, bill).with_context(|| format!("writing {}", path.display()))?;
        report.rows.push(row);
    }
    if let Some(path) = &arguments.save {
        let references: Vec<_> = images.iter().map(|image| image.reference()).collect();
        engine.save(&references, path)?;
    }
    println!("{report}");
    if !arguments.quick && images.len() == IMAGES.len() {
        report.figure().write(&folder.join(FIGURE))?;
    }
    // The images exist and work: a budget concerns developers, and `test --full` reports it to them.
    Ok(ExitCode::SUCCESS)
}

fn bill_path(folder: &Path, image: &ServiceImage) -> PathBuf {
    folder.join(format!("{}.{}", image.name, sbom::EXTENSION))
}

/// The target triple of `programs`: the name of the folder above, or else this machine's.
fn triple(programs: &Path) -> String {
    let folder = programs.parent().and_then(Path::file_name);
    let name = folder.and_then(|name| name.to_str()).unwrap_or_default();
    if name.contains("-linux-") {
        name.to_owned()
    } else {
        format!("{}-unknown-linux-gnu", std::env::consts::ARCH)
    }
}

/// The layouts of the pod's images, after [`run`] with [`ImagesArgs::layouts`].
pub(crate) fn layout_folders() -> Result<Vec<PathBuf>> {
    layouts_of(|image| image.pulled_as.is_none())
}

/// Those of the images that hosts pull.
pub(crate) fn pulled_layout_folders() -> Result<Vec<PathBuf>> {
    layouts_of(|image| image.pulled_as.is_some())
}

fn layouts_of(is_wanted: impl Fn(&ServiceImage) -> bool) -> Result<Vec<PathBuf>> {
    let folder = target_directory()?.join("images");
    let images = IMAGES.iter().filter(|image| is_wanted(image));
    Ok(images.map(|image| folder.join(image.name)).collect())
}

/// Copies the bills of materials of all images to the new folder `target`.
pub(crate) fn copy_bills(target: &Path) -> Result<()> {
    let folder = target_directory()?.join("images");
    fs::create_dir_all(target).with_context(|| format!("making {}", target.display()))?;
    for image in IMAGES {
        let (from, to) = (bill_path(&folder, image), bill_path(target, image));
        fs::copy(&from, &to).with_context(|| format!("copying {}", from.display()))?;
    }
    Ok(())
}

/// The digests of the last images built with the target directory `target`, by name.
pub(crate) fn digests(target: &Path) -> BTreeMap<&'static str, String> {
    let folder = target.join("images");
    let digest = |image: &ServiceImage| {
        let path = folder.join(image.name).with_extension("json");
        Some((image.name, record::read::<PackingRecord>(&path)?.digest))
    };
    IMAGES.iter().filter_map(digest).collect()
}

/// The size of the last shipped build; `None` before the first.
pub(crate) fn figure() -> Result<Option<Figure>> {
    Ok(Figure::read(
        &target_directory()?.join("images").join(FIGURE),
    ))
}

/// The folder with the programs of these images.
fn build(images: &[&ServiceImage], profile: Profile) -> Result<PathBuf> {
    if !images.iter().any(|image| image.program().is_some()) {
        return Ok(PathBuf::new());
    }
    match profile {
        Profile::Tests => cargo::build(&[], profile),
        _ => shipped_programs(),
    }
}

/// The folder of the programs as shipped.
fn shipped_programs() -> Result<PathBuf> {
    let folder = programs::build(&[SERVICES.package], Profile::Dist)?;
    let (agent, beside) = (shipped_agent()?, folder.join(AGENT.program));
    fs::copy(&agent, &beside).with_context(|| format!("copying {}", agent.display()))?;
    Ok(folder)
}

/// The program of the discovery agent as shipped.
pub(crate) fn shipped_agent() -> Result<PathBuf> {
    let folder = programs::build(&[AGENT.package], Profile::Agent)?;
    Ok(folder.join(AGENT.program))
}

/// A folder with the services as shipped, each under its name.
pub(crate) fn shipped_services() -> Result<PathBuf> {
    let programs = programs::build(&[SERVICES.package], Profile::Dist)?;
    let folder = programs.join(SERVICES.package);
    fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
    for image in IMAGES.iter().filter(|image| image.is_service()) {
        let link = folder.join(image.name);
        fs::remove_file(&link).ok();
        symlink(Path::new("..").join(SERVICES.program), &link)
            .with_context(|| format!("linking {}", link.display()))?;
    }
    Ok(folder)
}

/// Packs images.
#[derive(Debug, Clone, Copy)]
struct ImagePacking<'a> {
    engine: ImageEngine,
    sources: SourceFolders<'a>,
    /// The folder with the record of each image.
    records: &'a Path,
}

/// A packed image.
struct PackedImage {
    stored: Stored,
    /// Whether it was packed now, or is unchanged.
    is_new: bool,
}

impl ImagePacking<'_> {
    /// Packs one image, unless the engine's image was made from the same input.
    fn pack(&self, image: &'static ServiceImage, base: Option<&Stored>) -> Result<PackedImage> {
        let source = ImageSource::new(image, base, self.sources);
        let packed = self.pack_changed(image, &source);
        let packed = packed.with_context(|| format!("the image {}", image.name))?;
        let has_base = base.is_none_or(|base| packed.stored.layers.starts_with(&base.layers));
        ensure!(
            has_base,
            "the image {} does not share the layer of {}",
            image.name,
            BASE.reference()
        );
        Ok(packed)
    }

    fn pack_changed(&self, image: &ServiceImage, source: &ImageSource) -> Result<PackedImage> {
        let path = self.records.join(image.name).with_extension("json");
        let reference = image.reference();
        let inputs = source.inputs()?;
        if let Some(record) = record::read::<PackingRecord>(&path)
            && record.inputs == inputs
            && let Some(stored) = self.engine.inspect(&reference)?
            && stored.digest == record.digest
        {
            return Ok(PackedImage {
                stored,
                is_new: false,
            });
        }
        let scratch = ScratchFolder::new()?;
        let containerfile = source.fill(scratch.path())?;
        let base = image.is_service().then(|| BASE.reference());
        let stored = self.engine.pack(ImageBuild {
            reference: &reference,
            version: VERSION,
            base: base.as_deref(),
            containerfile: &containerfile,
            context: scratch.path(),
        })?;
        let digest = stored.digest.clone();
        record::write(&PackingRecord { inputs, digest }, &path)?;
        Ok(PackedImage {
            stored,
            is_new: true,
        })
    }
}

impl PackedImage {
    /// Its row, of which `shared_bytes` are those of the layer below.
    fn row(&self, image: &ServiceImage, shared_bytes: u64) -> ImageRow {
        ImageRow {
            name: image.name,
            size_bytes: self.stored.size_bytes.saturating_sub(shared_bytes),
            digest: self.stored.digest.clone(),
            is_new: self.is_new,
            // The agent is in the image service, too.
            counts: matches!(
                image.content,
                ServiceImageContent::Base | ServiceImageContent::Service
            ),
        }
    }
}
