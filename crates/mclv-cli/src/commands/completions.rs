//! `mclv completions`: prints a completion script.
//!
//! The script of clap completes commands, flags and files. For bash, zsh and fish, names of data sets
//! and run folders (folders under `runs` with a `config.toml`) are added here.

use crate::cli::Cli;
use clap::Args;
use clap_complete::Shell;
use std::io::Write;

#[derive(Args)]
#[command(after_help = "Examples:
  mclv completions bash > ~/.local/share/bash-completion/completions/mclv
  mclv completions zsh > ~/.zfunc/_mclv    (with fpath+=~/.zfunc in ~/.zshrc)
  mclv completions fish > ~/.config/fish/completions/mclv.fish

Besides commands, flags and files, the scripts for bash, zsh and fish complete the names of data
sets, and the run folders under runs.")]
pub(crate) struct CompletionsArgs {
    /// The shell
    pub(crate) shell: Shell,
}

/// Commands whose first argument is a data set, …
const TAKE_DATA: [&str; 3] = ["init", "sweep", "train"];
/// … a model or a run, …
const TAKE_RUNS: [&str; 11] = [
    "convert",
    "inspect",
    "lab",
    "likelihood",
    "logz",
    "modes",
    "plot",
    "report",
    "sample",
    "tours",
    "transform",
];
/// … and flags that take data or runs.
const DATA_FLAGS: [&str; 3] = ["--data", "--given", "--start"];
const RUN_FLAGS: [&str; 3] = ["--config", "--from", "--resume"];

pub(crate) fn run(args: &CompletionsArgs) -> anyhow::Result<()> {
    Ok(std::io::stdout().write_all(script(args.shell).as_bytes())?)
}

fn script(shell: Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::spelled(), "mclv", &mut script);
    let script = String::from_utf8_lossy(&script).into_owned();
    let names: Vec<String> = mclv::data::catalogue().into_iter().map(|entry| entry.name.into()).collect();
    let names = names.join(" ");
    match shell {
        Shell::Bash => bash(&script, &names),
        Shell::Zsh => zsh(&script, &names),
        Shell::Fish => script + &fish(&names),
        _ => script,
    }
}

/// The script for bash calls a function that adds names to what clap's function found.
fn bash(script: &str, names: &str) -> String {
    let data = TAKE_DATA.map(|command| format!("{command},2")).join("|");
    let runs = TAKE_RUNS.map(|command| format!("{command},*")).join("|");
    let (data_flags, run_flags) = (DATA_FLAGS.join("|"), RUN_FLAGS.join("|"));
    let added = format!(
        r#"
_mclv_and_names() {{
    _mclv "$@"
    local cur="${{COMP_WORDS[COMP_CWORD]}}" command="${{COMP_WORDS[1]}}" config kind=""
    [[ "$cur" == -* ]] && return 0
    case "$3" in
        {data_flags}) kind=data ;;
        {run_flags}) kind=runs ;;
        -*) return 0 ;;
        *) case "$command,$COMP_CWORD" in
            {data}|data,3) kind=data ;;
            {runs}) kind=runs ;;
        esac ;;
    esac
    case "$kind" in
        data) COMPREPLY+=( $(compgen -W "{names}" -- "$cur") $(compgen -f -- "$cur") ) ;;
        runs)
            for config in runs/*/config.toml; do
                config="${{config%/config.toml}}"
                [[ -e "$config/config.toml" && "$config" == "$cur"* ]] && COMPREPLY+=( "$config" )
            done
            COMPREPLY+=( $(compgen -f -- "$cur") )
            ;;
    esac
    return 0
}}

"#
    );
    // The last lines register the function.
    match script.rfind("\nif [[ \"${BASH_VERSINFO[0]}\"") {
        Some(end) => {
            let (functions, register) = script.split_at(end);
            format!(
                "{functions}{added}{}",
                register.trim_start().replace("complete -F _mclv ", "complete -F _mclv_and_names ")
            )
        }
        None => script.into(),
    }
}

/// In the script for zsh, arguments that are data or runs get functions of their own.
fn zsh(script: &str, names: &str) -> String {
    let functions = format!(
        r#"
_mclv_data() {{
    compadd {names}
    _files
}}

_mclv_runs() {{
    local -a runs
    runs=( runs/*/config.toml(N:h) )
    compadd -a runs
    _files
}}
"#
    );
    let line = |line: &str| -> String {
        let replaced = |with: &str| {
            let end = line.rfind(":_files").unwrap_or(line.len());
            let rest = line[end..].trim_start_matches(":_files").trim_start_matches(" -/");
            format!("{}:{with}{rest}", &line[..end])
        };
        let is_one_of = |flags: &[&str]| flags.iter().any(|flag| line.contains(&format!("{flag}=[")));
        if !line.contains(":_files") {
            line.into()
        } else if is_one_of(&DATA_FLAGS)
            || [":data -- ", "::data -- ", ":source -- "].iter().any(|p| line.contains(&format!("'{p}")))
        {
            replaced("_mclv_data")
        } else if is_one_of(&RUN_FLAGS)
            || [":model -- ", ":input -- ", "*::runs -- "].iter().any(|p| line.contains(&format!("'{p}")))
        {
            replaced("_mclv_runs")
        } else {
            line.into()
        }
    };
    let script: Vec<String> = script.lines().map(line).collect();
    // The first line tells zsh what the script completes, and must stay first.
    let (first, rest) = script
        .split_first()
        .map_or((String::new(), String::new()), |(first, rest)| (first.clone(), rest.join("\n")));
    format!("{first}\n{functions}\n{rest}\n")
}

/// Lines that are added to the script for fish.
fn fish(names: &str) -> String {
    let runs = "(for config in runs/*/config.toml; string replace /config.toml '' $config; end)";
    let mut text = String::new();
    for command in TAKE_DATA {
        text.push_str(&format!(
            "complete -c mclv -n \"__fish_mclv_using_subcommand {command}\" -a \"{names}\"\n"
        ));
    }
    for command in TAKE_RUNS {
        text.push_str(&format!(
            "complete -c mclv -n \"__fish_mclv_using_subcommand {command}\" -a \"{runs}\"\n"
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// What bash offers for a command line, whose last word is to be completed.
    fn offered(words: &[&str], folder: &std::path::Path) -> Option<Vec<String>> {
        let (last, before) = (words[words.len() - 1], words[words.len() - 2]);
        let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
        let end = format!(
            "COMP_WORDS=({}); COMP_CWORD={}; _mclv_and_names mclv '{last}' '{before}' 2>/dev/null; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            quoted.join(" "),
            words.len() - 1
        );
        let path = folder.join("script");
        std::fs::write(&path, format!("{}\n{end}\n", script(Shell::Bash))).unwrap();
        let output = Command::new("bash").arg(&path).current_dir(folder).output().ok()?;
        Some(String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect())
    }

    #[test]
    fn bash_offers_names_of_data_and_run_folders() {
        let folder = tempfile::tempdir().unwrap();
        for run in ["digits-1", "mine"] {
            std::fs::create_dir_all(folder.path().join("runs").join(run)).unwrap();
            std::fs::write(folder.path().join("runs").join(run).join("config.toml"), "").unwrap();
        }
        std::fs::create_dir_all(folder.path().join("runs/other")).unwrap();
        std::fs::write(folder.path().join("digits.csv"), "").unwrap();
        // Without bash on this machine there is nothing to test.
        let Some(train) = offered(&["mclv", "train", "di"], folder.path()) else { return };
        assert!(train.contains(&"digits".into()) && train.contains(&"digits.csv".into()), "{train:?}");
        let offered = |words: &[&str]| offered(words, folder.path()).unwrap();
        assert!(offered(&["mclv", "likelihood", "--data", "mn"]).contains(&"mnist".into()));
        for words in [
            ["mclv", "report", "runs/"].as_slice(),
            &["mclv", "train", "--resume", "r"],
            &["mclv", "likelihood", "r"],
        ] {
            let runs = offered(words);
            assert!(
                runs.contains(&"runs/digits-1".into()) && runs.contains(&"runs/mine".into()),
                "{words:?}: {runs:?}"
            );
            assert!(!runs.contains(&"runs/other".into()) || words[2] == "runs/", "{words:?}: {runs:?}");
        }
        assert!(offered(&["mclv", "train", "--n-h"]).contains(&"--n-hidden".into()));
        assert!(!offered(&["mclv", "train", "digits", "--epochs", "d"]).contains(&"digits".into()));
    }

    #[test]
    fn every_shell_has_a_script_and_three_know_the_names() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let script = script(shell);
            assert!(script.contains("bars-and-stripes") && script.contains("config.toml"), "{shell}");
        }
        let zsh = script(Shell::Zsh);
        assert!(zsh.starts_with("#compdef mclv"));
        let data = zsh.lines().filter(|line| line.ends_with(":_mclv_data' \\")).count();
        let runs = zsh.lines().filter(|line| line.ends_with(":_mclv_runs' \\")).count();
        assert!(data >= 10 && runs >= 12, "{data} {runs}");
        for shell in [Shell::Elvish, Shell::PowerShell] {
            assert!(script(shell).contains("likelihood"), "{shell}");
        }
    }
}
