//! Parser of minutes.

/// Minutes: 0 or more. `inf` means never.
pub(crate) fn parse_minutes(text: &str) -> Result<f64, String> {
    text.parse::<f64>().ok().filter(|&x| x >= 0.0).ok_or_else(|| "not a number of minutes, 0 or more".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minutes_are_numbers_and_not_negative() {
        assert_eq!((parse_minutes("2.5"), parse_minutes("0")), (Ok(2.5), Ok(0.0)));
        assert_eq!(parse_minutes("inf"), Ok(f64::INFINITY));
        for text in ["nan", "-1", "x", "", "-inf"] {
            assert!(parse_minutes(text).is_err(), "{text}");
        }
    }
}
