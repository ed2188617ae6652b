//! Parallel tempering: ladders of chains that exchange their states from update to update. The top
//! rungs are the negative phase (Desjardins, Courville, Bengio, Vincent and Delalleau 2010).
//!
//! An update first asks neighbours on each ladder to exchange states, under the parameters as they
//! are now. Then every chain makes `k` Gibbs steps. The pairs `(v, E[h|v])` of the top rungs are
//! subtracted. The lowest rung draws fresh states.
//!
//! The ladder follows the model. The temperatures are placed again whenever each pair of neighbours
//! was asked [`PLACE_AFTER`] times, such that all pairs exchange equally often.
//!
//! **Guarantee**: none while parameters move. For fixed parameters and temperatures the ladders leave
//! the product of the models of their rungs invariant, and averages over the top rungs converge to
//! the exact gradient. Temperatures that adapt to the chains disturb this a little.
//!
//! **Cost**: `k × n_chains × n_rungs` Gibbs steps per update, and one more product with the weights
//! for a part of the rungs.

use super::pcd::first_states;
use super::{Estimator, EstimatorInfo, Gradient, PairBlock, State, Update};
use crate::bits::BitRows;
use crate::chain::BLOCK;
use crate::ladder::{Base, Exchanges, History, Ladders, Rising, equally_rejecting};
use crate::model::Rbm;
use crate::partition::base_bias;
use crate::rng::{Purpose, stream};
use crate::team;
use crate::{Error, Result};
use mclv_kernels::layer::States;
use mclv_kernels::tiles::Tiles;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Exchanges that each pair of neighbours tries before temperatures are placed again. A rejection
/// rate then has a standard error of at most 0.022.
const PLACE_AFTER: u64 = 512;

/// Chains of a block of ladders, roughly.
const CHAINS_PER_BLOCK: usize = BLOCK;

/// The mark of a state that was never drawn on the lowest rung, in a checkpoint.
const NEVER: u64 = u64::MAX;

/// Counts of the exchanges between the rungs of ladders over an epoch of training.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TemperingInfo {
    /// The smallest share of accepted exchanges of any pair of neighbours.
    pub swap_rate_min: f64,
    /// The mean share of accepted exchanges over all pairs of neighbours.
    pub swap_rate_mean: f64,
    /// The number of round trips from the lowest rung to the top and back, per ladder.
    pub round_trips: f64,
    /// The mean number of updates since a state on the top rung was drawn on the lowest rung. States
    /// that were never drawn there do not count. `None` if there are only such states.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_age: Option<f64>,
    /// The share of the states on the top rungs at the end of the epoch that were drawn on the
    /// lowest rung since training began.
    pub renewed: f64,
}

/// Sums over some updates.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Counts {
    /// For each pair of neighbours, the numbers of exchanges accepted and tried.
    pairs: Vec<(u64, u64)>,
    round_trips: u64,
    /// The sum and number of the ages of states on top rungs.
    ages: (u64, u64),
}

impl Counts {
    fn of(n_rungs: usize) -> Self {
        Self { pairs: vec![(0, 0); n_rungs], ..Self::default() }
    }

    fn add(&mut self, exchanges: &Exchanges, ages: (u64, u64)) {
        for (sum, &(accepted, tried)) in self.pairs.iter_mut().zip(&exchanges.pairs) {
            *sum = (sum.0 + u64::from(accepted), sum.1 + u64::from(tried));
        }
        self.round_trips += u64::from(exchanges.round_trips);
        self.ages = (self.ages.0 + ages.0, self.ages.1 + ages.1);
    }

    /// The share of accepted exchanges of each pair that was tried.
    fn rates(&self) -> impl Iterator<Item = f64> + Clone + '_ {
        let tried = self.pairs.iter().filter(|(_, tried)| *tried > 0);
        tried.map(|&(accepted, tried)| accepted as f64 / tried as f64)
    }

    /// The smallest number of exchanges that any pair has tried.
    fn least_tried(&self) -> u64 {
        self.pairs.iter().map(|(_, tried)| *tried).min().unwrap_or(0)
    }
}

/// The part of the state that is not made of arrays.
#[derive(Serialize, Deserialize)]
struct Facts {
    n_updates: u64,
    epoch: Counts,
    since_placed: Counts,
}

team::parcel! {
    /// The work of an update on some ladders.
    struct Worked {
        v: Vec<u64>,
        h: Tiles,
        exchanges: Exchanges,
        ages: (u64, u64),
    }
}

pub(super) struct Tempered {
    k: usize,
    n_chains: usize,
    n_rungs: usize,
    /// The ladders, in blocks; none before the first update.
    blocks: Vec<Ladders>,
    base: Base,
    /// The inverse temperatures of rungs 0 to `n_rungs`.
    betas: Vec<f64>,
    /// The number of updates made.
    n_updates: u64,
    epoch: Counts,
    since_placed: Counts,
}

impl Tempered {
    pub(super) fn new(k: usize, n_chains: usize, n_rungs: usize) -> Self {
        Self {
            k,
            n_chains,
            n_rungs,
            blocks: Vec::new(),
            base: Base::new(Vec::new()),
            betas: (0..=n_rungs).map(|rung| rung as f64 / n_rungs as f64).map(single).collect(),
            n_updates: 0,
            epoch: Counts::of(n_rungs),
            since_placed: Counts::of(n_rungs),
        }
    }

    /// Begins with states drawn from rows of the data on every rung.
    fn begin(&mut self, update: &Update<'_>) -> Result<()> {
        let data = update.data();
        self.base = Base::new(base_bias(&data.column_means(), data.n_rows()));
        let h = first_states(update, Some(self.n_chains * self.n_rungs))?;
        let histories = vec![History::default(); self.n_chains * self.n_rungs];
        self.blocks = in_blocks(update.rbm(), self.n_chains, self.n_rungs, &h, &histories);
        Ok(())
    }

    /// Places the temperatures again if enough exchanges have been tried. They go half of the way,
    /// because the rate of a pair that never exchanges does not tell how far apart the pair is.
    fn place_temperatures(&mut self) {
        if self.since_placed.least_tried() < PLACE_AFTER {
            return;
        }
        let rejections: Vec<f64> = self.since_placed.rates().map(|rate| 1.0 - rate).collect();
        let wanted = equally_rejecting(&self.betas, &rejections);
        for (beta, wanted) in self.betas.iter_mut().zip(wanted) {
            *beta = single(0.5 * (*beta + wanted));
        }
        self.since_placed = Counts::of(self.n_rungs);
    }

    /// The hidden states of all ladders on one rung, from 1.
    fn on_rung(&self, rung: usize) -> impl Iterator<Item = u64> + '_ {
        self.blocks.iter().flat_map(move |ladders| ladders.on_rung(rung)).copied()
    }

    /// The histories of all chains, in order of rungs.
    fn histories(&self) -> impl Iterator<Item = &History> + '_ {
        let on = |rung| self.blocks.iter().flat_map(move |ladders| ladders.histories_on(rung));
        (1..=self.n_rungs).flat_map(on)
    }
}

/// Rounds a temperature to single precision, which chains have.
fn single(beta: f64) -> f64 {
    f64::from(beta as f32)
}

/// The ladders of block `b`.
fn ladders_of_block(b: usize, n_chains: usize, n_rungs: usize) -> Range<usize> {
    team::part(n_chains, b, n_blocks(n_chains, n_rungs))
}

/// The number of blocks. It does not depend on threads or ranks.
fn n_blocks(n_chains: usize, n_rungs: usize) -> usize {
    (n_chains * n_rungs).div_ceil(CHAINS_PER_BLOCK).min(n_chains)
}

/// Cuts ladders into blocks. States and histories are in order of rungs: all ladders of rung 1 come
/// first.
fn in_blocks(rbm: &Rbm, n_chains: usize, n_rungs: usize, h: &BitRows, histories: &[History]) -> Vec<Ladders> {
    let block = |b: usize| {
        let ladders = ladders_of_block(b, n_chains, n_rungs);
        let rows = (0..n_rungs).flat_map(|rung| ladders.clone().map(move |ladder| rung * n_chains + ladder));
        let words = rows.clone().flat_map(|row| h.row(row)).copied().collect();
        Ladders::new(rbm, ladders.len(), n_rungs, words, rows.map(|row| histories[row]).collect())
    };
    (0..n_blocks(n_chains, n_rungs)).map(block).collect()
}

/// Joins the pairs of all ladders in blocks of full size, whose outer products are cheaper.
fn join(rbm: &Rbm, worked: &[Worked]) -> Vec<PairBlock> {
    let n_rows: usize = worked.iter().map(|of| of.h.n_rows()).sum();
    let mut rows = worked.iter().flat_map(|of| (0..of.h.n_rows()).map(move |row| (of, row)));
    let block = |first: usize| {
        let n = BLOCK.min(n_rows - first);
        let (mut v, mut h) = (Vec::new(), Tiles::zeros(n, rbm.n_hidden()));
        for (to, (of, row)) in rows.by_ref().take(n).enumerate() {
            let n_words = of.v.len() / of.h.n_rows();
            v.extend_from_slice(&of.v[row * n_words..][..n_words]);
            h.copy_row(to, &of.h, row);
        }
        PairBlock::new(States::Bits(&v), rbm.n_visible(), h)
    };
    (0..n_rows).step_by(BLOCK).map(block).collect()
}

impl Estimator for Tempered {
    fn estimate(&mut self, update: &Update<'_>, gradient: &mut Gradient) -> Result<bool> {
        if self.blocks.is_empty() {
            self.begin(update)?;
        }
        let Self { k, n_chains, n_rungs, n_updates: now, .. } = *self;
        let (rbm, step) = (update.rbm(), update.step());
        let models = Rising { rbm, base: &self.base, betas: &self.betas };
        let of = |purpose: Purpose, index: usize| {
            stream(step.seed, purpose, u64::from(step.epoch) << 24 | index as u64)
        };
        let first_half_step = step.update * 2 * k as u32;
        let worked = update.work(&mut self.blocks, |b, ladders, scratch| {
            let first = ladders_of_block(b, n_chains, n_rungs).start;
            let chain = |rung: usize, l: usize| of(Purpose::TemperedChain, rung * n_chains + first + l);
            let uniform = |l: usize, pair: usize| {
                let draws = of(Purpose::TemperedExchange, first + l).at(step.update);
                (f64::from(draws.block(pair as u32)[0]) + 0.5) / 4_294_967_296.0
            };
            let exchanges = ladders.exchange(
                models,
                now,
                scratch,
                |l| chain(0, l).at(first_half_step),
                |l, pair, log_ratio| uniform(l, pair).ln() < log_ratio,
            );
            let drawn = ladders.histories_on(n_rungs).iter().filter_map(|history| history.drawn);
            let ages = drawn.fold((0, 0), |(sum, n), drawn| (sum + (now - drawn), n + 1));
            ladders.step(models, k, first_half_step, scratch, chain);
            let (v, h) = ladders.top(rbm, scratch);
            Worked { v: v.to_vec(), h, exchanges, ages }
        });
        for of_block in &worked {
            self.epoch.add(&of_block.exchanges, of_block.ages);
            self.since_placed.add(&of_block.exchanges, of_block.ages);
        }
        gradient.add(join(rbm, &worked), (-1.0 / n_chains as f64) as f32);
        self.n_updates += 1;
        self.place_temperatures();
        Ok(true)
    }

    fn take_info(&mut self) -> EstimatorInfo {
        let counts = std::mem::replace(&mut self.epoch, Counts::of(self.n_rungs));
        let (rates, n_rates) = (counts.rates(), counts.rates().count());
        let n_renewed = |ladders: &Ladders| {
            ladders.histories_on(self.n_rungs).iter().filter(|history| history.drawn.is_some()).count()
        };
        let n_renewed: usize = self.blocks.iter().map(n_renewed).sum();
        let tempering = (n_rates > 0).then(|| TemperingInfo {
            swap_rate_min: rates.clone().fold(1.0, f64::min),
            swap_rate_mean: rates.sum::<f64>() / n_rates as f64,
            round_trips: counts.round_trips as f64 / self.n_chains as f64,
            mean_age: (counts.ages.1 > 0).then(|| counts.ages.0 as f64 / counts.ages.1 as f64),
            renewed: n_renewed as f64 / self.n_chains as f64,
        });
        EstimatorInfo { tempering, ..EstimatorInfo::default() }
    }

    fn chains(&self) -> Option<BitRows> {
        let words: Vec<u64> = self.on_rung(self.n_rungs).collect();
        let n_hidden = self.blocks.first()?.n_hidden();
        Some(BitRows::from_words(n_hidden, words))
    }

    fn save(&self) -> State {
        let facts = Facts {
            n_updates: self.n_updates,
            epoch: self.epoch.clone(),
            since_placed: self.since_placed.clone(),
        };
        let below = (1..self.n_rungs).flat_map(|rung| self.on_rung(rung)).collect();
        State::new(&facts)
            .with_words("chains", self.on_rung(self.n_rungs).collect())
            .with_words("below", below)
            .with_words("drawn", self.histories().map(|history| history.drawn.unwrap_or(NEVER)).collect())
            .with_words("climbed", self.histories().map(|history| u64::from(history.has_climbed)).collect())
            .with_numbers("base", self.base.values().iter().copied().map(f64::from).collect())
            .with_numbers("temperatures", self.betas.clone())
    }

    fn restore(&mut self, rbm: &Rbm, state: &State) -> Result<()> {
        let facts: Facts = state.counts()?;
        let (chains, below) =
            (state.bit_rows("chains", rbm.n_hidden())?, state.bit_rows("below", rbm.n_hidden())?);
        let (drawn, climbed) = (state.words("drawn")?, state.words("climbed")?);
        let (base, betas) = (state.numbers("base")?, state.numbers("temperatures")?);
        let (n, n_rungs) = (self.n_chains, self.n_rungs);
        // Before the first update there are no chains.
        let n = if chains.n_rows() == 0 { 0 } else { n };
        for (what, found, wanted) in [
            ("chains", chains.n_rows(), n),
            ("below", below.n_rows(), n * (n_rungs - 1)),
            ("drawn", drawn.len(), n * n_rungs),
            ("climbed", climbed.len(), n * n_rungs),
            ("base", base.len(), if n == 0 { 0 } else { rbm.n_visible() }),
            ("temperatures", betas.len(), n_rungs + 1),
            ("facts", facts.epoch.pairs.len(), n_rungs),
            ("facts", facts.since_placed.pairs.len(), n_rungs),
        ] {
            if found != wanted {
                return Err(Error::MissingState { what });
            }
        }
        let pairs = facts.epoch.pairs.iter().chain(&facts.since_placed.pairs);
        let rises = betas.windows(2).all(|pair| pair[0] <= pair[1]);
        for (what, is_sound) in [
            ("facts", pairs.clone().all(|(accepted, tried)| accepted <= tried)),
            ("drawn", drawn.iter().all(|&drawn| drawn == NEVER || drawn <= facts.n_updates)),
            ("base", base.iter().all(|b| b.is_finite())),
            ("temperatures", rises && betas.first() == Some(&0.0) && betas.last() == Some(&1.0)),
        ] {
            if !is_sound {
                return Err(Error::MissingState { what });
            }
        }
        let history = |(&drawn, &climbed): (&u64, &u64)| History {
            drawn: (drawn != NEVER).then_some(drawn),
            has_climbed: climbed != 0,
        };
        let histories: Vec<History> = drawn.iter().zip(climbed).map(history).collect();
        let words = [below.words(), chains.words()].concat();
        let h = BitRows::from_words(rbm.n_hidden(), words);
        self.blocks = if n == 0 { Vec::new() } else { in_blocks(rbm, n, n_rungs, &h, &histories) };
        self.base = Base::new(base.iter().map(|&b| b as f32).collect());
        self.betas = betas.to_vec();
        (self.n_updates, self.epoch, self.since_placed) = (facts.n_updates, facts.epoch, facts.since_placed);
        Ok(())
    }
}
