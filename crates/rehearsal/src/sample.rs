//! Site files of profiles: as many machines with DHCP as the profile has.

use host_sim::InstallationProfile;

/// The site file of a profile.
pub(crate) fn site(profile: &InstallationProfile) -> String {
    let [masters, arbiters, workers] = profile.machines;
    let platform = if masters + arbiters == 1 {
        "  none: {}"
    } else {
        "  baremetal:\n    apiVIPs: [192.168.126.100]\n    ingressVIPs: [192.168.126.101]"
    };
    let arbiter = match arbiters {
        0 => String::new(),
        count => format!("arbiter:\n  name: arbiter\n  replicas: {count}\n"),
    };
    let hosts = [
        ("master", masters),
        ("arbiter", arbiters),
        ("worker", workers),
    ];
    let hosts: Vec<String> = hosts
        .into_iter()
        .flat_map(|(role, count)| (0..count).map(move |number| (role, number)))
        .enumerate()
        .map(|(at, (role, number))| {
            format!(
                "- hostname: {role}-{number}
  role: {role}
  interfaces:
  - name: enp1s0
    macAddress: 52:54:00:00:00:{at:02x}
"
            )
        })
        .collect();
    let hosts = hosts.concat();
    format!(
        "apiVersion: v1
metadata:
  name: rehearsal
baseDomain: example.com
controlPlane:
  name: master
  replicas: {masters}
{arbiter}compute:
- name: worker
  replicas: {workers}
networking:
  machineNetwork:
  - cidr: 192.168.126.0/24
  clusterNetwork:
  - cidr: 10.128.0.0/14
    hostPrefix: 23
  serviceNetwork:
  - 172.30.0.0/16
platform:
{platform}
pullSecret: '{{\"auths\":{{\"registry.example.com\":{{\"auth\":\"dXNlcjpwYXNzd29yZA==\"}}}}}}'
---
apiVersion: v1beta1
kind: AgentConfig
metadata:
  name: rehearsal
hosts:
{hosts}"
    )
}

#[cfg(test)]
mod tests {
    use host_sim::PROFILES;

    use super::*;

    #[test]
    fn sites_of_profiles_have_no_mistakes() {
        for profile in PROFILES {
            let site = declarations::site::parse(&site(profile)).unwrap();
            assert_eq!(declarations::site::check(&site), [], "{}", profile.name);
            let count: usize = profile.machines.iter().sum();
            assert_eq!(site.hosts.len(), count);
        }
    }
}
