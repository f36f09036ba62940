//! Selected names that the catalog does not have.

use mirror::history::PreviousRuns;
use mirror::progress::RunProgress;
use model::image_set::{ImageSet, IncludeBundle, IncludeChannel, IncludePackage};

use crate::runs::{image_set, push_catalog, setup};
use crate::server::Server;

/// Why the run is refused that wants `package` alone.
async fn refused(source: &Server, package: IncludePackage) -> String {
    let mut set: ImageSet = image_set(source);
    set.mirror.operators[0].packages = vec![package];
    let (folder, progress) = (tempfile::tempdir().unwrap(), RunProgress::default());
    let setup = setup(source, &set, folder.path(), &progress);
    let refused = setup.prepare(&PreviousRuns::default(), None).await;
    refused.unwrap_err().to_string()
}

#[tokio::test]
async fn missing_names_are_reported_with_the_nearest() {
    let source = Server::start().await;
    push_catalog(&source, 3).await;
    let catalog = format!("{}/acme/index:v1", source.address);
    let named = |name: &str| IncludePackage {
        name: name.to_owned(),
        ..IncludePackage::default()
    };
    let channel = |name: &str, versions: IncludeBundle| IncludeChannel {
        name: name.to_owned(),
        versions,
    };
    let from = |version: &str| IncludeBundle {
        min_version: version.to_owned(),
        ..IncludeBundle::default()
    };
    let bundle = IncludeBundle {
        min_bundle: "thing.v1.9.0".to_owned(),
        ..IncludeBundle::default()
    };
    for (package, expected) in [
        (
            named("thinh"),
            vec!["\"thinh\"", "perhaps \"thing\"?", &catalog],
        ),
        (
            IncludePackage {
                channels: vec![channel("stabel", IncludeBundle::default())],
                ..named("thing")
            },
            vec!["\"stabel\"", "perhaps \"stable\"?", &catalog],
        ),
        (
            IncludePackage {
                channels: vec![channel("stable", from("1.9.0"))],
                ..named("thing")
            },
            vec![
                "channel \"stable\" of package \"thing\" has no version 1.9.0",
                "the nearest are 1.2.0",
                &catalog,
            ],
        ),
        (
            IncludePackage {
                versions: from("1.9.0"),
                ..named("thing")
            },
            vec![
                "package \"thing\" has no version 1.9.0",
                "the nearest are 1.2.0",
                &catalog,
            ],
        ),
        (
            IncludePackage {
                versions: bundle,
                ..named("thing")
            },
            vec!["thing.v1.9.0", "minBundle of package thing"],
        ),
    ] {
        let message = refused(&source, package).await;
        for part in expected {
            assert!(message.contains(part), "{part}: {message}");
        }
    }
}
