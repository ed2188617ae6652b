//! Tell the time, and write it as a date.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The seconds since 1970.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time: Duration| time.as_secs())
}

/// Returns a number of seconds since 1970 as a date and time, such as `2025-11-18 19:30 UTC`.
pub(crate) fn date(seconds: u64) -> String {
    let (year, month, day) = civil(seconds / 86_400);
    let minute = seconds / 60 % (24 * 60);
    format!("{year}-{month:02}-{day:02} {:02}:{:02} UTC", minute / 60, minute % 60)
}

/// Year, month and day of a number of days since 1970, in the Gregorian calendar.
fn civil(days: u64) -> (u64, u64, u64) {
    // Years begin in March, so that the leap day is the last of its year. 400 years have 146,097
    // days, and the first of March of the year 0 was 719,468 days before 1970.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counted day by day from 1970 to 2400.
    #[test]
    fn dates_are_those_of_the_calendar() {
        let is_leap =
            |year: u64| year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
        let mut days = 0;
        for year in 1970..=2400 {
            let february = if is_leap(year) { 29 } else { 28 };
            for (month, n) in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31].into_iter().enumerate() {
                for day in 1..=n {
                    assert_eq!(civil(days), (year, month as u64 + 1, day));
                    days += 1;
                }
            }
        }
        // Any number that a file may hold is a date.
        assert!(date(u64::MAX).ends_with(" UTC"));
    }
}
