//! Figures of the laboratory for gradients.

use crate::figure::{Axis, Figure, N_COLOURS, Point, Series, Stack};

/// What was measured about one estimator.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// The name of the estimator.
    pub name: String,
    /// The norm of the bias and its standard error, if a bias was seen.
    pub bias: Option<(f64, f64)>,
    /// A limit that the bias is below.
    pub limit: f64,
    /// The square root of the variance of an estimate.
    pub spread: f64,
    /// The number of Gibbs steps of an estimate.
    pub steps: f64,
}

/// Draws the error of the mean of many estimates against their Gibbs steps. It falls until the bias
/// is left; estimators without a visible bias fall on.
pub fn errors_by_work(measured: &[Measured], gradient_norm: f64) -> Figure {
    let figure = Figure::new("Error of averaged estimates")
        .x(Axis::log("Gibbs steps"))
        .y(Axis::log("root mean squared error"))
        .size(720.0, 440.0);
    let most = measured.iter().map(|m| m.steps).fold(0.0, f64::max) * 100.0;
    let line = |m: &Measured| {
        let n = 60;
        let at = |k: usize| m.steps * (most / m.steps).powf(k as f64 / n as f64);
        let error =
            |steps: f64| m.bias.map_or(0.0, |(bias, _)| bias).hypot(m.spread * (m.steps / steps).sqrt());
        Series::line(m.name.clone(), (0..=n).map(|k| Point::new(at(k), error(at(k)))))
    };
    let drawn = measured.iter().filter(|m| m.steps > 0.0);
    let figure = drawn.fold(figure, |figure, m| figure.with(line(m)));
    if gradient_norm > 0.0 { figure.level("the gradient", gradient_norm) } else { figure }
}

/// Draws bias and spread of each estimator through a training: for each model its epoch, the norm of
/// the gradient, and the estimators. Where the bias exceeds the gradient, an estimator no longer
/// points the way. A bias that was not seen leaves a gap.
pub fn through_training(models: &[(f64, f64, Vec<Measured>)]) -> Stack {
    // Epoch 0 has no place on a logarithmic axis.
    let is_log = models.iter().all(|(epoch, ..)| *epoch > 0.0);
    let x = |label: &str| if is_log { Axis::log(label) } else { Axis::linear(label) };
    let n = models.iter().map(|(_, _, measured)| measured.len()).max().unwrap_or(0);
    let series = |k: usize, value: &dyn Fn(&Measured) -> (f64, Option<f64>)| {
        let name = models.iter().find_map(|(_, _, all)| all.get(k)).map_or("", |m| m.name.as_str());
        let point = |(epoch, _, all): &(f64, f64, Vec<Measured>)| {
            let (y, error) = all.get(k).map_or((f64::NAN, None), value);
            // A logarithmic axis has no place for limits at 0.
            error.map_or(Point::new(*epoch, y), |e| Point::between(*epoch, y, (y - e).max(0.2 * y), y + e))
        };
        Series::line(name, models.iter().map(point)).colour(k % N_COLOURS)
    };
    let norm = || {
        let points = models.iter().map(|(epoch, norm, _)| Point::new(*epoch, *norm));
        Series::line("the gradient itself", points).dashed().colour(n % N_COLOURS)
    };
    let bias = |m: &Measured| m.bias.map_or((f64::NAN, None), |(bias, error)| (bias, Some(1.96 * error)));
    let spread = |m: &Measured| (if m.spread > 0.0 { m.spread } else { f64::NAN }, None);
    let figure = |title: &str, value: &dyn Fn(&Measured) -> (f64, Option<f64>)| {
        let empty = Figure::new(title).x(x("epoch")).y(Axis::log("norm")).size(720.0, 400.0);
        (0..n).fold(empty.with(norm()), |figure, k| figure.with(series(k, value)))
    };
    Stack::new([figure("Bias, where it was seen", &bias), figure("Spread of one estimate", &spread)])
}
