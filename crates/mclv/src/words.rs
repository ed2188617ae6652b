//! Words: of enumerations, with one list for display, parsing, files and the command line; and texts
//! of strangers, made safe to show.

/// Implements `word`, `Display`, `FromStr`, `Serialize` and `Deserialize` for an enum without data,
/// and `clap::ValueEnum` with the feature `clap`. The text after `as` is the setting that errors
/// name.
macro_rules! words {
    ($Type:ident as $setting:literal { $($Variant:ident = $word:literal),+ $(,)? }) => {
        impl $Type {
            /// All choices, in this order.
            pub(crate) const ALL: &'static [Self] = &[$(Self::$Variant),+];

            /// Returns the word that stands for this choice in files, flags and messages.
            #[allow(unreachable_pub)]
            pub fn word(self) -> &'static str {
                match self {
                    $(Self::$Variant => $word),+
                }
            }
        }

        impl std::fmt::Display for $Type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.word())
            }
        }

        impl std::str::FromStr for $Type {
            type Err = $crate::Error;

            fn from_str(text: &str) -> $crate::Result<Self> {
                match Self::ALL.iter().find(|choice| choice.word() == text) {
                    Some(choice) => Ok(*choice),
                    None => Err($crate::words::unknown($setting, text, &[$($word),+])),
                }
            }
        }

        impl serde::Serialize for $Type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.word())
            }
        }

        impl<'de> serde::Deserialize<'de> for $Type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <String as serde::Deserialize>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }

        #[cfg(feature = "clap")]
        impl clap::ValueEnum for $Type {
            fn value_variants<'a>() -> &'a [Self] {
                Self::ALL
            }

            fn to_possible_value(&self) -> Option<clap::builder::PossibleValue> {
                Some(clap::builder::PossibleValue::new(self.word()))
            }
        }
    };
}
pub(crate) use words;

use crate::Error;
use std::borrow::Cow;

/// Returns a text that is safe to show in a terminal or on a page: characters that could move the
/// cursor, change the screen or reorder the text are replaced by their numbers. Line ends and tabs
/// stay.
///
/// Names, labels and provenance come from files, which may come from strangers.
///
/// ```
/// assert_eq!(mclv::printable("plain ± text\n"), "plain ± text\n");
/// assert_eq!(mclv::printable("\x1b[2J, \u{202e}gpj.exe"), "[U+001B][2J, [U+202E]gpj.exe");
/// ```
pub fn printable(text: &str) -> Cow<'_, str> {
    let is_unsafe = |c: char| match c {
        '\n' | '\t' => false,
        // Marks of direction, and ends of lines and paragraphs.
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        c => c.is_control(),
    };
    if !text.contains(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let shown = |c: char| if is_unsafe(c) { format!("[U+{:04X}]", u32::from(c)) } else { c.into() };
    Cow::Owned(text.chars().map(shown).collect())
}

/// Returns the error for a word that is not a choice. It lists the choices and suggests the
/// nearest.
pub(crate) fn unknown(setting: &'static str, text: &str, choices: &[&str]) -> Error {
    let quoted: Vec<String> = choices.iter().map(|choice| format!("`{choice}`")).collect();
    let listed = match quoted.as_slice() {
        [first @ .., last] if !first.is_empty() => format!("{} or {last}", first.join(", ")),
        all => all.concat(),
    };
    let suggested = nearest(text, choices.iter().copied());
    let suggested = suggested.map(|word| format!("; did you mean `{word}`?")).unwrap_or_default();
    Error::InvalidChoice { name: setting, value: text.into(), cure: format!("choose {listed}{suggested}") }
}

/// Returns the known word that is nearest to `text`, if one is near enough.
pub(crate) fn nearest<'a>(text: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let distance = |known: &&str| strsim::damerau_levenshtein(text, known);
    known.min_by_key(distance).filter(|known| distance(known) <= text.len() / 2)
}

/// Returns a message of serde. If it is about an unknown field, the nearest known field is added.
pub(crate) fn with_suggestion(message: &str) -> String {
    let mut quoted = message.split('`').skip(1).step_by(2);
    let unknown = message.starts_with("unknown field").then(|| quoted.next()).flatten();
    match unknown.and_then(|unknown| nearest(unknown, quoted)) {
        Some(known) => format!("{message} — did you mean `{known}`?"),
        None => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Fruit {
        Apple,
        Pear,
        BlackCurrant,
    }

    words!(Fruit as "fruit" { Apple = "apple", Pear = "pear", BlackCurrant = "black-currant" });

    #[test]
    fn words_are_the_same_in_text_and_files() {
        for &fruit in Fruit::ALL {
            assert_eq!(fruit.to_string().parse::<Fruit>().unwrap(), fruit);
            let json = serde_json::to_string(&fruit).unwrap();
            assert_eq!(json, format!("\"{fruit}\""));
            assert_eq!(serde_json::from_str::<Fruit>(&json).unwrap(), fruit);
        }
        assert_eq!(format!("{:>6}", Fruit::Pear), "  pear");
    }

    #[test]
    fn an_unknown_word_is_refused_with_the_choices_and_the_nearest() {
        let error = |text: &str| text.parse::<Fruit>().unwrap_err().to_string();
        let choices = "fruit = aple is not allowed: choose `apple`, `pear` or `black-currant`";
        assert_eq!(error("aple"), format!("{choices}; did you mean `apple`?"));
        assert!(error("brick").ends_with("`black-currant`"), "{}", error("brick"));
        let in_file = serde_json::from_str::<Fruit>("\"paer\"").unwrap_err().to_string();
        assert!(in_file.contains("did you mean `pear`"), "{in_file}");
    }

    #[test]
    fn unknown_fields_get_a_suggestion() {
        let message = "unknown field `epoch`, expected one of `seed`, `epochs`, `k`";
        assert_eq!(with_suggestion(message), format!("{message} — did you mean `epochs`?"));
        assert_eq!(with_suggestion("invalid type"), "invalid type");
        assert!(!with_suggestion("unknown field `wholly-else`, expected `k`").contains("mean"));
    }
}
