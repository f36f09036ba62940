//! What is packed: the files that a Containerfile copies.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use sha2::{Digest as _, Sha256};

use super::list::{Content, Image, VERSION};
use super::{authorities, db, engine};

/// Everybody may write, and nobody takes away what is another's.
const TEMPORARY_MODE: u32 = 0o1777;
const PROGRAM_MODE: u32 = 0o755;
const FILE_MODE: u32 = 0o644;

/// What an image is made from.
#[derive(Debug)]
pub(super) struct Source {
    image: &'static Image,
    /// The instructions.
    pub(super) containerfile: PathBuf,
    program: PathBuf,
}

impl Source {
    /// The image's part of `deploy`, and its program in the folder `programs`.
    pub(super) fn new(image: &'static Image, deploy: &Path, programs: &Path) -> Self {
        Self {
            image,
            containerfile: deploy.join(image.name).join("Containerfile"),
            program: programs.join(image.name),
        }
    }

    /// A hash of everything that goes into the image: the same inputs give the same image.
    pub(super) fn inputs(&self) -> Result<String> {
        let mut hash = Sha256::new();
        let mut part = |bytes: &[u8]| {
            // With its length: parts cannot run into each other.
            hash.update(bytes.len().to_le_bytes());
            hash.update(bytes);
        };
        for flag in engine::FLAGS {
            part(flag.as_bytes());
        }
        part(VERSION.as_bytes());
        part(&read(&self.containerfile)?);
        match self.image.content {
            Content::Program => {
                part(&read(&self.program)?);
                part(&authorities::bundle()?);
                for name in self.image.aliases {
                    part(name.as_bytes());
                }
            }
            Content::Database => part(db::inputs()?.as_bytes()),
        }
        Ok(hex::encode(hash.finalize()))
    }

    /// Fills an empty folder with what Containerfiles copy; each takes what its service needs.
    pub(super) fn fill(&self, folder: &Path) -> Result<()> {
        if self.image.content == Content::Database {
            return db::context(folder);
        }
        // Modes are part of an image: those of this machine's checkout and umask are not taken.
        write(
            &folder.join(self.image.name),
            &read(&self.program)?,
            PROGRAM_MODE,
        )?;
        let authorities = folder.join("ca-certificates.crt");
        write(&authorities, &authorities::bundle()?, FILE_MODE)?;
        make_folder(&folder.join("data"), PROGRAM_MODE)?;
        let root = folder.join("root");
        make_folder(&root, PROGRAM_MODE)?;
        make_folder(&root.join("tmp"), TEMPORARY_MODE)?;
        self.link(&root.join("bin"))
    }

    /// The other names of the program.
    fn link(&self, folder: &Path) -> Result<()> {
        make_folder(folder, PROGRAM_MODE)?;
        for name in self.image.aliases {
            let program = Path::new("..").join(self.image.name);
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
