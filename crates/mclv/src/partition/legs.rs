//! Choose the base models at which the legs of a ladder begin.
//!
//! One leg begins at a base model for all states. If the model has far modes, this leg alone may
//! hardly ever lead to some of them: a mode that is heavy at `β = 1` can be rare at lower `β`. So
//! there are more legs. Scouts and rows of the data show states of the model, k-means finds clusters
//! of these states, and one leg begins at independent units with the means of each cluster. Along
//! such a leg the states stay close to the cluster, and no barrier has to be crossed.

use super::plan::spread;
use super::scouts::Scouts;
use crate::bits::BitRows;
use crate::chain::{BLOCK, Chains, Clock, VisibleChain};
use crate::clusters::{Centres, k_means};
use crate::data::{self, Binarize, Rows};
use crate::ladder::BaseModel;
use crate::model::Rbm;
use crate::progress::Progress;
use crate::rng::{Purpose, stream};
use crate::team;
use crate::{Error, Result};
use mclv_kernels::layer::Scratch;

/// Rows of the data from which chains begin, beside those from the states of scouts.
const N_ROWS: usize = 256;
/// Steps of these chains before their states are taken.
const N_STEPS: u32 = 300;
/// The least and the most probability of a unit of a base model.
const PROBABILITY: (f64, f64) = (0.01, 0.99);
/// The number that tells these clusters from those of mode shares.
const CLUSTERS: u64 = 1 << 20;

/// A leg: its base model, and hidden states at which chains of its pilot begin.
pub(super) struct Leg {
    pub(super) base: BaseModel<'static>,
    pub(super) starts: Option<BitRows>,
}

/// Returns the legs: one that begins at `base`, and one for each of at most `n_clusters` clusters of
/// the states that scouts have found and of the rows.
///
/// # Errors
/// If rows do not fit the model.
pub(super) fn legs(
    rbm: &Rbm,
    base: &[f32],
    scouts: Option<&Scouts>,
    rows: Option<&Rows>,
    n_clusters: usize,
    seed: u64,
    progress: &dyn Progress,
) -> Result<Vec<Leg>> {
    let plain = BaseModel { visible: base.to_vec().into(), hidden: vec![0.0; rbm.n_hidden()].into() };
    let mut legs = vec![Leg { base: plain, starts: scouts.map(|scouts| scouts.hidden.clone()) }];
    let Some(scouts) = scouts.filter(|_| n_clusters > 0) else { return Ok(legs) };
    let mut starts = scouts.visible.clone();
    if let Some(rows) = rows {
        starts.append(&some_rows(rows, seed));
    }
    let states = settled(rbm, starts, seed, progress)?;
    let centres = k_means(&states, n_clusters, seed, CLUSTERS);
    // A single cluster is what the first leg is for.
    if centres.len() < 2 {
        return Ok(legs);
    }
    let nearest = Centres::new(states.n_bits(), &centres).nearest_of(&states);
    let overall = Rows::Bits(states.clone()).column_means();
    for cluster in 0..centres.len() {
        let members: Vec<usize> = (0..states.n_rows()).filter(|&r| nearest[r].0 == cluster).collect();
        let members = Rows::Bits(states.select(&members));
        let n = members.n_rows() as f64;
        let hidden = Rows::Reals(rbm.mean_h_from_v(&members)?);
        let starts = rbm.sample_h_from_v(&members, |r| {
            stream(seed, Purpose::LadderPilot, 1 << 48 | (cluster as u64) << 32 | r as u64).at(0)
        })?;
        // One more member, which has the means of all states, or is undecided.
        let visible = members.column_means().into_iter().zip(&overall);
        let visible = visible.map(|(mean, overall)| logit((n * mean + overall) / (n + 1.0)));
        let hidden = hidden.column_means().into_iter().map(|mean| logit((n * mean + 0.5) / (n + 1.0)));
        let base = BaseModel {
            visible: visible.collect::<Vec<f32>>().into(),
            hidden: hidden.collect::<Vec<f32>>().into(),
        };
        legs.push(Leg { base, starts: Some(starts) });
    }
    Ok(legs)
}

/// Returns the states of chains of the model that begin at some visible states.
fn settled(rbm: &Rbm, starts: BitRows, seed: u64, progress: &dyn Progress) -> Result<BitRows> {
    let n = starts.n_rows();
    let stream_of = |r: usize| stream(seed, Purpose::LadderStates, r as u64);
    let first = rbm.sample_h_from_v(&Rows::Bits(starts), |r| stream_of(r).at(0))?;
    let of_block = |block: usize| {
        let chains = block * BLOCK..n.min((block + 1) * BLOCK);
        let h = first.rows(chains.start, chains.len()).to_vec();
        let clocks = chains.map(|chain| Clock::new(stream_of(chain), 2)).collect();
        let mut chains = Chains::new(rbm, VisibleChain::Sampled, h, clocks);
        let mut scratch = Scratch::of_thread();
        for _ in 0..N_STEPS {
            if progress.cancelled() {
                return Err(Error::Cancelled);
            }
            chains.step(rbm, &mut scratch, None);
        }
        Ok(chains.v_bits().to_vec())
    };
    let blocks: Vec<Vec<u64>> = team::try_blocks(n.div_ceil(BLOCK), of_block)?;
    Ok(BitRows::from_words(rbm.n_visible(), blocks.concat()))
}

/// Returns some rows as bits, evenly spread because data may be sorted.
fn some_rows(rows: &Rows, seed: u64) -> BitRows {
    match data::binarize(&rows.select(&spread(rows.n_rows(), N_ROWS)), Binarize::Threshold(0.5), seed, 0) {
        Rows::Bits(bits) => bits,
        _ => unreachable!("a threshold makes bits"),
    }
}

/// Returns the bias of a unit that is on with probability `p`, within limits.
fn logit(p: f64) -> f32 {
    let p = p.clamp(PROBABILITY.0, PROBABILITY.1);
    (p / (1.0 - p)).ln() as f32
}
