//! Tests of writing, verification and the closure.

use std::fs;
use std::path::{Path, PathBuf};

use mirror::archive::{Signer, Verifier};
use oci::media_type::{OCI_CONFIG, OCI_MANIFEST};
use oci::{Digest, Manifest};
use oci_client::image::Layout;
use proptest::prelude::*;
use serde_json::json;
use tempfile::TempDir;

use crate::assemble::{BundleContent, BundleHeading};
use crate::images::blob_path;
use crate::manifest::{MANIFEST_LIMIT_BYTES, MEMBER_LIMIT_BYTES};
use crate::{BundleFile, BundleManifest, Encoding, ImageUse, PlannedContent};

mod fuzz;

const LAYER: &str = "application/vnd.oci.image.layer.v1.tar";
const DB: &str = "localhost/atoll/db:0.1.0";
const HEADING: BundleHeading<'_> = BundleHeading {
    version: "0.1.0",
    architecture: "x86_64",
};

/// Adds an image with one layer to the layout `folder`; returns its digest.
fn add_image(folder: &Path, name: &str, layer: &[u8]) -> Digest {
    add_labelled(folder, name, layer, &json!({}))
}

/// [`add_image`] with labels.
fn add_labelled(folder: &Path, name: &str, layer: &[u8], labels: &serde_json::Value) -> Digest {
    let put = |bytes: &[u8]| {
        let digest = Digest::sha256(bytes);
        let path = folder.join(blob_path(&digest));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
        digest
    };
    let config = json!({"architecture": "amd64", "os": "linux", "config": {"Labels": labels}});
    let config = config.to_string();
    let config = config.as_bytes();
    let manifest = json!({
        "schemaVersion": 2, "mediaType": OCI_MANIFEST,
        "config": { "mediaType": OCI_CONFIG, "digest": put(config), "size": config.len() },
        "layers": [{ "mediaType": LAYER, "digest": put(layer), "size": layer.len() }],
    });
    let bytes = manifest.to_string();
    let digest = put(bytes.as_bytes());
    let manifest = Manifest::parse(bytes.clone().into(), None).unwrap();
    let entry = json!({
        "mediaType": manifest.media_type, "digest": digest, "size": bytes.len(),
        "annotations": { "org.opencontainers.image.ref.name": name },
    });
    let path = folder.join("index.json");
    let mut index: serde_json::Value = fs::read(&path).map_or_else(
        |_| json!({ "schemaVersion": 2, "manifests": [] }),
        |bytes| serde_json::from_slice(&bytes).unwrap(),
    );
    index["manifests"].as_array_mut().unwrap().push(entry);
    fs::write(path, index.to_string()).unwrap();
    fs::write(folder.join("oci-layout"), crate::images::LAYOUT).unwrap();
    digest
}

/// A layout with one image, and a bundle of it.
struct BundleFixture {
    folder: TempDir,
    file: PathBuf,
    manifest: BundleManifest,
    digest: Digest,
}

fn layer() -> Vec<u8> {
    (0..40_000_u32)
        .flat_map(|n| (n / 7).to_le_bytes())
        .collect()
}

async fn content(folder: &Path) -> BundleContent {
    let layout = Layout {
        folder: folder.join("layout"),
        name: None,
    };
    let mut content = BundleContent::default();
    content
        .images
        .add_layout(&layout, ImageUse::Service)
        .await
        .unwrap();
    let compose = format!("services: {{db: {{image: '{DB}'}}}}");
    content.manifests.push(("compose.yaml".to_owned(), compose));
    let iso = PlannedContent::text("images/live.iso", vec![7; (1 << 20) + 3]);
    content.others.push(iso);
    content.add_program(&folder.join("program"));
    content
}

fn fixture(signer: Option<&Signer>) -> BundleFixture {
    let folder = tempfile::tempdir().unwrap();
    let digest = add_image(&folder.path().join("layout"), DB, &layer());
    fs::write(folder.path().join("program"), "a program").unwrap();
    let file = folder.path().join("bundle.tar");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let manifest = runtime.block_on(async {
        let content = content(folder.path()).await;
        content
            .write(&file, HEADING, signer, &mut |_| {})
            .await
            .unwrap()
    });
    BundleFixture {
        folder,
        file,
        manifest,
        digest,
    }
}

fn verify(file: &Path, key: Option<&Verifier>) -> Result<(), String> {
    let bundle = BundleFile::open(file, key).map_err(|e| e.chain())?;
    bundle.verify(&mut |_| {}).map_err(|e| e.chain())
}

#[test]
fn a_bundle_is_read_as_it_was_written() {
    let fixture = fixture(None);
    let bundle = BundleFile::open(&fixture.file, None).unwrap();
    let mut read = 0;
    bundle.verify(&mut |at| read = at).unwrap();
    assert!(read > 1 << 20);
    assert_eq!(*bundle.manifest(), fixture.manifest);
    assert_eq!(bundle.manifest().closure[0].image, DB);
    assert_eq!(
        bundle.manifest().closure[0].named_by,
        ["compose.yaml: services.db.image"]
    );
    let iso = bundle.member("images/live.iso").unwrap();
    assert_eq!(iso.offset % 4096, 0);
    let target = fixture.folder.path().join("new folder/live.iso");
    bundle.extract(iso, &target).unwrap();
    assert_eq!(fs::read(target).unwrap(), vec![7; (1 << 20) + 3]);
    // The layer is compressed, and has its own bytes again.
    let stored = Digest::sha256(&layer());
    assert_eq!(
        bundle.member(&blob_path(&stored)).unwrap().encoding,
        Encoding::Gzip
    );
    assert!(bundle.blob(&stored).is_none());
    let images: Vec<_> = bundle.manifest().images.iter().collect();
    let layout = fixture.folder.path().join("copy");
    bundle.extract_layout(&images, &layout).unwrap();
    assert_eq!(fs::read(layout.join(blob_path(&stored))).unwrap(), layer());
    let layout = Layout {
        folder: layout,
        name: Some(DB.to_owned()),
    };
    assert_eq!(layout.digest().unwrap(), fixture.digest);
}

#[test]
fn images_of_services_can_be_in_the_registry_too() {
    let fixture = fixture(None);
    let layout = Layout {
        folder: fixture.folder.path().join("layout"),
        name: None,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let target = fixture.folder.path().join("both.tar");
    runtime.block_on(async {
        let mut content = content(fixture.folder.path()).await;
        for _ in 0..2 {
            content
                .images
                .add_layout(&layout, ImageUse::Registry)
                .await
                .unwrap();
        }
        let mut progress = |_| {};
        content
            .write(&target, HEADING, None, &mut progress)
            .await
            .unwrap();
    });
    let bundle = BundleFile::open(&target, None).unwrap();
    bundle.verify(&mut |_| {}).unwrap();
    let uses: Vec<_> = bundle.manifest().images.iter().map(|it| it.used).collect();
    assert_eq!(uses, [ImageUse::Service, ImageUse::Registry]);
    // The registry gets it from its place in the file.
    assert!(bundle.blob(&Digest::sha256(&layer())).is_some());
    let index = String::from_utf8(bundle.bytes("index.json", 1 << 20).unwrap()).unwrap();
    assert_eq!(index.matches(DB).count(), 1, "{index}");
}

#[test]
fn the_same_content_gives_the_same_file() {
    let (one, two) = (fixture(None), fixture(None));
    assert_eq!(fs::read(one.file).unwrap(), fs::read(two.file).unwrap());
}

#[test]
fn other_tools_read_it() {
    let fixture = fixture(None);
    let file = fs::File::open(&fixture.file).unwrap();
    let mut archive = tar::Archive::new(file);
    let paths: Vec<String> = archive
        .entries()
        .unwrap()
        .map(|entry| entry.unwrap().path().unwrap().display().to_string())
        .collect();
    let listed = fixture
        .manifest
        .members
        .iter()
        .map(|member| member.path.clone());
    let head = ["manifest.json", "manifest.sha256"].map(str::to_owned);
    let expected: Vec<String> = head.into_iter().chain(listed).collect();
    assert_eq!(paths, expected);
    assert_eq!(paths[2], "atoll");
}

#[test]
fn a_key_requires_its_signature() {
    let (signer, _) = Signer::generate().unwrap();
    let (other, _) = Signer::generate().unwrap();
    let signed = fixture(Some(&signer));
    verify(&signed.file, Some(&signer.verifier())).unwrap();
    verify(&signed.file, None).unwrap();
    assert!(BundleFile::open(&signed.file, None).unwrap().is_signed());
    let error = verify(&signed.file, Some(&other.verifier())).unwrap_err();
    assert!(error.contains("not of this key"), "{error}");
    let unsigned = fixture(None);
    let error = verify(&unsigned.file, Some(&signer.verifier())).unwrap_err();
    assert!(error.contains("not signed"), "{error}");
}

#[test]
fn missing_images_are_named_with_the_files_that_name_them() {
    let fixture = fixture(None);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let write = |texts: &[(&str, &str)], is_elsewhere| {
        runtime.block_on(async {
            let mut content = content(fixture.folder.path()).await;
            let texts = texts
                .iter()
                .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
            content.manifests.extend(texts);
            content.is_registry_elsewhere = is_elsewhere;
            let target = fixture.folder.path().join("other.tar");
            let written = content.write(&target, HEADING, None, &mut |_| {}).await;
            assert_eq!(target.exists(), written.is_ok());
            written.map_err(|e| e.chain())
        })
    };
    let error = write(
        &[
            (
                "a.yaml",
                "spec: {containers: [{name: x, image: example.org/x:1}]}",
            ),
            (
                "b.container",
                "[Container]\nImage=example.org/x:1\nImage=example.org/y:2\n",
            ),
            ("atoll.env", "AGENT_DOCKER_IMAGE=<host>:5000/edge/agent:1\n"),
        ],
        false,
    )
    .unwrap_err();
    for part in [
        "3 images are",
        "example.org/x:1, named by a.yaml: spec.containers[x].image and b.container: Image",
        "example.org/y:2, named by b.container: Image",
        "edge/agent:1, named by atoll.env: AGENT_DOCKER_IMAGE",
    ] {
        assert!(error.contains(part), "{error}");
    }
    let env = [("atoll.env", "AGENT_DOCKER_IMAGE=<host>:5000/edge/agent:1\n")];
    write(&env, false).unwrap_err();
    let elsewhere = write(&env, true).unwrap().elsewhere;
    assert_eq!(elsewhere[0].image, "<host>:5000/edge/agent:1");
    assert_eq!(elsewhere[0].named_by, ["atoll.env: AGENT_DOCKER_IMAGE"]);
    // By path in the local registry, and by digest.
    let env = "A_IMAGE=<host>:5000/atoll/db:0.1.0\n".to_owned();
    let digest = format!("image: example.org/other@{}\n", fixture.digest);
    write(&[("atoll.env", &env), ("c.yaml", &digest)], false).unwrap();
}

// limit: bundle-manifest
#[test]
fn a_manifest_at_the_limit_is_written_and_a_larger_one_refused() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let write = |length: u64| {
        let manifest = BundleManifest {
            format: crate::FORMAT,
            version: "1".repeat(usize::try_from(length).unwrap()),
            architecture: String::new(),
            size: 0,
            images: Vec::new(),
            closure: Vec::new(),
            elsewhere: Vec::new(),
            members: Vec::new(),
        };
        let target = folder.path().join("large.tar");
        let mut progress = |_| {};
        let written = crate::write(&target, manifest, &[], None, &mut progress);
        runtime
            .block_on(written)
            .map(|_| verify(&target, None).unwrap())
    };
    // The other characters, with the largest size.
    let others = r#"{"format":1,"version":"","architecture":"","size":18446744073709551615,"images":[],"closure":[],"members":[]}"#;
    let longest = MANIFEST_LIMIT_BYTES - others.len() as u64;
    write(longest).unwrap();
    let error = write(longest + 1).unwrap_err().to_string();
    assert!(error.contains("larger than"), "{error}");
}

/// A layer with one file.
fn layer_with(path: &str, text: &str) -> Vec<u8> {
    let mut layer = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_size(text.len() as u64);
    header.set_mode(0o644);
    layer
        .append_data(&mut header, path, text.as_bytes())
        .unwrap();
    layer.into_inner().unwrap()
}

#[test]
fn payloads_and_catalogs_of_images_are_in_the_closure() {
    let fixture = fixture(None);
    let inside = format!("example.org/a@{}", fixture.digest);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let write = |component: &str, related: &str| {
        let folder = tempfile::tempdir().unwrap();
        let references = json!({"spec": {"tags": [{"name": "cli", "from": {"name": component}}]}});
        let layer = layer_with(
            "release-manifests/image-references",
            &references.to_string(),
        );
        let label = json!({"io.openshift.release": "4.18.7"});
        add_labelled(folder.path(), "example.org/release:1", &layer, &label);
        let catalog = format!("schema: olm.bundle\nrelatedImages:\n- image: {related}\n");
        let layer = layer_with("configs/p/catalog.yaml", &catalog);
        let label = json!({"operators.operatorframework.io.index.configs.v1": "/configs"});
        add_labelled(folder.path(), "example.org/index:1", &layer, &label);
        let layout = Layout {
            folder: folder.path().to_owned(),
            name: None,
        };
        let target = fixture.folder.path().join("payloads.tar");
        runtime.block_on(async {
            let mut content = content(fixture.folder.path()).await;
            content
                .images
                .add_layout(&layout, ImageUse::Registry)
                .await
                .unwrap();
            let mut progress = |_| {};
            let written = content.write(&target, HEADING, None, &mut progress).await;
            written.map_err(|e| e.chain())
        })
    };
    let manifest = write(&inside, &inside).unwrap();
    let entry = manifest
        .closure
        .iter()
        .find(|it| it.image == inside)
        .unwrap();
    let places = [
        "example.org/index:1: p/catalog.yaml: relatedImages[0].image",
        "release example.org/release:1: cli",
    ];
    assert_eq!(entry.named_by, places);
    for (component, related, place) in [
        ("o/x:1", &*inside, places[1]),
        (&inside, "o/x:1", places[0]),
    ] {
        let error = write(component, related).unwrap_err();
        assert!(
            error.contains(&format!("o/x:1, named by {place}")),
            "{error}"
        );
    }
}

const REPOSITORY: &str = "openshift/release";

/// Writes an archive in the peer's format: a release whose payload names `component`, a component, and a catalog.
fn write_archive(folder: &Path, component: &str, related: &str) -> Digest {
    let mut tar =
        tar::Builder::new(fs::File::create(folder.join("mirror_seq1_000000.tar")).unwrap());
    let mut add = |path: &str, bytes: &[u8]| {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, path, bytes).unwrap();
    };
    let mut images = Vec::new();
    let mut image = |add: &mut dyn FnMut(&str, &[u8]), layer: &[u8], kind: &str, tag: &str| {
        let config = b"{}";
        let (config_digest, layer_digest) = (Digest::sha256(config), Digest::sha256(layer));
        let manifest = json!({
            "schemaVersion": 2, "mediaType": OCI_MANIFEST,
            "config": { "mediaType": OCI_CONFIG, "digest": config_digest, "size": config.len() },
            "layers": [{ "mediaType": LAYER, "digest": layer_digest, "size": layer.len() }],
        })
        .to_string();
        let digest = Digest::sha256(manifest.as_bytes());
        add(&format!("blobs/{config_digest}"), config);
        add(&format!("blobs/{layer_digest}"), layer);
        add(
            &format!("v2/{REPOSITORY}/manifests/{digest}"),
            manifest.as_bytes(),
        );
        images.push(json!({
            "name": format!("example.org/{REPOSITORY}@{digest}"), "path": REPOSITORY, "id": digest,
            "tagSymlink": tag, "type": kind, "layerDigests": [layer_digest, config_digest],
        }));
        digest
    };
    let own = image(&mut add, b"a component", "ocpReleaseContent", "component");
    let component = component.replace("OWN", &own.to_string());
    let references =
        json!({"spec": {"tags": [{"name": "cli", "from": {"name": component}}]}}).to_string();
    let layer = layer_with("release-manifests/image-references", &references);
    image(&mut add, &layer, "ocpRelease", "release");
    let catalog = format!(
        "{}{}",
        json!({"schema": "olm.package", "name": "p"}),
        json!({"schema": "olm.bundle", "relatedImages": [{"name": "x", "image": related.replace("OWN", &own.to_string())}]})
    );
    add(
        "catalogs/example.org/acme/index/v1/index/index.json",
        catalog.as_bytes(),
    );
    let metadata = json!({
        "kind": "Metadata", "apiVersion": "mirror.openshift.io/v1alpha2", "uid": "00000000-0000-0000-0000-000000000001",
        "singleUse": false, "pastMirror": {"timestamp": 1, "sequence": 1, "mirror": {}, "associations": images},
    });
    add("publish/.metadata.json", metadata.to_string().as_bytes());
    for tag in ["component", "release"] {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Symlink);
        header.set_size(0);
        tar.append_link(&mut header, format!("v2/{REPOSITORY}/manifests/{tag}"), "x")
            .unwrap();
    }
    tar.finish().unwrap();
    own
}

#[test]
fn releases_and_catalogs_of_archives_are_in_the_closure() {
    let fixture = fixture(None);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let inside = format!("example.org/{REPOSITORY}@OWN");
    let write = |component: &str, related: &str| {
        let archives = tempfile::tempdir().unwrap();
        write_archive(archives.path(), component, related);
        let target = fixture.folder.path().join("archives.tar");
        runtime.block_on(async {
            let mut content = content(fixture.folder.path()).await;
            content.add_archives(archives.path()).unwrap();
            // A second set has a folder of its own.
            content.add_archives(archives.path()).unwrap();
            let mut progress = |_| {};
            let written = content.write(&target, HEADING, None, &mut progress).await;
            written.map_err(|e| e.chain())
        })
    };
    let manifest = write(&inside, &inside).unwrap();
    let places: Vec<_> = manifest
        .closure
        .iter()
        .flat_map(|it| &it.named_by)
        .collect();
    assert!(places.iter().any(|it| it.ends_with(": cli")), "{places:?}");
    let file = fixture.folder.path().join("archives.tar");
    let paths: Vec<_> = manifest.members.iter().map(|it| it.path.as_str()).collect();
    for number in ["01", "02"] {
        let set = format!("archives/{number}");
        assert!(paths.contains(&&*format!("{set}/mirror_seq1_000000.tar")));
        // Read at its place.
        let set = mirror::archive::Set::open(&file.join(set)).unwrap();
        assert_eq!(set.content().unwrap().images.len(), 2);
    }
    let other = format!("example.org/other@{}", Digest::sha256(b"other"));
    for (component, related, place) in [
        (&other, &inside, "cli"),
        (&inside, &other, "relatedImages[x].image"),
    ] {
        let error = write(component, related).unwrap_err();
        assert!(
            error.contains("1 image is") && error.contains(&other) && error.contains(place),
            "{error}"
        );
    }
}

#[test]
fn content_that_differs_from_its_digest_is_refused() {
    let fixture = fixture(None);
    let layer = fixture
        .folder
        .path()
        .join("layout")
        .join(blob_path(&Digest::sha256(&layer())));
    fs::write(layer, "other").unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let target = fixture.folder.path().join("other.tar");
    let error = runtime.block_on(async {
        let content = content(fixture.folder.path()).await;
        content
            .write(&target, HEADING, None, &mut |_| {})
            .await
            .unwrap_err()
    });
    assert!(error.to_string().contains("another digest"), "{error}");
    // Neither the file nor its temporary name.
    let names: Vec<_> = fs::read_dir(fixture.folder.path()).unwrap().collect();
    assert_eq!(names.len(), 3, "{names:?}");
}

/// A file with this manifest, whose checksum is right.
fn with_manifest(folder: &Path, manifest: &BundleManifest) -> PathBuf {
    with_text(folder, &serde_json::to_vec(manifest).unwrap())
}

/// [`with_manifest`] with the text of one.
fn with_text(folder: &Path, text: &[u8]) -> PathBuf {
    let sums = crate::writer::sums(text, None);
    let mut bytes = Vec::new();
    for (path, content) in [
        ("manifest.json", text),
        ("manifest.sha256", sums.as_bytes()),
    ] {
        let size = content.len() as u64;
        bytes.extend(crate::framing::header(path, 0o644, size).unwrap());
        bytes.extend(content);
        bytes.resize(bytes.len() + crate::framing::after(size), 0);
    }
    let file = folder.join("crafted.tar");
    fs::write(&file, bytes).unwrap();
    file
}

// limit: bundle-member
#[test]
fn crafted_manifests_are_refused() {
    let fixture = fixture(None);
    let refused = |change: &dyn Fn(&mut BundleManifest)| {
        let mut manifest = fixture.manifest.clone();
        change(&mut manifest);
        let file = with_manifest(fixture.folder.path(), &manifest);
        BundleFile::open(&file, None).unwrap_err().chain()
    };
    // At the limit, only its place is wrong.
    let size = |size| {
        move |it: &mut BundleManifest| {
            it.members[0].size = size;
            it.members[0].content_size = size;
        }
    };
    assert!(refused(&size(MEMBER_LIMIT_BYTES)).contains("unexpected place"));
    assert!(refused(&size(MEMBER_LIMIT_BYTES + 1)).contains("larger than"));
    assert!(refused(&size(u64::MAX)).contains("larger than"));
    assert!(refused(&|it| it.members[0].offset = u64::MAX).contains("unexpected place"));
    assert!(refused(&|it| it.members[0].content_size += 1).contains("two lengths"));
    assert!(
        refused(&|it| it.members[0].path = "../atoll".to_owned()).contains("unexpected member")
    );
    assert!(refused(&|it| it.members[1].path = "atoll".to_owned()).contains("listed twice"));
    assert!(refused(&|it| it.format = 2).contains("format 2 is not supported"));
}

#[test]
fn every_flipped_byte_of_the_head_is_refused() {
    let (signer, _) = Signer::generate().unwrap();
    let fixture = fixture(Some(&signer));
    let whole = fs::read(&fixture.file).unwrap();
    let head = usize::try_from(fixture.manifest.members[0].offset).unwrap();
    let file = fixture.folder.path().join("flipped.tar");
    for place in 0..head {
        let mut flipped = whole[..head + 2048].to_vec();
        flipped[place] ^= 0x20;
        fs::write(&file, flipped).unwrap();
        // The length is wrong, too: the reason shows which check refused it.
        let error = verify(&file, None).unwrap_err();
        let is_header = place >= head - 512;
        assert_eq!(error.contains("truncated"), is_header, "{place}: {error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn damaged_files_are_refused(place in 0.0..1.0_f64, bit in 0..8_u8, is_truncated: bool, is_signed: bool) {
        thread_local! {
            static FIXTURES: [BundleFixture; 2] = {
                let (signer, _) = Signer::generate().unwrap();
                [fixture(None), fixture(Some(&signer))]
            };
        }
        FIXTURES.with(|fixtures| {
            let fixture = &fixtures[usize::from(is_signed)];
            let mut bytes = fs::read(&fixture.file).unwrap();
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "an index")]
            let place = (place * bytes.len() as f64) as usize;
            if is_truncated {
                bytes.truncate(place);
            } else {
                bytes[place] ^= 1 << bit;
            }
            let file = fixture.folder.path().join("damaged.tar");
            fs::write(&file, bytes).unwrap();
            let refused = verify(&file, None);
            prop_assert!(refused.is_err(), "{place}");
            Ok(())
        })?;
    }
}
