//! Backup and restore of the pod: its folder, and the volumes of its containers at their mount points.
//!
//! `podman volume export` is not used: it exports in folder order, while the registry's links have to be read before
//! its blobs (see [`super::content`]).

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use service::settings::{env_lines, not_a_line};
use service::{Error, ResultExt as _};

use super::index::{DATABASE, Heading, InstallationKind};
use super::reader::Verified;
use super::swap::{StagedFolder, is_vacant, report_previous};
use super::writer::{BackupWriter, Owner, private, rewound, temporary};
use super::{content, walk};
use crate::event::SiteObserver;
use crate::pod::PROXY;
use crate::pod::proxy_settings::PROXY_FOLDER;
use crate::podman;

const SETTINGS: &str = ".env";
/// Saved entries of the folder. Boot images are left out: they are large and come from outside.
const SAVED: [&str; 7] = [
    SETTINGS,
    "compose.yaml",
    "pod.yml",
    "catalog.yml",
    "secrets",
    PROXY_FOLDER,
    "catalogs",
];
/// Folders that containers mount, whose users are others than the engine's.
const MOUNTED: [&str; 5] = ["catalogs", "downloads", "images", PROXY_FOLDER, PROXY];
const OPEN: u32 = 0o755;
/// Member folders of the saved volumes.
const REGISTRY: &str = "registry";
const CLUSTERS: &str = "api-server";
/// Name in compose.yaml, unless COMPOSE_PROJECT_NAME is set in .env.
const PROJECT: &str = "atoll";
/// Member folder of the pod's folder.
const FOLDER: &str = "folder";
/// Name of the container that loads the database.
const LOADER: &str = "atoll-restore-db";
/// Timeout until a new database accepts connections.
const START_LIMIT: Duration = Duration::from_mins(2);
const POLL: Duration = Duration::from_millis(200);

/// Whether [`save`] writes a member of this name.
pub(super) fn is_saved(path: &str) -> bool {
    match path.split_once('/') {
        None => path == DATABASE,
        Some((FOLDER, rest)) => SAVED.contains(&rest.split('/').next().unwrap_or_default()),
        Some((CLUSTERS, rest)) => content::has_clusters_file(rest),
        Some((REGISTRY, rest)) => content::has_registry_file(rest),
        Some(_) => false,
    }
}

/// Saves the pod of `folder` in `file`; returns its length and number of members.
///
/// Errors: the database does not run, those of podman.
pub(super) fn save(file: &Path, folder: &Path) -> Result<(u64, usize), Error> {
    let settings = PodSettings::read(folder)?;
    let mut writer = BackupWriter::create(file, Heading::new(InstallationKind::Pod))?;
    let volumes = Volumes::of(&settings.project);
    save_database(&mut writer, &settings, file)?;
    if let Some(root) = podman::mountpoint(&volumes.clusters)? {
        content::clusters(&mut writer, &root, CLUSTERS)?;
    }
    let keeps = |path: &str| SAVED.contains(&path.split('/').next().unwrap_or_default());
    walk::files(folder, &keeps, &mut |path, file| {
        writer.add_file(&format!("{FOLDER}/{path}"), file)
    })?;
    let dangling = match podman::mountpoint(&volumes.registry)? {
        Some(root) => content::registry(&mut writer, &root, REGISTRY)?,
        None => std::collections::BTreeSet::new(),
    };
    let members = writer.members();
    Ok((writer.finish(&dangling)?, members))
}

fn save_database(
    writer: &mut BackupWriter,
    settings: &PodSettings,
    file: &Path,
) -> Result<(), Error> {
    let doing = "saving the database of the pod";
    let containers = podman::users(&Volumes::of(&settings.project).database, false)?;
    let container = containers.first().ok_or_else(|| {
        Error::new(
            doing,
            "its container is not running: podman-compose up -d db",
        )
    })?;
    let path = temporary(file, "database");
    let dump = private(&path).doing(doing)?;
    // Unlinked while open: the kernel removes it with this process.
    fs::remove_file(&path).doing(doing)?;
    let output = dump.try_clone().doing(doing)?;
    let mut arguments = vec![
        "pg_dump",
        "--format=custom",
        "--no-owner",
        "--no-privileges",
    ];
    arguments.extend(settings.login());
    arguments.push(&settings.database);
    podman::exec(container, &arguments, None, Some(output))?;
    let dump = rewound(dump).doing(doing)?;
    let size = dump.metadata().doing(doing)?.len();
    writer.add(DATABASE, Owner::PRIVATE, size, dump)
}

/// Database and project settings of `.env`.
struct PodSettings {
    database: String,
    user: String,
    /// Custom database image.
    image: Option<String>,
    /// Project of podman-compose: the prefix of volume names.
    project: String,
}

/// Names of the saved volumes.
struct Volumes {
    registry: String,
    clusters: String,
    database: String,
}

impl Volumes {
    /// Volumes of a podman-compose project.
    fn of(project: &str) -> Self {
        Self {
            registry: format!("{project}_registry"),
            clusters: format!("{project}_api"),
            database: format!("{project}_db"),
        }
    }
}

impl PodSettings {
    fn read(folder: &Path) -> Result<Self, Error> {
        let path = folder.join(SETTINGS);
        let text = fs::read_to_string(&path).doing(|| format!("reading {}", path.display()))?;
        Self::parse(&text, &path)
    }

    fn parse(text: &str, path: &Path) -> Result<Self, Error> {
        let lines = env_lines(text).map_err(|number| {
            Error::new(
                format!("reading {}", path.display()),
                not_a_line(path, number),
            )
        })?;
        let lines: BTreeMap<&str, &str> = lines.into_iter().collect();
        let text = |name: &str, default: &str| {
            let found = lines.get(name).filter(|value| !value.is_empty());
            found.map_or(default, |value| value).to_owned()
        };
        Ok(Self {
            database: text("POSTGRESQL_DATABASE", "installer"),
            user: text("POSTGRESQL_USER", "admin"),
            image: lines.get("POSTGRES_IMAGE").map(|image| (*image).to_owned()),
            project: text("COMPOSE_PROJECT_NAME", PROJECT),
        })
    }

    /// Login of the superuser: the server's own user in our image, the configured user in others.
    fn login(&self) -> Vec<&str> {
        match self.image {
            Some(_) => vec!["--username", &self.user],
            None => Vec::new(),
        }
    }
}

/// Restores folder and volumes from `backup`.
///
/// Errors: folder or volumes are not empty, or in use.
pub(super) fn restore(
    backup: &Verified,
    folder: &Path,
    replace: bool,
    observe: SiteObserver<'_>,
) -> Result<PathBuf, Error> {
    let folder =
        std::path::absolute(folder).doing(|| format!("restoring to {}", folder.display()))?;
    let member = format!("{FOLDER}/{SETTINGS}");
    let text = backup.member(&member)?;
    let settings = PodSettings::parse(&String::from_utf8_lossy(&text), Path::new(&member))?;
    let names = Volumes::of(&settings.project);
    let volumes = [&*names.registry, &names.clusters, &names.database];
    refuse_running(&volumes)?;
    let mut mountpoints = Vec::new();
    for volume in volumes {
        mountpoints.push((volume, podman::ensure_volume(&settings.project, volume)?));
    }
    let not_empty: Vec<String> = mountpoints
        .iter()
        .filter(|(_, path)| !is_vacant(path))
        .map(|(volume, _)| format!("volume {volume}"))
        .chain((!is_vacant(&folder)).then(|| folder.display().to_string()))
        .collect();
    if !not_empty.is_empty() && !replace {
        return Err(Error::new(
            format!("restoring to {}", folder.display()),
            format!(
                "{} not empty: remove the content, or use --replace",
                not_empty.join(", ")
            ),
        ));
    }
    let new_folder = StagedFolder::new(&folder)?;
    let new: Vec<StagedFolder> = mountpoints
        .iter()
        .map(|(_, path)| StagedFolder::new(path))
        .collect::<Result<_, _>>()?;
    for (staged, (_, path)) in new.iter().zip(&mountpoints) {
        keep_owner(path, staged.path())?;
    }
    let dump = new_folder.path().join(DATABASE);
    backup.extract(true, |path| match path.split_once('/') {
        None => Some(dump.clone()),
        Some((FOLDER, rest)) => Some(new_folder.path().join(rest)),
        Some((REGISTRY, rest)) => Some(new[0].path().join(rest)),
        Some((CLUSTERS, rest)) => Some(new[1].path().join(rest)),
        Some(_) => None,
    })?;
    open_mounted(new_folder.path())?;
    load(&settings, new_folder.path(), &dump, new[2].path())?;
    fs::remove_file(&dump).doing("loading the database")?;
    // The folder is swapped last: its presence marks an installation, and a crash before leaves complete volumes.
    for staged in new {
        report_previous(staged.swap()?, observe);
    }
    report_previous(new_folder.swap()?, observe);
    Ok(folder)
}

/// Makes the folders that containers mount readable for all, as `atoll pod init` made them. Empty folders have no members, and
/// others are private after the extraction.
fn open_mounted(pod: &Path) -> Result<(), Error> {
    for name in MOUNTED {
        let folder = pod.join(name);
        service::file::folder(&folder, OPEN)?;
        open_folders(&folder)?;
    }
    Ok(())
}

fn open_folders(folder: &Path) -> Result<(), Error> {
    service::file::set_mode(folder, OPEN)?;
    let failed = |e| Error::new(format!("reading {}", folder.display()), e);
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        // Links lead elsewhere.
        if entry.file_type().map_err(failed)?.is_dir() {
            open_folders(&entry.path())?;
        }
    }
    Ok(())
}

fn refuse_running(volumes: &[&str]) -> Result<(), Error> {
    for volume in volumes {
        let running = podman::users(volume, false)?;
        if !running.is_empty() {
            return Err(Error::new(
                format!("restoring volume {volume}"),
                format!("in use by {}: podman-compose down", running.join(", ")),
            ));
        }
    }
    Ok(())
}

/// Copies owner and mode of a volume's folder: it belongs to the user of the first container that mounted it.
fn keep_owner(from: &Path, to: &Path) -> Result<(), Error> {
    use std::os::unix::fs::{MetadataExt as _, chown};
    let doing = || format!("setting the owner of {}", to.display());
    let old = fs::metadata(from).doing(doing)?;
    service::file::set_mode(to, old.mode() & 0o7777)?;
    chown(to, Some(old.uid()), Some(old.gid())).doing(doing)
}

/// Container of the database image that creates and loads the database; removed when this is dropped.
struct Loader;

impl Drop for Loader {
    fn drop(&mut self) {
        podman::run(&["rm", "--force", "--time", "30", LOADER]).ok();
    }
}

fn load(settings: &PodSettings, folder: &Path, dump: &Path, volume: &Path) -> Result<(), Error> {
    let doing = "loading the database";
    let own = concat!("localhost/", "atoll/db:", env!("CARGO_PKG_VERSION"));
    let image = settings.image.as_deref().unwrap_or(own);
    let password = folder.join("secrets/database-password");
    let mounts = [
        format!("{}:/var/lib/postgresql/data", volume.display()),
        format!("{}:/run/secrets/db-password:ro", password.display()),
    ];
    let variables = [
        format!("POSTGRESQL_DATABASE={}", settings.database),
        format!("POSTGRESQL_USER={}", settings.user),
        "POSTGRESQL_PASSWORD_FILE=/run/secrets/db-password".to_owned(),
        format!("POSTGRES_DB={}", settings.database),
        format!("POSTGRES_USER={}", settings.user),
        "POSTGRES_PASSWORD_FILE=/run/secrets/db-password".to_owned(),
        "PGDATA=/var/lib/postgresql/data/pgdata".to_owned(),
    ];
    chown_to_database_user(volume)?;
    let mut arguments = vec!["run", "--detach", "--name", LOADER, "--network", "none"];
    arguments.extend(["--cap-drop", "all", "--pull", "never", "--tmpfs", "/tmp"]);
    arguments.extend(["--user", "999:999"]);
    // As in compose.yaml: the engine's default is more than some machines grant.
    arguments.extend(["--ulimit", "nofile=16384", "--ulimit", "nproc=4096"]);
    arguments.extend(mounts.iter().flat_map(|mount| ["--volume", mount]));
    arguments.extend(variables.iter().flat_map(|variable| ["--env", variable]));
    arguments.push(image);
    podman::run(&["rm", "--force", "--ignore", LOADER])?;
    let loader = Loader;
    podman::run(&arguments)?;
    let deadline = Instant::now() + START_LIMIT;
    while podman::exec(LOADER, &["pg_isready", "-q", "-h", "127.0.0.1"], None, None).is_err() {
        if Instant::now() >= deadline {
            let log = podman::run(&["logs", LOADER]).unwrap_or_default();
            return Err(Error::new(
                doing,
                format!("the database does not start: {}", log.trim()),
            ));
        }
        std::thread::sleep(POLL);
    }
    // As the application: a dump is SQL, and the superuser's runs programs of the server.
    // By words of the shell alone: the image has few programs.
    let by_password = "IFS= read -r PGPASSWORD </run/secrets/db-password; export PGPASSWORD; exec pg_restore \"$@\"";
    let mut arguments = vec!["sh", "-c", by_password, "pg_restore"];
    arguments.extend(["--no-owner", "--no-privileges", "--exit-on-error"]);
    arguments.extend(["--single-transaction", "--host", "127.0.0.1"]);
    arguments.extend(["--username", &settings.user, "--no-password"]);
    arguments.extend(["--dbname", &settings.database]);
    let file = File::open(dump).doing(doing)?;
    podman::exec(LOADER, &arguments, Some(file), None)?;
    // Graceful: the shutdown checkpoint makes all data durable before the volume is swapped.
    podman::run(&["stop", "--time", "60", LOADER])?;
    drop(loader);
    Ok(())
}

/// Changes the owner to the user of the database container, which compose sets for custom images, too.
fn chown_to_database_user(volume: &Path) -> Result<(), Error> {
    const USER: u32 = 999;
    std::os::unix::fs::chown(volume, Some(USER), Some(USER))
        .doing(|| format!("setting the owner of {}", volume.display()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn containers_read_restored_folders_and_others_stay_private() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        // As the extraction makes them.
        for name in [
            "secrets",
            "secrets/ca",
            "secrets/proxy",
            "catalogs",
            "catalogs/own",
        ] {
            service::file::folder(&path(name), 0o700).unwrap();
        }
        std::os::unix::fs::symlink("../secrets", path("catalogs/link")).unwrap();
        open_mounted(dir.path()).unwrap();
        let mode = |name: &str| fs::metadata(path(name)).unwrap().permissions().mode() & 0o777;
        for name in [
            "proxy",
            "secrets/proxy",
            "catalogs/own",
            "images",
            "downloads",
        ] {
            assert_eq!(mode(name), 0o755, "{name}");
        }
        for name in ["secrets", "secrets/ca"] {
            assert_eq!(mode(name), 0o700, "{name}");
        }
    }
}
