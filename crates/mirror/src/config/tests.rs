use std::collections::BTreeSet;

use model::image_set::Instance;
use proptest::prelude::*;

use super::schema::{RecordSchema, ValueKind};
use super::*;

/// Texts, each with its problems after `=>`.
const WRONG: &str = include_str!("wrong.txt");
/// Every setting of each version.
const V1: &str = include_str!("v1alpha2.yaml");
const V2: &str = include_str!("v2alpha1.yaml");

fn set(text: &str) -> ImageSet {
    match parse(text.as_bytes()) {
        Ok(Configuration::Mirror(set)) => set,
        other => panic!("{text}\n{other:?}"),
    }
}

/// The problems of a text, one a line.
fn wrong(text: &str) -> String {
    match parse(text.as_bytes()) {
        Ok(configuration) => panic!("{text}\nis right: {configuration:?}"),
        Err(problems) => problems.to_string(),
    }
}

fn v1(mirror: &str) -> String {
    format!("{}mirror:\n{mirror}", begin("v1alpha2"))
}

/// First lines of a text for this section of the table.
fn begin(section: &str) -> &'static str {
    match section {
        "v1alpha2" => "apiVersion: mirror.openshift.io/v1alpha2\nkind: ImageSetConfiguration\n",
        "v2alpha1" => "apiVersion: mirror.openshift.io/v2alpha1\nkind: ImageSetConfiguration\n",
        "delete" => "apiVersion: mirror.openshift.io/v2alpha1\nkind: DeleteImageSetConfiguration\n",
        _ => "",
    }
}

/// The members that this version may have, without numbers of elements.
fn paths(record: &RecordSchema, version: ConfigVersion, above: &str, found: &mut BTreeSet<String>) {
    let fields = record.fields.iter();
    for field in fields.filter(|it| it.only.is_none_or(|only| only == version)) {
        let path = format!("{above}.{}", field.name);
        let path = path.trim_start_matches('.');
        found.insert(path.to_owned());
        if let ValueKind::Object(record) | ValueKind::List(ValueKind::Object(record)) = &field.kind
        {
            paths(record, version, path, found);
        }
    }
}

fn all_paths(version: ConfigVersion) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    paths(&schema::IMAGE_SET, version, "", &mut found);
    found
}

#[test]
fn all_problems_are_reported() {
    let mut section = "";
    for case in WRONG.split("\n\n") {
        let case = match case.split_once('\n') {
            Some((head, rest)) if head.starts_with("# ") => {
                section = &head[2..];
                rest
            }
            _ => case,
        };
        let (text, expected) = case.split_once("=> ").unwrap();
        let message = wrong(&format!("{}{text}", begin(section))).replace('\n', "\n=> ");
        assert_eq!(message, expected.trim_end(), "{text}");
    }
}

#[test]
fn every_field_is_wrong_once() {
    let listed: BTreeSet<_> = WRONG
        .lines()
        .filter_map(|line| line.strip_prefix("=> "))
        .filter_map(|line| line.split(": ").nth(1))
        .map(|path| {
            let parts = path.split(['[', ']']).step_by(2);
            parts.collect::<String>()
        })
        .collect();
    for version in ConfigVersion::ALL {
        let all = all_paths(*version);
        let missing: Vec<_> = all.difference(&listed).collect();
        assert!(missing.is_empty(), "{version:?}: {missing:?}");
    }
}

/// The members that a text has, without numbers of elements.
fn written(value: &Json, above: &str, found: &mut BTreeSet<String>) {
    match value {
        Json::Object(members) => {
            for (name, value) in members {
                let path = format!("{above}.{name}");
                let path = path.trim_start_matches('.');
                found.insert(path.to_owned());
                written(value, path, found);
            }
        }
        Json::Array(list) => list.iter().for_each(|it| written(it, above, found)),
        _ => {}
    }
}

fn json(yaml: &str) -> Json {
    serde_json::from_str(&::catalog::yaml_to_json(yaml).unwrap()).unwrap()
}

#[test]
fn the_examples_have_every_field() {
    for (version, yaml) in [(ConfigVersion::V1Alpha2, V1), (ConfigVersion::V2Alpha1, V2)] {
        let mut all = all_paths(version);
        // It excludes the other storage, which the example has.
        all.retain(|path| !path.starts_with("storageConfig.local"));
        if version == ConfigVersion::V2Alpha1 {
            all.remove("mirror.platform.architectures");
        }
        let mut found = BTreeSet::new();
        written(&json(yaml), "", &mut found);
        assert_eq!(found, all, "{version:?}");
    }
}

#[test]
fn every_field_is_read() {
    let read = set(V1);
    assert_eq!(read.archive_size, Some(4));
    let image = "registry.example.org/mirror/metadata".to_owned();
    let skip_tls = true;
    assert_eq!(read.storage, Some(Storage::Registry { image, skip_tls }));
    let boot_images = read.mirror.boot_images.clone().unwrap();
    assert_eq!(boot_images.architectures, ["amd64", "aarch64"]);
    // Metadata must not have it, nor files of values: the peer would refuse them.
    let written = serde_json::to_value(&read.mirror).unwrap();
    let mut expected = json(V1)["mirror"].clone();
    expected.as_object_mut().unwrap().remove("bootImages");
    let helm = &read.mirror.helm;
    assert_eq!(helm.local[0].values_files.len(), 2);
    for chart in ["/helm/repositories/0/charts/0", "/helm/local/0"] {
        let chart = expected.pointer_mut(chart).unwrap();
        chart.as_object_mut().unwrap().remove("valuesFiles");
    }
    assert_eq!(written, expected);
    assert_eq!(set(&json(V1).to_string()), read);
}

#[test]
fn every_field_of_the_later_version_is_read() {
    let read = set(V2);
    let mirror = &read.mirror;
    let on = |os: &str, architecture: &str| {
        let (os, architecture) = (os.to_owned(), architecture.to_owned());
        vec![Instance { os, architecture }]
    };
    let release = "registry.example.org/openshift/release:4.20.1";
    assert_eq!(mirror.platform.release.as_deref(), Some(release));
    assert!(mirror.platform.kube_virt_container);
    assert_eq!(mirror.platform.platforms, on("linux", "amd64"));
    let operator = &mirror.operators[0];
    assert!(!operator.from_exact && set(V1).mirror.operators[0].from_exact);
    let template = operator.target_catalog_source_template.as_deref();
    assert_eq!(template, Some("./template.yaml"));
    assert_eq!(operator.platforms, on("linux", "arm64"));
    let image = &mirror.additional_images[0];
    assert_eq!(
        (&*image.target_repo, &*image.target_tag),
        ("tools/own", "own")
    );
    assert_eq!(image.platforms, on("linux", "s390x"));
    let helm = &mirror.helm;
    assert_eq!(
        helm.repositories[0].charts[0].platforms,
        on("linux", "ppc64le")
    );
    assert_eq!(helm.local[0].platforms, on("windows", "amd64"));
    // The rest is as in the earlier version.
    let mut written = serde_json::to_value(mirror).unwrap();
    let mut expected = json(V2)["mirror"].clone();
    forget(&mut written);
    forget(&mut expected);
    assert_eq!(written, expected);
    let delete = V2.replacen("\nmirror:", "\ndelete:", 1);
    let delete = delete.replace("archiveSize: 8\n", "");
    let (delete, _) = delete.split_once("  blockedImages").unwrap();
    let delete = delete.replacen("kind: Image", "kind: DeleteImage", 1);
    let mut expected = read.mirror;
    expected.blocked_images.clear();
    expected.samples.clear();
    expected.boot_images = None;
    assert_eq!(
        parse(delete.as_bytes()),
        Ok(Configuration::Delete(expected))
    );
}

/// Removes members of the later version, and our own.
fn forget(value: &mut Json) {
    const LATER: [&str; 8] = [
        "bootImages",
        "release",
        "kubeVirtContainer",
        "platforms",
        "targetRepo",
        "targetCatalogSourceTemplate",
        "targetTag",
        "valuesFiles",
    ];
    match value {
        Json::Object(members) => {
            members.retain(|name, _| !LATER.contains(&name.as_str()));
            members.values_mut().for_each(forget);
        }
        Json::Array(list) => list.iter_mut().for_each(forget),
        _ => {}
    }
}

#[test]
fn names_may_have_any_case() {
    let text = V1
        .replace("additionalImages", "additionalimages")
        .replace("minVersion", "MINVERSION")
        .replace("apiVersion", "ApiVersion");
    assert_eq!(set(&text), set(V1));
}

#[test]
fn the_group_may_be_any() {
    for group in ["mirror.example.org/", ""] {
        let text = V1.replace("mirror.openshift.io/", group);
        assert_eq!(set(&text), set(V1), "{group:?}");
    }
}

#[test]
fn a_catalog_may_stand_alone() {
    let whole = v1("  operators:\n  - catalog: registry.example.org/a:1\n");
    let alone = v1("  operators:\n  - registry.example.org/a:1\n");
    assert_eq!(set(&alone), set(&whole));
}

#[test]
fn null_and_empty_values_are_unset() {
    let text = v1("  platform:\n  operators: ~\n  additionalImages: []\n  helm: {local: null}\n");
    assert_eq!(set(&text), ImageSet::default());
    let text = format!(
        "{}storageConfig: {{}}\narchiveSize: 0\nmirror: {{}}\n",
        begin("v1alpha2")
    );
    assert_eq!(set(&text), ImageSet::default());
}

#[test]
fn yaml_is_that_of_the_peer() {
    let text = v1("  platform: {graph: yes}\n  samples: [&a {name: x}, *a, {<<: *a}]\n");
    let read = set(&format!("\u{feff}{text}archiveSize: 0x10\n"));
    assert!(read.mirror.platform.graph);
    assert_eq!(read.mirror.samples.len(), 3);
    assert_eq!(read.archive_size, Some(16));
    let tabbed = "{\n\t\"apiVersion\": \"x/v1alpha2\",\n\t\"kind\": \"ImageSetConfiguration\",\n\t\"mirror\": {}\n}\n";
    assert_eq!(set(tabbed), ImageSet::default());
}

#[test]
fn a_file_that_is_no_configuration() {
    let problems = parse(b"apiVersion: x\nkind: \xff\n").unwrap_err();
    assert_eq!(problems.to_string(), "2:1: not UTF-8");
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("config.yaml");
    let refused = |path: &Path| model::error::chain(&load(path).unwrap_err());
    assert!(
        refused(&path).contains("No such file"),
        "{}",
        refused(&path)
    );
    std::fs::write(&path, vec![b'#'; usize::try_from(MAX_BYTES).unwrap() + 1]).unwrap();
    assert!(refused(&path).contains("longer than"), "{}", refused(&path));
    std::fs::write(&path, "kind: x\nmirror: []\n").unwrap();
    let shown = path.display().to_string();
    let refused = refused(&path);
    assert!(
        refused.lines().all(|line| line.starts_with(&shown)),
        "{refused}"
    );
    assert_eq!(refused.lines().count(), 3, "{refused}");
    std::fs::write(&path, V1).unwrap();
    assert_eq!(load(&path).unwrap(), Configuration::Mirror(set(V1)));
}

#[test]
fn a_problem_is_one_short_line() {
    let long = "x".repeat(5000);
    for (text, begin) in [
        (
            "  \"a\\nb\": 1\n".to_owned(),
            "4:3: mirror.\"a\\nb\": not known: expected one of",
        ),
        (format!("  {}: 1\n", &long[..900]), "4:3: mirror.\"xxx"),
        (
            format!("  samples: [{long}]\n"),
            "4:13: mirror.samples[0]: expected an object, found the text \"xxx",
        ),
        (
            format!("  samples: [\"a\\n{long}\"]\n"),
            "4:13: mirror.samples[0]: expected an object",
        ),
        (
            format!("  additionalImages: [{{name: {long}}}]\n"),
            "4:29: mirror.additionalImages[0].name: image reference: \"xxx",
        ),
    ] {
        let message = wrong(&v1(&text));
        assert!(message.starts_with(begin), "{message}");
        assert!(
            message.lines().count() == 1 && message.len() < 600,
            "{message}"
        );
    }
}

#[test]
fn problems_beyond_the_limit_are_counted() {
    let text = v1("  samples: [") + &"1, ".repeat(2000) + "]\n";
    let problems = parse(text.as_bytes()).unwrap_err();
    assert_eq!(problems.count(), 2000);
    let message = problems.to_string();
    assert_eq!(message.lines().count(), 1001);
    assert!(
        message.ends_with("\n1000 more problems follow"),
        "{message}"
    );
}

#[test]
fn versions_of_bundles() {
    let version = |text| bundle_version(text).map(|it| it.to_string());
    for (text, expected) in [
        ("1.2.3", "1.2.3"),
        ("v1.2.3", "1.2.3"),
        ("1", "1.0.0"),
        ("v1.2-rc.1+b.2", "1.2.0-rc.1+b.2"),
    ] {
        assert_eq!(version(text).as_deref(), Ok(expected));
    }
    for text in ["", "v", "vv1.2.3", "1.2.3.4", "1..2", "1.2.x", "-1"] {
        assert!(version(text).is_err(), "{text}");
    }
}

#[test]
fn the_starting_file_is_right() {
    let registry = "registry.example.org/mirror/metadata:v1".parse().ok();
    for registry in [None, registry.as_ref()] {
        let read = set(&starting_file(registry));
        let is_in_registry = matches!(read.storage, Some(Storage::Registry { .. }));
        assert_eq!(is_in_registry, registry.is_some());
    }
}

#[test]
fn every_field_of_the_initial_file_is_valid_in_its_section() {
    let yaml = starting_file(None);
    let set = |line: &str| match line.split_once('#') {
        Some((indent, setting)) if indent.trim().is_empty() && !setting.starts_with(' ') => {
            format!("{indent}{setting}\n")
        }
        _ => format!("{line}\n"),
    };
    let everything: String = yaml.lines().map(set).collect();
    insta::assert_snapshot!(wrong(&everything), @"15:5: storageConfig.registry: excludes storageConfig.local: leave one of them out");
}

#[test]
fn documents_without_content_do_not_count() {
    let text = v1("  additionalImages: [{name: quay.io/a/b:1}]\n");
    let expected = set(&text);
    for whole in [
        format!("---\n{text}"),
        format!("# a\n---\n# b\n--- # c\n{text}"),
        format!("{text}---\n"),
        format!("{text}---"),
        format!("{text}...\n---\r\n# end\n\n---\n"),
        format!("\u{feff}---\n{text}...\n"),
    ] {
        assert_eq!(set(&whole), expected, "{whole}");
    }
    let two = wrong(&format!("---\n{text}---\n{text}---\n"));
    assert_eq!(
        two,
        "6:1: another document begins here, and only one is read"
    );
    let late = wrong(&format!("# a\n---\n---\n{text}x: 1\n"));
    assert!(late.starts_with("8:1: x: not known"), "{late}");
}

/// The later version of the peer refuses them.
#[test]
fn entries_that_repeat_one_count_once_in_the_first_version() {
    let package = "    - name: a\n      channels: [{name: s}, {name: t}, {name: s}]\n";
    let operators = format!(
        "  operators:\n  - catalog: quay.io/x/index:v1\n    packages:\n{package}    - name: b\n{package}"
    );
    let set = set(&v1(&operators));
    let packages = &set.mirror.operators[0].packages;
    let names: Vec<_> = packages.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(packages[0].channels.len(), 2);
    let later = format!("{}mirror:\n{operators}", begin("v2alpha1"));
    assert!(wrong(&later).contains("\"a\" is named twice"));
    let other = operators.replace("b\n", "a\n");
    assert!(wrong(&v1(&other)).contains("\"a\" is named twice"));
}

#[test]
fn names_without_a_host_are_of_docker_hub() {
    for name in ["redis:7", "docker://redis", "bitnami/redis:7"] {
        let text = v1(&format!("  additionalImages: [{{name: '{name}'}}]\n"));
        assert_eq!(set(&text).mirror.additional_images[0].name, name);
    }
}

/// Parses the text, or reports a place within it.
fn is_read_or_refused(text: &str) {
    if let Err(problems) = parse(text.as_bytes()) {
        let lines = text.split(['\r', '\n']).count();
        let mut problems = problems.list.iter();
        assert!(problems.len() > 0);
        assert!(problems.all(|it| (1..=lines).contains(&it.place.line)));
    }
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,200}") {
        is_read_or_refused(&text);
        is_read_or_refused(&format!("{}{text}", begin("v1alpha2")));
        is_read_or_refused(&v1(&text));
    }

    #[test]
    fn any_change_is_read_or_refused(
        later: bool,
        at in 0..1500_usize,
        length in 0..40_usize,
        put in "[a-zA-Z0-9.:,'\"#&*<~ \n\\[\\]{}-]{0,12}",
    ) {
        let text = if later { V2 } else { V1 };
        let at = at.min(text.len());
        let end = (at + length).min(text.len());
        is_read_or_refused(&format!("{}{put}{}", &text[..at], &text[end..]));
    }
}
