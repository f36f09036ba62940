//! Replies to the steps of the server, computed from the machine and the simulated network.
//!
//! Arguments are checked as strictly as the real agent checks them; a step that it would refuse gets exit code −1 and
//! counts as a fault of the server.

pub(crate) mod arguments;
mod checks;
mod lifecycle;
mod logs;
mod network;
mod reply;

pub(crate) use logs::upload_host_logs;
pub(crate) use reply::StepReply;

use std::sync::Arc;

use serde::Deserialize;

use crate::HostFault;
use crate::machine::Machine;

/// Exit code of every step without the medium of the discovery image. Source: assisted-installer-agent.
const MEDIUM_LOST: i64 = 256;

/// One instruction.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct AgentStep {
    #[serde(rename = "step_type")]
    pub(crate) kind: String,
    #[serde(rename = "step_id")]
    pub(crate) id: String,
    args: Option<Vec<String>>,
}

/// Runs one step. Errors of a handler: the reason why the arguments are invalid.
pub(crate) async fn answer(machine: &Arc<Machine>, step: &AgentStep) -> StepReply {
    let args = step.args.as_deref().unwrap_or_default();
    if machine.hardware.has(HostFault::Medium) && step.kind != "inventory" {
        return StepReply::failed(
            MEDIUM_LOST,
            "cannot read the boot medium: Input/output error",
        );
    }
    let result = match step.kind.as_str() {
        "inventory" => checks::inventory(machine, args),
        "connectivity-check" => network::connectivity(machine, args),
        "free-network-addresses" => network::free_addresses(machine, args),
        "dhcp-lease-allocate" => network::dhcp_lease(machine, args),
        "ntp-synchronizer" => network::ntp(machine, args),
        "domain-resolution" => network::domains(machine, args),
        "verify-vips" => network::verify_vips(machine, args),
        "tang-connectivity-check" => network::tang(args),
        "api-vip-connectivity-check" => network::api_vip(machine, args),
        "installation-disk-speed-check" => checks::disk_speed(machine, args).await,
        "container-image-availability" => checks::images(machine, args).await,
        "install" => lifecycle::install(machine, args),
        "stop-installation" => lifecycle::stop_installation(machine, args),
        "logs-gather" => logs::gather(machine, args).await,
        "upgrade-agent" => lifecycle::upgrade_agent(machine, args),
        "download-boot-artifacts" => lifecycle::download_boot_artifacts(machine, args).await,
        "reboot-for-reclaim" => lifecycle::reboot_for_reclaim(machine, args),
        other => Err(format!("the agent does not know the step type {other:?}")),
    };
    result.unwrap_or_else(|reason| {
        let text = format!("step {} ({}): {reason}", step.kind, step.id);
        machine.world.breach(machine.name(), &text);
        StepReply::failed(-1, text)
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use std::time::Duration;

    use super::*;
    use crate::controller::Controller;
    use crate::fleet::tests::fleet;
    use crate::image::BootConfig;
    use crate::state_file::StateFile;
    use crate::world::tests::network;
    use crate::{ApiClient, Pace, Role, World};

    pub(crate) fn args(args: &[&str]) -> Vec<String> {
        args.iter().map(|arg| (*arg).to_owned()).collect()
    }

    pub(crate) fn machine_with(faults: &[HostFault]) -> Arc<Machine> {
        let mut machines = fleet(Role::Master, 3).machines().unwrap();
        for fault in faults {
            machines[0].add(*fault);
        }
        let machines = machines.into_iter().map(Arc::new).collect();
        let world = Arc::new(World::new(network(), Pace::new(1e6), "s", machines));
        let boot = BootConfig {
            url: "http://127.0.0.1:9".into(),
            infra_env_id: uuid::Uuid::nil(),
            agent_version: "q.io/a/agent:1".into(),
            insecure: false,
            ca_pem: None,
            token: None,
        };
        let api = ApiClient::new(&boot, world.pace, Arc::default()).unwrap();
        let controller = Arc::new(Controller::new(api.clone(), Arc::clone(&world), None).unwrap());
        let hardware = Arc::clone(&world.machines()[0]);
        Arc::new(Machine::new(
            hardware,
            world,
            boot,
            api,
            StateFile::open(None, "").unwrap(),
            controller,
        ))
    }

    async fn answer_to(machine: &Arc<Machine>, step_type: &str, list: &[&str]) -> StepReply {
        let step = AgentStep {
            kind: step_type.into(),
            id: format!("{step_type}-1"),
            args: Some(args(list)),
        };
        tokio::time::timeout(Duration::from_mins(1), answer(machine, &step))
            .await
            .unwrap()
    }

    #[tokio::test]
    async fn invalid_arguments_count_as_faults_of_the_server() {
        let machine = machine_with(&[]);
        let cases: &[(&str, &[&str])] = &[
            ("inventory", &[]),
            ("inventory", &["a", "b"]),
            ("connectivity-check", &["{}"]),
            ("free-network-addresses", &["[\"fd00::/64\"]"]),
            ("ntp-synchronizer", &["ntp"]),
            ("verify-vips", &["[{\"vip\":\"x\",\"vip_type\":\"api\"}]"]),
            (
                "installation-disk-speed-check",
                &["{\"path\":\"/dev/sda\"}"],
            ),
            (
                "container-image-availability",
                &["{\"images\":[\"\"],\"timeout\":960}"],
            ),
            ("stop-installation", &["x"]),
            ("execute", &["reboot"]),
        ];
        for (count, (step_type, list)) in cases.iter().enumerate() {
            let reply = answer_to(&machine, step_type, list).await;
            assert_eq!(reply.exit_code, -1, "{step_type} {list:?}");
            assert_eq!(machine.world.breaches().len(), count + 1);
        }
    }

    #[tokio::test]
    async fn without_its_medium_a_machine_only_has_its_inventory() {
        let machine = machine_with(&[HostFault::Medium]);
        let id = machine.hardware.host_id.to_string();
        assert_eq!(answer_to(&machine, "inventory", &[&id]).await.exit_code, 0);
        let reply = answer_to(&machine, "ntp-synchronizer", &["{}"]).await;
        assert_eq!(reply.exit_code, MEDIUM_LOST);
        assert!(machine.world.breaches().is_empty());
    }

    #[tokio::test]
    async fn a_running_installation_is_not_started_twice() {
        let machine = machine_with(&[]);
        let request = serde_json::json!({
            "cluster_id": uuid::Uuid::nil(), "infra_env_id": uuid::Uuid::nil(), "host_id": machine.hardware.host_id,
            "role": "master", "boot_device": machine.hardware.disk_by_id(),
            "controller_image": "q.io/c:1", "installer_image": "q.io/i:1",
        })
        .to_string();
        assert_eq!(
            answer_to(&machine, "install", &[&request]).await.exit_code,
            0
        );
        let second = answer_to(&machine, "install", &[&request]).await;
        assert_eq!(second.exit_code, 125);
        assert!(second.error.contains("already in use"));
        assert_eq!(
            answer_to(&machine, "stop-installation", &[])
                .await
                .exit_code,
            0
        );
        assert!(machine.disk.get().install.is_none());
    }
}
