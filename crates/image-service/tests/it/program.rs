//! The real program, in a process of its own.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use testkit::ports::free_port;

use crate::world::{Api, OS_VERSION};

/// The program; it ends with this value.
pub(crate) struct Program {
    pub(crate) child: Child,
    pub(crate) url: String,
}

impl Drop for Program {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl Program {
    /// Starts it on `data` with the OS image at `url`, and with the settings that `set` adds.
    pub(crate) async fn spawn(
        data: &Path,
        api: &Api,
        url: &str,
        set: impl FnOnce(&mut Command),
    ) -> Self {
        let port = free_port().unwrap();
        let os_images = serde_json::json!([{
            "openshift_version": "4.18", "cpu_architecture": "x86_64", "url": url, "version": OS_VERSION,
        }]);
        let mut command = Command::new(env!("CARGO_BIN_EXE_image-service"));
        command
            .env("LISTEN_ADDRESS", "127.0.0.1")
            .env("LISTEN_PORT", port.to_string())
            .env("DATA_DIR", data)
            .env("OS_IMAGES", os_images.to_string())
            .env("ASSISTED_SERVICE_HOST", api.start().await.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        set(&mut command);
        Self {
            child: command.spawn().unwrap(),
            url: format!("http://127.0.0.1:{port}"),
        }
    }
}
