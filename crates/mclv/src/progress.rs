//! Report the progress of long work, cancel it, and ask before anything is fetched.

use std::sync::atomic::{AtomicBool, Ordering};

/// A listener to long work: it is told about progress and can cancel. Its methods may be called
/// from any thread.
pub trait Progress: Sync {
    /// Called when `done` of `total` units of work are finished.
    fn report(&self, _done: u64, _total: u64) {}

    /// Returns true if the work should stop as soon as possible. The work then ends with
    /// [`Error::Cancelled`](crate::Error::Cancelled).
    fn cancelled(&self) -> bool {
        false
    }

    /// Returns true if a file that is not on this machine may be fetched: downloaded, or taken from
    /// a package by another program. `how` is a sentence that names the missing file and the
    /// planned action. The default is false.
    fn may_fetch(&self, _how: &str) -> bool {
        false
    }
}

/// A listener that ignores everything and never cancels the work.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {}

/// A listener that cancels the work when the flag is set, and ignores everything else.
impl Progress for AtomicBool {
    fn cancelled(&self) -> bool {
        self.load(Ordering::Relaxed)
    }
}

/// A listener that passes everything on except the progress of the work.
pub struct Quiet<'a>(pub &'a dyn Progress);

impl Progress for Quiet<'_> {
    fn cancelled(&self) -> bool {
        self.0.cancelled()
    }

    fn may_fetch(&self, how: &str) -> bool {
        self.0.may_fetch(how)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::bits::BitRows;
    use crate::model::tests::random_rbm;
    use crate::partition::{
        self, AisSettings, BarSettings, Effort, MclvSettings, Origin, ReverseAisSettings,
    };
    use crate::sample::{self, SampleSettings, Start};
    use crate::{Error, Result, StoppingSet};
    use std::sync::atomic::AtomicI64;

    /// A listener that cancels at one question, and at no other.
    pub(crate) struct StopsOnce(AtomicI64);

    impl StopsOnce {
        /// Questions are counted from 0.
        pub(crate) fn at_question(n: u32) -> Self {
            Self(AtomicI64::new(n.into()))
        }

        fn has_said_so(&self) -> bool {
            self.0.load(Ordering::Relaxed) < 0
        }
    }

    impl Progress for StopsOnce {
        fn report(&self, _done: u64, _total: u64) {}

        fn cancelled(&self) -> bool {
            self.0.fetch_sub(1, Ordering::Relaxed) == 0
        }
    }

    type Work<'a> = (&'static str, &'a dyn Fn(&dyn Progress) -> Result<()>);

    #[test]
    fn work_that_is_told_once_to_stop_is_cancelled() {
        let rbm = random_rbm(17, 16, 0.5, 310);
        let states = BitRows::zeros(20, 17);
        let set = StoppingSet::new(&BitRows::from_words(16, (0..50).collect()));
        let ais = AisSettings { n_chains: 20, n_betas: 100, ..Default::default() };
        let reverse = ReverseAisSettings { n_betas: 100, ..Default::default() };
        let bar = BarSettings { n_ladders: 2, n_steps: 100, burn_in: 10, ..Default::default() };
        let mclv = MclvSettings { effort: Effort::Tours(50), max_length: Some(20), ..Default::default() };
        let chains = SampleSettings { n_samples: 100, burn_in: Some(200), ..Default::default() };
        let works: [Work<'_>; 7] = [
            ("exact", &|p| partition::exact(&rbm, &Default::default(), p).map(drop)),
            ("ais", &|p| partition::ais(&rbm, &ais, p).map(drop)),
            ("reverse ais", &|p| partition::reverse_ais(&rbm, &states, Origin::Data, &reverse, p).map(drop)),
            ("bar", &|p| partition::bar(&rbm, &bar, p).map(drop)),
            ("tours", &|p| partition::mclv(&rbm, &set, &mclv, p).map(drop)),
            ("chains", &|p| sample::sample(&rbm, &chains, Start::Bias, None, p).map(drop)),
            ("exact samples", &|p| sample::exact(&rbm, 10, 1, &Default::default(), p).map(drop)),
        ];
        for (name, work) in works {
            for n in [0, 1, 2, 10, 45, 55, 1000] {
                let once = StopsOnce::at_question(n);
                let result = work(&once);
                assert_eq!(matches!(result, Err(Error::Cancelled)), once.has_said_so(), "{name}, {n}");
                assert!(n > 0 || once.has_said_so(), "{name} asks");
            }
        }
    }
}
