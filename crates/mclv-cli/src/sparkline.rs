//! A curve in one line of text.

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Draws values as at most `width` bars of eight heights. Each bar shows the mean of neighbouring
/// values. Empty if there are fewer than two finite values.
pub(crate) fn sparkline(values: &[f64], width: usize) -> String {
    let values: Vec<f64> = values.iter().copied().filter(|x| x.is_finite()).collect();
    if values.len() < 2 || width == 0 {
        return String::new();
    }
    let n = values.len().min(width);
    let part = |k: usize| &values[k * values.len() / n..(k + 1) * values.len() / n];
    let means: Vec<f64> = (0..n).map(|k| part(k).iter().sum::<f64>() / part(k).len() as f64).collect();
    let (low, high) = means.iter().fold((f64::MAX, f64::MIN), |(a, b), &x| (a.min(x), b.max(x)));
    let height = |x: f64| if high > low { ((x - low) / (high - low) * 7.0).round() as usize } else { 0 };
    means.into_iter().map(|x| BARS[height(x)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_and_the_highest_value_have_the_ends_of_the_scale() {
        assert_eq!(sparkline(&[-3.0, -1.0, 4.0], 10), "▁▃█");
        assert_eq!(sparkline(&[5.0, 5.0], 10), "▁▁");
        assert_eq!(sparkline(&[1.0, f64::NAN], 10), "");
        let many: Vec<f64> = (0..1000).map(f64::from).collect();
        assert_eq!(sparkline(&many, 8), "▁▂▃▄▅▆▇█");
    }
}
