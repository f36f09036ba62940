//! The script that configures the time sources of chronyd.

use model::infra_env::InfraEnv;

/// Text of add-ntp-sources.sh; none without sources.
///
/// `ntp_sources` replaces the operating system's sources, `additional_ntp_sources` adds to them.
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
        // The clock of a new machine may be far off: step at any update, not only at the first ones.
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
