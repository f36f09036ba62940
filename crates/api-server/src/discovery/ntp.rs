//! The script that tells chronyd its time sources.

use model::infra_env::InfraEnv;

/// Text of add-ntp-sources.sh; none when the infra-env names no source.
///
/// `ntp_sources` replaces what the operating system has, `additional_ntp_sources` adds to it.
pub(super) fn script(infra_env: &InfraEnv) -> Option<String> {
    let replacing = servers(&infra_env.ntp_sources);
    if !replacing.is_empty() {
        return Some(format!(
            "#!/bin/bash\n\
             set -euo pipefail\n\
             cat > /etc/chrony.conf <<'END'\n\
             {replacing}\
             sourcedir /run/chrony-dhcp\n\
             driftfile /var/lib/chrony/drift\n\
             makestep 1.0 -1\n\
             rtcsync\n\
             logdir /var/log/chrony\n\
             END\n"
        ));
    }
    let adding = servers(&infra_env.additional_ntp_sources);
    (!adding.is_empty()).then(|| {
        // The clock of a new machine may be far off: it steps whenever needed, not in the first updates alone.
        format!(
            "#!/bin/bash\n\
             set -euo pipefail\n\
             sed -i '/^makestep /d' /etc/chrony.conf\n\
             cat >> /etc/chrony.conf <<'END'\n\
             \n\
             makestep 1.0 -1\n\
             {adding}\
             END\n"
        )
    })
}

fn servers(list: &str) -> String {
    list.split(',')
        .map(str::trim)
        .filter(|source| !source.is_empty())
        .flat_map(|source| ["server ", source, " iburst\n"])
        .collect()
}
