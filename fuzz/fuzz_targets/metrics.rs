#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mclv_fuzz::read("metrics", bytes));
