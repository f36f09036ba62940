//! Environment variables that locate files and programs on this machine.

use std::path::PathBuf;

service::settings! {
    /// Variables that every process has.
    pub struct Settings {
        /// Home directory of the user.
        home: Option<PathBuf> = "",
        /// Where programs of the user keep data.
        xdg_data_home: Option<PathBuf> = "",
        /// Folder for what is temporary.
        tmpdir: PathBuf = "/tmp",
        /// Folders with programs.
        path: String = "",
        /// Folder with Postgres's server programs, when they are not where distributions put them.
        pg_bin: Option<PathBuf> = "",
        /// First of five numbers of users and groups that the services of `atoll up` are when it runs as root: registry,
        /// api-server, image-service, webui, catalog-server. A user called atoll-SERVICE goes before. Source of the
        /// default: systemd's list of ranges, which has 60578 to 61183 as unused.
        atoll_uid_base: u32 = "61000",
    }
}
