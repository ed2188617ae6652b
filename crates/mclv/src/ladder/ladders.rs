//! Step many ladders of chains together, for a model that changes between steps.
//!
//! A ladder has one chain on each rung `1 … K`, at the inverse temperatures
//! `0 = β_0 < β_1 < … < β_K = 1` of the path
//!
//! ```text
//! p_β(v, h) ∝ exp(((1−β)b₀ + βb)ᵀv + β(aᵀh + vᵀWh))
//! ```
//!
//! Rung 0 has no chain. Its hidden units are fair coins, so a fresh state is drawn whenever rung 1
//! is asked to exchange. Rung `K` is the model.
//!
//! Chains keep hidden states. `log p*_β(h) = βaᵀh + Σ_i softplus((1−β)b₀_i + β(b + Wh)_i)`. The
//! products with `W` do not depend on `β`. No step allocates memory.

use crate::bits::{ones, words_for};
use crate::model::Rbm;
use crate::rng::{Draws, Stream};
use crate::team::{self, Parcel};
use mclv_kernels::Isa;
use mclv_kernels::layer::{Bases, Scratch, States, inputs, log_weight_at, means, sample_at};
use mclv_kernels::tiles::Tiles;

/// The visible biases `b₀` of the lowest rung.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Base {
    values: Vec<f32>,
    /// The same in one row.
    row: Tiles,
}

impl Base {
    pub(crate) fn new(values: Vec<f32>) -> Self {
        Self { row: Tiles::from_rows(1, values.len(), &values), values }
    }

    pub(crate) fn values(&self) -> &[f32] {
        &self.values
    }
}

/// The models of all rungs.
#[derive(Clone, Copy)]
pub(crate) struct Rising<'a> {
    /// The model of the top rung.
    pub(crate) rbm: &'a Rbm,
    pub(crate) base: &'a Base,
    /// The inverse temperatures, from 0 to 1.
    pub(crate) betas: &'a [f64],
}

impl Rising<'_> {
    /// Computes `b + Wh` of hidden states.
    fn visible_inputs(&self, h: &[u64], scratch: &mut Scratch, out: &mut Tiles) {
        inputs(Isa::best(), self.rbm.down(), States::Bits(h), scratch, out);
    }

    /// `log p*_β(h)` of a state, from row `row` of the inputs that belong to it.
    fn log_weight(&self, h: &[u64], inputs: &Tiles, row: usize, beta: f64) -> f64 {
        let linear: f64 = ones(h).map(|j| f64::from(self.rbm.hidden_bias()[j])).sum();
        beta * linear + log_weight_at(Isa::best(), inputs, Some(&self.base.row), row, beta)
    }
}

team::parcel! {
    /// Where a state has been. A state that moves to another rung takes its history along.
    #[derive(Clone, Copy, Debug, Default, PartialEq)]
    pub(crate) struct History {
        /// The update in which the state was drawn on the lowest rung. `None` if it never was.
        pub(crate) drawn: Option<u64>,
        /// True if the state has been on the top rung.
        pub(crate) has_climbed: bool,
    }
}

team::parcel! {
    /// Counts of the exchanges of some ladders in one update.
    #[derive(Clone, Debug, Default, PartialEq)]
    pub(crate) struct Exchanges {
        /// For each pair of neighbours, from the lowest, the numbers of exchanges accepted and
        /// tried.
        pub(crate) pairs: Vec<(u32, u32)>,
        /// The number of states that were drawn on the lowest rung, came to the top, and are on the
        /// lowest rung again.
        pub(crate) round_trips: u32,
    }
}

/// Some ladders that step together, with their buffers.
#[derive(Clone, Debug)]
pub(crate) struct Ladders {
    n_ladders: usize,
    n_rungs: usize,
    /// The packed hidden states: all ladders of rung 1, then all of rung 2, and so on.
    h: Vec<u64>,
    /// In the order of `h`.
    histories: Vec<History>,
    /// The visible states drawn last.
    v: Vec<u64>,
    of_visible: Tiles,
    of_hidden: Tiles,
    /// Fresh states of the lowest rung, one for each ladder.
    fresh: Vec<u64>,
    of_fresh: Tiles,
    betas: Vec<f32>,
    /// The number of the base of each chain: there is one base.
    of_base: Vec<u32>,
    draws: Vec<Draws>,
}

impl Ladders {
    /// Takes the packed hidden states `h` of `n_ladders` ladders with rungs 1 to `n_rungs`, and
    /// their histories: all ladders of rung 1 first.
    pub(crate) fn new(
        rbm: &Rbm,
        n_ladders: usize,
        n_rungs: usize,
        h: Vec<u64>,
        histories: Vec<History>,
    ) -> Self {
        let (n, n_words) = (n_ladders * n_rungs, words_for(rbm.n_hidden()));
        assert_eq!((h.len(), histories.len()), (n * n_words, n), "a state and a history for each chain");
        Self {
            n_ladders,
            n_rungs,
            h,
            histories,
            v: vec![0; n * words_for(rbm.n_visible())],
            of_visible: Tiles::zeros(n, rbm.n_visible()),
            of_hidden: Tiles::zeros(n, rbm.n_hidden()),
            fresh: vec![0; n_ladders * n_words],
            of_fresh: Tiles::zeros(n_ladders, rbm.n_visible()),
            betas: vec![0.0; n],
            of_base: vec![0; n],
            draws: Vec::with_capacity(n),
        }
    }

    /// The number of hidden units.
    pub(crate) fn n_hidden(&self) -> usize {
        self.of_hidden.n_columns()
    }

    /// The packed hidden states of all ladders on one rung, from 1.
    pub(crate) fn on_rung(&self, rung: usize) -> &[u64] {
        let n = self.n_ladders * self.n_words();
        &self.h[(rung - 1) * n..][..n]
    }

    /// The histories of the states of all ladders on one rung, from 1.
    pub(crate) fn histories_on(&self, rung: usize) -> &[History] {
        &self.histories[(rung - 1) * self.n_ladders..][..self.n_ladders]
    }

    /// Asks every second pair of neighbours to exchange states: those whose lower rung is even if
    /// `update` is, or odd. With state `x` on rung `k` and `y` on rung `k+1`, the logarithm of the
    /// Metropolis ratio is
    /// `log p*_{k+1}(x) + log p*_k(y) − log p*_k(x) − log p*_{k+1}(y)`. `accepts` receives the
    /// ladder, `k` and this number. `fresh` gives the random numbers of a state of the lowest rung.
    ///
    /// **Guarantee**: with Metropolis' rule, the product of the models of all rungs is invariant.
    pub(crate) fn exchange(
        &mut self,
        models: Rising<'_>,
        update: u64,
        scratch: &mut Scratch,
        fresh: impl Fn(usize) -> Draws,
        accepts: impl Fn(usize, usize, f64) -> bool,
    ) -> Exchanges {
        let (n, n_rungs, betas) = (self.n_ladders, self.n_rungs, models.betas);
        models.visible_inputs(&self.h, scratch, &mut self.of_visible);
        let parity = (update % 2) as usize;
        if parity == 0 {
            self.draw_fresh(fresh);
            models.visible_inputs(&self.fresh, scratch, &mut self.of_fresh);
        }
        let mut seen = Exchanges { pairs: vec![(0, 0); n_rungs], round_trips: 0 };
        for k in (parity..n_rungs).step_by(2) {
            for ladder in 0..n {
                let log_ratio = match k {
                    0 => self.log_ratio_of_fresh(models, ladder),
                    _ => {
                        let log_weight = |rung: usize, beta: f64| self.log_weight(models, rung, ladder, beta);
                        log_weight(k, betas[k + 1]) + log_weight(k + 1, betas[k])
                            - log_weight(k, betas[k])
                            - log_weight(k + 1, betas[k + 1])
                    }
                };
                let accepted = accepts(ladder, k, log_ratio);
                seen.pairs[k].0 += u32::from(accepted);
                seen.pairs[k].1 += 1;
                if accepted && k == 0 {
                    let History { drawn, has_climbed } = self.histories[ladder];
                    seen.round_trips += u32::from(drawn.is_some() && has_climbed);
                    self.take_fresh(ladder, update);
                } else if accepted {
                    self.swap(k, ladder);
                }
            }
        }
        let top = (n_rungs - 1) * n;
        self.histories[top..].iter_mut().for_each(|history| history.has_climbed = true);
        seen
    }

    /// Makes `n_steps` Gibbs steps `h → v → h'` on every rung, after an
    /// [exchange](Self::exchange). `stream(rung, ladder)` has the random numbers of a chain;
    /// half-step `first` is the first that is used. Afterwards [`top`](Self::top) is a state of the
    /// joint chain of the model.
    pub(crate) fn step(
        &mut self,
        models: Rising<'_>,
        n_steps: usize,
        first: u32,
        scratch: &mut Scratch,
        stream: impl Fn(usize, usize) -> Stream,
    ) {
        let n = self.n_ladders;
        for (chain, beta) in self.betas.iter_mut().enumerate() {
            *beta = models.betas[1 + chain / n] as f32;
        }
        let of_chain = |chain: usize, half: u32| stream(1 + chain / n, chain % n).at(first + half);
        let Self { h, v, of_visible, of_hidden, betas, of_base, draws, .. } = self;
        let base = Bases { rows: std::slice::from_ref(&models.base.row), of_state: of_base };
        let no_base = Bases { rows: &[], of_state: of_base };
        for step in 0..n_steps as u32 {
            if step > 0 {
                models.visible_inputs(h, scratch, of_visible);
            }
            draws.clear();
            draws.extend((0..betas.len()).map(|chain| of_chain(chain, 2 * step)));
            sample_at(Isa::best(), of_visible, base, betas, draws, scratch, v);
            inputs(Isa::best(), models.rbm.up(), States::Bits(v), scratch, of_hidden);
            draws.clear();
            draws.extend((0..betas.len()).map(|chain| of_chain(chain, 2 * step + 1)));
            sample_at(Isa::best(), of_hidden, no_base, betas, draws, scratch, h);
        }
    }

    /// Returns the visible states of the top rung, packed, and `E[h|v]`.
    pub(crate) fn top(&self, rbm: &Rbm, scratch: &mut Scratch) -> (&[u64], Tiles) {
        let n = self.n_ladders * words_for(rbm.n_visible());
        let v = &self.v[self.v.len() - n..];
        let mut h = Tiles::zeros(self.n_ladders, rbm.n_hidden());
        means(Isa::best(), rbm.up(), States::Bits(v), scratch, &mut h);
        (v, h)
    }

    fn n_words(&self) -> usize {
        words_for(self.n_hidden())
    }

    fn log_weight(&self, models: Rising<'_>, rung: usize, ladder: usize, beta: f64) -> f64 {
        let (chain, n_words) = ((rung - 1) * self.n_ladders + ladder, self.n_words());
        models.log_weight(&self.h[chain * n_words..][..n_words], &self.of_visible, chain, beta)
    }

    /// The logarithm of Metropolis' ratio for a fresh state in place of that on rung 1. All hidden
    /// states have the same weight on the lowest rung.
    fn log_ratio_of_fresh(&self, models: Rising<'_>, ladder: usize) -> f64 {
        let n_words = self.n_words();
        let fresh = &self.fresh[ladder * n_words..][..n_words];
        models.log_weight(fresh, &self.of_fresh, ladder, models.betas[1])
            - self.log_weight(models, 1, ladder, models.betas[1])
    }

    /// Draws fair coins.
    fn draw_fresh(&mut self, draws: impl Fn(usize) -> Draws) {
        let (n_hidden, n_words) = (self.n_hidden(), self.n_words());
        let last = u64::MAX >> (64 * n_words - n_hidden);
        for (ladder, state) in self.fresh.chunks_exact_mut(n_words).enumerate() {
            let draws = draws(ladder);
            for (k, word) in state.iter_mut().enumerate() {
                let [low, high, ..] = draws.block(k as u32);
                *word = u64::from(high) << 32 | u64::from(low);
            }
            state[n_words - 1] &= last;
        }
    }

    /// Puts the fresh state of a ladder on rung 1.
    fn take_fresh(&mut self, ladder: usize, update: u64) {
        let range = ladder * self.n_words()..(ladder + 1) * self.n_words();
        self.h[range.clone()].copy_from_slice(&self.fresh[range]);
        self.of_visible.copy_row(ladder, &self.of_fresh, ladder);
        self.histories[ladder] = History { drawn: Some(update), has_climbed: false };
    }

    /// Exchanges the states of rungs `k` and `k + 1` of a ladder.
    fn swap(&mut self, k: usize, ladder: usize) {
        let (low, high) = ((k - 1) * self.n_ladders + ladder, k * self.n_ladders + ladder);
        let n_words = self.n_words();
        (0..n_words).for_each(|word| self.h.swap(low * n_words + word, high * n_words + word));
        self.of_visible.swap_rows(low, high);
        self.histories.swap(low, high);
    }
}

/// Ranks exchange hidden states and histories; everything else is computed anew in every update.
impl team::Exchange for Ladders {
    fn pack(&self, to: &mut Vec<u8>) {
        self.h.pack(to);
        self.histories.pack(to);
    }

    fn unpack(&mut self, from: &mut &[u8]) {
        self.h = Parcel::unpack(from);
        self.histories = Parcel::unpack(from);
    }
}

/// The rejection rate that evenly spaced temperatures are treated as having in addition to their
/// own. It keeps temperatures apart where every exchange is accepted.
const LEAST_REJECTION: f64 = 0.02;

/// Returns new temperatures between which neighbours should exchange equally often, from the
/// rejection rates between neighbours of `betas` (Syed, Bouchard-Côté, Deligiannidis and Doucet
/// 2019).
///
/// The sum of the rejection rates up to a temperature, linear in between, measures how far it is
/// from the base. New temperatures are equally far from each other. They have single precision,
/// like the chains.
pub(crate) fn equally_rejecting(betas: &[f64], rejections: &[f64]) -> Vec<f64> {
    let n = rejections.len();
    assert_eq!(betas.len(), n + 1, "a rejection rate for each pair of temperatures");
    let mut distance = vec![0.0; n + 1];
    for k in 0..n {
        let least = LEAST_REJECTION * n as f64 * (betas[k + 1] - betas[k]);
        distance[k + 1] = distance[k] + rejections[k] + least;
    }
    let mut k = 0;
    let between = |t: usize| {
        let wanted = distance[n] * t as f64 / n as f64;
        while k + 1 < n && distance[k + 1] < wanted {
            k += 1;
        }
        let share = (wanted - distance[k]) / (distance[k + 1] - distance[k]);
        f64::from((betas[k] + share * (betas[k + 1] - betas[k])) as f32)
    };
    let mut new: Vec<f64> = (1..n).map(between).collect();
    new.insert(0, 0.0);
    new.push(1.0);
    new
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ladder::{Kept, Path, Replicas};
    use crate::model::tests::random_rbm;
    use crate::rng::{Purpose, stream};

    fn chain(rung: usize, ladder: usize) -> Stream {
        stream(5, Purpose::SelfTest, (rung * 100 + ladder) as u64)
    }

    /// A model whose parameters are exact in binary, so that the order of sums does not matter.
    fn dyadic() -> (Rbm, Vec<f32>) {
        let values = |n: usize, step: usize| -> Vec<f32> {
            (0..n).map(|k| ((k * step + 11) % 64) as f32 / 32.0 - 1.0).collect()
        };
        let rbm = Rbm::new(70, 66, &values(70 * 66, 37), &values(70, 29), &values(66, 23)).unwrap();
        (rbm, values(70, 31))
    }

    fn ladders(rbm: &Rbm, n_ladders: usize, n_rungs: usize, h: Vec<u64>) -> Ladders {
        Ladders::new(rbm, n_ladders, n_rungs, h, vec![History::default(); n_ladders * n_rungs])
    }

    /// The oracle: the chains of [`Replicas`], one for each rung of each ladder.
    #[test]
    fn steps_and_log_weights_are_those_of_the_path() {
        let (rbm, b0) = dyadic();
        let path = Path::new(&rbm, Some(&b0), Kept::Hidden).unwrap();
        let (base, betas) = (Base::new(b0), [0.0, 0.25, 0.5, 1.0]);
        let models = Rising { rbm: &rbm, base: &base, betas: &betas };
        let (n_ladders, n_rungs, scratch) = (5, 3, &mut Scratch::default());
        let streams: Vec<Stream> = (0..15).map(|r| chain(1 + r / n_ladders, r % n_ladders)).collect();
        let mut oracle = Replicas::from_base(&path, streams);
        let mut ladders = ladders(&rbm, n_ladders, n_rungs, oracle.kept().to_vec());
        for update in [1, 3, 5] {
            let never = ladders.exchange(
                models,
                update,
                scratch,
                |l| chain(0, l).at(0),
                |ladder, k, ratio| {
                    let (low, high) = ((k - 1) * n_ladders + ladder, k * n_ladders + ladder);
                    let weight = |r: usize, beta: f64| oracle.log_weight(r, beta);
                    let expected = weight(low, betas[k + 1]) + weight(high, betas[k])
                        - weight(low, betas[k])
                        - weight(high, betas[k + 1]);
                    assert!((ratio - expected).abs() < 1e-9, "{ratio} is not {expected}");
                    false
                },
            );
            assert_eq!(never.pairs, [(0, 0), (0, 5), (0, 0)]);
            ladders.step(models, 2, 2 * update as u32, scratch, chain);
            oracle.step(|r| betas[1 + r / n_ladders]);
            oracle.step(|r| betas[1 + r / n_ladders]);
            assert_eq!(ladders.h, oracle.kept());
        }
        let (v, means) = ladders.top(&rbm, scratch);
        let v = crate::data::Rows::Bits(crate::bits::BitRows::from_words(70, v.to_vec()));
        assert_eq!(means.to_rows(), rbm.mean_h_from_v(&v).unwrap().values());
    }

    /// Every exchange is accepted: states move by one rung in every update, and a state that is
    /// drawn at the bottom comes back after it has been at the top.
    #[test]
    fn histories_move_with_states() {
        let rbm = random_rbm(9, 66, 0.5, 7);
        let (base, betas) = (Base::new(vec![0.0; 9]), [0.0, 0.3, 0.6, 1.0]);
        let models = Rising { rbm: &rbm, base: &base, betas: &betas };
        let scratch = &mut Scratch::default();
        let mut ladders = ladders(&rbm, 2, 3, (0..6).flat_map(|state| [state, 0]).collect());
        let mut exchange = |ladders: &mut Ladders, update: u64| {
            ladders.exchange(models, update, scratch, |l| chain(0, l).at(update as u32), |_, _, _| true)
        };
        let drawn = |ladders: &Ladders, rung: usize| ladders.histories_on(rung)[0].drawn;
        let first = exchange(&mut ladders, 0);
        assert_eq!((first.pairs, first.round_trips), (vec![(2, 2), (0, 0), (2, 2)], 0));
        assert_eq!([1, 2, 3].map(|rung| drawn(&ladders, rung)), [Some(0), None, None]);
        // The states of rungs 2 and 3 were exchanged.
        assert_eq!((ladders.on_rung(2), ladders.on_rung(3)), (&[4, 0, 5, 0][..], &[2, 0, 3, 0][..]));
        let mut round_trips = Vec::new();
        for update in 1..7 {
            round_trips.push(exchange(&mut ladders, update).round_trips);
        }
        // The states that come down first were never drawn on the lowest rung.
        assert_eq!(round_trips, [0, 0, 0, 0, 0, 2]);
        assert_eq!([1, 2, 3].map(|rung| drawn(&ladders, rung)), [Some(6), Some(2), Some(4)]);
    }

    #[test]
    fn fresh_states_are_fair_coins_without_padding() {
        let rbm = random_rbm(4, 70, 0.5, 7);
        let mut ladders = ladders(&rbm, 200, 1, vec![0; 400]);
        ladders.draw_fresh(|l| chain(0, l).at(3));
        let n_ones: u32 = ladders.fresh.iter().map(|word| word.count_ones()).sum();
        // 14,000 coins have a standard deviation of 59: more than 5.5 of them happen once in 3e7.
        assert!(n_ones.abs_diff(7000) < 325, "{n_ones}");
        assert!(ladders.fresh.iter().skip(1).step_by(2).all(|word| word >> 6 == 0));
    }

    #[test]
    fn temperatures_move_to_where_exchanges_are_rejected() {
        let even: Vec<f64> = (0..=4).map(|k| f64::from(k) / 4.0).collect();
        let rises = |betas: &[f64]| betas[0] == 0.0 && betas[4] == 1.0 && betas.is_sorted_by(|a, b| a < b);
        let same = equally_rejecting(&even, &[0.3; 4]);
        assert!(rises(&same) && same.iter().zip(&even).all(|(a, b)| (a - b).abs() < 1e-6), "{same:?}");
        // All is rejected between 1/2 and 3/4 only.
        let moved = equally_rejecting(&even, &[0.0, 0.0, 1.0, 0.0]);
        assert!(rises(&moved) && moved[1] > 0.5 && moved[3] < 0.75, "{moved:?}");
        // Nothing is rejected: temperatures become even again.
        let again = equally_rejecting(&moved, &[0.0; 4]);
        assert!(rises(&again) && again.iter().zip(&even).all(|(a, b)| (a - b).abs() < 1e-6), "{again:?}");
        assert_eq!(equally_rejecting(&[0.0, 1.0], &[0.5]), [0.0, 1.0]);
    }

    /// With a rejection rate that is a known function of the temperatures, placing them again and
    /// again makes all rates equal.
    #[test]
    fn placing_again_and_again_makes_rates_equal() {
        let barrier = |beta: f64| beta.powi(3);
        let mut betas: Vec<f64> = (0..=6).map(|k| f64::from(k) / 6.0).collect();
        let rates = |betas: &[f64]| -> Vec<f64> {
            betas.windows(2).map(|pair| (2.0 * (barrier(pair[1]) - barrier(pair[0]))).min(1.0)).collect()
        };
        for _ in 0..20 {
            betas = equally_rejecting(&betas, &rates(&betas));
        }
        let rates = rates(&betas);
        let (least, most) = rates.iter().fold((1.0f64, 0.0f64), |(a, b), &x| (a.min(x), b.max(x)));
        // The reserve leaves a small difference.
        assert!(most - least < 0.06, "{rates:?}");
    }
}
