//! `atoll up`: supervision, settings, permissions and roles.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use crate::installation::{Place, lives, until};

#[test]
fn it_starts_reloads_and_stops_all_services() {
    let place = Place::new();
    let settings = place.file("my.env");
    fs::write(&settings, "NTP_DEFAULT_SERVER=a.example\n").unwrap();
    let up = place.up_with(place.command().arg("--env-file").arg(&settings));

    let mut second = place.command();
    let output = second.output().unwrap();
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(printed.contains("already"), "{printed}");

    let status = Command::new(env!("CARGO_BIN_EXE_atoll"))
        .args(["status", "--data"])
        .arg(place.data())
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&status.stdout);
    assert!(status.status.success(), "{printed}");
    assert!(printed.contains("api-server"), "{printed}");

    let (api, webui, registry) = (up.pid("api-server"), up.pid("webui"), up.pid("registry"));
    fs::write(&settings, "NTP_DEFAULT_SERVER=b.example\n").unwrap();
    up.wait_new("api-server", api);
    up.wait_new("webui", webui);
    assert_eq!(
        up.pid("registry"),
        registry,
        "the registry does not read these variables"
    );

    let stop_file = place.data().join("control/registry.stop");
    fs::write(&stop_file, "").unwrap();
    until("the registry is stopped", || up.pid("registry").is_none());
    fs::remove_file(&stop_file).unwrap();
    up.wait_new("registry", None);

    let pids: Vec<i32> = ["api-server", "postgres"]
        .iter()
        .filter_map(|name| up.pid(name))
        .collect();
    up.stop();
    assert!(!pids.into_iter().any(lives));
}

#[test]
fn killed_processes_restart_with_their_data() {
    let place = Place::new();
    let up = place.up();
    let made = fs::read(place.data().join("secrets/database-password")).unwrap();
    for name in ["registry", "postgres", "api-server"] {
        let old = up.pid(name);
        up.kill(name);
        up.wait_new(name, old);
    }
    let left: Vec<i32> = ["api-server", "registry", "webui", "image-service"]
        .iter()
        .filter_map(|name| up.pid(name))
        .collect();
    up.kill_supervisor();
    until("services end without their supervisor", || {
        !left.iter().any(|pid| lives(*pid))
    });

    let again = place.up();
    let kept = fs::read(place.data().join("secrets/database-password")).unwrap();
    assert_eq!(made, kept);
    again.stop();
}

#[test]
fn wrong_settings_are_reported_before_any_start() {
    let place = Place::new();
    let settings = place.file("my.env");
    fs::write(&settings, "DUMMY_IGNITION=perhaps\nOS_IMAGES=[\n").unwrap();
    let output = place
        .command()
        .arg("--env-file")
        .arg(&settings)
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    for expected in ["DUMMY_IGNITION", "OS_IMAGES", "api-server", "image-service"] {
        assert!(printed.contains(expected), "{expected}: {printed}");
    }
    assert!(!place.data().join("postgres/data").exists());
}

#[test]
fn secrets_are_for_their_owner_only() {
    let place = Place::new();
    let up = place.up();
    for entry in fs::read_dir(place.data().join("secrets")).unwrap() {
        let entry = entry.unwrap();
        let metadata = entry.metadata().unwrap();
        let mode = metadata.permissions().mode() & 0o777;
        // Under root, the group is that of the one service that needs it.
        let expected = if metadata.gid() == 0 || !is_root() {
            0o600
        } else {
            0o640
        };
        assert_eq!(mode, expected, "{}", entry.path().display());
    }
    assert!(up.state()["registry_password_file"].is_string());
    up.stop();
}

/// Runs statements as superuser in a single-user session on the data of a stopped `place`.
fn session(place: &Place, database: &str, statements: &str) -> String {
    let data = place.data().join("postgres/data");
    let version = fs::read_to_string(data.join("PG_VERSION")).unwrap();
    let server = format!("/usr/lib/postgresql/{}/bin/postgres", version.trim());
    let owner = fs::metadata(&data).unwrap();
    let mut command = Command::new(server);
    command.args(["--single", "-D"]).arg(&data).arg(database);
    command.current_dir("/").env("LC_ALL", "C");
    if owner.uid() != fs::metadata("/proc/self").unwrap().uid() {
        command.uid(owner.uid()).gid(owner.gid());
    }
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(statements.as_bytes()).unwrap();
    drop(input);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

const SUPERUSERS: &str = "select string_agg(rolname, ',') as found from pg_authid where rolsuper\n";
const FOREIGN: &str = "select count(*) as found from pg_class where relnamespace = 'public'::regnamespace \
    and relowner <> (select oid from pg_roles where rolname = 'atoll')\n";

#[test]
fn the_application_is_no_superuser_in_new_and_in_older_data() {
    let place = Place::new();
    place.up().stop();
    let found = session(&place, "installer", SUPERUSERS);
    assert!(found.contains("found = \"postgres\""), "{found}");
    // As created by versions without an application role.
    session(
        &place,
        "installer",
        "reassign owned by atoll to postgres\nalter database installer owner to postgres\n\
        drop owned by atoll\ndrop role atoll\n\
        update pg_authid set rolname = 'atoll' where oid = 10\n",
    );
    fs::remove_file(place.data().join("postgres/data/atoll.roles")).unwrap();
    place.up().stop();
    let found = session(&place, "installer", SUPERUSERS);
    assert!(found.contains("found = \"postgres\""), "{found}");
    let found = session(&place, "installer", FOREIGN);
    assert!(found.contains("found = \"0\""), "{found}");
}

fn is_root() -> bool {
    fs::metadata("/proc/self").unwrap().uid() == 0
}

/// Value of a line of a process's status.
fn status(pid: i32, name: &str) -> String {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let words = line.unwrap().trim_start_matches(':').split_whitespace();
    words.collect::<Vec<_>>().join(" ")
}

/// Owners of all files below `folder`.
fn owners(folder: &std::path::Path, found: &mut std::collections::BTreeSet<(u32, u32)>) {
    let metadata = fs::symlink_metadata(folder).unwrap();
    found.insert((metadata.uid(), metadata.gid()));
    if metadata.is_dir() {
        for entry in fs::read_dir(folder).unwrap() {
            owners(&entry.unwrap().path(), found);
        }
    }
}

const SERVICES: [&str; 4] = ["registry", "api-server", "image-service", "webui"];

/// Checks users and privileges of all services; their uids.
fn are_unprivileged(place: &Place, up: &crate::installation::Up) -> Vec<u32> {
    let own = fs::metadata("/proc/self").unwrap().uid();
    let mut uids = Vec::new();
    for name in SERVICES {
        let pid = up.pid(name).unwrap();
        let uids_of = status(pid, "Uid");
        let uid: u32 = uids_of.split(' ').next().unwrap().parse().unwrap();
        assert_eq!(uids_of, format!("{uid} {uid} {uid} {uid}"));
        assert_eq!(status(pid, "NoNewPrivs"), "1", "{name}");
        uids.push(uid);
        if own != 0 {
            assert_eq!(uid, own, "{name}");
            continue;
        }
        assert_ne!(uid, 0, "{name}");
        assert_eq!(status(pid, "Groups"), "", "{name}");
        for set in ["CapPrm", "CapEff", "CapAmb"] {
            assert_eq!(status(pid, set), "0000000000000000", "{name} {set}");
        }
        let folder = place.data().join(name);
        let mode = fs::metadata(&folder).unwrap().mode() & 0o777;
        assert_eq!(mode, 0o700, "{name}");
        let mut found = std::collections::BTreeSet::new();
        owners(&folder, &mut found);
        assert_eq!(found, [(uid, uid)].into(), "{name}");
    }
    uids
}

#[test]
fn each_service_is_a_user_of_its_own_under_root() {
    let place = Place::new();
    let up = place.up();
    let mut uids = are_unprivileged(&place, &up);
    if is_root() {
        uids.sort_unstable();
        uids.dedup();
        assert_eq!(uids.len(), SERVICES.len());
        let group = |name: &str| {
            let metadata = fs::metadata(place.data().join("secrets").join(name)).unwrap();
            let uid = metadata.uid();
            (uid, metadata.gid(), metadata.mode() & 0o777)
        };
        let of = |service: &str| {
            let gids = status(up.pid(service).unwrap(), "Gid");
            gids.split(' ').next().unwrap().parse().unwrap()
        };
        for (secret, expected) in [
            ("database-password", (0, of("api-server"), 0o640)),
            ("registry.key", (0, of("registry"), 0o640)),
            ("registry.htpasswd", (0, of("registry"), 0o640)),
            ("registry-password", (0, 0, 0o600)),
        ] {
            assert_eq!(group(secret), expected, "{secret}");
        }
    }
    up.stop();
    // As left by an older version, whose services ran as root.
    for name in SERVICES.into_iter().filter(|_| is_root()) {
        let mut chown = Command::new("chown");
        let status = chown
            .args(["-R", "0:0"])
            .arg(place.data().join(name))
            .status();
        assert!(status.unwrap().success());
    }
    let again = place.up();
    are_unprivileged(&place, &again);
    again.stop();
}
