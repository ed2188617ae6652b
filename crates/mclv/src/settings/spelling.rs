//! Spells settings for the command line, for files and for Python.
//!
//! Texts of the library name a setting in backquotes, such as `` `clip = 1` `` or `` `n-chains` ``.

use super::Settings;
use crate::Error;
use crate::words::nearest;

/// How settings are spelled in messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spelling {
    /// As in files: `` `n-chains = 50` ``.
    #[default]
    Plain,
    /// As on the command line: `--n-chains 50`.
    Flags,
    /// As in Python: `n_chains=50`.
    Keywords,
}

/// Names of settings that do not belong to training, but to data and to other commands.
const OTHER_NAMES: [&str; 31] = [
    "against",
    "binarize",
    "burn-in",
    "exact-samples",
    "known",
    "label-column",
    "ladder-steps",
    "max-length",
    "max-steps",
    "mean",
    "method",
    "n-betas",
    "n-clusters",
    "n-ladders",
    "n-samples",
    "n-steps",
    "n-tours",
    "no-validation",
    "resume",
    "save-ladder",
    "scale",
    "shape",
    "spins",
    "split",
    "split-column",
    "split-file",
    "stopping-set",
    "target-se",
    "test",
    "time-limit",
    "validation",
];

/// Returns true if a setting of any command has this name, with hyphens or underscores.
fn is_known(name: &str) -> bool {
    let same = |known: &&str| known.chars().map(hyphen).eq(name.chars().map(hyphen));
    Settings::NAMES.iter().any(&same) || OTHER_NAMES.iter().any(same)
}

fn hyphen(c: char) -> char {
    if c == '_' { '-' } else { c }
}

impl Spelling {
    /// The name of a setting; any other word stays as it is.
    fn name(self, name: &str) -> String {
        match self {
            Self::Flags if is_known(name) => format!("--{}", name.replace('_', "-")),
            Self::Keywords if is_known(name) => name.replace('-', "_"),
            _ => name.into(),
        }
    }

    /// A setting with its value.
    fn assignment(self, name: &str, value: &str) -> String {
        let plain = value.parse::<f64>().is_ok();
        match self {
            Self::Plain => format!("`{name} = {value}`"),
            // A switch takes its value only after an equals sign.
            Self::Flags if matches!(value, "true" | "false") => format!("{}={value}", self.name(name)),
            Self::Flags => format!("{} {value}", self.name(name)),
            Self::Keywords if plain => format!("{}={value}", self.name(name)),
            Self::Keywords => match value {
                "true" => format!("{}=True", self.name(name)),
                "false" => format!("{}=False", self.name(name)),
                word => format!("{}={word:?}", self.name(name)),
            },
        }
    }
}

/// Spells the settings that a text names in backquotes. The rest of the text does not change.
///
/// ```
/// use mclv::settings::{Spelling, spell};
/// let text = "use `clip = 1`, or more `n-chains` than `many`";
/// assert_eq!(spell(text, Spelling::Flags), "use --clip 1, or more --n-chains than `many`");
/// assert_eq!(spell(text, Spelling::Keywords), "use clip=1, or more n_chains than `many`");
/// assert_eq!(spell(text, Spelling::Plain), text);
/// ```
pub fn spell(text: &str, spelling: Spelling) -> String {
    if spelling == Spelling::Plain || text.matches('`').count() % 2 == 1 {
        return text.into();
    }
    let mut spelled = String::new();
    for (k, part) in text.split('`').enumerate() {
        let (name, value) = match part.split_once(" = ") {
            Some((name, value)) => (name, Some(value)),
            None => (part, None),
        };
        match value {
            _ if k % 2 == 0 => spelled.push_str(part),
            _ if !is_known(name) => spelled.push_str(&format!("`{part}`")),
            Some(value) => spelled.push_str(&spelling.assignment(name, value)),
            None => spelled.push_str(&spelling.name(name)),
        }
    }
    spelled
}

impl Settings {
    /// The setting whose name (with underscores) is nearest to an unknown name.
    pub fn nearest_name(unknown: &str) -> Option<&'static str> {
        nearest(unknown, Self::NAMES.iter().copied())
    }
}

impl Error {
    /// The message with settings spelled as asked. `Display` uses [`Spelling::Plain`].
    pub fn in_words(&self, spelling: Spelling) -> String {
        let refused = |name: &str, value: &str, cure: &str| {
            let name = spelling.name(name);
            let equals = if name.starts_with("--") { " " } else { " = " };
            format!("{name}{equals}{value} is not allowed: {}", spell(cure, spelling))
        };
        match self {
            Self::InvalidSetting { name, value, cure } => refused(name, value, cure),
            Self::InvalidChoice { name, value, cure } => refused(name, value, cure),
            // Errors about a file of settings use the spelling of files.
            Self::Malformed { path, .. } if path.extension().is_some_and(|e| e == "toml") => self.to_string(),
            _ => spell(&self.to_string(), spelling),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_spelled_as_each_front_does() {
        let text = "use `unfinished = keep` or carry, `samples-per-row`, `centred = true`, `dynamic`";
        let flags = "use --unfinished keep or carry, --samples-per-row, --centred=true, `dynamic`";
        let keywords = "use unfinished=\"keep\" or carry, samples_per_row, centred=True, `dynamic`";
        assert_eq!(spell(text, Spelling::Flags), flags);
        assert_eq!(spell(text, Spelling::Keywords), keywords);
        assert_eq!(spell(text, Spelling::Plain), text);
        assert_eq!(spell("an odd ` stays", Spelling::Flags), "an odd ` stays");
    }

    #[test]
    fn errors_name_settings_in_the_fronts_spelling() {
        let all = |error: Error| {
            [Spelling::Plain, Spelling::Flags, Spelling::Keywords].map(|spelling| error.in_words(spelling))
        };
        let few =
            Error::InvalidSetting { name: "n-chains", value: "0".into(), cure: "give `auto`, or `k = 1`" };
        assert_eq!(few.to_string(), few.in_words(Spelling::Plain));
        assert_eq!(
            all(few),
            [
                "n-chains = 0 is not allowed: give `auto`, or `k = 1`",
                "--n-chains 0 is not allowed: give `auto`, or --k 1",
                "n_chains = 0 is not allowed: give `auto`, or k=1"
            ]
        );
        let folder = Error::InvalidSetting { name: "run folder", value: "x".into(), cure: "use `resume`" };
        assert_eq!(
            all(folder),
            [
                "run folder = x is not allowed: use `resume`",
                "run folder = x is not allowed: use --resume",
                "run folder = x is not allowed: use resume"
            ]
        );
        let other = Error::Incompatible { name: "samples-per-row", with: "gradient = cd".into() };
        assert_eq!(
            all(other),
            [
                "`samples-per-row` cannot be used with `gradient = cd`",
                "--samples-per-row cannot be used with --gradient cd",
                "samples_per_row cannot be used with gradient=\"cd\""
            ]
        );
        let file = Error::malformed("c.toml", "unknown field `epoch`, expected `epochs`");
        assert_eq!(file.in_words(Spelling::Flags), file.to_string());
    }

    #[test]
    fn every_setting_is_known_by_its_name_in_files() {
        let every = serde_json::to_value(Settings::default()).unwrap();
        assert_eq!(every.as_object().map(serde_json::Map::len), Some(0));
        for name in Settings::NAMES {
            let key = name.replace('_', "-");
            let refused = serde_json::from_value::<Settings>(serde_json::json!({ key.as_str(): [] }));
            assert!(!refused.unwrap_err().to_string().contains("unknown field"), "{key}");
            assert!(is_known(&key) && is_known(name));
        }
        assert_eq!(Settings::nearest_name("epoch"), Some("epochs"));
        assert_eq!(Settings::nearest_name("colour"), None);
    }
}
