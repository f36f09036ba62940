use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use model::api_group_map::ApiGroupMap;
use model::image_set::MirrorSelection;
use model::mirror_metadata::ImageType;
use oci::{Digest, Reference};
use serde_json::json;

use super::*;
use crate::archive::FilePlace;
use crate::content::{ImageContent, ResolvedImage, SelectedImage, Why};
use crate::publish::{MirrorTarget, Published};

const TARGET: &str = "reg.local:5000/mirror";

/// An image whose path below the target is `to`.
fn image(source: &str, to: &str, kind: ImageType) -> MirroredImage {
    let source: Reference = source.parse().unwrap();
    MirroredImage {
        source: source.with_digest(Digest::sha256(source.to_string().as_bytes())),
        destination: format!("{TARGET}/{to}:abc").parse().unwrap(),
        kind,
        is_tagged: false,
    }
}

/// An image that keeps its path.
fn kept(source: &str, kind: ImageType) -> MirroredImage {
    let (_, path) = source.split_once('/').unwrap();
    image(source, path, kind)
}

fn catalog(repository: &str, tag: &str) -> MirroredCatalog {
    MirroredCatalog {
        name: format!("src.io/{repository}:{tag}"),
        repository: repository.parse().unwrap(),
        destination: format!("{TARGET}/{repository}:{tag}").parse().unwrap(),
        template: None,
    }
}

fn sample() -> MirrorResults {
    use ImageType::{Generic, OcpRelease, OcpReleaseContent, OperatorBundle};
    let mut tool = kept("src.io/misc/tool", Generic);
    tool.is_tagged = true;
    MirrorResults {
        boot_images: Vec::new(),
        charts: Vec::new(),
        is_folder: false,
        images: vec![
            kept("src.io/acme/op-bundle", OperatorBundle),
            kept("src.io/acme/deep/operand", OperatorBundle),
            tool,
            kept("src.io/busybox", Generic),
            image("src.io/acme/renamed", "other/renamed", Generic),
            image(
                "up.io/rel/ocp-release",
                "openshift/release-images",
                OcpRelease,
            ),
            image(
                "up.io/rel/ocp-v4.0-art-dev",
                "openshift/release",
                OcpReleaseContent,
            ),
        ],
        catalogs: vec![catalog("acme/index", "v4.18")],
        graph: Some(
            format!(
                "{TARGET}/openshift/graph-image@{}",
                Digest::sha256(b"graph")
            )
            .parse()
            .unwrap(),
        ),
        signatures: Vec::new(),
        previous: Vec::new(),
        is_flattened: false,
        is_insecure: false,
    }
}

fn text(outcome: &MirrorResults, forms: &Forms, path: &str) -> String {
    let files = files(outcome, forms).unwrap();
    let file = files.into_iter().find(|file| file.path == path);
    String::from_utf8(file.unwrap().content.to_vec()).unwrap()
}

fn everything() -> Forms {
    Forms {
        mirror_sets: true,
        cluster_catalogs: true,
        registries_conf: true,
        api_group_map: ApiGroupMap::default(),
    }
}

#[test]
fn groups_of_the_clusters_are_those_of_a_setting() {
    let forms = Forms {
        api_group_map: r#"{"operator.openshift.io": "operator.example.org", "config.openshift.io": "example.org"}"#
            .parse()
            .unwrap(),
        ..everything()
    };
    for path in [
        "imageContentSourcePolicy.yaml",
        "idms-oc-mirror.yaml",
        "mapping.txt",
    ] {
        let expected = text(&sample(), &everything(), path)
            .replace(" operator.openshift.io/", " operator.example.org/")
            .replace(" config.openshift.io/", " example.org/");
        assert_eq!(text(&sample(), &forms, path), expected);
        assert_eq!(expected.contains("example.org/v1"), path != "mapping.txt");
    }
    let v2 = v2_files(&sample(), &forms.api_group_map).unwrap();
    let texts = v2.iter().map(|file| String::from_utf8_lossy(&file.content));
    let (own, platform): (Vec<_>, Vec<_>) = texts
        .filter(|text| text.contains("ImageDigestMirrorSet"))
        .partition(|text| text.contains("apiVersion: example.org/v1\n"));
    assert_eq!((own.len(), platform.len()), (1, 0));
}

#[test]
fn optional_results_are_off_by_default() {
    let paths = |forms| -> Vec<String> {
        let files = files(&sample(), &forms).unwrap();
        files.into_iter().map(|file| file.path).collect()
    };
    insta::assert_debug_snapshot!(paths(Forms::default()), @r#"
    [
        "mapping.txt",
        "catalogSource-cs-index.yaml",
        "imageContentSourcePolicy.yaml",
        "install-config/imageContentSources.yaml",
        "updateService.yaml",
    ]
    "#);
    insta::assert_debug_snapshot!(paths(everything())[5..], @r#"
    [
        "idms-oc-mirror.yaml",
        "itms-oc-mirror.yaml",
        "cc-index-v4-18.yaml",
        "registries.conf",
    ]
    "#);
    assert_eq!(
        files(&MirrorResults::default(), &everything())
            .unwrap()
            .len(),
        2
    );
}

#[test]
fn mappings() {
    let outcome = MirrorResults {
        images: vec![kept("src.io/misc/tool", ImageType::Generic)],
        catalogs: vec![catalog("acme/index", "v4.18")],
        ..MirrorResults::default()
    };
    insta::assert_snapshot!(text(&outcome, &Forms::default(), "mapping.txt"), @"
    src.io/acme/index:v4.18=reg.local:5000/mirror/acme/index:v4.18
    src.io/misc/tool@sha256:755821f8a89f51250d025eeb8283f91d49e5a18bc45a4b93ae6da4eff0aacdac=reg.local:5000/mirror/misc/tool:abc
    ");
}

#[test]
fn policies() {
    insta::assert_snapshot!(text(&sample(), &Forms::default(), "imageContentSourcePolicy.yaml"), @r#"
    ---
    apiVersion: operator.openshift.io/v1alpha1
    kind: ImageContentSourcePolicy
    metadata:
      name: generic-0
    spec:
      repositoryDigestMirrors:
      - mirrors:
        - reg.local:5000/mirror/other/renamed
        source: src.io/acme/renamed
      - mirrors:
        - reg.local:5000/mirror/busybox
        source: src.io/busybox
      - mirrors:
        - reg.local:5000/mirror/misc
        source: src.io/misc
    ---
    apiVersion: operator.openshift.io/v1alpha1
    kind: ImageContentSourcePolicy
    metadata:
      labels:
        operators.openshift.org/catalog: "true"
      name: operator-0
    spec:
      repositoryDigestMirrors:
      - mirrors:
        - reg.local:5000/mirror/acme
        source: src.io/acme
    ---
    apiVersion: operator.openshift.io/v1alpha1
    kind: ImageContentSourcePolicy
    metadata:
      name: release-0
    spec:
      repositoryDigestMirrors:
      - mirrors:
        - reg.local:5000/mirror/openshift/release-images
        source: up.io/rel/ocp-release
      - mirrors:
        - reg.local:5000/mirror/openshift/release
        source: up.io/rel/ocp-v4.0-art-dev
    "#);
}

#[test]
fn mirror_sets() {
    let mut outcome = sample();
    outcome.images.drain(3..);
    insta::assert_snapshot!(text(&outcome, &everything(), "idms-oc-mirror.yaml"), @"
    ---
    apiVersion: config.openshift.io/v1
    kind: ImageDigestMirrorSet
    metadata:
      name: idms-generic-0
    spec:
      imageDigestMirrors:
      - mirrors:
        - reg.local:5000/mirror/misc
        source: src.io/misc
    ---
    apiVersion: config.openshift.io/v1
    kind: ImageDigestMirrorSet
    metadata:
      name: idms-operator-0
    spec:
      imageDigestMirrors:
      - mirrors:
        - reg.local:5000/mirror/acme
        source: src.io/acme
    ");
    insta::assert_snapshot!(text(&outcome, &everything(), "itms-oc-mirror.yaml"), @"
    ---
    apiVersion: config.openshift.io/v1
    kind: ImageTagMirrorSet
    metadata:
      name: itms-generic-0
    spec:
      imageTagMirrors:
      - mirrors:
        - reg.local:5000/mirror/misc
        source: src.io/misc
    ");
}

#[test]
fn settings_of_an_installation() {
    let path = "install-config/imageContentSources.yaml";
    insta::assert_snapshot!(text(&sample(), &Forms::default(), path), @"
    imageContentSources:
    - mirrors:
      - reg.local:5000/mirror/acme
      source: src.io/acme
    - mirrors:
      - reg.local:5000/mirror/other/renamed
      source: src.io/acme/renamed
    - mirrors:
      - reg.local:5000/mirror/busybox
      source: src.io/busybox
    - mirrors:
      - reg.local:5000/mirror/misc
      source: src.io/misc
    - mirrors:
      - reg.local:5000/mirror/openshift/release-images
      source: up.io/rel/ocp-release
    - mirrors:
      - reg.local:5000/mirror/openshift/release
      source: up.io/rel/ocp-v4.0-art-dev
    ");
}

#[test]
fn settings_of_container_tools() {
    let mut outcome = sample();
    outcome.images.drain(3..);
    insta::assert_snapshot!(text(&outcome, &everything(), "registries.conf"), @r#"
    [[registry]]
    location = "src.io/acme"

    [[registry.mirror]]
    location = "reg.local:5000/mirror/acme"
    pull-from-mirror = "digest-only"

    [[registry]]
    location = "src.io/misc"

    [[registry.mirror]]
    location = "reg.local:5000/mirror/misc"
    "#);
    outcome.is_insecure = true;
    let conf = text(&outcome, &everything(), "registries.conf");
    assert_eq!(conf.matches("insecure = true").count(), 2, "{conf}");
}

#[test]
fn results_list_published_images() {
    let wanted = |source: &str, kind| {
        let source: Reference = source.parse().unwrap();
        SelectedImage {
            repository: source.repository.clone(),
            tag: source.tag.clone().unwrap_or("pinned".parse().unwrap()),
            source,
            kind,
            why: vec![Why::Archive],
            platforms: Vec::new(),
            may_be_missing: false,
        }
    };
    let pinned = format!("src.io/misc/pinned@{}", Digest::sha256(b""));
    let images = [
        ("src.io/misc/tool:latest", ImageType::Generic),
        (&pinned, ImageType::Generic),
        ("src.io/misc/failed:1", ImageType::Generic),
        ("src.io/acme/index:1", ImageType::OperatorCatalog),
    ];
    let image = |&(source, kind): &(&str, ImageType)| ResolvedImage {
        wanted: wanted(source, kind),
        digest: Digest::sha256(b""),
    };
    let content = ImageContent {
        images: images.iter().map(image).collect(),
        ..ImageContent::default()
    };
    let of_archive = archive_mapping(&content);
    assert_eq!(of_archive.lines().count(), images.len());
    let pinned_line = format!("{pinned}=file://misc/pinned:pinned\n");
    assert!(of_archive.contains(&pinned_line), "{of_archive}");
    let published = Published {
        images: [0, 1, 3].into(),
        ..Published::default()
    };
    let target = MirrorTarget {
        client: oci_client::Client::new(oci_client::ClientOptions::default()).unwrap(),
        registry: oci::Registry::Host("reg.local:5000".into()),
        namespace: "mirror".into(),
        max_components: 0,
    };
    let mirror = MirrorSelection {
        additional_images: ["src.io/misc/tool", &pinned]
            .map(|name| model::image_set::ImageSelection {
                name: name.into(),
                ..model::image_set::ImageSelection::default()
            })
            .into(),
        ..MirrorSelection::default()
    };
    let outcome = MirrorResults::new(&content, &published, &target, &mirror).unwrap();
    let published = outcome.images.iter();
    let published: Vec<_> = published
        .map(|it| (it.destination.to_string(), it.is_tagged))
        .collect();
    let named = |name: &str, is_tagged| (format!("{TARGET}/{name}"), is_tagged);
    assert_eq!(
        published,
        [
            named("misc/tool:latest", true),
            named("misc/pinned:pinned", false),
        ]
    );
}

#[test]
fn catalogs() {
    insta::assert_snapshot!(text(&sample(), &Forms::default(), "catalogSource-cs-index.yaml"), @"
    ---
    apiVersion: operators.coreos.com/v1alpha1
    kind: CatalogSource
    metadata:
      name: cs-index
      namespace: openshift-marketplace
    spec:
      image: reg.local:5000/mirror/acme/index:v4.18
      sourceType: grpc
    ");
    insta::assert_snapshot!(text(&sample(), &everything(), "cc-index-v4-18.yaml"), @"
    ---
    apiVersion: olm.operatorframework.io/v1
    kind: ClusterCatalog
    metadata:
      name: cc-index-v4-18
    spec:
      priority: 0
      source:
        image:
          ref: reg.local:5000/mirror/acme/index:v4.18
        type: Image
    ");
}

#[test]
fn the_upgrade_service_needs_graph_and_releases() {
    insta::assert_snapshot!(text(&sample(), &Forms::default(), "updateService.yaml"), @"
    ---
    apiVersion: updateservice.operator.openshift.io/v1
    kind: UpdateService
    metadata:
      name: update-service-oc-mirror
    spec:
      graphDataImage: reg.local:5000/mirror/openshift/graph-image@sha256:eef93e1d14482804277fca0172464032d1a4fdbcc338524059fa1e861454ad4d
      releases: reg.local:5000/mirror/openshift/release-images
      replicas: 2
    ");
    let without_graph = MirrorResults {
        graph: None,
        ..sample()
    };
    let without_releases = MirrorResults {
        images: Vec::new(),
        ..sample()
    };
    for outcome in [without_graph, without_releases] {
        let files = files(&outcome, &everything()).unwrap();
        assert!(files.iter().all(|file| file.path != "updateService.yaml"));
    }
}

#[test]
fn names_of_catalogs_are_labels() {
    let long = "abcdef-".repeat(12);
    let long = long.trim_end_matches('-');
    let start = "abcdef-".repeat(8);
    let [first, second] = ["ns", "x"].map(|group| format!("{group}/{long}"));
    // The 63rd character is a dash.
    let dashed = format!("ns/{}-xyz", "a".repeat(59));
    for (repositories, names) in [
        (vec!["ns/a/b"], vec!["cs-a-b"]),
        (vec!["single"], vec!["cs-single"]),
        (vec!["ns/a__b.c--d"], vec!["cs-a-b-c-d"]),
        (
            vec!["ns/a/b", "other/a-b", "third/a.b"],
            vec!["cs-a-b", "cs-a-b-1", "cs-a-b-2"],
        ),
        (
            vec!["x/b-1", "y/b", "z/b"],
            vec!["cs-b-1", "cs-b", "cs-b-2"],
        ),
        (
            vec![&first, &second],
            vec![&format!("cs-{start}abcd"), &format!("cs-{start}ab-1")],
        ),
        (vec![&dashed], vec![&format!("cs-{}-0", "a".repeat(58))]),
    ] {
        let outcome = MirrorResults {
            catalogs: repositories.iter().map(|it| catalog(it, "v1")).collect(),
            ..MirrorResults::default()
        };
        let files = files(&outcome, &Forms::default()).unwrap();
        let paths: Vec<&str> = files[1..].iter().map(|file| file.path.as_str()).collect();
        let expected: Vec<String> = names
            .iter()
            .map(|it| format!("catalogSource-{it}.yaml"))
            .collect();
        assert_eq!(paths, expected, "{repositories:?}");
        assert!(names.iter().all(|name| name.len() <= 63), "{names:?}");
    }
}

#[test]
fn templates_of_catalogs() {
    let with = |template| {
        let mut catalog = catalog("acme/index", "v1");
        catalog.template = Some(template);
        let catalogs = vec![catalog];
        let outcome = MirrorResults {
            catalogs,
            ..MirrorResults::default()
        };
        files(&outcome, &Forms::default()).map(|files| files[1].content.clone())
    };
    let (version, kind) = ("operators.coreos.com/v1alpha1", "CatalogSource");
    let good = json!({
        "apiVersion": version, "kind": kind, "metadata": {"name": "x", "labels": {"a": "b"}},
        "spec": {"displayName": "Mine", "updateStrategy": {"registryPoll": {"interval": "30m"}}},
    });
    insta::assert_snapshot!(String::from_utf8(with(good).unwrap().to_vec()).unwrap(), @"
    ---
    apiVersion: operators.coreos.com/v1alpha1
    kind: CatalogSource
    metadata:
      labels:
        a: b
      name: cs-index
      namespace: openshift-marketplace
    spec:
      displayName: Mine
      image: reg.local:5000/mirror/acme/index:v1
      sourceType: grpc
      updateStrategy:
        registryPoll:
          interval: 30m
    ");
    for wrong in [
        json!("text"),
        json!({"apiVersion": version, "kind": "Pod"}),
        json!({"apiVersion": version, "kind": kind, "spec": []}),
        json!({"apiVersion": version, "kind": kind, "spec": {"sourceType": "configmap"}}),
        json!({"apiVersion": version, "kind": kind, "spec": {"configMap": "x"}}),
    ] {
        let refused = with(wrong.clone()).unwrap_err().to_string();
        assert!(
            refused.contains("src.io/acme/index:v1"),
            "{wrong}: {refused}"
        );
    }
}

#[test]
fn large_policies_are_numbered() {
    let source = |n| format!("registry-{n}.example.com/a-group-of-images/image");
    let images: Vec<_> = (0..3000)
        .map(|n| kept(&source(n), ImageType::OperatorBundle))
        .collect();
    let outcome = MirrorResults {
        images,
        ..MirrorResults::default()
    };
    let text = text(&outcome, &Forms::default(), "imageContentSourcePolicy.yaml");
    let policies: Vec<&str> = text.split("---\n").skip(1).collect();
    let mut sources = 0;
    for (number, policy) in policies.iter().enumerate() {
        assert!(policy.len() <= 250_000, "{}", policy.len());
        assert!(policy.contains(&format!("name: operator-{number}\n")));
        sources += policy.matches("source:").count();
    }
    assert_eq!(sources, 3000);
    // None would have taken the first entry of the next one.
    assert_eq!(policies.len(), text.len().div_ceil(250_000));
}

fn repository(reference: &Reference) -> String {
    format!("{}/{}", reference.registry, reference.repository)
}

/// Names that container tools try for an image: those of the longest matching location's mirrors.
fn resolved(conf: &str, reference: &Reference) -> Vec<String> {
    let name = repository(reference);
    let conf: toml::Table = conf.parse().unwrap();
    let registries = conf["registry"].as_array().unwrap().iter();
    let by_location: BTreeMap<usize, &toml::Value> = registries
        .filter_map(|it| {
            let location = it["location"].as_str()?;
            let rest = name.strip_prefix(location)?;
            (rest.is_empty() || rest.starts_with('/')).then_some((location.len(), it))
        })
        .collect();
    let Some((&length, registry)) = by_location.last_key_value() else {
        return Vec::new();
    };
    let mirrors = registry["mirror"].as_array().unwrap().iter();
    let usable = mirrors.filter(|it| {
        let only = it.get("pull-from-mirror").and_then(toml::Value::as_str);
        only.is_none_or(|only| only == "digest-only" && reference.digest.is_some())
    });
    let locations =
        usable.map(|it| format!("{}{}", it["location"].as_str().unwrap(), &name[length..]));
    locations.collect()
}

#[test]
fn every_image_is_found_under_its_own_name() {
    use ImageType::{Generic, OperatorBundle};
    // Repositories below a moved image were not moved with it.
    let mut below = sample();
    let source = "src.io/acme/renamed/below";
    below.images.push(kept(source, OperatorBundle));
    // Only one of its two names was moved.
    let mut twice = sample();
    twice
        .images
        .push(kept("src.io/acme/renamed", OperatorBundle));
    // Groups match whole components.
    let mut alike = sample();
    alike
        .images
        .push(image("src.io/acme/alike", "xacme/alike", Generic));
    let mut flattened = sample();
    flattened.is_flattened = true;
    for (name, kind) in [("x", OperatorBundle), ("y", Generic)] {
        let [source, to] = [
            format!("src.io/far/down/{name}"),
            format!("far-down-{name}"),
        ];
        flattened.images.push(image(&source, &to, kind));
    }
    for outcome in [below, twice, alike, flattened] {
        let conf = text(&outcome, &everything(), "registries.conf");
        for image in &outcome.images {
            let images = outcome.images.iter();
            let same = images.filter(|it| repository(&it.source) == repository(&image.source));
            let expected: BTreeSet<String> = same.map(|it| repository(&it.destination)).collect();
            let found: BTreeSet<String> = resolved(&conf, &image.source).into_iter().collect();
            assert_eq!(found, expected, "{}", image.source);
        }
        let by_tag: Reference = "src.io/misc/tool:1".parse().unwrap();
        assert_eq!(resolved(&conf, &by_tag), [format!("{TARGET}/misc/tool")]);
        // Related images have other tags in the target.
        let by_tag: Reference = "src.io/acme/op-bundle:1".parse().unwrap();
        assert_eq!(resolved(&conf, &by_tag), [""; 0]);
    }
}

#[test]
fn targets_without_groups_get_policies_by_repository() {
    let mut outcome = sample();
    outcome.is_flattened = true;
    let policies = text(&outcome, &Forms::default(), "imageContentSourcePolicy.yaml");
    assert!(
        policies.contains("source: src.io/acme/deep/operand\n"),
        "{policies}"
    );
    assert!(!policies.contains("source: src.io/acme\n"), "{policies}");
}

#[test]
fn results_are_complete_or_absent() {
    let workspace = tempfile::tempdir().unwrap();
    let extra = ResultFile::new("release-signatures/signature-sha256-0123.json", "{}");
    let elsewhere = tempfile::NamedTempFile::new().unwrap();
    fs::write(elsewhere.path(), "not a chart, and some").unwrap();
    let chart = Copied {
        path: "charts/web-1.0.0.tgz".into(),
        from: FilePlace {
            offset: 4,
            size: 7,
            ..FilePlace::of_file(elsewhere.path()).unwrap()
        },
    };
    let folder = write(
        workspace.path(),
        1_795_241_937,
        &[ResultFile::new("a", "b"), extra],
        &[chart],
    )
    .unwrap();
    assert_eq!(folder, workspace.path().join("results-1795241937"));
    assert_eq!(fs::read(folder.join("a")).unwrap(), b"b");
    let chart = fs::read(folder.join("charts/web-1.0.0.tgz")).unwrap();
    assert_eq!(chart, b"a chart");
    assert_eq!(
        fs::read_dir(folder.join("release-signatures"))
            .unwrap()
            .count(),
        1
    );
    let again = write(
        workspace.path(),
        1_795_241_937,
        &[ResultFile::new("a", "c")],
        &[],
    )
    .unwrap();
    assert_eq!(again, workspace.path().join("results-1795241938"));
    for path in ["", "/a", "../a", "a/../../b"] {
        let refused = write(
            workspace.path(),
            1,
            &[ResultFile::new("good", ""), ResultFile::new(path, "x")],
            &[],
        );
        assert!(matches!(refused, Err(Error::Invalid { .. })), "{path}");
    }
    let twice = write(
        workspace.path(),
        2,
        &[ResultFile::new("a", ""), ResultFile::new("a", "")],
        &[],
    );
    assert!(twice.is_err());
    let left: Vec<_> = fs::read_dir(workspace.path()).unwrap().collect();
    assert_eq!(left.len(), 2, "{left:?}");
    assert_eq!(fs::read(folder.join("a")).unwrap(), b"b");
}
