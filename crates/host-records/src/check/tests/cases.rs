//! Mistakes in the records of a control node.

/// Replaced texts.
pub(super) type CheckCase = &'static [(&'static str, &'static str)];

pub(super) static CASES: &[CheckCase] = &[
    &[("kind: BareMetalHost", "kind: BaremetalHost")],
    &[("kind: BareMetalHost\n", "")],
    &[("metal3.io/v1alpha1", "metal3.io/v1alpha2")],
    &[("\nkind: Machine\n", "\nkind: MachineSet\n")],
    &[("bootMode: UEFI", "bootMode: uefi")],
    &[("bootMode: UEFI", "bootMode: bios")],
    &[("  online: true\n", "")],
    &[("online: true", "online: \"true\"")],
    &[("online: true", "online: ~")],
    &[("bootMACAddress:", "bootMacAddress:")],
    &[("  bootMode:", "  address: x\n  foo: 1\n  bootMode:")],
    &[("  bootMode: UEFI", "  bootMode: UEFI\n  bootMode: legacy")],
    &[(
        "  bootMode:",
        "  description: 5\n  rootDeviceHints: {minSizeGigabytes: '5', rotational: 'false', model: [x], serialNumber: 0123}\n  bootMode:",
    )],
    &[(
        "  bootMode:",
        "  rootDeviceHints: {minSizeGigabytes: -1}\n  firmware: {}\n  taints: []\n  hardwareProfile: x\n  bootMode:",
    )],
    &[("  password: Y2Fsdmlu", "  password: 12345")],
    &[
        (
            "name: cp-0\n  namespace: openshift-machine-api\nspec",
            "name: Cp_0\n  namespace: openshift-machine-api\nspec",
        ),
        ("api/cp-0", "api/Cp_0"),
    ],
    &[(
        "name: cp-0\n  namespace: openshift-machine-api\nspec",
        "name: cp-0\nspec",
    )],
    &[
        (
            "name: cp-0\n  namespace: openshift-machine-api\nspec",
            "name: 0a7c2cd6-1f0e-4b9a-9a53-0123456789ab\n  namespace: openshift-machine-api\nspec",
        ),
        ("api/cp-0", "api/0a7c2cd6-1f0e-4b9a-9a53-0123456789ab"),
    ],
    &[(
        "  name: cp-0\n  namespace: openshift-machine-api\nspec",
        "  uid: 1\n  resourceVersion: '5'\n  name: cp-0\n  namespace: openshift-machine-api\nspec",
    )],
    &[("idrac-virtualmedia://", "https://")],
    &[("idrac-virtualmedia://", "idrac-virtual-media://")],
    &[(
        "idrac-virtualmedia://10.0.0.10",
        "idrac-virtualmedia://root:calvin@10.0.0.10",
    )],
    &[(
        "    address: idrac-virtualmedia://10.0.0.10/redfish/v1/Systems/System.Embedded.1\n",
        "",
    )],
    &[("    credentialsName: cp-0-bmc-secret\n", "")],
    &[("Systems/System.Embedded.1", "Systems/1")],
    &[("idrac-virtualmedia", "redfish-virtualmedia")],
    &[("/redfish/v1/Systems/System.Embedded.1", "")],
    &[("Systems/System.Embedded.1", "systems/System.Embedded.1")],
    &[("Systems/System.Embedded.1", "Managers/iDRAC.Embedded.1")],
    &[("Systems/System.Embedded.1", "Systems/System.Embedded.1?a=b")],
    &[("/redfish/v1/Systems/System.Embedded.1", "/foo")],
    &[
        (
            "idrac-virtualmedia://10.0.0.10/redfish/v1/Systems/System.Embedded.1",
            "10.0.0.10/x",
        ),
        (
            "bootMode: UEFI",
            "bootMode: UEFISecureBoot\n  inspectionMode: fast\n  raid: {hardwareRAIDVolumes: [{level: '1'}]}",
        ),
    ],
    &[("idrac-virtualmedia://", "idrac-virtualmedia+http://")],
    &[("    disableCertificateVerification: true\n", "")],
    &[(
        "name: cp-0-bmc-secret\n  namespace: openshift-machine-api",
        "name: cp-0-bmc-secret\n  namespace: other",
    )],
    &[(
        "credentialsName: cp-0-bmc-secret",
        "credentialsName: cp0-bmc-secret",
    )],
    &[("52:54:00:00:00:10", "52-54-00-00-00-10")],
    &[("52:54:00:00:00:10", "52:54:00:00:00:1g")],
    &[("52:54:00:00:00:10", "01:00:5e:00:00:10")],
    &[(
        "  bootMACAddress: 52:54:00:00:00:10\n",
        "  inspectionMode: disabled\n",
    )],
    &[(
        "  name: cp-0\n  namespace: openshift-machine-api\nspec",
        "  annotations: {inspect.metal3.io: x, baremetalhost.metal3.io/paused: '', baremetalhost.metal3.io/detached: '', reboot.metal3.io/x: '{\"mode\":\"cold\"}', baremetalhost.metal3.io/status: '[]', inspect.metal3.io/hardwaredetails: '{}'}\n  name: cp-0\n  namespace: openshift-machine-api\nspec",
    )],
    &[
        (
            "  name: cp-0\n  namespace: openshift-machine-api\nspec",
            "  annotations: {inspect.metal3.io: disabled}\n  name: cp-0\n  namespace: openshift-machine-api\nspec",
        ),
        ("bootMode: UEFI", "inspectionMode: agent"),
    ],
    &[("online: true", "online: false")],
    &[("online: true", "online: false\n  disablePowerOff: true")],
    &[(
        "externallyProvisioned: true",
        "externallyProvisioned: true\n  image: {url: 'http://web/a.qcow2', checksum: 0123456789abcdef0123456789abcdef}",
    )],
    &[(
        "externallyProvisioned: true",
        "image: {url: 'nfs://u:p@web/a.qcow2', checksum: 'sha256:0123456789abcdef', checksumType: sha1, format: iso}",
    )],
    &[("externallyProvisioned: true", "image: {url: web/a.qcow2}")],
    &[(
        "externallyProvisioned: true",
        "image: {url: 'http://u:p@web/a', checksum: '0123456789abcdef0123456789abcdef', checksumType: sha256}",
    )],
    &[(
        "externallyProvisioned: true",
        "image: {url: 'oci://r/a', checksum: 'abc'}",
    )],
    &[(
        "externallyProvisioned: true",
        "image: {url: 'https://', checksum: 'abc', format: live-iso}",
    )],
    &[(
        "externallyProvisioned: true",
        "image: {url: 'https://w/a', checksum: 'abc'}",
    )],
    &[(
        "externallyProvisioned: true",
        "image: {url: 'https://w/a', checksum: 'xyz'}",
    )],
    &[(
        "bootMode: UEFI",
        "rootDeviceHints: {deviceName: sda, hctl: 0:0:0}",
    )],
    &[(
        "bootMode: UEFI",
        "rootDeviceHints: {deviceName: /dev/disk/by-id/x}",
    )],
    &[(
        "bootMode: UEFI",
        "rootDeviceHints: {deviceName: /dev/sda}\n  raid:\n    hardwareRAIDVolumes:\n    - {level: '1', physicalDisks: [a], numberOfPhysicalDisks: 2}\n    softwareRAIDVolumes:\n    - {level: '0', rootVolume: true, physicalDisks: [{hctl: '0:0:0:1'}]}\n    - {level: '1', rootVolume: true}\n    - {level: 1}",
    )],
    &[(
        "bootMode: UEFI",
        "networkInterfaces:\n  - {name: a}\n  - {name: a, macAddress: '52:54:00:00:00:11'}\n  - {}\n  - {name: a}\n  - {macAddress: 52-54-00-00-00-11}\n  - {macAddress: '52:54:00:00:00:12', switchPort: {portID: 1}}\n  - {macAddress: '52:54:00:00:00:12'}",
    )],
    &[(
        "userData:\n    name: master-user-data-managed\n    namespace: openshift-machine-api",
        "userData:\n    name: master-user-data-managed\n    namespace: other",
    )],
    &[(
        "    kind: Machine\n    name: prod-x7k2p-cp-0\n",
        "    kind: machine\n    name: prod-x7k2p-cp-0\n",
    )],
    &[(
        "    kind: Machine\n    name: prod-x7k2p-cp-0\n",
        "    kind: Machine\n    name: prod-x7k2p-cp-1\n",
    )],
    &[(
        "    kind: Machine\n    name: prod-x7k2p-cp-0\n",
        "    name: prod-x7k2p-cp-0\n",
    )],
    &[(
        "    name: prod-x7k2p-cp-0\n    namespace: openshift-machine-api",
        "    name: prod-x7k2p-cp-0\n    namespace: other",
    )],
    &[(
        "    name: prod-x7k2p-cp-0\n    namespace: openshift-machine-api",
        "    name: prod-x7k2p-cp-0",
    )],
    &[(
        "    apiVersion: machine.openshift.io/v1beta1",
        "    apiVersion: cluster.x-k8s.io/v1beta1",
    )],
    &[("  username: cm9vdA==", "  username: root")],
    &[("  username: cm9vdA==", "  user: cm9vdA==")],
    &[(
        "  username: cm9vdA==",
        "  username: cm9vdA==\n  realm: eA==",
    )],
    &[("  password: Y2Fsdmlu", "  password: Y2Fsdmlu Cg==")],
    &[("  password: Y2Fsdmlu", "  password: Y2FsdmluCg==")],
    &[("  password: Y2Fsdmlu", "  password: YQpi")],
    &[("  password: Y2Fsdmlu", "  password: /w==")],
    &[("  password: Y2Fsdmlu", "  password: ''")],
    &[(
        "  password: Y2Fsdmlu",
        "  password: Y2Fsdmlu\nstringData:\n  password: ' x'",
    )],
    &[("  username: cm9vdA==", "  username: YTpi")],
    &[("type: Opaque", "type: kubernetes.io/basic-auth")],
    &[("credentialsName: cp-0-bmc-secret", "credentialsName: other")],
    &[(
        "    machine.openshift.io/cluster-api-cluster: prod-x7k2p\n",
        "",
    )],
    &[("role: master", "role: control-plane")],
    &[("  finalizers:\n  - machine.machine.openshift.io\n", "")],
    &[(
        "    metal3.io/BareMetalHost: openshift-machine-api/cp-0\n",
        "",
    )],
    &[("openshift-machine-api/cp-0", "cp-0")],
    &[("openshift-machine-api/cp-0", "openshift-machine-api/cp-1")],
    &[("openshift-machine-api/cp-0", "other/cp-0")],
    &[(
        "    machine.openshift.io/instance-state: externally provisioned\n",
        "",
    )],
    &[(
        "name: prod-x7k2p-cp-0\n  namespace: openshift-machine-api\nspec",
        "name: prod-x7k2p-cp-0\n  namespace: other\nspec",
    )],
    &[(
        "baremetal.cluster.k8s.io/v1alpha1",
        "baremetal.cluster.k8s.io/v1beta1",
    )],
    &[(
        "      customDeploy:\n        method: install_coreos\n      hostSelector",
        "      hostSelector",
    )],
    &[(
        "  providerSpec:\n    value:",
        "  providerSpec:\n    values:",
    )],
    &[("spec:\n  automated", "spec: [\n  automated")],
    &[("\nkind: Secret\n", "\nkind: [a]\n")],
    &[("---\napiVersion: v1\n", "--- 5\n---\napiVersion: v1\n")],
    &[(
        "metadata:\n  name: cp-0\n  namespace: openshift-machine-api\nspec",
        "spec",
    )],
    &[("  name: cp-0\n  namespace", "  namespace")],
    &[(
        "data:\n  username: cm9vdA==\n  password: Y2Fsdmlu\n",
        "data: x\n",
    )],
    &[
        (
            "idrac-virtualmedia://10.0.0.10/redfish/v1/Systems/System.Embedded.1",
            "libvirt://10.0.0.10",
        ),
        ("  bootMACAddress: 52:54:00:00:00:10\n", ""),
    ],
    &[
        (
            "kind: BareMetalHost\nmetadata:\n  name: cp-0\n",
            "kind: BareMetalHost\nmetadata:\n  name: cp-1\n",
        ),
        (
            "---\napiVersion: machine",
            "---\napiVersion: metal3.io/v1alpha1\nkind: BareMetalHost\nmetadata: {name: cp-0, namespace: openshift-machine-api}\nspec:\n  online: true\n  externallyProvisioned: true\n  bmc:\n    address: redfish://10.0.0.10:443/redfish/v1/Systems/System.Embedded.1/\n    credentialsName: cp-0-bmc-secret\n    disableCertificateVerification: true\n  bootMACAddress: 52:54:00:00:00:10\n  consumerRef: {apiVersion: machine.openshift.io/v1beta1, kind: Machine, name: prod-x7k2p-cp-0, namespace: openshift-machine-api}\n---\napiVersion: machine",
        ),
    ],
    &[(
        "---\napiVersion: machine",
        "---\napiVersion: v1\nkind: Secret\nmetadata: {name: cp-0-bmc-secret, namespace: openshift-machine-api}\nstringData: {username: root, password: x}\n---\napiVersion: machine",
    )],
    &[(
        "idrac-virtualmedia://10.0.0.10/redfish/v1/Systems/System.Embedded.1",
        "''",
    )],
    &[("credentialsName: cp-0-bmc-secret", "credentialsName: ''")],
    &[("metadata:\n  name: cp-0\n", "metadata:\n  name: ''\n")],
];
