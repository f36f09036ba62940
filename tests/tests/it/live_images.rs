//! Images with the layouts of ten builds since 2020, changed by `atoll image` and read by coreos-installer.

use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

/// The program, and the folder of images that its own tests read: `cargo xtask test --full` sets both.
const COREOS_INSTALLER: &str = "COREOS_INSTALLER";
const LIVE_IMAGES: &str = "LIVE_IMAGES";
const IGNITION: &str = r#"{"ignition":{"version":"3.2.0"}}"#;
const ROOTFS_URL: &str = "http://10.0.0.1/rootfs.img";
/// Builds whose boot loaders have no area for kernel arguments.
const WITHOUT_AREA: [&str; 2] = ["embed-areas-2020-09.iso", "embed-areas-2023-03.s390x.iso"];
/// A build whose area is found by offsets in a header, which a minimal image does not have.
const BY_HEADER: &str = "embed-areas-2021-01.iso";

#[test]
#[ignore = "the images come with the sources of coreos-installer"]
fn images_of_all_layouts_are_customised_and_reset() -> Result<()> {
    let variables = (
        std::env::var_os(COREOS_INSTALLER),
        std::env::var_os(LIVE_IMAGES),
    );
    let (Some(installer), Some(images)) = variables else {
        testkit::skipped("no coreos-installer: COREOS_INSTALLER or LIVE_IMAGES is not set");
        return Ok(());
    };
    let folder = system_tests::Scratch::new()?;
    let site = LayoutTest {
        installer: installer.into(),
        folder: folder.path().to_owned(),
    };
    fs::write(site.path("c.ign"), IGNITION)?;
    let mut count = 0;
    for entry in fs::read_dir(&images)? {
        let path = entry?.path();
        let name = path.file_stem().and_then(OsStr::to_str).context("a name")?;
        if name.starts_with("embed-areas-") {
            let image = output(Command::new("xz").arg("-dc").arg(&path))?;
            site.check(name, &image).with_context(|| name.to_owned())?;
            count += 1;
        }
    }
    assert_eq!(count, 10);
    Ok(())
}

struct LayoutTest {
    installer: PathBuf,
    folder: PathBuf,
}

impl LayoutTest {
    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn atoll(&self, arguments: &[&str]) -> Result<Vec<u8>> {
        let mut command = Command::new(system_tests::process::program("atoll")?);
        output(
            command
                .args(["image"])
                .args(arguments)
                .current_dir(&self.folder),
        )
    }

    /// The output of `coreos-installer iso …`.
    fn read(&self, arguments: &[&str], image: &str) -> Result<String> {
        let mut command = Command::new(&self.installer);
        command.arg("iso").args(arguments).arg(self.path(image));
        Ok(String::from_utf8(output(&mut command)?)?)
    }

    fn check(&self, name: &str, image: &[u8]) -> Result<()> {
        fs::write(self.path("live.iso"), image)?;
        let has_area = !WITHOUT_AREA.contains(&name);
        let karg: &[&str] = if has_area {
            &["--karg", "boots=yes"]
        } else {
            &[]
        };
        let embed = [
            "embed",
            "live.iso",
            "--ignition",
            "c.ign",
            "-o",
            "own.iso",
            "--force",
        ];
        self.atoll(&[&embed, karg].concat())?;
        assert_eq!(self.read(&["ignition", "show"], "own.iso")?, IGNITION);
        if has_area {
            let text = self.read(&["kargs", "show"], "own.iso")?;
            ensure!(
                text.contains("coreos.liveiso=") && text.ends_with(" boots=yes\n"),
                "{text}"
            );
        }
        self.read(&["reset"], "own.iso")?;
        ensure!(
            fs::read(self.path("own.iso"))? == image,
            "reset is the original"
        );

        let minimal = [
            "minimal",
            "live.iso",
            "--ignition",
            "c.ign",
            "-o",
            "small.iso",
            "--force",
        ];
        let made = self.atoll(&[&minimal, &["--rootfs-url", ROOTFS_URL][..], karg].concat());
        if name.contains("s390x") {
            let refused = made.err().context("s390x has no minimal images")?;
            ensure!(refused.to_string().contains("use full.iso"), "{refused}");
            return Ok(());
        }
        made?;
        assert_eq!(self.read(&["ignition", "show"], "small.iso")?, IGNITION);
        if has_area && name != BY_HEADER {
            let text = self.read(&["kargs", "show"], "small.iso")?;
            let end = format!(" coreos.live.rootfs_url=\"{ROOTFS_URL}\" boots=yes\n");
            ensure!(
                !text.contains("coreos.liveiso=") && text.ends_with(&end),
                "{text}"
            );
        }
        Ok(())
    }
}

fn output(command: &mut Command) -> Result<Vec<u8>> {
    let output = command
        .output()
        .with_context(|| format!("running {command:?}"))?;
    let text = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?}: {text}");
    Ok(output.stdout)
}
