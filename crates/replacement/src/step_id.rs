//! Ids of the steps, with their words.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepId {
    TakeSnapshot,
    SaveRecords,
    FenceNode,
    PausePool,
    AllowRollout,
    MoveLeader,
    RemoveMember,
    DeleteSecrets,
    DeleteHost,
    RetireMachine,
    DeleteMachine,
    DeleteNode,
    CreateRecords,
    BootNode,
    JoinNode,
    EjectImage,
    AddMember,
    PromoteMember,
    RestoreRollout,
    ResumePool,
    SettleOperators,
}

impl StepId {
    /// Its words, for people.
    pub fn title(self) -> &'static str {
        match self {
            Self::TakeSnapshot => "Take and check a snapshot of etcd",
            Self::SaveRecords => "Save the records of the node",
            Self::FenceNode => "Make sure that the old node is off",
            Self::PausePool => "Pause the master MachineConfigPool",
            Self::AllowRollout => "Let etcd's operator roll out with two voters",
            Self::MoveLeader => "Move the leadership of etcd to a member that stays",
            Self::RemoveMember => "Remove the old member from etcd",
            Self::DeleteSecrets => "Delete the certificates of the old member",
            Self::DeleteHost => "Delete the BareMetalHost of the old node",
            Self::RetireMachine => "Mark the old Machine for deletion",
            Self::DeleteMachine => "Delete the old Machine, also when its finalizer hangs",
            Self::DeleteNode => "Delete the old Node",
            Self::CreateRecords => "Create the records of the new node",
            Self::BootNode => "Boot the new node with its image",
            Self::JoinNode => "Approve the certificates of the new node until it is ready",
            Self::EjectImage => "Eject the boot image and check the boot order",
            Self::AddMember => "Add the new member to etcd as a learner",
            Self::PromoteMember => "Make the new member a voter when it is in sync",
            Self::RestoreRollout => "Restore the setting of etcd's operator",
            Self::ResumePool => "Resume the master MachineConfigPool",
            Self::SettleOperators => "Wait until all operators have rolled out",
        }
    }
}

impl fmt::Display for StepId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.title())
    }
}
