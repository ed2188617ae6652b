//! The rooms of the library form a directed acyclic graph: each uses only rooms that ARCHITECTURE.md lists above it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Rust files below a folder, without tests.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() && name != "tests" {
            sources(&path, found);
        } else if name.ends_with(".rs") && name != "tests.rs" {
            found.push(path);
        }
    }
}

/// The code of a file: no comments, no tests.
fn code(path: &Path) -> String {
    let text = std::fs::read_to_string(path).unwrap();
    let tests = ["#[cfg(test)]\nmod tests {", "#[cfg(test)]\npub(crate) mod tests {"];
    let end = tests.iter().filter_map(|tests| text.find(tests)).min().unwrap_or(text.len());
    let lines = text[..end].lines().map(str::trim).filter(|line| !line.starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

/// The first names of all paths that begin with `crate::`.
fn named(code: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for rest in code.split("crate::").skip(1) {
        if let Some(list) = rest.strip_prefix('{') {
            let mut depth = 0;
            let mut word = String::new();
            for c in list.chars() {
                match c {
                    '{' => depth += 1,
                    '}' if depth == 0 => break,
                    '}' => depth -= 1,
                    _ if depth > 0 => {}
                    ',' => names.extend(Some(std::mem::take(&mut word))),
                    c => word.push(c),
                }
            }
            names.insert(word);
        } else {
            names.insert(rest.to_owned());
        }
    }
    let first = |name: &String| -> String {
        name.trim().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
    };
    names.iter().map(first).filter(|name| !name.is_empty() && name != "self").collect()
}

/// Which room owns each name that `lib.rs` gives out.
fn owners(lib: &str) -> BTreeMap<String, String> {
    let mut owners = BTreeMap::new();
    for line in lib.split(';').map(str::trim) {
        let Some(path) = line.strip_prefix("pub use ") else { continue };
        let (room, names) = path.split_once("::").unwrap();
        let room = if room == "mclv_kernels" { "bits" } else { room };
        for name in names.trim_matches(['{', '}']).split(',') {
            owners.insert(name.trim().to_owned(), room.to_owned());
        }
    }
    owners
}

/// The rooms in the order of ARCHITECTURE.md: a line that begins with `rooms:`.
fn order(architecture: &str) -> Vec<String> {
    let line = architecture.lines().find_map(|line| line.strip_prefix("rooms:")).expect("a list of rooms");
    line.split('←').map(|room| room.trim().to_owned()).collect()
}

/// What each room uses.
fn uses(src: &Path) -> BTreeMap<String, BTreeSet<String>> {
    let owners = owners(&code(&src.join("lib.rs")));
    let mut files = Vec::new();
    sources(src, &mut files);
    let mut uses: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for file in files.iter().filter(|file| !file.ends_with("lib.rs")) {
        let room = file.strip_prefix(src).unwrap().iter().next().unwrap().to_str().unwrap();
        let room = room.trim_end_matches(".rs").to_owned();
        let used = named(&code(file)).into_iter().map(|name| owners.get(&name).cloned().unwrap_or(name));
        let used: Vec<String> = used.filter(|name| *name != room).collect();
        uses.entry(room).or_default().extend(used);
    }
    uses
}

/// Lists every use of a room that does not come before the using room in `order`.
fn wrong(uses: &BTreeMap<String, BTreeSet<String>>, order: &[String]) -> Vec<String> {
    let place = |room: &str| order.iter().position(|known| known == room);
    let mut wrong = Vec::new();
    for (room, used) in uses {
        let Some(own) = place(room) else {
            wrong.push(format!("{room} is not in the list of rooms"));
            continue;
        };
        let upward = used.iter().filter(|used| place(used).is_none_or(|place| place >= own));
        wrong.extend(upward.map(|used| format!("{room} uses {used}")));
    }
    wrong
}

#[test]
fn rooms_use_only_rooms_before_them() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let uses = uses(&here.join("src"));
    let order = order(&std::fs::read_to_string(here.join("../../ARCHITECTURE.md")).unwrap());
    let wrong = wrong(&uses, &order);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(uses["train"].contains("gradient") && uses["gradient"].contains("chain"), "uses are found");
    // The control: the other way round, nearly every use is wrong.
    let backward: Vec<String> = order.iter().rev().cloned().collect();
    assert!(self::wrong(&uses, &backward).len() > 20);
}

#[test]
fn names_are_found_in_paths_and_lists() {
    let code = "use crate::data::Rows;\nuse crate::{Error, Result, sample};\nlet x = crate::bits::words_for(3);\nuse crate::{a::{b, c}, d};";
    let found: Vec<String> = named(code).into_iter().collect();
    assert_eq!(found, ["Error", "Result", "a", "bits", "d", "data", "sample"]);
}

/// The only places outside of the kernels that may say `unsafe`: the call of another library that a
/// benchmark compares with.
const UNSAFE: &[&str] = &["benches/src/bin/dense.rs"];

#[test]
fn only_the_kernels_are_unsafe() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let holds = |path: &Path| {
        let code = std::fs::read_to_string(path).unwrap();
        code.lines().map(str::trim).any(|line| !line.starts_with("//") && line.contains("unsafe {"))
    };
    let found = |folder: &str| -> Vec<PathBuf> {
        let mut files = Vec::new();
        sources(&root.join(folder), &mut files);
        files.into_iter().filter(|path| holds(path)).collect()
    };
    for folder in [
        "crates/mclv",
        "crates/mclv-report",
        "crates/mclv-view",
        "crates/mclv-reproduce",
        "crates/mclv-cli",
        "python",
    ] {
        let others: Vec<PathBuf> =
            found(folder).into_iter().filter(|path| !path.ends_with("mclv/tests/rooms.rs")).collect();
        assert_eq!(others, Vec::<PathBuf>::new(), "{folder}");
        // The compiler sees what this search may overlook.
        let crate_root = ["src/lib.rs", "src/main.rs"].map(|file| root.join(folder).join(file));
        let text = crate_root.iter().find_map(|file| std::fs::read_to_string(file).ok()).unwrap();
        assert!(text.contains("#![forbid(unsafe_code)]"), "{folder}");
    }
    let benches = found("benches");
    assert_eq!(benches, UNSAFE.iter().map(|path| root.join(path)).collect::<Vec<_>>());
    // The control: the search finds the blocks of the kernels.
    assert!(found("crates/mclv-kernels").len() >= 3);
}

/// What opens, reads or replaces a file.
const OPENS: &[&str] = &[
    "File::open(",
    "fs::read(",
    "fs::read_to_string(",
    "OpenOptions::",
    "fs::write(",
    "File::create(",
    "fs::copy(",
];

/// The places that open files themselves: which one, and why.
const OPENERS: &[(&str, &str)] = &[
    ("crates/mclv/src/source.rs", "this is the guarded way to read"),
    ("crates/mclv/src/file/atomic.rs", "this is the guarded way to write"),
    ("crates/mclv/src/file/owner.rs", "it looks at the lock before it opens it"),
    ("crates/mclv/src/train/files.rs", "it appends to the metrics, which it has made a regular file"),
    ("crates/mclv/src/data/download.rs", "its tests look at what was written"),
    ("crates/mclv/src/data/npm.rs", "it writes into a temporary folder of its own"),
    ("crates/mclv/src/data/hdf5.rs", "the HDF5 library opens files itself"),
    ("crates/mclv-cli/src/commands/hdf5.rs", "the HDF5 library opens files itself"),
    ("crates/mclv-cli/src/commands/train/settings_page.rs", "a test of a page of the book"),
];

#[test]
fn files_are_opened_in_the_guarded_way() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = BTreeSet::new();
    for folder in [
        "crates/mclv",
        "crates/mclv-report",
        "crates/mclv-view",
        "crates/mclv-reproduce",
        "crates/mclv-cli",
        "python",
    ] {
        let mut files = Vec::new();
        sources(&root.join(folder).join("src"), &mut files);
        let opens = |path: &&PathBuf| OPENS.iter().any(|what| code(path).contains(what));
        let name = |path: &PathBuf| path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
        found.extend(files.iter().filter(opens).map(name));
    }
    let allowed: BTreeSet<String> = OPENERS.iter().map(|(path, _)| (*path).to_owned()).collect();
    assert_eq!(found, allowed, "read with `read_file` or `open_file`, write with `write_inside`");
}
