//! Keeps signals ignored that were ignored when the process began.

/// Blocks the signals that this process was told to ignore: SIGHUP by `nohup`, SIGINT by a script
/// that started it with `&`. Otherwise the handler of [`Watch`](crate::watch::Watch) would hear them.
///
/// This must come before the first thread, because a thread inherits what is blocked.
pub(crate) fn keep_ignored() {
    #[cfg(unix)]
    {
        use nix::sys::signal::{SigSet, Signal};
        let ignored = ignored();
        let all = [Signal::SIGHUP, Signal::SIGINT, Signal::SIGTERM].into_iter();
        let kept: SigSet = all.filter(|&signal| ignored >> (signal as u32 - 1) & 1 == 1).collect();
        // It cannot fail: these signals exist.
        let _ = kept.thread_block();
    }
}

/// The ignored signals as bits, the first signal in the lowest. Only Linux tells them.
#[cfg(unix)]
fn ignored() -> u64 {
    const LONGEST: u64 = 1 << 16;
    let status = mclv::read_text("/proc/self/status".as_ref(), LONGEST).unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
