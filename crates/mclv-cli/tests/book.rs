//! Keep the book (README.md and `docs/`) true: links resolve, every page is in the index, prose is
//! wrapped, and the commands of the *Learn* pages print what the pages say.
//!
//! `MCLV_UPDATE_DOCS=1 cargo test -p mclv-cli --test book` updates the outputs of commands.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The widest line of prose.
const WIDTH: usize = 100;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// All pages that people read, as paths from the root.
fn pages() -> Vec<PathBuf> {
    let names = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"];
    let mut pages: Vec<PathBuf> = names.iter().map(PathBuf::from).collect();
    let mut folders = vec![PathBuf::from("docs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root().join(&folder)).unwrap() {
            let entry = entry.unwrap();
            let path = folder.join(entry.file_name());
            if entry.file_type().unwrap().is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ext| ext == "md") {
                pages.push(path);
            }
        }
    }
    pages.sort();
    assert!(pages.len() > 10, "the book is not where the test looks for it: {pages:?}");
    pages
}

fn read(page: &Path) -> String {
    fs::read_to_string(root().join(page)).unwrap()
}

/// The lines of a page outside code blocks, with their numbers from 1.
fn prose(text: &str) -> Vec<(usize, &str)> {
    let mut is_code = false;
    let mut lines = Vec::new();
    for (k, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if !is_code {
            lines.push((k + 1, line));
        }
    }
    lines
}

/// The targets of the links and pictures of a line.
fn links(line: &str) -> Vec<&str> {
    let mut targets = Vec::new();
    let mut rest = line;
    while let Some(at) = rest.find("](") {
        rest = &rest[at + 2..];
        let Some(end) = rest.find(')') else { break };
        targets.push(&rest[..end]);
        rest = &rest[end..];
    }
    targets
}

/// The anchor that a heading gets on a forge.
fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    text.chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}

/// The links of a page that lead nowhere.
fn broken(page: &Path, text: &str) -> Vec<String> {
    let folder = page.parent().unwrap();
    let mut broken = Vec::new();
    for (number, line) in prose(text) {
        for target in links(line) {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let (path, fragment) = target.split_once('#').unwrap_or((target, ""));
            let path = if path.is_empty() { page.to_owned() } else { folder.join(path) };
            let is_there = root().join(&path).exists();
            let has_anchor = || {
                fragment.is_empty()
                    || prose(&read(&path)).iter().any(|(_, l)| l.starts_with('#') && anchor(l) == fragment)
            };
            if !is_there || !has_anchor() {
                broken.push(format!("{}:{number}: {target}", page.display()));
            }
        }
    }
    broken
}

#[test]
fn links_lead_somewhere() {
    let all: Vec<String> = pages().iter().flat_map(|page| broken(page, &read(page))).collect();
    assert!(all.is_empty(), "broken links:\n{}", all.join("\n"));
}

#[test]
fn a_broken_link_is_found() {
    let page = Path::new("docs/README.md");
    for wrong in ["[a](no-such-page.md)", "[a](../README.md#no-such-heading)", "![a](no.png)"] {
        assert_eq!(broken(page, wrong).len(), 1, "{wrong}");
    }
    assert!(broken(page, "[a](../README.md)").is_empty());
    assert!(broken(page, "```\n[a](no-such-page.md)\n```").is_empty());
}

/// The index of the book links to every page of `docs/`, directly or by the index of its folder.
#[test]
fn every_page_is_in_the_index() {
    let linked = |index: &str| -> BTreeSet<PathBuf> {
        let folder = Path::new(index).parent().unwrap().to_owned();
        let text = read(Path::new(index));
        let all: Vec<&str> = prose(&text).into_iter().flat_map(|(_, line)| links(line)).collect();
        all.iter()
            .filter(|target| !target.contains("://"))
            .filter_map(|target| root().join(&folder).join(target.split('#').next()?).canonicalize().ok())
            .collect()
    };
    let indices = ["docs/README.md", "docs/decisions/README.md", "docs/examples/README.md"];
    let linked: BTreeSet<PathBuf> = indices.into_iter().flat_map(linked).collect();
    let lost: Vec<PathBuf> = pages()
        .into_iter()
        .filter(|page| page.starts_with("docs") && page != Path::new("docs/README.md"))
        .filter(|page| !page.starts_with("docs/reproduction"))
        .filter(|page| !linked.contains(&root().join(page)))
        .collect();
    assert!(lost.is_empty(), "no index links to {lost:?}");
}

/// Lines of prose are short enough to be read and compared. Tables, headings, pictures and lines
/// without a space (addresses) are not prose; neither are generated pages.
#[test]
fn prose_is_wrapped() {
    let is_generated =
        |page: &Path| page.starts_with("docs/reproduction") || page.ends_with("background/reproduction.md");
    let mut long = Vec::new();
    for page in pages().iter().filter(|page| !is_generated(page)) {
        for (number, line) in prose(&read(page)) {
            let text = line.trim();
            let is_prose = !text.starts_with(['|', '#', '!', '<']) && !text.starts_with("rooms:");
            let has_room = text.trim_start_matches("- ").contains(' ');
            if is_prose && has_room && line.chars().count() > WIDTH {
                long.push(format!("{}:{number}: {} columns", page.display(), line.chars().count()));
            }
        }
    }
    assert!(long.is_empty(), "longer than {WIDTH} columns:\n{}", long.join("\n"));
}

/// An output in which durations and the widths of columns do not matter.
fn normal(text: &str) -> String {
    const UNITS: [&str; 5] = ["s", "ms", "µs", "min", "h"];
    let is_number = |word: &str| word.trim_start_matches(['(', '~']).parse::<f64>().is_ok();
    let is_unit = |word: &str| UNITS.contains(&word.trim_end_matches([')', ',', ';', '.']));
    let line = |line: &str| {
        let mut out: Vec<&str> = Vec::new();
        for word in line.split_whitespace() {
            match out.last_mut() {
                Some(number) if is_number(number) && is_unit(word) => *number = "TIME",
                _ => out.push(if word.starts_with("──") { "─" } else { word }),
            }
        }
        out.join(" ")
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// Runs the console blocks of a page in a folder of its own, and compares or replaces their outputs.
fn run_page(name: &str) {
    let path = Path::new("docs/learn").join(name);
    let text = read(&path);
    let folder = tempfile::tempdir().unwrap();
    fs::copy(root().join("docs/learn/animals.csv"), folder.path().join("animals.csv")).unwrap();
    let program = assert_cmd::cargo::cargo_bin!("mclv");
    let bin = program.parent().unwrap().display().to_string();
    let search = format!("{bin}:{}", std::env::var("PATH").unwrap());
    let run = |command: &str| {
        let out = Command::new("sh")
            .args(["-c", &format!("{{ {command}\n}} 2>&1")])
            .current_dir(folder.path())
            .env("PATH", &search)
            .env_remove("MCLV_DATA_DIR")
            .output()
            .unwrap();
        String::from_utf8(out.stdout).unwrap()
    };
    let is_update = std::env::var_os("MCLV_UPDATE_DOCS").is_some();
    let mut new = String::new();
    let mut n_commands = 0;
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        new.push_str(&format!("{line}\n"));
        if line != "```console" {
            continue;
        }
        while let Some(command) = lines.next_if(|l| *l != "```") {
            let command = command.strip_prefix("$ ").expect("a console block begins with `$ `");
            let mut expected = String::new();
            while let Some(output) = lines.next_if(|l| *l != "```" && !l.starts_with("$ ")) {
                expected.push_str(&format!("{output}\n"));
            }
            n_commands += 1;
            let output = run(command);
            if normal(&output) == normal(&expected) {
                new.push_str(&format!("$ {command}\n{expected}"));
            } else if is_update {
                new.push_str(&format!("$ {command}\n{output}"));
            } else {
                panic!(
                    "{name}: `{command}` printed\n{output}\nbut the page says\n{expected}\n\
                     run: MCLV_UPDATE_DOCS=1 cargo test -p mclv-cli --test book"
                );
            }
        }
    }
    assert!(n_commands > 0, "{name} has no commands");
    if is_update {
        fs::write(root().join(path), new).unwrap();
    }
}

#[test]
fn durations_and_widths_do_not_matter_but_results_do() {
    assert_eq!(normal("time   2.04 s\n────"), normal("time 10.1 s\n──────────"));
    assert_eq!(normal("(exact, 0.12 s)"), normal("(exact, 3 s)"));
    assert_eq!(normal("83,135 0.10 s"), normal("83,135 62.3 ms"));
    assert_ne!(normal("83,135 0.10 s"), normal("83,136 0.10 s"));
    assert_ne!(normal("log Z 75.74"), normal("log Z 75.75"));
}

#[test]
fn train_evaluate_interpret() {
    run_page("train-evaluate-interpret.md");
}

#[test]
fn what_is_a_tour() {
    run_page("what-is-a-tour.md");
}

#[test]
fn is_my_model_good() {
    run_page("is-my-model-good.md");
}

#[test]
fn which_gradient() {
    run_page("which-gradient.md");
}

/// The text of each entry of the glossary, as a single line without links.
fn glossary() -> Vec<(String, String)> {
    let text = read(Path::new("docs/reference/glossary.md"));
    let entry = |entry: &str| {
        let (name, text) = entry.split_once('\n').unwrap();
        let mut plain = String::new();
        let mut rest = text;
        while let Some((before, link)) = rest.split_once('[') {
            let (words, after) = link.split_once("](").unwrap();
            plain.push_str(before);
            plain.push_str(words);
            rest = after.split_once(')').unwrap().1;
        }
        plain.push_str(rest);
        let words = plain.split_whitespace().filter(|word| *word != "*(ours)*").collect::<Vec<_>>();
        (name.trim().to_owned(), words.join(" "))
    };
    text.split("\n## ").skip(1).map(entry).collect()
}

#[test]
fn pages_explain_terms_as_the_glossary_does() {
    let glossary = glossary();
    assert!(glossary.len() > 60);
    let differs = |term: &&mclv_report::page::Term| {
        let entry = glossary.iter().find(|(name, _)| name == term.name);
        entry.is_none_or(|(_, text)| !text.starts_with(term.sentence))
    };
    let wrong: Vec<&str> = mclv_report::page::TERMS.iter().filter(differs).map(|term| term.name).collect();
    assert!(wrong.is_empty(), "the glossary begins these entries in other words: {wrong:?}");
    // The control: another sentence is found out.
    assert!(!glossary.iter().any(|(_, text)| text.starts_with("A unit of the layer that the data are in")));
}
