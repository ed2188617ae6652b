//! `mclv train --live`: serves the report of a running training to browsers on this machine.
//!
//! The server has two addresses, `/` and `/state?since=VERSION`. It changes nothing, and requests
//! cannot name files. It listens on the loopback address only and answers only requests for its own
//! host name, so that no other web page can read it through a browser.

use anyhow::Context;
use mclv::progress::Silent;
use mclv::train::RunFolder;
use mclv_report::page::{Live, Page};
use mclv_view::View;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, UNIX_EPOCH};

const DEFAULT_PORT: u16 = 8377;
/// Limits: requests at the same time, bytes in the head of a request, and time to receive it.
const MOST_AT_A_TIME: usize = 8;
const LONGEST_HEAD: u64 = 8192;
const PATIENCE: Duration = Duration::from_secs(2);

/// A running server.
pub(crate) struct Server {
    port: u16,
    shared: Arc<Shared>,
    thread: JoinHandle<()>,
}

struct Shared {
    folder: RunFolder,
    port: u16,
    ended: AtomicBool,
    stop: AtomicBool,
    n_requests: AtomicUsize,
    /// The time of the last request for the state, and whether the page knows that training ended.
    asked: Mutex<(Option<Instant>, bool)>,
    /// The page of a version, and its pictures of a checkpoint.
    made: Mutex<Made>,
}

#[derive(Default)]
struct Made {
    version: String,
    page: Option<Page>,
    epochs_done: usize,
    epochs: Option<usize>,
    /// The pictures, and the time at which their checkpoint was written.
    view: Option<(u128, View)>,
}

impl Server {
    /// Starts to listen on the given port, or else on the default port or any free port.
    pub(crate) fn start(folder: &Path, port: Option<u16>) -> anyhow::Result<Self> {
        let bind = |port: u16| TcpListener::bind((Ipv4Addr::LOCALHOST, port));
        let listener = match port {
            Some(port) => bind(port).with_context(|| {
                format!("--live: cannot listen on port {port}; choose another with --port")
            })?,
            None => bind(DEFAULT_PORT).or_else(|_| bind(0)).context("--live: cannot listen")?,
        };
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        let shared = Arc::new(Shared {
            folder: RunFolder::new(folder),
            port,
            ended: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            n_requests: AtomicUsize::new(0),
            asked: Mutex::default(),
            made: Mutex::default(),
        });
        let thread = std::thread::spawn({
            let shared = Arc::clone(&shared);
            move || listen(&listener, &shared)
        });
        Ok(Self { port, shared, thread })
    }

    pub(crate) fn address(&self) -> String {
        format!("http://127.0.0.1:{}/", self.port)
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

fn listen(listener: &TcpListener, shared: &Arc<Shared>) {
    while !shared.stop.load(Ordering::Relaxed) {
        match listener.accept() {
            Ok((stream, _)) if shared.n_requests.load(Ordering::Relaxed) < MOST_AT_A_TIME => {
                shared.n_requests.fetch_add(1, Ordering::Relaxed);
                let shared = Arc::clone(shared);
                std::thread::spawn(move || {
                    // A browser that hangs up is no error.
                    let _ = answer(stream, &shared);
                    shared.n_requests.fetch_sub(1, Ordering::Relaxed);
                });
            }
            Ok(_) => {}
            Err(_) => std::thread::sleep(Duration::from_millis(30)),
        }
    }
}

fn answer(mut stream: TcpStream, shared: &Shared) -> std::io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut lines = BufReader::new((&mut stream).take(LONGEST_HEAD)).lines();
    let request = lines.next().transpose()?.unwrap_or_default();
    let mut host = String::new();
    for line in lines {
        let line = line?;
        if line.is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("host")
        {
            host = value.trim().to_ascii_lowercase();
        }
    }
    let (status, kind, body) = respond(&request, &host, shared);
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nContent-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; connect-src 'self'\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())?;
    stream.flush()
}

/// Status, type and body.
fn respond(request: &str, host: &str, shared: &Shared) -> (&'static str, &'static str, String) {
    let plain = "text/plain";
    let own = [format!("127.0.0.1:{}", shared.port), format!("localhost:{}", shared.port)];
    if !own.iter().any(|name| name == host) {
        return ("403 Forbidden", plain, "this server answers to 127.0.0.1 only\n".into());
    }
    let mut words = request.split(' ');
    let (method, target) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
    if method != "GET" {
        return ("405 Method Not Allowed", plain, "this page is read-only\n".into());
    }
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    match path {
        "/" => match shared.page() {
            Some((_, page, live)) => ("200 OK", "text/html", page.live_html(&live)),
            None => ("503 Service Unavailable", plain, "no results yet; try again soon\n".into()),
        },
        "/state" => {
            let ended = shared.ended.load(Ordering::Relaxed);
            let known = query.strip_prefix("since=").unwrap_or("");
            if let Ok(mut asked) = shared.asked.lock() {
                *asked = (Some(Instant::now()), asked.1 || ended);
            }
            match shared.page() {
                Some((version, page, live)) if version != known => {
                    ("200 OK", "application/json", page.state(&version, &live))
                }
                _ => ("204 No Content", plain, String::new()),
            }
        }
        _ => ("404 Not Found", plain, "not found; the report is at /\n".into()),
    }
}

impl Shared {
    /// The current page with its version, and how far the training is. The page is built again only
    /// if the run has written something since.
    fn page(&self) -> Option<(String, Page, Live)> {
        let ended = self.ended.load(Ordering::Relaxed);
        let mut made = self.made.lock().ok()?;
        let version = self.version(ended);
        if made.page.is_none() || made.version != version {
            let run = self.folder.read().ok()?;
            let checkpoint = written(&self.folder.checkpoint()).1;
            if made.view.as_ref().is_none_or(|(then, _)| *then != checkpoint) {
                // No tours: they would slow down training. The final report has them.
                made.view = Some((checkpoint, View::new(&run, None, false, &Silent).ok()?));
            }
            if let Some((_, view)) = &mut made.view {
                view.set_running(!ended);
            }
            made.page = made.view.as_ref().map(|(_, view)| mclv_view::page(&run, view));
            made.epochs_done = run.epochs_done();
            made.epochs = run.settings.as_ref().map(|settings| settings.epochs);
            made.version = version;
        }
        let live = Live { epoch: made.epochs_done, of: made.epochs, ended };
        Some((made.version.clone(), made.page.clone()?, live))
    }

    /// A version that changes when the run has written something.
    fn version(&self, ended: bool) -> String {
        let (metrics, checkpoint) = (self.folder.metrics(), self.folder.checkpoint());
        format!("{}-{}-{ended}", written(&metrics).0, written(&checkpoint).1)
    }
}

/// Size and modification time (in milliseconds) of a file; zeros if the file does not exist.
fn written(path: &Path) -> (u64, u128) {
    let Ok(metadata) = std::fs::metadata(path) else { return (0, 0) };
    let time = metadata.modified().ok().and_then(|t| t.duration_since(UNIX_EPOCH).ok());
    (metadata.len(), time.unwrap_or_default().as_millis())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared() -> Shared {
        Shared {
            folder: RunFolder::new("no-such-folder"),
            port: 5000,
            ended: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            n_requests: AtomicUsize::new(0),
            asked: Mutex::default(),
            made: Mutex::default(),
        }
    }

    #[test]
    fn nothing_but_two_addresses_of_this_host_is_answered() {
        let status = |request: &str, host: &str| respond(request, host, &shared()).0[..3].to_owned();
        let own = "127.0.0.1:5000";
        assert_eq!(status("GET / HTTP/1.1", own), "503");
        assert_eq!(status("GET /state?since= HTTP/1.1", "localhost:5000"), "204");
        for host in ["", "example.org", "example.org:5000", "127.0.0.1", "127.0.0.1:80"] {
            assert_eq!(status("GET / HTTP/1.1", host), "403", "{host}");
        }
        for target in
            ["/config.toml", "/../secret", "//etc/passwd", "/%2e%2e/x", "/state/", "", "config.toml"]
        {
            assert_eq!(status(&format!("GET {target} HTTP/1.1"), own), "404", "{target}");
        }
        for method in ["POST", "PUT", "DELETE", "HEAD", "get", ""] {
            assert_eq!(status(&format!("{method} / HTTP/1.1"), own), "405", "{method}");
        }
    }
}
