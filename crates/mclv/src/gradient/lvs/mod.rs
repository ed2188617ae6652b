//! Las Vegas tours: the negative phase from tours between visits to a stopping set.
//!
//! A tour starts at `h ~ π_S`, makes Gibbs steps, and ends when its hidden state is in the set
//! again. Then `E[Σ_{k≤ξ} f(X(k))] = (Z/Z_S)·E_p[f]`, so the ratio `Σ f / Σ ξ` over tours estimates
//! `E_p[f]`.
//!
//! **Guarantee**: with a sampled chain, starts from `π_S` and all tours finished,
//! `Σ_k f(X(k)) − ξ·E_p[f]` has mean 0; the ratio is consistent, with a bias of order 1/R. With
//! `carry` the model's distribution is invariant for fixed parameters. `drop` and `keep` are
//! biased, because they leave out the steps after the limit. A mean-field chain is not the model's
//! chain.

mod info;
mod pairs;
mod tours;

pub use info::TourInfo;

use super::pcd::{first_states, hidden_states};
use super::{Estimator, EstimatorInfo, Gradient, State, Step, Update, total_weight};
use crate::bits::BitRows;
use crate::data::Rows;
use crate::model::Rbm;
use crate::rng::{Purpose, stream};
use crate::settings::{LvsSettings, MOST_STATES, Starts, Unfinished};
use crate::tour::{StartTable, StoppingSet};
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use tours::Running;

/// The largest number of times per epoch that the stopping set is redrawn because no tour has
/// returned to it.
const MOST_REDRAWS: u64 = 20;

pub(super) struct LvsEstimator {
    settings: LvsSettings,
    set: StoppingSet,
    table: StartTable,
    /// Running tours (`carry`), in blocks; none before the first update.
    running: Vec<Running>,
    size: Size,
    seen: Seen,
    info: TourInfo,
}

/// The size of the stopping set, which may adapt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Size {
    samples_per_row: usize,
    /// The number of rows that the set is drawn from; 0 before the first set.
    n_rows: usize,
}

/// Counts since the size of the set was last chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Seen {
    n_completed: u64,
    n_tried: u64,
    n_steps: u64,
    /// The number of states drawn for the set plus the number of states evaluated for its tables.
    n_states: u64,
}

/// The values of a checkpoint that are not arrays.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Facts {
    size: Size,
    seen: Seen,
    info: TourInfo,
}

impl Size {
    /// The number of states drawn for a set.
    fn n_drawn(self) -> u64 {
        (self.n_rows as u64).saturating_mul(self.samples_per_row as u64)
    }

    fn halve(&mut self) {
        match self.samples_per_row {
            1 => self.n_rows = (self.n_rows / 2).max(1),
            m => self.samples_per_row = m / 2,
        }
    }
}

impl LvsEstimator {
    pub(super) fn new(settings: LvsSettings) -> Self {
        Self {
            size: Size { samples_per_row: settings.samples_per_row, n_rows: 0 },
            seen: Seen::default(),
            set: StoppingSet::default(),
            table: StartTable::default(),
            running: Vec::new(),
            info: TourInfo::new(),
            settings,
        }
    }

    fn draw_set(&mut self, rbm: &Rbm, data: &Rows, step: Step) -> Result<()> {
        // A set redrawn within an epoch must differ from the epoch's first one.
        let occasion = u64::from(step.epoch & 0xff_ffff) << 8 | self.info.n_skipped_updates & 0xff;
        let mut rows: Vec<usize> = (0..data.n_rows()).collect();
        if self.size.n_rows < rows.len() {
            stream(step.seed, Purpose::StoppingSetRows, occasion).reader().shuffle(&mut rows);
            rows.truncate(self.size.n_rows);
            rows.sort_unstable();
        }
        self.set = StoppingSet::draw(rbm, data, &rows, self.size.samples_per_row, step.seed, occasion)?;
        self.seen.n_states += self.size.n_drawn();
        self.make_table(rbm);
        self.note_set();
        Ok(())
    }

    fn make_table(&mut self, rbm: &Rbm) {
        self.table = StartTable::new(rbm, &self.set);
        self.seen.n_states += self.set.len() as u64;
        self.info.n_tables += 1;
        self.info.log_z_s = self.table.log_z_s();
    }

    /// Chooses the size of the next set from the results of earlier tours. The tours that the next
    /// set will end have not begun yet.
    ///
    /// The size doubles while too few tours return, if the budgets allow it. It halves if it is
    /// beyond a budget, or if the odds of a return are four times those asked for. The number of
    /// rows grows first, then the samples per row; they shrink in the opposite order.
    fn adapt(&mut self, n_all: usize) {
        if self.size.n_rows == 0 {
            self.size.n_rows = ((n_all as f64 * self.settings.row_fraction).ceil() as usize).clamp(1, n_all);
        }
        let LvsSettings { target_completion, max_states, max_set_cost, .. } = self.settings;
        let max_states = max_states.min(MOST_STATES - 1);
        let seen = std::mem::take(&mut self.seen);
        let Some(target) = target_completion else { return };
        // The cost is in proportion to the size.
        let costs_too_much = |factor: f64| {
            max_set_cost.is_some_and(|most| {
                seen.n_steps > 0 && factor * seen.n_states as f64 > most * seen.n_steps as f64
            })
        };
        let completion = seen.n_completed as f64 / seen.n_tried as f64;
        // Half the set about halves the odds of a return. A factor of four leaves room for a size
        // to settle.
        let far_more = completion * (1.0 - target) > 4.0 * target * (1.0 - completion);
        if costs_too_much(1.0) || far_more {
            self.size.halve();
        } else if completion < target && 2 * self.size.n_drawn() <= max_states as u64 && !costs_too_much(2.0)
        {
            match self.size.n_rows < n_all {
                true => self.size.n_rows = (2 * self.size.n_rows).min(n_all),
                false => self.size.samples_per_row *= 2,
            }
        }
        while self.size.n_drawn() > max_states as u64 {
            self.size.halve();
        }
    }

    /// Adds the counts of tours.
    fn note(&mut self, info: &TourInfo) {
        self.info.merge(info);
        self.seen.n_completed += info.n_completed;
        self.seen.n_tried += info.n_tried();
        self.seen.n_steps += info.n_steps;
    }

    /// Writes the facts about the set into the epoch's counts.
    fn note_set(&mut self) {
        self.info.set_size = self.set.len();
        self.info.samples_per_row = self.size.samples_per_row;
        self.info.n_rows = self.size.n_rows;
        self.info.log_z_s = self.table.log_z_s();
    }
}

impl Estimator for LvsEstimator {
    fn begin_epoch(&mut self, update: &Update<'_>) -> Result<()> {
        let (rbm, data, step) = (update.rbm(), update.data(), update.step());
        if self.set.is_empty() || (step.epoch as usize).is_multiple_of(self.settings.redraw_every) {
            self.adapt(data.n_rows());
            self.draw_set(rbm, data, step)?;
        }
        self.note_set();
        Ok(())
    }

    fn estimate(&mut self, update: &Update<'_>, gradient: &mut Gradient) -> Result<bool> {
        let (rbm, data, step) = (update.rbm(), update.data(), update.step());
        if self.set.is_empty() {
            self.begin_epoch(update)?;
        } else if self.settings.starts == Starts::Fresh {
            self.make_table(rbm);
        }
        let n_tours = self.settings.n_tours.unwrap_or(update.rows().len());
        let pairs = if self.settings.unfinished == Unfinished::Carry {
            if self.running.is_empty() {
                // The first update begins in the middle of tours, as PCD does.
                let h = first_states(update, Some(n_tours))?;
                self.begin_running(rbm, &h, &h, &vec![0; h.n_rows()]);
                self.info.n_started += n_tours as u64;
            }
            self.running_tours(update)
        } else {
            self.separate_tours(update, n_tours).0
        };
        let total = total_weight(&pairs);
        // Weights are relative to the largest of all starts. If all heavy tours are dropped, the
        // others vanish in single precision.
        if total < 1e-30 {
            self.info.n_skipped_updates += 1;
            // The set may have been unlucky, but drawing it again takes a hundred times as long as
            // skipping the update.
            if self.info.n_skipped_updates <= MOST_REDRAWS {
                self.draw_set(rbm, data, step)?;
            }
            return Ok(false);
        }
        gradient.add(pairs, (-1.0 / total) as f32);
        Ok(true)
    }

    fn take_info(&mut self) -> EstimatorInfo {
        let tours = Some(std::mem::replace(&mut self.info, TourInfo::new()));
        EstimatorInfo { tours, ..EstimatorInfo::default() }
    }

    fn chains(&self) -> Option<BitRows> {
        (!self.running.is_empty()).then(|| hidden_states(self.running.iter().map(|tours| &tours.chains)))
    }

    fn save(&self) -> State {
        let all = |words: fn(&Running) -> &[u64]| -> Vec<u64> {
            self.running.iter().flat_map(words).copied().collect()
        };
        State::new(&Facts { size: self.size, seen: self.seen, info: self.info.clone() })
            .with_words("set", self.set.states().words().to_vec())
            .with_numbers("table", self.table.log_weights().to_vec())
            .with_words("chains", all(|tours| tours.chains.h()))
            .with_words("starts", all(|tours| &tours.start))
            .with_words("lengths", all(|tours| &tours.length))
    }

    fn restore(&mut self, rbm: &Rbm, state: &State) -> Result<()> {
        let n_hidden = rbm.n_hidden();
        Facts { size: self.size, seen: self.seen, info: self.info } = state.counts()?;
        let states = state.bit_rows("set", n_hidden)?;
        self.set = StoppingSet::new(&states);
        let table = state.numbers("table")?;
        let (h, start) = (state.bit_rows("chains", n_hidden)?, state.bit_rows("starts", n_hidden)?);
        let lengths = state.words("lengths")?;
        for (what, is_sound) in [
            ("facts", self.size.samples_per_row > 0 && self.size.samples_per_row <= 1 << 32),
            ("facts", self.size.n_rows <= 1 << 32),
            ("set", self.set.len() == states.n_rows()),
            ("table", table.len() == states.n_rows() && table.iter().all(|x| x.is_finite())),
            ("starts", start.n_rows() == h.n_rows()),
            ("lengths", lengths.len() == h.n_rows() && lengths.iter().all(|&n| n <= 1 << 53)),
        ] {
            if !is_sound {
                return Err(Error::MissingState { what });
            }
        }
        if !table.is_empty() {
            self.table = StartTable::from_log_weights(table.to_vec());
        }
        self.begin_running(rbm, &h, &start, lengths);
        Ok(())
    }
}
