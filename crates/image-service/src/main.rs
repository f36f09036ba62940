//! The image service as a program of its own.

use std::process::ExitCode;

fn main() -> ExitCode {
    service::program::main("image-service", image_service::main)
}
