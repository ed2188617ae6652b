//! Quote paths and arguments, so that commands in messages and on pages can be pasted into a shell.

use std::path::Path;

/// Quotes an argument if a shell would not take it as it is.
///
/// ```
/// use mclv::shell::quoted;
/// assert_eq!((quoted("runs/a-1"), quoted("it's")), ("runs/a-1".into(), r"'it'\''s'".into()));
/// ```
pub fn quoted(argument: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "_./:=@%+,-".contains(c);
    if !argument.is_empty() && argument.chars().all(is_plain) {
        return argument.into();
    }
    format!("'{}'", argument.replace('\'', r"'\''"))
}

/// Quotes a path if a shell would not take it as it is. A path that looks like a flag gets `./`.
pub fn path(path: &Path) -> String {
    let text = path.to_string_lossy();
    if text.starts_with('-') { quoted(&format!("./{text}")) } else { quoted(&text) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_shell_reads_back_what_was_quoted() {
        for text in
            ["runs/a-1", "my run", "it's", "a\"b$HOME`x`", "x;rm", "*", "", "Größe", "a\\b", "~x", "(1)"]
        {
            let command = format!("printf %s {}", quoted(text));
            let output = Command::new("sh").args(["-c", &command]).output().unwrap();
            assert_eq!(String::from_utf8(output.stdout).unwrap(), text, "{command}");
        }
        assert_eq!(quoted("runs/a-1"), "runs/a-1");
        assert_eq!(path(Path::new("-x y")), "'./-x y'");
    }
}
