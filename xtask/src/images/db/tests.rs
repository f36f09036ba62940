use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::process::Output;

use super::*;

/// Stand-in for the server's programs. A link points to it, because a freshly written file may be "busy".
const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/images/db/stand-in");

/// A root file system with a volume, and a server, for deploy/db/entrypoint.
struct Container {
    folder: tempfile::TempDir,
    /// Path of the volume below the root.
    volume: &'static str,
    /// The value of PGDATA below the root, if it is set.
    pgdata: Option<&'static str>,
}

/// The volumes that the entrypoint knows.
const VOLUMES: [&str; 2] = ["var/lib/postgresql/data", "var/lib/pgsql/data"];

impl Container {
    /// With one volume, which PGDATA names.
    fn new() -> Self {
        let container = Self::mounting(&["volume"], "volume", "ext4");
        Self {
            pgdata: Some("volume/pgdata"),
            ..container
        }
    }

    /// With these mounts; the tests look into `volume`.
    fn mounting(mounts: &[&str], volume: &'static str, kind: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let mut table = "1 0 0:1 / / rw,relatime - overlay overlay rw\n".to_owned();
        for mount in mounts {
            let path = root.join(mount);
            fs::create_dir_all(&path).unwrap();
            let path = path.display();
            writeln!(
                table,
                "2 1 0:2 /x {path} rw shared:1 master:2 - {kind} /dev/x rw"
            )
            .unwrap();
        }
        fs::create_dir_all(root.join("proc/self")).unwrap();
        fs::write(root.join("proc/self/mountinfo"), table).unwrap();
        for name in ["initdb", "postgres"] {
            symlink(SERVER, root.join(name)).unwrap();
        }
        // The paths that a container has at its root.
        let script = fs::read_to_string(own("entrypoint")).unwrap();
        let below = |path: &str| format!("{}{path}", root.display());
        let script = script
            .replace("/proc/self/", &below("/proc/self/"))
            .replace("/var/lib/", &below("/var/lib/"));
        fs::write(root.join("entrypoint"), script).unwrap();
        let container = Self {
            folder,
            volume,
            pgdata: None,
        };
        container.runs_as(999, "0000000000000000");
        container
    }

    /// Sets the user of the container and its capabilities.
    fn runs_as(&self, user: u32, capabilities: &str) {
        let status =
            format!("Name:\tsh\nUid:\t{user}\t{user}\t{user}\t{user}\nCapEff:\t{capabilities}\n");
        fs::write(self.folder.path().join("proc/self/status"), status).unwrap();
    }

    fn volume(&self) -> PathBuf {
        self.folder.path().join(self.volume)
    }

    /// Makes a database at this path below the root.
    fn has_cluster(&self, path: &str) {
        let folder = self.folder.path().join(path);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("PG_VERSION"), "15\n").unwrap();
    }

    fn cluster(&self) -> PathBuf {
        self.volume().join("pgdata")
    }

    fn command(&self, variables: &[(&str, &str)]) -> Command {
        let path = std::env::var_os("PATH").unwrap();
        let mut command = Command::new("sh");
        command
            .arg(self.folder.path().join("entrypoint"))
            .env_clear()
            .env(
                "PATH",
                format!("{}:{}", self.folder.path().display(), path.display()),
            )
            .env("LOG", self.folder.path().join("log"))
            .envs(variables.iter().copied());
        if let Some(path) = self.pgdata {
            command.env("PGDATA", self.folder.path().join(path));
        }
        command
    }

    fn start(&self, variables: &[(&str, &str)]) -> Output {
        self.command(variables).output().unwrap()
    }

    /// Output of a failed start.
    fn refusal(&self, variables: &[(&str, &str)]) -> String {
        let output = self.start(variables);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{text}");
        text
    }

    /// SQL statements that the server received before it started.
    fn statements(&self, variables: &[(&str, &str)]) -> String {
        let output = self.start(variables);
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{text}");
        let log = fs::read_to_string(self.folder.path().join("log")).unwrap();
        assert!(log.lines().last().unwrap().starts_with("postgres -D"));
        fs::read_to_string(self.folder.path().join("log.sql")).unwrap()
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.volume()).unwrap();
        entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    }
}

const DATABASE: (&str, &str) = ("POSTGRESQL_DATABASE", "installer");
const USER: (&str, &str) = ("POSTGRESQL_USER", "atoll");
const PASSWORD: (&str, &str) = ("POSTGRESQL_PASSWORD", "secret");
const ALL: [(&str, &str); 3] = [DATABASE, USER, PASSWORD];

#[test]
fn the_first_start_makes_user_and_database() {
    let container = Container::new();
    assert_eq!(
        container.statements(&ALL),
        "create role \"atoll\" login password 'secret'\ncreate database \"installer\" owner \"atoll\"\n"
    );
    assert_eq!(container.names(), ["pgdata"]);
}

#[test]
fn later_starts_only_set_the_password() {
    let container = Container::new();
    container.statements(&ALL);
    let changed = [DATABASE, USER, ("POSTGRESQL_PASSWORD", "new")];
    let text = container.statements(&changed);
    let kinds: Vec<&str> = text
        .lines()
        .map(|line| &line[..line.len().min(8)])
        .collect();
    assert_eq!(kinds, ["set atol", "do $$ be", "alter ro", "do $$ de"]);
    assert!(
        text.contains(
            "alter role \"atoll\" login nosuperuser nocreatedb nocreaterole noreplication nobypassrls password 'new'\n"
        ),
        "{text}"
    );
}

#[test]
fn every_character_may_be_in_a_name_or_password() {
    let container = Container::new();
    let bytes: String = ('\u{a1}'..='\u{17f}').collect();
    let odd = "-n 'a' \"b\" \\ \\n $c `d` %s * ";
    let password = format!("{odd}{bytes}");
    let text = container.statements(&[
        ("POSTGRESQL_DATABASE", odd),
        ("POSTGRESQL_USER", "\"\""),
        ("POSTGRESQL_PASSWORD", &password),
    ]);
    let (literal, name) = (password.replace('\'', "''"), odd.replace('"', "\"\""));
    assert_eq!(
        text,
        format!(
            "create role \"\"\"\"\"\" login password '{literal}'\ncreate database \"{name}\" owner \"\"\"\"\"\"\n"
        )
    );
}

#[test]
fn a_password_file_overrides_the_variable() {
    for content in ["of the file", "of the file\n", "of the file\r\n\n"] {
        let container = Container::new();
        let file = container.folder.path().join("password");
        fs::write(&file, content).unwrap();
        let file = file.to_str().unwrap();
        let text =
            container.statements(&[DATABASE, USER, PASSWORD, ("POSTGRESQL_PASSWORD_FILE", file)]);
        assert!(text.contains("password 'of the file'\n"), "{text}");
    }
}

#[test]
fn all_missing_variables_are_reported() {
    let container = Container::new();
    let text = container.refusal(&[USER]);
    assert!(text.contains("POSTGRESQL_DATABASE POSTGRESQL_PASSWORD (or POSTGRESQL_PASSWORD_FILE)"));
    assert!(!text.contains("POSTGRESQL_USER"));
    let text = container.refusal(&[DATABASE, USER, ("POSTGRESQL_PASSWORD_FILE", "/none/x")]);
    assert!(text.contains("/none/x is not there"), "{text}");
    let text = container.refusal(&[DATABASE, USER, ("POSTGRESQL_PASSWORD", "a\nb")]);
    assert!(text.contains("several lines"), "{text}");
    let text = container.refusal(&[DATABASE, ("POSTGRESQL_USER", "postgres"), PASSWORD]);
    assert!(text.contains("superuser"), "{text}");
    let long = "é".repeat(32);
    let text = container.refusal(&[DATABASE, ("POSTGRESQL_USER", &long), PASSWORD]);
    assert!(text.contains("longer than 63 bytes"), "{text}");
    assert!(container.names().is_empty());
}

#[test]
fn data_of_another_version_is_unchanged() {
    let container = Container::new();
    fs::create_dir(container.cluster()).unwrap();
    let version = container.cluster().join("PG_VERSION");
    fs::write(&version, "14\n").unwrap();
    let text = container.refusal(&ALL);
    assert!(
        text.contains("made by PostgreSQL 14, this image has 15"),
        "{text}"
    );
    assert_eq!(fs::read_to_string(version).unwrap(), "14\n");
}

#[test]
fn data_elsewhere_in_the_volume_is_detected() {
    let container = Container::new();
    let other = container.volume().join("userdata");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("PG_VERSION"), "15\n").unwrap();
    let text = container.refusal(&ALL);
    assert!(
        text.contains(&format!("there is a database in {}", other.display())),
        "{text}"
    );
    assert_eq!(container.names(), ["userdata"]);
}

#[test]
fn a_killed_first_start_is_repeated() {
    let container = Container::new();
    let unfinished = container.volume().join("pgdata.new");
    fs::create_dir(&unfinished).unwrap();
    fs::write(unfinished.join("PG_VERSION"), "15\n").unwrap();
    fs::write(unfinished.join("half"), "").unwrap();
    assert!(container.statements(&ALL).starts_with("create role"));
    assert_eq!(container.names(), ["pgdata"]);
    assert!(!container.cluster().join("half").exists());
}

#[test]
fn a_failed_first_start_leaves_nothing() {
    let container = Container::new();
    let server = container.folder.path().join("postgres");
    fs::remove_file(&server).unwrap();
    symlink("/bin/false", server).unwrap();
    let text = container.refusal(&ALL);
    assert!(text.contains("the database was not made"), "{text}");
    assert!(container.names().is_empty());
}

#[test]
fn a_volume_in_use_is_rejected() {
    let container = Container::new();
    let folder = fs::File::open(container.volume()).unwrap();
    folder.try_lock().unwrap();
    let text = container.refusal(&ALL);
    assert!(
        text.contains("another container uses this volume"),
        "{text}"
    );
    folder.unlock().unwrap();
    container.statements(&ALL);
}

#[test]
fn the_mounted_one_of_both_volumes_is_used() {
    // The whole of /var/lib/pgsql is the volume of the documented pod.
    for (mount, volume) in [
        (VOLUMES[0], VOLUMES[0]),
        (VOLUMES[1], VOLUMES[1]),
        ("var/lib/pgsql", VOLUMES[1]),
    ] {
        let container = Container::mounting(&[mount], volume, "xfs");
        assert!(container.statements(&ALL).starts_with("create role"));
        assert_eq!(container.names(), ["pgdata"], "{mount}");
        // The next start finds it.
        assert!(container.statements(&ALL).starts_with("set atoll.owner"));
    }
}

#[test]
fn without_a_volume_nothing_is_started_unless_that_is_asked_for() {
    for (mounts, kind) in [(&[][..], ""), (&VOLUMES[..], "tmpfs")] {
        let container = Container::mounting(mounts, VOLUMES[0], kind);
        let text = container.refusal(&ALL);
        assert!(text.contains("/var/lib/postgresql/data or at "), "{text}");
        assert!(
            text.contains("/var/lib/pgsql/data: the database would be lost"),
            "{text}"
        );
        assert!(text.contains("POSTGRESQL_EPHEMERAL=true"), "{text}");
        assert!(!container.cluster().exists());
        let asked = [DATABASE, USER, PASSWORD, ("POSTGRESQL_EPHEMERAL", "true")];
        container.statements(&asked);
        assert!(container.cluster().exists());
    }
}

#[test]
fn the_volume_with_a_database_is_preferred() {
    for (with, without) in [(0, 1), (1, 0)] {
        let container = Container::mounting(&VOLUMES, VOLUMES[without], "ext4");
        container.has_cluster(&format!("{}/pgdata", VOLUMES[with]));
        container.statements(&ALL);
        assert!(container.names().is_empty());
    }
}

#[test]
fn two_databases_are_refused_and_one_at_both_paths_is_not() {
    let container = Container::mounting(&VOLUMES, VOLUMES[0], "ext4");
    for volume in VOLUMES {
        container.has_cluster(&format!("{volume}/pgdata"));
    }
    let text = container.refusal(&ALL);
    assert!(text.contains("there are two databases"), "{text}");
    let container = Container::mounting(&VOLUMES[..1], VOLUMES[0], "ext4");
    let root = container.folder.path();
    fs::create_dir_all(root.join("var/lib/pgsql")).unwrap();
    symlink(root.join(VOLUMES[0]), root.join(VOLUMES[1])).unwrap();
    container.has_cluster(&format!("{}/pgdata", VOLUMES[0]));
    container.statements(&ALL);
}

#[test]
fn data_of_the_peers_image_is_not_mistaken_for_an_empty_volume() {
    let container = Container::mounting(&["var/lib/pgsql"], VOLUMES[1], "ext4");
    container.has_cluster("var/lib/pgsql/data/userdata");
    let text = container.refusal(&ALL);
    assert!(text.contains("/userdata, but none in "), "{text}");
    assert_eq!(container.names(), ["userdata"]);
}

#[test]
fn the_command_of_other_images_is_accepted() {
    for name in ["run-postgresql", "postgres"] {
        let container = Container::new();
        let output = container.command(&ALL).args([name, "-c", "x=y"]).output();
        assert!(output.unwrap().status.success());
        let log = fs::read_to_string(container.folder.path().join("log")).unwrap();
        let last = log.lines().last().unwrap();
        assert!(last.ends_with("postgresql.conf -c x=y"), "{last}");
    }
}

#[test]
fn root_gives_an_empty_volume_to_the_server_and_becomes_its_user() {
    for (mount, content, is_given) in [
        (VOLUMES[0], None, true),
        (VOLUMES[0], Some("lost+found"), true),
        (VOLUMES[0], Some("other"), false),
        ("var/lib/pgsql", None, true),
    ] {
        let volume = if mount == VOLUMES[0] {
            VOLUMES[0]
        } else {
            VOLUMES[1]
        };
        let container = Container::mounting(&[mount], volume, "ext4");
        container.runs_as(0, "00000000a80425fb");
        if let Some(name) = content {
            fs::create_dir(container.volume().join(name)).unwrap();
        }
        for name in ["chown", "setpriv"] {
            symlink(SERVER, container.folder.path().join(name)).unwrap();
        }
        let output = container.start(&ALL);
        assert!(output.status.success(), "{output:?}");
        let log = fs::read_to_string(container.folder.path().join("log")).unwrap();
        let given = format!("chown 999:999 {}\n", container.volume().display());
        assert_eq!(log.contains(&given), is_given, "{log}");
        assert!(
            log.contains("setpriv --reuid=999 --regid=999 --clear-groups"),
            "{log}"
        );
        assert!(!container.cluster().exists());
    }
}

#[test]
fn refusals_name_the_remedy() {
    let container = Container::mounting(&VOLUMES[..1], VOLUMES[0], "ext4");
    container.runs_as(0, "0000000000000000");
    let text = container.refusal(&ALL);
    assert!(text.contains("runAsUser: 999"), "{text}");
    container.runs_as(999, "0000000000000000");
    let volume = container.volume();
    fs::remove_dir(&volume).unwrap();
    fs::write(&volume, "").unwrap();
    let text = container.refusal(&ALL);
    assert!(text.contains("user 999 cannot write to "), "{text}");
    assert!(text.contains("chown 999:999 FOLDER"), "{text}");
}

#[test]
fn only_listed_extensions_and_modules_are_copied() {
    assert!(belongs_to("pgcrypto.control", "pgcrypto"));
    assert!(belongs_to("pgcrypto--1.2--1.3.sql", "pgcrypto"));
    assert!(!belongs_to("pgcrypto2.control", "pgcrypto"));
    assert!(is_wanted_module("utf8_and_win"));
    assert!(is_wanted_module("plpgsql"));
    assert!(!is_wanted_module("llvmjit"));
    assert!(!is_wanted_module("latin_and_mic"));
}

#[test]
fn modes_do_not_depend_on_this_machine() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("source");
    fs::write(&source, "x").unwrap();
    fs::set_permissions(&source, fs::Permissions::from_mode(0o600)).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    let target = folder.path().join("a/b/c");
    ImageEntry::program(&source).write(&target).unwrap();
    assert_eq!(mode(&target), 0o755);
    assert_eq!(mode(target.parent().unwrap()), 0o755);
    let temp = folder.path().join("tmp");
    ImageEntry::Folder { mode: 0o1777 }.write(&temp).unwrap();
    assert_eq!(mode(&temp), 0o1777);
}

#[test]
fn a_changed_file_changes_the_inputs() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("source");
    fs::write(&source, "x").unwrap();
    let entry = ImageEntry::plain(&source);
    let before = entry.describe().unwrap();
    assert_eq!(entry.describe().unwrap(), before);
    fs::write(&source, "xy").unwrap();
    assert_ne!(entry.describe().unwrap(), before);
    fs::remove_file(&source).unwrap();
    assert!(entry.describe().is_err());
}
