//! The program as its unit starts it.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::process::{Command, Output};

fn run(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_atoll-agent"));
    command.args(arguments).output().unwrap()
}

#[test]
fn the_inventory_is_printed() {
    let output = run(&["inventory"]);
    assert!(output.status.success());
    let inventory: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(inventory["cpu"]["architecture"], std::env::consts::ARCH);
    assert!(
        inventory["interfaces"]
            .as_array()
            .is_some_and(|links| !links.is_empty())
    );
}

#[test]
fn wrong_arguments_are_named() {
    let id = "1b4e28ba-2fa1-41d2-883f-0016d3cca427";
    for (arguments, problem) in [
        (&["--url", "http://127.0.0.1:1"][..], "--infra-env-id"),
        (&["--url", "nonsense", "--infra-env-id", id], "nonsense"),
        (
            &[
                "--url",
                "http://127.0.0.1:1",
                "--infra-env-id",
                id,
                "--cacert",
                "/no/file",
            ],
            "/no/file",
        ),
    ] {
        let output = run(arguments);
        assert!(!output.status.success(), "{arguments:?}");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(errors.contains(problem), "{arguments:?}: {errors}");
    }
}
