//! Instructions of a hostile service: every step ends, with the reason of a failure.

use model::steps::StepType;

use super::network_tests::context;
use super::{MAX_ERROR, run};

/// Steps without arguments, and one that waits for the service.
const WITHOUT_ARGUMENTS: [StepType; 3] = [
    StepType::Inventory,
    StepType::StopInstallation,
    StepType::LogsGather,
];

fn arguments() -> Vec<Vec<String>> {
    let long = "x".repeat(1 << 20);
    let texts = [
        "",
        "null",
        "[]",
        "{}",
        "[null]",
        "[{}]",
        "-1",
        "1e999",
        "\u{0}",
        "\"--help\"",
        r#"["0.0.0.0/0"]"#,
        r#"["10.0.0.1/8"]"#,
        r#"[{"vip":"--"}]"#,
        r#"[{"nics":[{"mac":"-","ip_addresses":["-","999.0.0.1","/"]}]}]"#,
        r#"{"images":[],"timeout":9223372036854775807}"#,
        r#"{"images":["--privileged","../../etc"],"timeout":-9223372036854775808}"#,
        r#"{"ntp_source":"-h,a b,;reboot"}"#,
        r#"{"domains":[{"domain_name":".."},{"domain_name":"-"}]}"#,
        r#"{"tang_servers":"[{\"url\":\"file:///etc/shadow\",\"thumbprint\":\"../..\"}]"}"#,
        r#"{"url":"file:///etc/shadow"}"#,
        r#"{"url":"http://127.0.0.1:1/","request_headers":[{"key":"a\r\nb","value":"\r\n"}]}"#,
        r#"{"interface":"../../x","api_vip_mac":"-","ingress_vip_mac":"-"}"#,
        r#"{"path":"/dev/../etc/no-such-file"}"#,
        r#"{"kernel_url":"file:///etc/shadow","initrd_url":"x","rootfs_url":"","host_fs_mount_dir":"/.."}"#,
        r#"{"host_fs_mount_dir":"/host/../.."}"#,
        r#"{"boot_device":"/dev/../etc/passwd","role":"master","installer_image":"--help"}"#,
    ];
    let mut all: Vec<Vec<String>> = texts.map(|text| vec![text.to_owned()]).into();
    all.push(Vec::new());
    all.push(vec!["{}".to_owned(); 1000]);
    all.push(vec![
        r#"{"path":"/no/disk"}"#.to_owned(),
        "1e300".to_owned(),
    ]);
    all.push(vec![format!("\"{long}\"")]);
    all.push(vec!["[".repeat(100_000)]);
    all
}

#[tokio::test]
async fn absurd_arguments_are_failed_steps() {
    let root = tempfile::tempdir().unwrap();
    let context = context(&root);
    let all = arguments();
    for kind in StepType::ALL {
        if WITHOUT_ARGUMENTS.contains(kind) {
            continue;
        }
        for arguments in &all {
            let outcome = run(&context, *kind, arguments).await;
            let is_named = outcome.exit_code == 0 || !outcome.error.is_empty();
            let shown: String = arguments.concat().chars().take(100).collect();
            assert!(is_named, "{kind} {shown}: {outcome:?}");
            assert!(outcome.error.len() <= MAX_ERROR, "{kind} {shown}");
        }
    }
    let written = std::fs::read_dir(root.path()).unwrap().count();
    assert_eq!(written, 0, "nothing is written");
}
