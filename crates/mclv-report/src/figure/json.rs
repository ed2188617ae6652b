//! A figure as the data of an interactive chart.

use super::{Axis, Figure, Mark, Scale, Series};
use serde_json::{Value, json};

impl Figure {
    /// The data for the script of a page: axes, and the columns of each series. Values that an axis
    /// cannot show are null.
    pub(crate) fn json(&self) -> Value {
        let axis = |axis: &Axis| json!({ "label": axis.label, "log": axis.scale == Scale::Log });
        // Limits at zero end at the edge of a logarithmic axis.
        let floor = self
            .series
            .iter()
            .flat_map(|s| &s.points)
            .flat_map(|p| [Some(p.y), p.limits.map(|l| l.0)])
            .flatten()
            .filter(|&y| y > 0.0)
            .fold(f64::INFINITY, f64::min);
        // Bars, error bars and axes of names are shown only as a static figure, which needs no data.
        let still = !self.x.names.is_empty()
            || self.series.iter().any(|s| !matches!(s.mark, Mark::Line | Mark::Step));
        let of = |(k, s): (usize, &Series)| {
            if still { json!({ "name": s.name }) } else { self.series_json(s, k, floor) }
        };
        let series: Vec<Value> = self.series.iter().enumerate().map(of).collect();
        json!({ "title": self.title, "x": axis(&self.x), "y": axis(&self.y), "series": series, "still": still })
    }

    fn series_json(&self, series: &Series, k: usize, floor: f64) -> Value {
        let (x, y) = (self.x.scale, self.y.scale);
        let points: Vec<_> = series.points.iter().filter(|p| x.shows(p.x)).collect();
        let value = |v: f64| if y.shows(v) { json!(short(v)) } else { Value::Null };
        let column =
            |of: &dyn Fn(&super::Point) -> Value| -> Vec<Value> { points.iter().map(|p| of(p)).collect() };
        let mark = if series.mark == Mark::Step { "step" } else { "line" };
        let mut json = json!({ "name": series.name, "mark": mark, "dashed": series.dashed, "runs": series.runs,
            "colour": series.colour.unwrap_or(k) % super::N_COLOURS,
            "x": column(&|p| json!(short(p.x))), "y": column(&|p| value(p.y)) });
        if series.points.iter().any(|p| p.limits.is_some_and(|(low, high)| low < high)) {
            let limit = |v: f64| if y == Scale::Log && v <= 0.0 { json!(short(floor)) } else { value(v) };
            json["low"] = column(&|p| p.limits.map_or(Value::Null, |l| limit(l.0))).into();
            json["high"] = column(&|p| p.limits.map_or(Value::Null, |l| limit(l.1))).into();
        }
        json
    }
}

/// Rounds to the number of digits that a chart can show.
fn short(x: f64) -> f64 {
    if x == x.trunc() && x.abs() < 1e15 { x } else { format!("{x:.6e}").parse().unwrap_or(x) }
}
