//! Environment variables that locate files and programs on this machine.

use std::path::PathBuf;

service::settings! {
    /// Standard variables of the environment.
    pub struct Settings {
        /// Home directory of the user.
        home: Option<PathBuf> = "",
        /// Data folder of the user's programs.
        xdg_data_home: Option<PathBuf> = "",
        /// Folder for temporary files.
        tmpdir: PathBuf = "/tmp",
        /// Search path of programs.
        path: String = "",
        /// Folder with the Postgres server programs, if distributions' folders and PATH lack them.
        pg_bin: Option<PathBuf> = "",
        /// First of five uids and gids for the services of `atoll up` under root: registry, api-server, image-service,
        /// webui, catalog-server. An existing user atoll-SERVICE takes precedence. Source of the default: systemd,
        /// UIDS-GIDS, which lists 60578 to 61183 as unused.
        atoll_uid_base: u32 = "61000",
    }
}
