//! No file makes a reader panic, hang or take much memory, whatever its bytes are.

mod drive;
mod mutate;
mod readers;

use readers::READERS;

/// The number of files that are read without `MCLV_FUZZ`.
const N_FILES: u64 = 200_000;

#[test]
fn damaged_files_never_panic_hang_or_take_much_memory() {
    drive::damage_and_read(READERS, N_FILES);
}

/// The control: sound files are read, and most damaged ones are refused, so that the readers see
/// both.
#[test]
fn sound_files_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let sound = |name: &str| {
        let reader = READERS.iter().find(|reader| reader.name == name).unwrap();
        (reader.join)(&(reader.seeds)()[0])
    };
    for (file, reader) in
        [("x.npy", "npy"), ("x.npz", "npz"), ("s.npz", "sparse"), ("x.idx", "idx"), ("x.csv.gz", "gzip")]
    {
        std::fs::write(at(file), sound(reader)).unwrap();
        mclv::data::read(at(file), None).unwrap_or_else(|e| panic!("{e}"));
    }
    for (file, reader) in
        [("m.safetensors", "model"), ("m.npz", "numpy-model"), ("c.safetensors", "checkpoint")]
    {
        std::fs::write(at(file), sound(reader)).unwrap();
        mclv::ModelFile::load(at(file)).unwrap_or_else(|e| panic!("{e}"));
    }
    let reader = READERS.iter().find(|reader| reader.name == "npy").unwrap();
    let seeds = (reader.seeds)();
    let is_read = |case: u64| {
        std::fs::write(at("y.npy"), mutate::file(reader, &seeds, case)).unwrap();
        mclv::data::read(at("y.npy"), None).is_ok()
    };
    let n_read = (0..1000).filter(|&case| is_read(case)).count();
    assert!((20..700).contains(&n_read), "{n_read} of 1000 damaged files are read");
}
