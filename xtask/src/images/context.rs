//! The build context: the files that a Containerfile copies.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use sha2::{Digest as _, Sha256};

use super::engine::{self, Stored};
use super::list::{AGENT, SERVICES, ServiceImage, ServiceImageContent, VERSION, agent_name};
use super::{authorities, db, elf, libraries};
use crate::apt;
use crate::command::run;
use crate::web;

/// World-writable and sticky: users cannot delete files of others.
const TEMPORARY_MODE: u32 = 0o1777;
const PROGRAM_MODE: u32 = 0o755;
const FILE_MODE: u32 = 0o644;
/// Folder of the web UI's pages in its image: the default of STATIC_ROOT.
const PAGES: &str = "app";
/// Longest discovery agent. Units: bytes.
const MAX_AGENT: usize = 8 << 20;

/// Where the sources of images are.
#[derive(Debug, Clone, Copy)]
pub(super) struct SourceFolders<'a> {
    /// Instructions, in a folder of each image.
    pub(super) deploy: &'a Path,
    /// Programs.
    pub(super) programs: &'a Path,
    /// Whether the programs are shipped, or of the tests.
    pub(super) is_shipped: bool,
    /// The pages of the web UI; none: its image has the status page alone.
    pub(super) pages: Option<&'a Path>,
}

/// The sources of an image.
#[derive(Debug)]
pub(super) struct ImageSource<'a> {
    image: &'static ServiceImage,
    /// The image below it.
    base: Option<&'a Stored>,
    /// The instructions.
    containerfile: PathBuf,
    /// The program that is copied into it.
    program: Option<PathBuf>,
    /// The discovery agent; none in images of the tests, whose programs need libraries.
    agent: Option<PathBuf>,
    /// The pages of the web UI.
    pages: Option<&'a Path>,
}

impl<'a> ImageSource<'a> {
    /// Those of `image`, which is packed upon `base`, if it is one of a service.
    pub(super) fn new(
        image: &'static ServiceImage,
        base: Option<&'a Stored>,
        folders: SourceFolders<'a>,
    ) -> Self {
        let SourceFolders {
            deploy,
            programs,
            is_shipped,
            pages,
        } = folders;
        let own = image.program().filter(|_| !image.is_service());
        Self {
            image,
            base,
            containerfile: deploy.join(image.name).join("Containerfile"),
            program: own.map(|package| programs.join(package.program)),
            agent: (image.has_agent && is_shipped).then(|| programs.join(AGENT.program)),
            pages: pages.filter(|_| image.has_pages),
        }
    }

    /// A hash of all inputs of the image: the same inputs give the same image.
    pub(super) fn inputs(&self) -> Result<String> {
        let mut hash = Sha256::new();
        let mut part = |bytes: &[u8]| {
            // With its length, so that adjacent parts stay distinct.
            hash.update(bytes.len().to_le_bytes());
            hash.update(bytes);
        };
        for flag in engine::FLAGS {
            part(flag.as_bytes());
        }
        part(VERSION.as_bytes());
        part(&read(&self.containerfile)?);
        if self.image.content == ServiceImageContent::Database {
            part(db::inputs()?.as_bytes());
        }
        if let Some(base) = self.base {
            part(base.digest.as_bytes());
            part(&authorities::bundle()?);
        }
        for path in self.program.iter().chain(&self.agent) {
            part(&read(path)?);
        }
        for (path, name) in self.page_files()? {
            part(name.as_os_str().as_encoded_bytes());
            part(&read(&path)?);
        }
        for name in self.image.aliases {
            part(name.as_bytes());
        }
        Ok(hex::encode(hash.finalize()))
    }

    /// Fills an empty folder with the files that Containerfiles copy, and returns the Containerfile to use.
    pub(super) fn fill(&self, folder: &Path) -> Result<PathBuf> {
        if self.image.content == ServiceImageContent::Database {
            db::context(folder)?;
            return Ok(self.containerfile.clone());
        }
        let root = folder.join("root");
        make_folder(&root, PROGRAM_MODE)?;
        make_folder(&root.join("tmp"), TEMPORARY_MODE)?;
        self.link(&root)?;
        self.fill_pages(&root)?;
        if self.image.is_service() {
            self.fill_service(folder)?;
        }
        match &self.program {
            Some(program) => self.add_program(folder, program),
            None => Ok(self.containerfile.clone()),
        }
    }

    /// Adds the files of a service beside its program.
    fn fill_service(&self, folder: &Path) -> Result<()> {
        let authorities = folder.join("ca-certificates.crt");
        write(&authorities, &authorities::bundle()?, FILE_MODE)?;
        make_folder(&folder.join("data"), PROGRAM_MODE)?;
        let agents = folder.join("agents");
        make_folder(&agents, PROGRAM_MODE)?;
        if let Some(agent) = &self.agent {
            let program = read(agent)?;
            let length = program.len();
            ensure!(
                length <= MAX_AGENT,
                "the agent has {length} bytes, more than {MAX_AGENT}: it is sent with each image"
            );
            write(&agents.join(agent_name()), &program, PROGRAM_MODE)?;
        }
        Ok(())
    }

    /// Adds the pages of the web UI, where it looks for them.
    fn fill_pages(&self, root: &Path) -> Result<()> {
        for (path, name) in self.page_files()? {
            let target = root.join(PAGES).join(name);
            let mut folder = root.to_owned();
            for part in target
                .strip_prefix(root)?
                .parent()
                .iter()
                .flat_map(|path| path.iter())
            {
                folder.push(part);
                if !folder.exists() {
                    make_folder(&folder, PROGRAM_MODE)?;
                }
            }
            write(&target, &read(&path)?, FILE_MODE)?;
        }
        Ok(())
    }

    /// The files of the pages, with their paths below the pages' folder, sorted. Scripts and styles are there as brotli and
    /// gzip alone: in plain form, which no browser asks for, they would be most of the image.
    fn page_files(&self) -> Result<Vec<(PathBuf, PathBuf)>> {
        let Some(folder) = self.pages else {
            return Ok(Vec::new());
        };
        let mut files = Vec::new();
        web::list(folder, &mut files)?;
        files.sort();
        let is_gzip = |path: &&PathBuf| path.extension().is_some_and(|it| it == "gz");
        let compressed = files
            .iter()
            .filter(is_gzip)
            .map(|path| path.with_extension(""));
        let compressed: BTreeSet<_> = compressed.collect();
        let is_code = |path: &Path| path.extension().is_some_and(|it| it == "js" || it == "css");
        files.retain(|path| !is_code(path) || !compressed.contains(path));
        let named = files.into_iter().map(|path| {
            let name = path.strip_prefix(folder)?.to_owned();
            Ok((path, name))
        });
        named.collect()
    }

    /// Adds the program at `path`, and its libraries where it needs any; returns the Containerfile.
    fn add_program(&self, folder: &Path, path: &Path) -> Result<PathBuf> {
        // Modes are part of an image: those of this machine's checkout and umask are not used.
        let bytes = read(path)?;
        let program = folder.join(path.file_name().unwrap_or_default());
        write(&program, &bytes, PROGRAM_MODE)?;
        if elf::is_static(&bytes).with_context(|| path.display().to_string())? {
            Ok(self.containerfile.clone())
        } else {
            self.add_libraries(folder, &program)
        }
    }

    /// Makes a program of the tests run in an image without a system: without debug information, which is most of its
    /// size, and with its libraries.
    fn add_libraries(&self, folder: &Path, program: &Path) -> Result<PathBuf> {
        if !apt::is_program("strip") {
            apt::install(
                &["binutils"],
                "programs of the tests are packed without debug information",
            )?;
        }
        run(Command::new("strip").arg("--strip-debug").arg(program))?;
        for library in libraries::libraries(&[program.to_owned()])? {
            let path = folder.join("libraries").join(library.strip_prefix("/")?);
            fs::create_dir_all(path.parent().unwrap_or(folder))?;
            write(&path, &read(&library)?, PROGRAM_MODE)?;
        }
        let instructions = String::from_utf8(read(&self.containerfile)?)?;
        let containerfile = folder.join("Containerfile");
        let instructions = format!("{instructions}COPY libraries /\n");
        write(&containerfile, instructions.as_bytes(), FILE_MODE)?;
        Ok(containerfile)
    }

    /// Makes the names of the program: a service's own in the root folder, others in /bin.
    fn link(&self, root: &Path) -> Result<()> {
        if self.image.is_service() {
            symlink(SERVICES.program, root.join(self.image.name))?;
        }
        let folder = root.join("bin");
        if !self.image.aliases.is_empty() {
            make_folder(&folder, PROGRAM_MODE)?;
        }
        for name in self.image.aliases {
            let program = Path::new("..").join(self.image.path());
            symlink(program, folder.join(name))?;
        }
        Ok(())
    }
}

fn make_folder(path: &Path, mode: u32) -> Result<()> {
    fs::create_dir(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(mode))?;
    Ok(())
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("reading {}", path.display()))
}

fn write(path: &Path, bytes: &[u8], mode: u32) -> Result<()> {
    fs::write(path, bytes).with_context(|| format!("writing {}", path.display()))?;
    fs::set_permissions(path, fs::Permissions::from_mode(mode))?;
    Ok(())
}
