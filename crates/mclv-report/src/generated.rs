//! Shows samples of a model beside the rows of its data.

use crate::figure::{Axis, Figure, Point, Series};
use crate::page::{Block, Level, Verdict};
use mclv::generated::{Beside, Component, Gap, Generated, Nearer};
use mclv::mixing::Mixing;
use mclv::sample::{SampleMethod, Samples};

/// Samples of a model, and how they compare with its data.
pub struct BesideData {
    /// The samples.
    pub samples: Samples,
    /// Their comparison with the rows.
    pub generated: Generated,
    /// True if the rows have values other than 0 and 1, which become bits before they are compared.
    pub is_grey: bool,
    /// The name of the part of the data that the model was not trained on, if there is one.
    pub held_out: Option<String>,
}

/// The size of a figure.
const SIZE: (f64, f64) = (540.0, 400.0);
/// The number of a colour for lines that are no data.
const GREY: usize = 6;
/// Points of the band around the line of equal values, and the width of the band in standard errors.
/// A line with this number of points has no dots.
const N_BAND: usize = 41;
const WIDTH: f64 = 2.0;
/// The most bars of each kind.
const N_BARS: u32 = 30;
/// The most bars that have names of their own.
const MOST_NAMED: usize = 16;
/// The most dots of each kind.
const N_DOTS: usize = 500;

/// The verdict on the sampler, and the four figures.
pub fn blocks(beside: &BesideData) -> Vec<Block> {
    let generated = &beside.generated;
    vec![
        Block::Verdicts(vec![verdict(beside)]),
        Block::chart(means(generated), note_on_means(generated)),
        Block::chart(correlations(generated), note_on_correlations(generated)),
        Block::chart(projections(generated), note_on_projections(generated)),
        Block::chart(neighbours(beside), note_on_neighbours(beside)),
    ]
}

/// How the samples were drawn, and whether their chains mixed.
fn verdict(BesideData { samples, generated, is_grey, .. }: &BesideData) -> Verdict {
    let n = generated.n_samples;
    let how = match samples.method {
        SampleMethod::Exact => format!("{n} independent exact samples"),
        SampleMethod::Gibbs => {
            format!("{n} samples, each from its own Gibbs chain of {} steps", samples.burn_in.unwrap_or(0))
        }
        SampleMethod::Tempering => format!("{n} samples by parallel tempering"),
    };
    let mixing = |Mixing { r_hat, .. }: Mixing| format!(", R-hat {r_hat:.3} (1 if chains agree)");
    let mixing = samples.mixing.map_or(String::new(), mixing);
    let of_all = match generated.n_rows {
        n if n == generated.n_rows_in_all => format!("{n} training rows"),
        n => format!("{n} of {} training rows", generated.n_rows_in_all),
    };
    let grey = if *is_grey {
        " Rows are grey: each value becomes a bit, with the value as its probability."
    } else {
        ""
    };
    let close = if samples.are_correlated() {
        " Samples of one ladder are correlated, so noise is larger than the figures say."
    } else {
        ""
    };
    let text = format!("Samples: {how}{mixing}, beside {of_all}.{grey}{close}");
    match samples.doubt() {
        Some(doubt) => {
            let text =
                format!("{text} The sampler is in doubt: {doubt}. Differences below may be its fault.");
            Verdict::new(Level::Warning, text)
        }
        None => Verdict::new(Level::Note, text),
    }
}

/// A dot for each number: that of the data to the right, that of the samples upwards.
fn dots(title: &str, what: &str, all: &[Beside], range: (f64, f64), band: &dyn Fn(f64) -> f64) -> Figure {
    let (low, high) = range;
    let places = (0..N_BAND).map(|k| low + (high - low) * k as f64 / (N_BAND - 1) as f64);
    let line = places.map(|x| Point::with_error(x, x, WIDTH * band(x)));
    let air = 0.03 * (high - low);
    Figure::new(title)
        .x(Axis::linear(format!("{what} in the training rows")).from_to(low - air, high + air))
        .y(Axis::linear(format!("{what} in samples")).from_to(low - air, high + air))
        .size(SIZE.0, SIZE.1)
        .with(Series::line("equal, ± 2 standard errors of noise", line).colour(GREY))
        .with(Series::points("", all.iter().map(|b| Point::new(b.data, b.model))).colour(0))
}

/// Means of units, in samples against rows.
pub fn means(generated: &Generated) -> Figure {
    let band = |p: f64| generated.noise_of_mean(p);
    dots("Means of visible units", "mean", &generated.means, (0.0, 1.0), &band)
}

/// Correlations of pairs of units, in samples against rows.
pub fn correlations(generated: &Generated) -> Figure {
    let Some(gap) = generated.gap_of_correlations() else { return Figure::new("") };
    let ends = generated.correlations.iter().flat_map(|b| [b.data, b.model]);
    let (low, high) = ends.fold((0.0f64, 0.0f64), |(low, high), x| (low.min(x), high.max(x)));
    let title = "Correlations of pairs of visible units";
    dots(title, "correlation", &generated.correlations, (low, high), &|_| gap.rms_by_chance)
}

/// Rows and samples along the first two principal components of the rows.
pub fn projections(generated: &Generated) -> Figure {
    let Some(projections) = &generated.projections else { return Figure::new("") };
    let [first, second] = &projections.components;
    let axis = |name: &str, c: &Component| {
        Axis::linear(format!("{name} component ({:.1} % of the variance)", 100.0 * c.share))
    };
    let cloud = |of: fn(&Component) -> &[f64]| -> Vec<Point> {
        let all = of(first).iter().zip(of(second));
        let every = of(first).len().div_ceil(N_DOTS).max(1);
        all.step_by(every).map(|(&x, &y)| Point::new(x, y)).collect()
    };
    Figure::new("Principal components")
        .x(axis("first", first))
        .y(axis("second", second))
        .size(SIZE.0, SIZE.1)
        .with(Series::points("training rows", cloud(|c| &c.rows)).colour(0))
        .with(Series::points("samples", cloud(|c| &c.samples)).colour(1))
}

/// Distances to the nearest training row, of samples and of rows that the model has not seen.
pub fn neighbours(BesideData { generated, held_out, .. }: &BesideData) -> Figure {
    let histogram = generated.distances.histogram(N_BARS);
    let middle = 0.5 * f64::from(histogram.width - 1);
    let bars = |shares: &[f64]| -> Vec<Point> {
        let bar = |(k, share): (usize, &f64)| {
            Point::new(k as f64 * f64::from(histogram.width) + middle, 100.0 * share)
        };
        shares.iter().enumerate().map(bar).collect()
    };
    let label = "visible units that differ";
    let n_bars = histogram.samples.len().max(histogram.held_out.len());
    // Bars of single numbers are named by them.
    let is_single = histogram.width == 1 && n_bars <= MOST_NAMED;
    let x =
        if is_single { Axis::named(label, (0..n_bars).map(|k| k.to_string())) } else { Axis::linear(label) };
    let figure = Figure::new("Distance to the nearest training row")
        .x(x)
        .y(Axis::linear("share (%)"))
        .size(SIZE.0, SIZE.1);
    let figure = match held_out {
        Some(name) => figure.with(Series::bars(format!("{name} rows"), bars(&histogram.held_out)).colour(0)),
        None => figure,
    };
    figure.with(Series::bars("samples", bars(&histogram.samples)).colour(1))
}

fn in_words(gap: Gap, digits: usize) -> String {
    let Gap { rms, rms_by_chance, far, far_by_chance } = gap;
    format!(
        "The differences are {rms:.digits$} (root mean square); noise alone would give {rms_by_chance:.digits$}. \
         {:.1} % of the dots are more than three standard errors from the line; noise alone would give {:.1} %.",
        100.0 * far,
        100.0 * far_by_chance
    )
}

fn note_on_means(generated: &Generated) -> String {
    format!(
        "One dot for each visible unit. A dot on the line has the same mean in samples and rows. {}",
        in_words(generated.gap_of_means(), 4)
    )
}

fn note_on_correlations(generated: &Generated) -> String {
    let (n, of) = (generated.pairs.len(), generated.n_pairs_in_all);
    let which = if n < of { format!("{n} random pairs (of {of})") } else { format!("all {n} pairs") };
    let gap = generated.gap_of_correlations().map_or(String::new(), |gap| in_words(gap, 4));
    format!(
        "One dot for each of {which} of visible units. A dot on the line has the same correlation in samples and \
         rows. {gap}"
    )
}

fn note_on_projections(generated: &Generated) -> String {
    let Some(projections) = &generated.projections else { return String::new() };
    let [first, second] = &projections.components;
    format!(
        "The two directions in which the training rows vary most. If the model is good, both clouds cover each other. \
         The distribution functions along the two directions differ by up to {:.3} and {:.3} (Kolmogorov-Smirnov); \
         noise alone stays below {:.3} in 95 of 100 cases.",
        first.distance, second.distance, first.distance_by_chance
    )
}

fn note_on_neighbours(BesideData { generated, held_out, .. }: &BesideData) -> String {
    let distances = &generated.distances;
    let (of_samples, of_rows) = distances.n_copies();
    let n = distances.samples.len();
    let (Some(Nearer { samples, std_err_by_chance }), Some(name)) = (distances.nearer(), held_out) else {
        return format!(
            "For {n} samples. {of_samples} of them are copies of a training row. Without rows that the model has not \
             seen, nothing says how many copies to expect."
        );
    };
    format!(
        "For {n} samples and {} {name} rows. A sample is nearer to its training row than a {name} row in {:.0} % of all \
         pairs; noise alone would give 50 ± {:.0} %. Much more can mean that the model repeats training rows \
         (memorisation), much less that its samples are unlike the data. Copies of a training row: {of_samples} \
         samples, {of_rows} {name} rows.",
        distances.held_out.len(),
        100.0 * samples,
        100.0 * WIDTH * std_err_by_chance
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::{Page, Section};
    use mclv::bits::BitRows;
    use mclv::data::Rows;

    fn beside(method: SampleMethod, r_hat: Option<f64>) -> BesideData {
        let v = BitRows::from_words(3, vec![0b000, 0b011, 0b111, 0b101]);
        let rows = Rows::Bits(BitRows::from_words(3, vec![0b001, 0b010, 0b111, 0b100, 0b000]));
        let test = Rows::Bits(BitRows::from_words(3, vec![0b110, 0b011]));
        let generated = Generated::new(&v, &rows, Some(&test), &Default::default()).unwrap();
        let mixing =
            r_hat.map(|r_hat| Mixing { r_hat, autocorrelation_time: 3.0, effective_sample_size: 99.0 });
        let burn_in = (method != SampleMethod::Exact).then_some(1000);
        let samples = Samples { v, means: None, method, mixing, burn_in, ladders: None, gibbs: None };
        BesideData { samples, generated, is_grey: false, held_out: Some("test".into()) }
    }

    #[test]
    fn a_sampler_in_doubt_is_a_warning_and_every_figure_says_what_noise_gives() {
        let exact = verdict(&beside(SampleMethod::Exact, None));
        assert_eq!(exact.level, Level::Note);
        assert_eq!(exact.text, "Samples: 4 independent exact samples, beside 5 training rows.");
        let good = verdict(&beside(SampleMethod::Gibbs, Some(1.01)));
        assert!(good.level == Level::Note && good.text.contains("R-hat 1.010"), "{}", good.text);
        let bad = verdict(&beside(SampleMethod::Gibbs, Some(1.5)));
        assert!(bad.level == Level::Warning && bad.text.contains("in doubt"), "{}", bad.text);

        let html = |beside: &BesideData| Page::new("", "").with(Section::new("S", blocks(beside))).html();
        let shown = html(&beside(SampleMethod::Exact, None));
        assert_eq!(shown.matches("<figure class=\"chart\"").count(), 4);
        for text in
            ["all 3 pairs", "noise alone would give", "For 4 samples and 2 test rows", "test rows</text>"]
        {
            assert!(shown.contains(text), "{text}");
        }
        let alone = BesideData { held_out: None, ..beside(SampleMethod::Exact, None) };
        assert!(html(&alone).contains("nothing says how many copies to expect"));
    }
}
