//! The image service as a program of its own.

use std::process::ExitCode;

fn main() -> ExitCode {
    service::program::main::<image_service::Settings, _, _>("image-service", image_service::run)
}
