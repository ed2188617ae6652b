//! Decides who is answered, and sends answers.

use super::Shared;
use std::io::{ErrorKind, Write};
use std::net::TcpStream;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Headers of every answer. The page needs its own styles and scripts and pictures within it, and
/// asks its server for updates; no other page may frame or read it.
const HEADERS: &str = "Connection: close\r\n\
    Cache-Control: no-store\r\n\
    Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; \
    img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n\
    X-Frame-Options: DENY\r\n\
    X-Content-Type-Options: nosniff\r\n\
    Referrer-Policy: no-referrer\r\n\
    Cross-Origin-Opener-Policy: same-origin\r\n\
    Cross-Origin-Resource-Policy: same-origin\r\n";

/// What a client may have.
#[derive(Debug, PartialEq)]
pub(super) enum Wanted {
    Page,
    /// The state, if it is not of this version.
    State {
        known: String,
    },
}

/// Status, type and body.
pub(super) struct Answer(&'static str, &'static str, String);

impl Answer {
    fn plain(status: &'static str, text: &str) -> Self {
        Self(status, "text/plain", text.into())
    }

    /// Sends the answer.
    pub(super) fn send(self, stream: TcpStream, shared: &Shared) -> std::io::Result<()> {
        let Self(status, kind, body) = self;
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}; charset=utf-8\r\nContent-Length: {}\r\n{HEADERS}\r\n",
            body.len()
        );
        send(stream, (head + &body).as_bytes(), shared.patience[1])
    }
}

/// Sends bytes within a time.
pub(super) fn send(mut stream: TcpStream, mut bytes: &[u8], patience: Duration) -> std::io::Result<()> {
    stream.set_nonblocking(false)?;
    let begun = Instant::now();
    while !bytes.is_empty() {
        let left = patience.saturating_sub(begun.elapsed());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        stream.set_write_timeout(Some(left))?;
        match stream.write(bytes) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(n) => bytes = &bytes[n..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    stream.flush()
}

impl Shared {
    /// Decides what a request gets.
    pub(super) fn judge(&self, request: &str) -> Result<Wanted, Answer> {
        let mut lines = request.split("\r\n");
        let mut words = lines.next().unwrap_or("").split(' ');
        let (method, target) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
        let host =
            lines.filter_map(|line| line.split_once(':')).find(|(name, _)| name.eq_ignore_ascii_case("host"));
        let host = host.map_or(String::new(), |(_, value)| value.trim().to_ascii_lowercase());
        if ![format!("127.0.0.1:{}", self.port), format!("localhost:{}", self.port)].contains(&host) {
            return Err(Answer::plain("403 Forbidden", "this server answers to 127.0.0.1 only\n"));
        }
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let Some(path) = self.without_token(path) else {
            return Err(Answer::plain(
                "404 Not Found",
                "not found; use the whole address that mclv printed\n",
            ));
        };
        match (method, path) {
            ("GET", "") => Ok(Wanted::Page),
            ("GET", "state") => {
                Ok(Wanted::State { known: query.strip_prefix("since=").unwrap_or("").into() })
            }
            ("GET", _) => {
                Err(Answer::plain("404 Not Found", "not found; use the address that mclv printed\n"))
            }
            _ => Err(Answer::plain("405 Method Not Allowed", "this page is read-only\n")),
        }
    }

    /// Returns the path after `/TOKEN/`, if that is how it begins.
    fn without_token<'a>(&self, path: &'a str) -> Option<&'a str> {
        let (given, path) = path.strip_prefix('/')?.split_once('/')?;
        let (given, token) = (given.as_bytes(), self.token.as_bytes());
        // The time of this comparison does not tell where they differ.
        let difference = given.iter().zip(token).fold(0, |all, (a, b)| all | (a ^ b));
        (given.len() == token.len() && difference == 0).then_some(path)
    }

    /// Makes the answer to a client that may have it.
    pub(super) fn answer(&self, wanted: &Wanted) -> Answer {
        let ended = self.ended.load(Ordering::Relaxed);
        let shown = || self.maker.lock().ok()?.shown(ended);
        match wanted {
            Wanted::Page => match shown() {
                Some(shown) => Answer("200 OK", "text/html", shown.page()),
                None => Answer::plain("503 Service Unavailable", "no results yet; try again soon\n"),
            },
            Wanted::State { known } => {
                if let Ok(mut asked) = self.asked.lock() {
                    *asked = (Some(Instant::now()), asked.1);
                }
                let shown = shown().filter(|shown| shown.version != *known);
                if let (true, Ok(mut asked)) = (ended, self.asked.lock()) {
                    asked.1 = true;
                }
                match shown {
                    Some(shown) => Answer("200 OK", "application/json", shown.state.clone()),
                    None => Answer::plain("204 No Content", ""),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::shown::Maker;
    use super::*;
    use mclv::train::RunFolder;
    use std::sync::Mutex;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn nothing_but_two_addresses_of_this_host_is_answered() {
        let shared = Shared {
            port: 5000,
            token: "abc".into(),
            patience: [Duration::ZERO; 2],
            ended: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            asked: Mutex::default(),
            maker: Mutex::new(Maker::new(RunFolder::new("no-such-folder"))),
        };
        let status = |request: &str, host: &str| {
            let request = format!("{request} HTTP/1.1\r\nAccept: */*\r\nHost: {host}\r\n\r\n");
            shared.judge(&request).map_err(|Answer(status, ..)| status[..3].to_owned())
        };
        let own = "127.0.0.1:5000";
        assert_eq!(status("GET /abc/", own), Ok(Wanted::Page));
        let state = |known: &str| Ok(Wanted::State { known: known.into() });
        assert_eq!(status("GET /abc/state?since=3-4", "LocalHost:5000"), state("3-4"));
        assert_eq!(status("GET /abc/state", own), state(""));
        let refused = |code: &str| Err(code.to_owned());
        for host in ["", "example.org", "example.org:5000", "127.0.0.1", "127.0.0.1:80"] {
            assert_eq!(status("GET /abc/", host), refused("403"), "{host}");
        }
        for target in
            ["/config.toml", "/../secret", "//etc/passwd", "/%2e%2e/x", "/state/", "", "config.toml"]
        {
            for token in ["", "/abc"] {
                assert_eq!(status(&format!("GET {token}{target}"), own), refused("404"), "{token}{target}");
            }
        }
        for token in ["", "ab", "abcd", "abd", "ABC", "%61bc", "abc/."] {
            assert_eq!(status(&format!("GET /{token}/state"), own), refused("404"), "{token}");
        }
        for method in ["POST", "PUT", "DELETE", "HEAD", "get", ""] {
            assert_eq!(status(&format!("{method} /abc/"), own), refused("405"), "{method}");
        }
    }
}
