//! What tells where things are on this machine.

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
    }
}
