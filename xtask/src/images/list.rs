//! The list of images.

use anyhow::{Context as _, Result};

/// One image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ServiceImage {
    /// Its name, and that of its folder in `deploy/`.
    pub(super) name: &'static str,
    /// Its content.
    pub(super) content: ServiceImageContent,
    /// Other names of the program in /bin.
    pub(super) aliases: &'static [&'static str],
    /// Whether the discovery agent is beside the program, for discovery images.
    pub(super) has_agent: bool,
    /// Whether it has the pages of the web UI.
    pub(super) has_pages: bool,
    /// Its name in the local registry, from which hosts pull it; none for services of the pod.
    pub(super) pulled_as: Option<&'static str>,
}

/// A package with one program.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ProgramPackage {
    pub(crate) package: &'static str,
    /// The file of the program.
    pub(crate) program: &'static str,
}

/// All services.
pub(crate) const SERVICES: ProgramPackage = ProgramPackage {
    package: "services",
    program: "atoll-services",
};
/// The discovery agent.
pub(crate) const AGENT: ProgramPackage = ProgramPackage {
    package: "agent",
    program: "atoll-agent",
};

/// The name of this machine's agent in folders of agents, which the image service reads.
pub(crate) fn agent_name() -> String {
    let architecture = match std::env::consts::ARCH {
        "aarch64" => "arm64",
        other => other,
    };
    format!("{}-{architecture}", AGENT.program)
}

/// The content of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ServiceImageContent {
    /// The program of all services, alone.
    Base,
    /// [`BASE`], and one service's link to its program.
    Service,
    /// The discovery agent.
    Agent,
    /// PostgreSQL, from Debian's packages.
    Database,
}

/// The image below those of services: its layer is the same blob in all of them, which is stored and carried once.
pub(super) static BASE: ServiceImage = ServiceImage {
    content: ServiceImageContent::Base,
    ..service(SERVICES.package)
};

const fn service(name: &'static str) -> ServiceImage {
    ServiceImage {
        name,
        content: ServiceImageContent::Service,
        aliases: &[],
        has_agent: false,
        has_pages: false,
        pulled_as: None,
    }
}

/// Every image but [`BASE`], in the order of the table.
pub(super) static IMAGES: &[ServiceImage] = &[
    service("api-server"),
    ServiceImage {
        has_agent: true,
        ..service("image-service")
    },
    service("registry"),
    ServiceImage {
        has_pages: true,
        ..service("webui")
    },
    service("proxy"),
    ServiceImage {
        aliases: &["opm", "grpc_health_probe"],
        ..service("catalog-server")
    },
    ServiceImage {
        content: ServiceImageContent::Database,
        ..service("db")
    },
    ServiceImage {
        content: ServiceImageContent::Agent,
        aliases: &["cp", "inventory"],
        pulled_as: Some(AGENT_IMAGE),
        ..service(AGENT.package)
    },
];

/// Path of `AGENT_DOCKER_IMAGE` in deploy/atoll.env.
const AGENT_IMAGE: &str = "edge-infrastructure/assisted-installer-agent:latest";
/// Path of the agent in its image, by the peer's `agent.service`.
const AGENT_PATH: &str = "usr/bin/agent";
/// Repository of this workspace's images in an engine's storage.
const REPOSITORY: &str = "localhost/atoll";
/// The workspace's version.
pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");

impl ServiceImage {
    /// Its name in an engine's storage.
    pub(super) fn reference(&self) -> String {
        match self.pulled_as {
            Some(path) => format!("localhost/{path}"),
            None => format!("{REPOSITORY}/{}:{VERSION}", self.name),
        }
    }

    /// The program in it; none of the database's.
    pub(super) fn program(&self) -> Option<&'static ProgramPackage> {
        match self.content {
            ServiceImageContent::Base | ServiceImageContent::Service => Some(&SERVICES),
            ServiceImageContent::Agent => Some(&AGENT),
            ServiceImageContent::Database => None,
        }
    }

    /// Path of its program in the image, below its root.
    pub(super) fn path(&self) -> &'static str {
        match self.content {
            ServiceImageContent::Agent => AGENT_PATH,
            _ => SERVICES.program,
        }
    }

    /// Whether it is packed upon [`BASE`].
    pub(super) fn is_service(&self) -> bool {
        self.content == ServiceImageContent::Service
    }
}

/// The images of these names, or all; each once, in the order of the list.
pub(super) fn select(names: &[String]) -> Result<Vec<&'static ServiceImage>> {
    for name in names {
        IMAGES
            .iter()
            .find(|image| image.name == name)
            .with_context(|| {
                let known: Vec<_> = IMAGES.iter().map(|image| image.name).collect();
                format!(
                    "there is no image called {name}; there are {}",
                    known.join(", ")
                )
            })?;
    }
    let is_asked =
        |image: &&ServiceImage| names.is_empty() || names.iter().any(|name| name == image.name);
    Ok(IMAGES.iter().filter(is_asked).collect())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::cargo::root;

    fn names(asked: &[&str]) -> Vec<&'static str> {
        let asked: Vec<_> = asked.iter().map(ToString::to_string).collect();
        let images = select(&asked).unwrap();
        images.into_iter().map(|image| image.name).collect()
    }

    #[test]
    fn images_are_taken_once_and_in_order() {
        assert_eq!(
            names(&["webui", "registry", "webui"]),
            ["registry", "webui"]
        );
        assert_eq!(names(&[]).len(), IMAGES.len());
    }

    #[test]
    fn the_settings_name_the_images_of_hosts() {
        let settings = fs::read_to_string(root().join("deploy/atoll.env")).unwrap();
        let paths: Vec<_> = IMAGES.iter().filter_map(|image| image.pulled_as).collect();
        assert_eq!(paths, [AGENT_IMAGE]);
        let line = format!("# AGENT_DOCKER_IMAGE=<host>:5000/{AGENT_IMAGE}");
        assert!(settings.lines().any(|it| it == line), "{settings}");
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_known() {
        let error = select(&["web-ui".to_owned()]).unwrap_err().to_string();
        assert!(
            error.contains("web-ui") && error.contains("registry"),
            "{error}"
        );
    }

    #[test]
    fn each_container_file_packs_what_the_list_says() {
        for image in std::iter::once(&BASE).chain(IMAGES) {
            let path = root().join("deploy").join(image.name).join("Containerfile");
            let text =
                fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
            let has = |line: &str| text.lines().any(|found| found.starts_with(line));
            assert_eq!(text.matches("\nFROM ").count(), 1, "{path:?}");
            if let Some(package) = image.program().filter(|_| !image.is_service()) {
                let copy = format!("COPY {} /{}", package.program, image.path());
                assert!(has("FROM scratch") && has(&copy), "{path:?}");
                // Hosts run the agent as root, with a command of theirs.
                assert!(!has("USER") && !has("ENTRYPOINT"), "{path:?}");
            }
            if !image.is_service() {
                continue;
            }
            assert!(has("FROM localhost/atoll/services"), "{path:?}");
            assert!(!has("COPY atoll-services"), "{path:?}");
            let name = image.name;
            // A link to the program.
            assert!(
                has("COPY root /") && has(&format!("ENTRYPOINT [\"/{name}\"]")),
                "{path:?}"
            );
            let user = ["USER 10001:10001", "ENV RUN_AS_USER=10001"];
            assert!(user.into_iter().any(has), "{path:?}");
        }
    }
}
