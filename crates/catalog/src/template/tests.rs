use std::convert::Infallible;
use std::num::NonZeroUsize;

use serde_json::{Value, json};

use super::*;
use crate::registry_v1::RenderedBundle;
use crate::{DocumentOrigin, read_files};

fn templates(text: &str) -> Vec<Result<Template, String>> {
    let mut found = Vec::new();
    let files = std::iter::once(("t.yaml".into(), text.as_bytes().to_vec()));
    let Ok(problems) = read_files(files, NonZeroUsize::MIN, |document| {
        found.push(Template::read(&document, text).map_err(|e| e.to_string()));
        Ok::<_, Infallible>(())
    });
    assert!(problems.0.is_empty(), "{problems}");
    found
}

fn template(text: &str) -> Result<Template, String> {
    templates(text).remove(0)
}

/// A bundle of the package `web` for each image `x:VERSION`.
fn bundles(template: &Template) -> Bundles {
    let each = template.images().into_iter().map(|named| {
        let (package, version) = named.image.split_once(':').unwrap();
        let value = json!({"packageName": package, "version": version});
        let json = json!({"schema": "olm.bundle", "package": package, "name": format!("{package}.v{version}"),
            "image": named.image, "properties": [{"type": "olm.package", "value": value}]});
        let document = crate::read::document(&json.to_string(), DocumentOrigin::new("b", 1));
        let rendered = RenderedBundle {
            document: document.unwrap(),
            description: format!("of {version}"),
            icon: None,
            notes: Vec::new(),
        };
        (named.image.clone(), rendered)
    });
    each.collect()
}

/// The default channel, and each channel with its entries.
fn channels(text: &str) -> Vec<String> {
    let template = template(text).unwrap();
    let documents = template.expand(&bundles(&template)).unwrap();
    let each = documents.iter().filter_map(|document| {
        let json: Value = serde_json::from_str(&document.json).unwrap();
        match document.schema.as_str() {
            "olm.package" => Some(format!(
                "{} {}",
                json["defaultChannel"], json["description"]
            )),
            "olm.channel" => {
                let entries = json["entries"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|it| format!("{} {} {}", it["name"], it["replaces"], it["skips"]));
                Some(
                    format!(
                        "{}: {}",
                        json["name"],
                        entries.collect::<Vec<_>>().join("; ")
                    )
                    .replace('"', ""),
                )
            }
            _ => None,
        }
    });
    each.map(|it| it.replace('"', "")).collect()
}

fn expansion(text: &str) -> String {
    let template = template(text).unwrap();
    template
        .expand(&bundles(&template))
        .unwrap_err()
        .to_string()
}

#[test]
fn channels_follow_from_versions() {
    let minor = "schema: olm.semver\nstable:\n  bundles:\n  - image: web:1.1.0\n  - image: web:1.0.0\n  - image: web:1.0.1\n  - image: web:2.0.0\n";
    assert_eq!(
        channels(minor),
        [
            "stable-v2.0 of 2.0.0",
            "stable-v1.0: web.v1.0.0 null null; web.v1.0.1 null [web.v1.0.0]",
            "stable-v1.1: web.v1.1.0 web.v1.0.1 [web.v1.0.0]",
            "stable-v2.0: web.v2.0.0 null null",
        ]
    );
    let major = "Schema: olm.semver\nGenerateMajorChannels: true\nCandidate:\n  Bundles:\n  - Image: web:1.0.0\nFast:\n  Bundles:\n  - Image: web:0.1.0\n  - Image: web:0.2.0-rc.1\n  - Image: web:0.2.0\n";
    assert_eq!(
        channels(major),
        [
            "fast-v0 of 0.2.0",
            "candidate-v1: web.v1.0.0 null null",
            "fast-v0: web.v0.1.0 null null; web.v0.2.0-rc.1 null null; web.v0.2.0 web.v0.1.0 [web.v0.2.0-rc.1]",
        ]
    );
}

#[test]
fn the_default_channel_is_the_preferred_of_equal_ones() {
    for (preference, expected) in [
        ("", "stable-v1.0"),
        ("minor", "stable-v1.0"),
        ("major", "stable-v1"),
    ] {
        let text = format!(
            "schema: olm.semver\ngenerateMajorChannels: true\ngenerateMinorChannels: true\ndefaultChannelTypePreference: '{preference}'\nstable: {{bundles: [{{image: 'web:1.0.0'}}]}}\n"
        );
        assert_eq!(
            channels(&text)[0],
            format!("{expected} of 1.0.0"),
            "{preference}"
        );
    }
}

#[test]
fn misfits_have_places() {
    for (text, expected) in [
        (
            "# x\n---\nschema: olm.semver\nstable:\n  bundle: []\n",
            "t.yaml:5:3: stable has no member \"bundle\"",
        ),
        ("schema: olm.semver\n", "t.yaml:1:1: no bundles specified"),
        (
            "schema: olm.semver\nstable: {bundles: [{image: 1}]}\n",
            "t.yaml:2:28: the image of a bundle must be a string",
        ),
        (
            "schema: olm.semver\nstable: {bundles: [{}]}\n",
            "t.yaml:2:20: the image of a bundle must be set",
        ),
        (
            "schema: olm.semver\ngenerateMinorChannels: 'yes'\n",
            "t.yaml:2:24: generateMinorChannels must be true or false",
        ),
        (
            "schema: olm.semver\ndefaultChannelTypePreference: major\n",
            "t.yaml:2:31: defaultChannelTypePreference is major, and generateMajorChannels is not true",
        ),
        (
            "schema: olm.semver\ndefaultChannelTypePreference: x\n",
            "t.yaml:2:31: unknown defaultChannelTypePreference \"x\"",
        ),
        (
            "{\"schema\":\"olm.template.basic\",\n\"entries\":[{\"schema\":\"olm.bundle\",\"image\":\"x\",\"package\":\"p\"}]}",
            "t.yaml:2:12: a bundle of a basic template",
        ),
        (
            "schema: olm.template.basic\nentries:\n- schema: olm.bundle\n",
            "t.yaml:3:3: the image of a bundle must be set",
        ),
        (
            "schema: olm.template.basic\nentries:\n- name: x\n",
            "t.yaml:3:3: the document has no \"schema\"",
        ),
        (
            "schema: olm.template.basic\nentries: x\n",
            "t.yaml:2:10: entries must be a list",
        ),
        (
            "schema: olm.template.substitutes\nsubstitutions:\n- {name: a, base: a}\n",
            "t.yaml:3:19: name and base",
        ),
        (
            "schema: olm.composite\ncomponents:\n- strategy: {template: {schema: olm.builder.custom}}\n",
            "t.yaml:3:33: olm.builder.custom runs a command",
        ),
        (
            "schema: olm.composite\ncomponents:\n- strategy: {template: {schema: olm.builder.basic, config: {output: x}}}\n",
            "t.yaml:3:60: config.input must be set",
        ),
    ] {
        let error = template(text).unwrap_err();
        assert!(error.starts_with(expected), "{text}: {error}");
    }
}

#[test]
fn bundles_that_do_not_fit_together_have_places() {
    let semver = |images: &str| format!("\nschema: olm.semver\nstable:\n  bundles:\n{images}");
    for (images, expected) in [
        (
            "  - image: web:1.0.0+a\n  - image: web:1.0.0+b\n",
            "t.yaml:6:12: bundles \"web.v1.0.0+a\" and \"web.v1.0.0+b\" cannot be ordered",
        ),
        (
            "  - image: web:1.0.0\n  - image: web:1.0.0\n",
            "t.yaml:6:12: duplicate bundle name \"web.v1.0.0\"",
        ),
        (
            "  - image: web:1.0.0\n  - image: db:1.0.0\n",
            "t.yaml:6:12: bundle \"db.v1.0.0\" is of package \"db\"",
        ),
        (
            "  - image: web:one\n",
            "t.yaml:5:12: bundle \"web.vone\" has invalid version \"one\"",
        ),
    ] {
        let error = expansion(&semver(images));
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn basic_templates_keep_all_but_bundles() {
    let text = "schema: olm.template.basic\nentries:\n- {schema: other}\n- {schema: olm.bundle, image: 'web:1.0.0'}\n\
        - {schema: olm.channel, package: web, name: stable, entries: [{name: web.v1.0.0}]}\n- {schema: olm.package, name: web, defaultChannel: stable}\n";
    let template = template(text).unwrap();
    let documents = template.expand(&bundles(&template)).unwrap();
    let schemas: Vec<_> = documents.iter().map(|it| it.schema.as_str()).collect();
    assert_eq!(
        schemas,
        ["olm.package", "olm.channel", "olm.bundle", "other"]
    );
}

#[test]
fn substitutes_take_the_edges_of_their_bases() {
    let bundle = |version: &str| {
        format!(
            "- {{schema: olm.bundle, package: web, name: web.v{version}, image: 'x/web:{version}', properties: [{{type: olm.package, value: {{packageName: web, version: {version}}}}}]}}\n"
        )
    };
    let text = "schema: olm.template.substitutes\nentries:\n- {schema: olm.package, name: web, defaultChannel: stable}\n\
        - {schema: olm.channel, package: web, name: stable, entries: [{name: web.v1.0.0}, {name: web.v1.1.0, replaces: web.v1.0.0, skipRange: '<1.1.0'}, {name: web.v1.2.0, replaces: web.v1.1.0}]}\n".to_owned()
        + &["1.0.0", "1.1.0", "1.2.0"].map(bundle).concat()
        + "substitutions:\n- {name: 'web:1.1.1', base: web.v1.1.0}\n";
    assert_eq!(
        channels(&text)[1],
        "stable: web.v1.0.0 null null; web.v1.1.0 null null; web.v1.2.0 web.v1.1.1 [web.v1.1.0]; web.v1.1.1 web.v1.0.0 [web.v1.1.0]"
    );
    let older = text.replace("web:1.1.1", "web:1.0.9");
    let error = expansion(&older);
    assert!(
        error.contains("base bundle \"web.v1.1.0\" is not less than"),
        "{error}"
    );
    let absent = text.replace("base: web.v1.1.0", "base: web.v9");
    assert!(
        expansion(&absent).contains("t.yaml:9:29: base bundle \"web.v9\" does not exist"),
        "{}",
        expansion(&absent)
    );
    let invalid = text.replace("defaultChannel: stable", "defaultChannel: fast");
    assert!(
        expansion(&invalid).contains("t.yaml:3: package web:"),
        "{}",
        expansion(&invalid)
    );
}

#[test]
fn several_templates_of_a_file_have_their_own_places() {
    let text = "schema: olm.semver\nstable: {bundles: [{image: 'web:1.0.0'}]}\n---\nschema: olm.semver\nstable: {bundles: [{image: 'web:2.0.0'}]}\n";
    let lines: Vec<_> = templates(text)
        .iter()
        .map(|it| it.as_ref().unwrap().images()[0].place.line)
        .collect();
    assert_eq!(lines, [2, 5]);
}
