#![no_main]

#[path = "../../tests/fuzz/bodies.rs"]
#[expect(dead_code, reason = "the other targets have the others")]
mod bodies;

libfuzzer_sys::fuzz_target!(|data: &[u8]| bodies::butane(data));
