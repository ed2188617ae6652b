//! Receives requests. One thread reads from all clients, so slow clients cost nothing but a place in
//! its list.

use super::Shared;
use super::answer::Wanted;
use std::collections::VecDeque;
use std::io::{ErrorKind, Read};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Limits: clients whose requests have not arrived, bytes in a request, and answers that are made at
/// the same time.
const MOST_WAITING: usize = 64;
const LONGEST: usize = 8192;
const MOST_AT_A_TIME: usize = 8;
/// The time between two looks at clients, and the time for the last answers.
const PAUSE: Duration = Duration::from_millis(10);
const LAST: Duration = Duration::from_secs(1);

/// A client whose request has not arrived completely.
struct Waiting {
    stream: TcpStream,
    request: Vec<u8>,
    since: Instant,
}

/// What has arrived of a request.
enum Arrived {
    All,
    Part,
    /// The client has hung up, or sends no request.
    Nothing,
}

impl Waiting {
    fn new(stream: TcpStream) -> Option<Self> {
        stream.set_nonblocking(true).ok()?;
        Some(Self { stream, request: Vec::new(), since: Instant::now() })
    }

    /// Reads what has arrived.
    fn read(&mut self) -> Arrived {
        let mut buffer = [0; 1024];
        loop {
            match self.stream.read(&mut buffer) {
                Ok(0) => return Arrived::Nothing,
                Ok(n) => self.request.extend_from_slice(&buffer[..n]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Arrived::Part,
                Err(_) => return Arrived::Nothing,
            }
            if self.request.windows(4).any(|end| end == b"\r\n\r\n") {
                return Arrived::All;
            }
            if self.request.len() > LONGEST {
                return Arrived::Nothing;
            }
        }
    }
}

/// All clients of a server.
struct Clients<'a> {
    shared: &'a Arc<Shared>,
    /// The oldest is the first.
    waiting: VecDeque<Waiting>,
    /// Clients that may have what they want, which may take time to make.
    granted: VecDeque<(TcpStream, Wanted)>,
    threads: Vec<JoinHandle<()>>,
}

/// Receives and answers requests until the server stops.
pub(super) fn listen(listener: &TcpListener, shared: &Arc<Shared>) {
    let mut clients =
        Clients { shared, waiting: VecDeque::new(), granted: VecDeque::new(), threads: Vec::new() };
    while !shared.stop.load(Ordering::Relaxed) {
        clients.read_all();
        let n_accepted = clients.accept(listener);
        clients.answer();
        if n_accepted == 0 {
            std::thread::sleep(PAUSE);
        }
    }
    // The last answers are not cut off.
    let begun = Instant::now();
    while !clients.threads.iter().all(JoinHandle::is_finished) && begun.elapsed() < LAST {
        std::thread::sleep(PAUSE);
    }
}

impl Clients<'_> {
    /// Accepts new clients, and returns their number.
    fn accept(&mut self, listener: &TcpListener) -> usize {
        let mut n = 0;
        while n < MOST_WAITING
            && let Ok((stream, _)) = listener.accept()
        {
            n += 1;
            if let Some(client) = Waiting::new(stream) {
                self.read(client);
            }
            if self.waiting.len() > MOST_WAITING {
                self.waiting.pop_front();
            }
        }
        n
    }

    fn read_all(&mut self) {
        std::mem::take(&mut self.waiting).into_iter().for_each(|client| self.read(client));
    }

    fn read(&mut self, mut client: Waiting) {
        match client.read() {
            Arrived::All => match self.shared.judge(&String::from_utf8_lossy(&client.request)) {
                Ok(wanted) => self.granted.push_back((client.stream, wanted)),
                // It is short, so it waits for nobody.
                Err(refusal) => drop(refusal.send(client.stream, self.shared)),
            },
            Arrived::Part if client.since.elapsed() < self.shared.patience[0] => {
                self.waiting.push_back(client)
            }
            Arrived::Part | Arrived::Nothing => {}
        }
    }

    /// Begins to make answers.
    fn answer(&mut self) {
        self.threads.retain(|thread| !thread.is_finished());
        while self.threads.len() < MOST_AT_A_TIME
            && let Some((stream, wanted)) = self.granted.pop_front()
        {
            let shared = Arc::clone(self.shared);
            // A browser that hangs up is no error.
            self.threads.push(std::thread::spawn(move || drop(shared.answer(&wanted).send(stream, &shared))));
        }
    }
}
