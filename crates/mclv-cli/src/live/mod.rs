//! `mclv train --live`: serves the report of a running training to browsers on this machine.
//!
//! The server has two addresses, `/TOKEN/` and `/TOKEN/state?since=VERSION`. It changes nothing, and
//! requests cannot name files. It listens on the loopback address only and answers only requests for
//! its own host name, so that no other web page can read it through a browser. The token, a random
//! word, keeps out other users of this machine.

mod answer;
mod shown;
mod waiting;

use anyhow::Context;
use mclv::train::RunFolder;
use shown::Maker;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const DEFAULT_PORT: u16 = 8377;
/// The time that a client has to send its request, and to take the answer.
const PATIENCE: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(20)];

/// A running server.
pub(crate) struct Server {
    shared: Arc<Shared>,
    thread: JoinHandle<()>,
}

struct Shared {
    port: u16,
    /// The random word that addresses must contain.
    token: String,
    patience: [Duration; 2],
    ended: AtomicBool,
    stop: AtomicBool,
    /// The time of the last request for the state, and whether the page knows that training ended.
    asked: Mutex<(Option<Instant>, bool)>,
    maker: Mutex<Maker>,
}

impl Server {
    /// Starts to listen on the given port, or else on the default port or any free port.
    pub(crate) fn start(folder: &Path, port: Option<u16>) -> anyhow::Result<Self> {
        Self::start_with(folder, port, PATIENCE)
    }

    fn start_with(folder: &Path, port: Option<u16>, patience: [Duration; 2]) -> anyhow::Result<Self> {
        let bind = |port: u16| TcpListener::bind((Ipv4Addr::LOCALHOST, port));
        let listener = match port {
            Some(port) => bind(port).with_context(|| {
                format!("--live: cannot listen on port {port}; choose another with --port")
            })?,
            None => bind(DEFAULT_PORT).or_else(|_| bind(0)).context("--live: cannot listen")?,
        };
        listener.set_nonblocking(true)?;
        let shared = Arc::new(Shared {
            port: listener.local_addr()?.port(),
            token: token()?,
            patience,
            ended: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            asked: Mutex::default(),
            maker: Mutex::new(Maker::new(RunFolder::new(folder))),
        });
        let thread = std::thread::spawn({
            let shared = Arc::clone(&shared);
            move || waiting::listen(&listener, &shared)
        });
        Ok(Self { shared, thread })
    }

    pub(crate) fn address(&self) -> String {
        format!("http://127.0.0.1:{}/{}/", self.shared.port, self.shared.token)
    }

    /// Stops the server after training has ended. It waits until an open page has the last state.
    pub(crate) fn finish(self) {
        self.shared.ended.store(true, Ordering::Relaxed);
        let until = Instant::now() + Duration::from_secs(4);
        let waiting = || {
            self.shared.asked.lock().is_ok_and(|asked| {
                !asked.1 && asked.0.is_some_and(|then| then.elapsed() < Duration::from_secs(3))
            })
        };
        while waiting() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(50));
        }
        self.shared.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.join();
    }
}

/// A random word of 128 bits.
fn token() -> anyhow::Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| anyhow::anyhow!("--live: no random numbers: {error}"))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpStream;

    const LONG: Duration = Duration::from_secs(1000);

    fn server(patience: [Duration; 2]) -> Server {
        Server::start_with(Path::new("no-such-folder"), Some(0), patience).unwrap()
    }

    fn connect(server: &Server) -> TcpStream {
        TcpStream::connect((Ipv4Addr::LOCALHOST, server.shared.port)).unwrap()
    }

    /// Asks for a path, and returns everything that comes.
    fn ask(server: &Server, path: &str) -> String {
        let mut stream = connect(server);
        write!(stream, "GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n\r\n", server.shared.port).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn the_address_has_a_token_and_nothing_is_answered_without_it() {
        let [one, two] = [(); 2].map(|()| server(PATIENCE));
        let token = one.shared.token.clone();
        assert!(token.len() == 32 && token != two.shared.token);
        assert_eq!(one.address(), format!("http://127.0.0.1:{}/{token}/", one.shared.port));
        assert!(ask(&one, &format!("/{token}/")).starts_with("HTTP/1.1 503 "));
        assert!(ask(&one, &format!("/{token}/state?since=")).starts_with("HTTP/1.1 204 "));
        for path in ["/".into(), "/state".into(), format!("/{token}"), format!("/{}/", two.shared.token)] {
            let answer = ask(&one, &path);
            assert!(answer.starts_with("HTTP/1.1 404 ") && !answer.contains(&token), "{path}: {answer}");
        }
        for header in [
            "frame-ancestors 'none'",
            "default-src 'none'",
            "X-Frame-Options: DENY",
            "Referrer-Policy: no-referrer",
            "X-Content-Type-Options: nosniff",
            "Cross-Origin-Resource-Policy: same-origin",
            "Cache-Control: no-store",
        ] {
            assert!(ask(&one, "/").contains(header), "{header}");
        }
        [one, two].into_iter().for_each(Server::finish);
    }

    /// No patience ends in this test, so it does not depend on time: whoever gets an answer gets it
    /// beside all the slow clients.
    #[test]
    fn slow_clients_do_not_keep_others_out() {
        let server = server([LONG, LONG]);
        let path = format!("/{}/state", server.shared.token);
        for n in [8, 500] {
            let mut slow: Vec<TcpStream> = (0..n).map(|_| connect(&server)).collect();
            for byte in b"GET " {
                for stream in &mut slow {
                    // The server hangs up on the oldest if there are too many.
                    let _ = stream.write_all(&[*byte]);
                }
                assert!(ask(&server, &path).starts_with("HTTP/1.1 204 "), "{n} slow clients");
            }
        }
        server.finish();
    }

    /// A client that sends a byte now and then does not have more time.
    #[test]
    fn a_request_has_a_deadline_as_a_whole() {
        let server = server([Duration::from_millis(300), LONG]);
        let mut slow = connect(&server);
        let begun = Instant::now();
        while slow.write_all(b"x").is_ok() {
            assert!(begun.elapsed() < Duration::from_secs(60), "it may send for ever");
            std::thread::sleep(Duration::from_millis(20));
        }
        // So does a client that sends more than any request has.
        let mut long = connect(&server);
        while long.write_all(&[b'x'; 1000]).is_ok() {
            assert!(begun.elapsed() < Duration::from_secs(60), "it may send without end");
        }
        server.finish();
    }

    /// An answer that nobody takes ends at its own deadline.
    #[test]
    fn an_answer_that_is_not_taken_is_given_up() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let _client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (stream, _) = listener.accept().unwrap();
        let error = answer::send(stream, &vec![0; 1 << 26], Duration::from_millis(50)).unwrap_err();
        assert!(
            matches!(error.kind(), std::io::ErrorKind::TimedOut | std::io::ErrorKind::WouldBlock),
            "{error}"
        );
    }
}
