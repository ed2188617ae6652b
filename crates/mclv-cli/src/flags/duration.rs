//! Parser of durations.

/// Seconds from `90`, `90s`, `30min`, `2h`, `3d` or `none`.
pub(crate) fn parse_duration(text: &str) -> Result<f64, String> {
    if text == "none" {
        return Ok(f64::INFINITY);
    }
    let split = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let scale = match unit {
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        _ => return Err(format!("unknown unit {unit:?}; write 90s, 30min, 2h, 3d or none")),
    };
    match number.trim().parse::<f64>() {
        Ok(n) if n >= 0.0 && n.is_finite() => Ok(n * scale),
        _ => Err("not a time; write 90s, 30min, 2h, 3d or none".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units() {
        assert_eq!(parse_duration("90"), Ok(90.0));
        assert_eq!(parse_duration("1.5h"), Ok(5400.0));
        assert_eq!(parse_duration("none"), Ok(f64::INFINITY));
        assert!(
            parse_duration("soon").is_err()
                && parse_duration("-1s").is_err()
                && parse_duration("3 weeks").is_err()
        );
    }
}
