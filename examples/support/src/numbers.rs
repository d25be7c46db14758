//! Parsers of numbers on command lines.

use indicatif::HumanCount;
use std::time::Duration;

/// Maximum number of ranks in one process.
const MOST_RANKS: u64 = 256;

/// Longest accepted time: 136 years.
const MOST_SECONDS: f64 = (1u64 << 32) as f64;

/// Parses a number: 1_000, 1k, 1.5M, 2G or 2^20.
pub fn parse_number(text: &str) -> Result<f64, String> {
    let plain = |text: &str| text.replace('_', "").parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
    let scaled = || {
        if let Some((base, exponent)) = text.split_once('^') {
            return Some(plain(base)?.powf(plain(exponent)?));
        }
        let suffixes = [('k', 1e3), ('M', 1e6), ('G', 1e9)];
        match suffixes.iter().find_map(|(suffix, factor)| Some((text.strip_suffix(*suffix)?, factor))) {
            Some((digits, factor)) => Some(plain(digits)? * factor),
            None => plain(text),
        }
    };
    scaled().ok_or_else(|| "not a number like 1000, 1_000, 1k, 1.5M, 2G or 2^20".into())
}

/// Returns a number with its noun: `1 state`, `2,000 states`, `2 launches`. `one` is the singular of a regular noun.
pub fn counted(number: u64, one: &str) -> String {
    let plural = if one.ends_with(['s', 'x', 'h']) { "es" } else { "s" };
    format!("{} {one}{}", HumanCount(number), if number == 1 { "" } else { plural })
}

/// Parses a whole number.
pub fn parse_count(text: &str) -> Result<u64, String> {
    let number = parse_number(text)?;
    let is_exact = number.fract() == 0.0 && number <= (1u64 << 53) as f64;
    if is_exact { Ok(number as u64) } else { Err("not a whole number of at most 2^53".into()) }
}

/// Parses a whole number of at least 1.
pub fn parse_positive(text: &str) -> Result<u64, String> {
    match parse_count(text)? {
        0 => Err("must be at least 1".into()),
        number => Ok(number),
    }
}

/// Parses a number of ranks in one process.
pub fn parse_ranks(text: &str) -> Result<u16, String> {
    match parse_count(text)? {
        ranks @ 1..=MOST_RANKS => Ok(ranks as u16),
        ranks => Err(format!("{} is not in 1 to {MOST_RANKS}", HumanCount(ranks))),
    }
}

/// Parses a number of bytes, at least 1: plain, or with a unit: 3GiB, 512MiB, 1.5GB.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let units = [
        ("KiB", (1u64 << 10) as f64),
        ("MiB", (1u64 << 20) as f64),
        ("GiB", (1u64 << 30) as f64),
        ("TiB", (1u64 << 40) as f64),
        ("kB", 1e3),
        ("MB", 1e6),
        ("GB", 1e9),
        ("TB", 1e12),
    ];
    let Some((digits, factor)) = units.iter().find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, factor))) else {
        return parse_positive(text);
    };
    match parse_number(digits.trim_end()) {
        Ok(number) if (1.0..=(1u64 << 53) as f64).contains(&(number * factor)) => Ok((number * factor) as u64),
        _ => Err("not a number of bytes like 1000000, 512M, 512MiB, 3G (3 x 10^9) or 3GiB, at most 2^53".into()),
    }
}

/// Parses a time in seconds, or with a unit: 90, 1.5, 90s, 5m, 2h.
pub fn parse_time(text: &str) -> Result<Duration, String> {
    let units = [("sec", 1.0), ("s", 1.0), ("min", 60.0), ("m", 60.0), ("h", 3600.0)];
    let (digits, factor) =
        units.iter().find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, *factor))).unwrap_or((text, 1.0));
    let seconds = parse_number(digits).or_else(|error| digits.parse().map_err(|_| error)).ok().map(|number: f64| number * factor);
    match seconds.filter(|seconds| *seconds > 0.0 && *seconds <= MOST_SECONDS) {
        Some(seconds) => Ok(Duration::from_secs_f64(seconds)),
        None => Err("not a time like 90, 1.5, 90s, 5m or 2h: more than 0 and at most 2^32 seconds".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_in_several_ways() {
        for (text, number) in
            [("1000", 1000), ("1_000", 1000), ("1k", 1000), ("1.5M", 1_500_000), ("2G", 2_000_000_000), ("2^20", 1 << 20)]
        {
            assert_eq!(parse_count(text), Ok(number));
        }
        for text in ["", "1.5", "-1", "k", "2^", "1e400", "2^54"] {
            assert!(parse_count(text).is_err(), "{text}");
        }
    }

    #[test]
    fn nouns_agree_with_their_numbers() {
        assert_eq!(counted(1, "state"), "1 state");
        assert_eq!((counted(0, "state"), counted(1000, "launch")), ("0 states".into(), "1,000 launches".into()));
    }

    #[test]
    fn bytes_have_units() {
        for (text, bytes) in [
            ("3GiB", 3 << 30),
            ("3 GiB", 3 << 30),
            ("3GB", 3_000_000_000),
            ("3G", 3_000_000_000),
            ("1.5MiB", 3 << 19),
            ("64KiB", 1 << 16),
            ("2kB", 2000),
            ("2^30", 1 << 30),
            ("1000", 1000),
        ] {
            assert_eq!(parse_bytes(text), Ok(bytes), "{text}");
        }
        for text in ["", "GiB", "3Gi", "3GIB", "-3GiB", "3B", "1e9TiB", "0", "0GiB"] {
            assert!(parse_bytes(text).is_err(), "{text}");
        }
    }

    #[test]
    fn limits_are_at_least_1() {
        assert_eq!((parse_positive("1"), parse_ranks("2^8")), (Ok(1), Ok(256)));
        assert_eq!(parse_positive("0"), Err("must be at least 1".into()));
        assert_eq!(parse_ranks("2^32"), Err("4,294,967,296 is not in 1 to 256".into()));
        assert!(parse_ranks("0").is_err() && parse_ranks("many").is_err());
    }

    #[test]
    fn times_have_units() {
        for (text, seconds) in
            [("90", 90.0), ("1.5", 1.5), ("90s", 90.0), ("5m", 300.0), ("2h", 7200.0), ("1e-3", 0.001), ("2^32", 4294967296.0)]
        {
            assert_eq!(parse_time(text), Ok(Duration::from_secs_f64(seconds)));
        }
        assert_eq!(
            (parse_time("10min"), parse_time("1.5min"), parse_time("9sec")),
            (parse_time("600"), parse_time("90s"), parse_time("9"))
        );
        for text in ["", "0", "-1", "s", "min", "1d", "inf", "nan", "1e300", "2000000h"] {
            assert!(parse_time(text).is_err(), "{text}");
        }
    }
}
