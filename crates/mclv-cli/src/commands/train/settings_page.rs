//! Checks that `docs/reference/settings.md` matches the settings of the library.
//!
//! `MCLV_UPDATE_DOCS=1 cargo test -p mclv-cli settings_page` rewrites its tables.

use clap::{Args, Command};
use mclv::settings::Settings;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/settings.md");
const BEGIN: &str = "<!-- settings -->\n";
const END: &str = "<!-- end settings -->\n";

/// One table per heading of the help: name, values, default, meaning.
fn tables() -> String {
    let command = Settings::augment_args(Command::new("train"));
    let mut text = String::new();
    let mut last = None;
    for arg in command.get_arguments() {
        let heading = arg.get_help_heading().unwrap_or_default();
        if last != Some(heading) {
            text.push_str(&format!(
                "\n## {heading}\n\n| name | values | default | meaning |\n| --- | --- | --- | --- |\n"
            ));
            last = Some(heading);
        }
        let words: Vec<String> =
            arg.get_possible_values().iter().map(|word| format!("`{}`", word.get_name())).collect();
        let values = if words.is_empty() {
            arg.get_value_names().unwrap_or_default().join(" ")
        } else {
            words.join(", ")
        };
        let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
        let (meaning, default) = help.split_once(". Default: ").expect("help ends with a default");
        text.push_str(&format!(
            "| `{}` | {values} | {default} | {meaning} |\n",
            arg.get_id().as_str().replace('_', "-")
        ));
    }
    text + "\n"
}

#[test]
fn the_page_of_settings_is_up_to_date() {
    let page = std::fs::read_to_string(PAGE).unwrap();
    let (before, rest) = page.split_once(BEGIN).expect("a mark where the tables begin");
    let (_, after) = rest.split_once(END).expect("a mark where the tables end");
    let new = format!("{before}{BEGIN}{}{END}{after}", tables());
    if std::env::var_os("MCLV_UPDATE_DOCS").is_some() {
        std::fs::write(PAGE, &new).unwrap();
    } else {
        assert!(page == new, "run: MCLV_UPDATE_DOCS=1 cargo test -p mclv-cli settings_page");
    }
    for name in Settings::NAMES {
        assert!(new.contains(&format!("| `{}` |", name.replace('_', "-"))), "{name} is not in the page");
    }
}
