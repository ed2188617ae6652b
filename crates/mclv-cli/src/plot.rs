//! Plots tail functions in the terminal, with logarithmic axes.

use mclv::tour::Ccdf;

const WIDTH: usize = 64;
/// The marks of the curves, in order, and the mark of confidence bands.
const MARKS: [char; 6] = ['●', '○', '◆', '◇', '■', '□'];
const BAND: char = '░';

/// Plots `p(ξ > k)` of each curve with its band, and a legend. Empty if no tour has two steps.
pub(crate) fn tails(curves: &[(String, &Ccdf)]) -> String {
    let longest = curves.iter().filter_map(|(_, c)| last_length(c)).max().unwrap_or(0);
    let least =
        curves.iter().flat_map(|(_, c)| &c.points).map(|p| p.p).filter(|&p| p > 0.0).fold(1.0, f64::min);
    if longest < 2 || least == 1.0 {
        return String::new();
    }
    let depth = -least.log10();
    let per_decade = (14.0 / depth).clamp(2.0, 6.0) as usize;
    let height = (depth * per_decade as f64).ceil() as usize + 1;
    let line_of = |p: f64| (-p.log10() * per_decade as f64).round().clamp(0.0, (height - 1) as f64) as usize;
    let scale = (WIDTH - 1) as f64 / f64::from(longest).ln();
    let mut grid = vec![[' '; WIDTH]; height];
    let at = |curve: &Ccdf, column: usize| {
        // Rounding must not turn a whole length into the length before it.
        let k = ((column as f64 / scale).exp() + 1e-9) as u32;
        last_length(curve).filter(|&last| k <= last).and_then(|_| curve.at(k).copied()).filter(|p| p.p > 0.0)
    };
    let drawn = |curve| (0..WIDTH).filter_map(move |column| Some((column, at(curve, column)?)));
    for (_, curve) in curves {
        for (column, point) in drawn(curve) {
            grid[line_of(point.high)..=line_of(point.low)].iter_mut().for_each(|line| line[column] = BAND);
        }
    }
    for ((_, curve), mark) in curves.iter().zip(MARKS.into_iter().cycle()) {
        for (column, point) in drawn(curve) {
            grid[line_of(point.p)][column] = mark;
        }
    }

    let mut text = String::from("  p(ξ > k)\n");
    for (k, line) in grid.iter().enumerate() {
        let label = if k % per_decade == 0 { power(-((k / per_decade) as i32)) } else { String::new() };
        let edge = if label.is_empty() { '│' } else { '┤' };
        let line: String = line.iter().collect();
        text.push_str(&format!("{label:>7} {edge}{}\n", line.trim_end()));
    }
    let (mut axis, mut labels) = (vec!['─'; WIDTH], vec![' '; WIDTH + 8]);
    for decade in 0..=longest.ilog10() {
        let column = (f64::from(10u32.pow(decade)).ln() * scale).round() as usize;
        axis[column] = '┬';
        for (place, c) in labels[column..].iter_mut().zip(power(decade as i32).chars()) {
            *place = c;
        }
    }
    let (axis, labels): (String, String) = (axis.iter().collect(), labels.iter().collect());
    text.push_str(&format!("{:8}└{axis} k\n{:9}{}\n", "", "", labels.trim_end()));
    let names: Vec<String> = curves
        .iter()
        .zip(MARKS.into_iter().cycle())
        .map(|((name, _), mark)| format!("{mark} {name}"))
        .collect();
    text.push_str(&format!("{:9}{}   {BAND} 95 % limits for each length\n", "", names.join("   ")));
    text
}

/// The largest length for which the curve is known.
fn last_length(curve: &Ccdf) -> Option<u32> {
    curve.known_up_to.or(curve.points.last().map(|point| point.k))
}

/// `10^exponent` as a short text.
fn power(exponent: i32) -> String {
    match exponent {
        -3..=3 => format!("{}", 10f64.powi(exponent)),
        _ => format!("1e{exponent}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mclv::tour::CcdfPoint;

    fn curve(points: &[(u32, f64)], known_up_to: Option<u32>) -> Ccdf {
        let point = |&(k, p): &(u32, f64)| CcdfPoint { k, p, low: p / 2.0, high: (p * 2.0).min(1.0) };
        Ccdf { points: points.iter().map(point).collect(), known_up_to }
    }

    #[test]
    fn a_straight_line_is_drawn_as_one() {
        // p = 1/k at powers of ten: one decade to the right, one decade down.
        let ccdf = curve(&[(0, 1.0), (1, 1.0), (10, 0.1), (100, 0.01), (1000, 0.0)], None);
        let text = tails(&[("m = 1".into(), &ccdf)]);
        let lines: Vec<&str> = text.lines().collect();
        let marks = |line: &str| -> Vec<usize> {
            line.chars().enumerate().filter(|(_, c)| *c == '●').map(|(column, _)| column - 9).collect()
        };
        assert!(lines[1].starts_with("      1 ┤") && lines[7].starts_with("    0.1 ┤"), "{text}");
        assert_eq!(marks(lines[1]), (0..21).collect::<Vec<_>>(), "{text}");
        assert_eq!(marks(lines[7]), (21..42).collect::<Vec<_>>(), "{text}");
        assert_eq!(marks(lines[13]), (42..63).collect::<Vec<_>>(), "{text}");
        assert!(lines[5].contains('░') && text.contains("● m = 1"), "{text}");
        assert!(lines.iter().all(|line| line.chars().count() < 80), "{text}");
    }

    #[test]
    fn curves_end_where_tours_were_cut() {
        let whole = curve(&[(0, 1.0), (1, 0.5), (100, 0.0)], None);
        let cut = curve(&[(0, 1.0), (1, 0.2)], Some(10));
        let text = tails(&[("whole".into(), &whole), ("cut".into(), &cut)]);
        let count = |mark| text.matches(mark).count();
        assert_eq!((count('●'), count('○')), (63 + 1, 33 + 1), "{text}");
    }

    #[test]
    fn there_is_nothing_to_plot_of_tours_of_one_step() {
        assert_eq!(tails(&[("m = 1".into(), &curve(&[(0, 1.0), (1, 0.0)], None))]), "");
        assert_eq!(tails(&[("m = 1".into(), &curve(&[(0, 1.0)], Some(1)))]), "");
        assert_eq!(tails(&[]), "");
    }
}
