//! Points in time as RFC 3339 text in UTC with microseconds: sorts as it reads.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// `2026-01-31T23:59:59.000001Z`
pub fn format(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (seconds, micros) = (since.as_secs(), since.subsec_micros());
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days as i64);
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{micros:06}Z",
        second / 3600,
        second / 60 % 60,
        second % 60
    )
}

/// The time that [`format`](format()) wrote, or that a person wrote without fraction; `None` for any other text.
pub fn parse(text: &str) -> Option<SystemTime> {
    let number = |from: usize, to: usize| text.get(from..to)?.parse::<u64>().ok();
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let micros = match text.get(19..)? {
        "Z" => 0,
        rest => rest.strip_prefix('.')?.strip_suffix('Z').filter(|digits| digits.len() == 6)?.parse().ok()?,
    };
    let days = u64::try_from(days_from_civil(year as i64, month as i64, day as i64)).ok()?;
    let seconds = days * 86_400 + hour * 3600 + minute * 60 + second;
    Some(UNIX_EPOCH + Duration::from_secs(seconds) + Duration::from_micros(micros))
}

/// Microseconds since 1970, for comparison.
pub fn micros(text: &str) -> u64 {
    parse(text)
        .and_then(|time| time.duration_since(UNIX_EPOCH).ok())
        .and_then(|since| u64::try_from(since.as_micros()).ok())
        .unwrap_or(0)
}

/// Year, month, day of a count of days since 1970-01-01 in the proleptic Gregorian calendar: years begin
/// in March, so that the leap day is the last of its year.
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let march_month = (month + 9) % 12;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + (153 * march_month + 2) / 5 + day - 1;
    era * 146_097 + day_of_era - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_times() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00.000000Z"),
            (951_782_399, "2000-02-28T23:59:59.000000Z"),
            (951_782_400, "2000-02-29T00:00:00.000000Z"),
            (1_709_251_199, "2024-02-29T23:59:59.000000Z"),
            (4_102_444_800, "2100-01-01T00:00:00.000000Z"),
        ] {
            let time = UNIX_EPOCH + Duration::from_secs(seconds);
            assert_eq!(format(time), text);
            assert_eq!(parse(text), Some(time));
        }
        assert_eq!(micros("1970-01-01T00:00:01Z"), 1_000_000);
        for bad in ["", "yesterday", "2026-13-01T00:00:00Z", "2026-01-01T00:00:00", "2026-01-01T00:00:00.1Z"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn every_day_of_four_centuries_there_and_back() {
        for day in 0..146_097 {
            let (year, month, dom) = civil(day);
            assert_eq!(days_from_civil(year, month, dom), day);
        }
    }
}
