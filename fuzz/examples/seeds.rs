//! Write a corpus of valid files: `cargo run --example seeds`.

fn main() -> std::io::Result<()> {
    mclv_fuzz::write_seeds(std::path::Path::new("corpus"))
}
