//! Shows a PNG in terminals that support Kitty's graphics protocol or iTerm2's inline images.

use base64::{Engine, prelude::BASE64_STANDARD};
use std::io::IsTerminal;

/// The protocol for pictures of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    Kitty,
    Iterm,
}

/// The text that shows a picture, if standard output is a terminal that supports pictures.
pub(crate) fn inline(png: &[u8]) -> Option<String> {
    let variable = |name: &str| std::env::var(name).ok();
    let protocol = std::io::stdout().is_terminal().then(|| protocol(&variable))??;
    Some(encode(png, protocol))
}

/// The protocol that the terminal's variables announce. Multiplexers pass on the variables of the
/// terminal, but not pictures.
fn protocol(variable: &dyn Fn(&str) -> Option<String>) -> Option<Protocol> {
    let term = variable("TERM").unwrap_or_default();
    if variable("TMUX").is_some() || term.starts_with("screen") || term.starts_with("tmux") {
        return None;
    }
    match variable("TERM_PROGRAM").as_deref() {
        Some("iTerm.app" | "WezTerm") => return Some(Protocol::Iterm),
        Some("ghostty") => return Some(Protocol::Kitty),
        _ => {}
    }
    (variable("KITTY_WINDOW_ID").is_some() || term == "xterm-kitty").then_some(Protocol::Kitty)
}

fn encode(png: &[u8], protocol: Protocol) -> String {
    let text = BASE64_STANDARD.encode(png);
    match protocol {
        Protocol::Iterm => format!("\x1b]1337;File=inline=1;size={}:{text}\x07\n", png.len()),
        Protocol::Kitty => {
            // At most 4,096 characters at a time; m is 1 if more follow.
            let chunks: Vec<&[u8]> = text.as_bytes().chunks(4096).collect();
            let mut all = String::new();
            for (k, chunk) in chunks.iter().enumerate() {
                let head = if k == 0 { "a=T,f=100," } else { "" };
                let more = u8::from(k + 1 < chunks.len());
                all.push_str(&format!("\x1b_G{head}m={more};{}\x1b\\", String::from_utf8_lossy(chunk)));
            }
            all.push('\n');
            all
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_terminals_that_say_so_get_pictures() {
        let found = |variables: &[(&str, &str)]| {
            protocol(&|name| variables.iter().find(|v| v.0 == name).map(|v| v.1.to_owned()))
        };
        assert_eq!(found(&[("TERM", "xterm-256color")]), None);
        assert_eq!(found(&[("TERM", "xterm-kitty")]), Some(Protocol::Kitty));
        assert_eq!(found(&[("TERM_PROGRAM", "WezTerm")]), Some(Protocol::Iterm));
        assert_eq!(found(&[("TERM_PROGRAM", "iTerm.app"), ("TMUX", "1")]), None);
        assert_eq!(found(&[("KITTY_WINDOW_ID", "1"), ("TERM", "screen-256color")]), None);
    }

    #[test]
    fn long_pictures_are_cut_into_chunks_that_make_them_again() {
        let png: Vec<u8> = (0..10_000u32).map(|k| k as u8).collect();
        let text = encode(&png, Protocol::Kitty);
        let chunks: Vec<&str> = text.trim_end().split("\x1b\\").filter(|c| !c.is_empty()).collect();
        assert_eq!(chunks.len(), 4);
        assert!(chunks[0].starts_with("\x1b_Ga=T,f=100,m=1;") && chunks[3].starts_with("\x1b_Gm=0;"));
        let all: String = chunks.iter().map(|c| c.split_once(';').unwrap().1).collect();
        assert_eq!(BASE64_STANDARD.decode(all).unwrap(), png);
        let text = encode(b"abc", Protocol::Iterm);
        assert_eq!(text, "\x1b]1337;File=inline=1;size=3:YWJj\x07\n");
    }
}
