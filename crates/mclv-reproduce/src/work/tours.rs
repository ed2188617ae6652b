//! Runs tours of a model and summarises them.

use super::DataSets;
use crate::task::{ToursFrom, ToursOf};
use mclv::data::{Dataset, Split};
use mclv::partition::{LogZ, N_SCOUTS, mclv_from_tours};
use mclv::progress::Progress;
use mclv::tour::{Ccdf, Estimate, Extremes, FirstStep, TourEngine, TourSettings, Tours};
use mclv::{Rbm, Result, StoppingSet};
use serde::{Deserialize, Serialize};

/// Neighbouring lengths of the tail function differ by at least this factor.
const THINNING: f64 = 1.1;
/// The grey of empty places: `60` in hexadecimal.
const GREY: f32 = 96.0 / 255.0;

/// The results of tours.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Toured {
    /// States in the stopping set.
    pub n_states: usize,
    /// Number of tours.
    pub n_tours: usize,
    /// Tours that returned.
    pub n_complete: usize,
    /// Tours that returned to their own start.
    pub n_own_start: usize,
    /// Tours that returned after one step.
    pub n_one_step: usize,
    /// Tours that returned to their own start after one step.
    pub n_own_start_in_one_step: usize,
    /// Mean of `min(ξ, K)`.
    pub mean_length: Estimate,
    /// The tail function, thinned.
    pub ccdf: Ccdf,
    /// `log Z`, if tours started in the stopping set.
    pub log_z: Option<LogZ>,
    /// Estimates of `log Z` from the first tours, for growing numbers of tours.
    pub running: Vec<RunningZ>,
    /// Results by the label of the row at which a tour started.
    pub by_label: Vec<LabelTours>,
    /// Pictures, if asked for.
    pub pictures: Option<Pictured>,
}

/// `log Ẑ` from the first tours.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunningZ {
    /// Number of tours.
    pub n_tours: usize,
    /// `log Z_S + log mean length`.
    pub log_z: f64,
    /// Standard error, by the delta method.
    pub std_err: f64,
}

/// The results of the tours of one label.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LabelTours {
    /// The label.
    pub label: String,
    /// Number of tours. A tour from a state that several rows gave counts for each row with its
    /// share.
    pub n_tours: f64,
    /// The share of tours with one step.
    pub one_step: f64,
    /// Tours that did not return.
    pub n_unfinished: f64,
}

/// Pictures of tours: their starts and the next visible states, with values from 0 to 255.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pictured {
    /// Height and width.
    pub shape: (usize, usize),
    /// The lengths of the shortest and the longest tours.
    pub lengths: [Vec<u32>; 2],
    /// In hexadecimal: starts and next states of the shortest, starts and next states of the
    /// longest.
    pub lines: [String; 4],
}

pub(super) fn run(of: &ToursOf, rbm: &Rbm, sets: &DataSets, progress: &dyn Progress) -> Result<Toured> {
    let data = sets.load(&of.model.data, Split::Train, progress)?;
    let all: Vec<usize> = (0..data.n_rows()).collect();
    let (set, members) =
        StoppingSet::draw_with_members(rbm, &data.rows, &all, of.samples_per_row, of.seed, 0)?;
    let engine = TourEngine::new(rbm, &set)?;
    let settings = TourSettings {
        n_tours: of.n_tours,
        visible: of.visible,
        max_length: Some(of.max_length),
        seed: of.seed,
        ..Default::default()
    };
    let (tours, rows) = match of.from {
        ToursFrom::Pi => (engine.run(&settings, progress)?, None),
        ToursFrom::Rows => (engine.run_from_rows(&data.rows, &settings, progress)?, Some(&data.rows)),
    };
    let pictures = match data.image_shape.filter(|_| of.n_pictures > 0) {
        None => None,
        Some(shape) => {
            let Extremes { shortest, longest } = engine.extremes(&tours, &settings, rows, of.n_pictures)?;
            // Empty places are grey.
            let width = of.n_pictures * rbm.n_visible();
            let line = |steps: &[FirstStep], layer: fn(&FirstStep) -> &[f32]| {
                let mut values: Vec<f32> = steps.iter().flat_map(layer).copied().collect();
                values.resize(width, GREY);
                hex(&values)
            };
            let lines = [
                line(&shortest, |step| &step.start),
                line(&shortest, |step| &step.next),
                line(&longest, |step| &step.start),
                line(&longest, |step| &step.next),
            ];
            let lengths =
                [shortest, longest].map(|steps| steps.iter().map(|step| step.tour.length).collect());
            Some(Pictured { shape, lengths, lines })
        }
    };
    Ok(Toured {
        n_states: set.len(),
        n_tours: tours.n_tours(),
        n_complete: tours.n_complete(),
        n_own_start: tours.n_own_start(),
        n_one_step: tours.n_one_step(),
        n_own_start_in_one_step: tours.n_own_start_in_one_step(),
        mean_length: tours.mean_length(),
        ccdf: tours.ccdf().thinned(THINNING),
        log_z: if of.from == ToursFrom::Pi {
            Some(mclv_from_tours(&engine, &tours, N_SCOUTS, settings.seed, progress)?)
        } else {
            None
        },
        running: if of.from == ToursFrom::Pi { running(&tours) } else { Vec::new() },
        by_label: by_label(&data, &members, &tours, of.from),
        pictures,
    })
}

/// The numbers of tours 1, 2, 3, 4, 5, 6, 8, 10, 12, ….
fn running(tours: &Tours) -> Vec<RunningZ> {
    let (mut sum, mut squares, mut next) = (0.0, 0.0, 1usize);
    let mut points = Vec::new();
    for (k, length) in tours.lengths().into_iter().enumerate() {
        let n = k + 1;
        sum += length;
        squares += length * length;
        if n == next || n == tours.n_tours() {
            let mean = sum / n as f64;
            let variance = (squares / n as f64 - mean * mean).max(0.0) / (n as f64 - 1.0).max(1.0);
            points.push(RunningZ {
                n_tours: n,
                log_z: tours.log_z_s() + mean.ln(),
                std_err: variance.sqrt() / mean,
            });
            next = (n + 1).max(n * 6 / 5);
        }
    }
    points
}

fn by_label(data: &Dataset, members: &[u32], tours: &Tours, from: ToursFrom) -> Vec<LabelTours> {
    let Some(labels) = &data.labels else { return Vec::new() };
    let of_row = |row: usize| labels.ids[row % labels.ids.len()];
    let owners: Vec<(u32, u32)> = match from {
        ToursFrom::Rows => (0..labels.ids.len()).map(|row| (row as u32, of_row(row))).collect(),
        ToursFrom::Pi => members.iter().enumerate().map(|(draw, &state)| (state, of_row(draw))).collect(),
    };
    let by_class = tours.by_class(&owners, labels.names.len());
    let named = labels.names.iter().zip(by_class).filter_map(|(label, class)| Some((label, class?)));
    named
        .map(|(label, class)| LabelTours {
            label: label.clone(),
            n_tours: class.n_tours,
            one_step: class.one_step,
            n_unfinished: class.n_unfinished,
        })
        .collect()
}

/// Values from 0 to 1 as two digits each.
fn hex(values: &[f32]) -> String {
    values.iter().map(|x| format!("{:02x}", (255.0 * x.clamp(0.0, 1.0)).round() as u8)).collect()
}
