//! What `atoll up` promises.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use crate::installation::{Place, lives, until};

#[test]
fn it_starts_follows_and_ends_everything() {
    let place = Place::new();
    let settings = place.file("my.env");
    fs::write(&settings, "NTP_DEFAULT_SERVER=a.example\n").unwrap();
    let up = place.up_with(place.command().arg("--env-file").arg(&settings));

    let mut second = place.command();
    let output = second.output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(told.contains("already"), "{told}");

    let status = Command::new(env!("CARGO_BIN_EXE_atoll"))
        .args(["status", "--data"])
        .arg(place.data())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&status.stdout);
    assert!(status.status.success(), "{told}");
    assert!(told.contains("api-server"), "{told}");

    let (api, webui) = (up.pid("api-server"), up.pid("webui"));
    fs::write(&settings, "NTP_DEFAULT_SERVER=b.example\n").unwrap();
    up.wait_new("api-server", api);
    assert_eq!(
        up.pid("webui"),
        webui,
        "the page does not read these variables"
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
fn what_is_killed_comes_back_with_its_data() {
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
fn wrong_settings_are_told_before_anything_runs() {
    let place = Place::new();
    let settings = place.file("my.env");
    fs::write(&settings, "DUMMY_IGNITION=perhaps\nOS_IMAGES=[\n").unwrap();
    let output = place
        .command()
        .arg("--env-file")
        .arg(&settings)
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    for expected in ["DUMMY_IGNITION", "OS_IMAGES", "api-server", "image-service"] {
        assert!(told.contains(expected), "{expected}: {told}");
    }
    assert!(!place.data().join("postgres/data").exists());
}

#[test]
fn secrets_are_for_their_owner_only() {
    let place = Place::new();
    let up = place.up();
    for entry in fs::read_dir(place.data().join("secrets")).unwrap() {
        let entry = entry.unwrap();
        let mode = entry.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{}", entry.path().display());
    }
    assert!(up.state()["registry_password_file"].is_string());
    up.stop();
}

/// Statements of a superuser, in a single-user session on the data of `place`, while nothing runs.
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
    // As versions without a role for the application made it.
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
