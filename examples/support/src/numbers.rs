//! Parsers of numbers on command lines.

use std::time::Duration;

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
    scaled().ok_or_else(|| "it is not a number like 1000, 1_000, 1k, 1.5M, 2G or 2^20".into())
}

/// Parses a whole number.
pub fn parse_count(text: &str) -> Result<u64, String> {
    let number = parse_number(text)?;
    let is_exact = number.fract() == 0.0 && number <= (1u64 << 53) as f64;
    if is_exact { Ok(number as u64) } else { Err("it is not a whole number of at most 2^53".into()) }
}

/// Parses a number of bytes: plain, or with a unit: 3GiB, 512MiB, 1.5GB.
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
        return parse_count(text);
    };
    match parse_number(digits.trim_end()) {
        Ok(number) if number * factor <= (1u64 << 53) as f64 => Ok((number * factor) as u64),
        _ => Err("it is not a number of bytes like 1000000, 512M, 512MiB, 3G (3 x 10^9) or 3GiB, of at most 2^53".into()),
    }
}

/// Parses a time in seconds, or with a unit: 90, 1.5, 90s, 5m, 2h.
pub fn parse_time(text: &str) -> Result<Duration, String> {
    let units = [('s', 1.0), ('m', 60.0), ('h', 3600.0)];
    let (digits, factor) =
        units.iter().find_map(|(unit, factor)| Some((text.strip_suffix(*unit)?, *factor))).unwrap_or((text, 1.0));
    let seconds = digits.parse::<f64>().ok().map(|number| number * factor);
    match seconds.filter(|seconds| *seconds > 0.0 && *seconds <= MOST_SECONDS) {
        Some(seconds) => Ok(Duration::from_secs_f64(seconds)),
        None => Err("it is not a time like 90, 1.5, 90s, 5m or 2h, of more than 0 and at most 2^32 seconds".into()),
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
        for text in ["", "GiB", "3Gi", "3GIB", "-3GiB", "3B", "1e9TiB"] {
            assert!(parse_bytes(text).is_err(), "{text}");
        }
    }

    #[test]
    fn times_have_units() {
        for (text, seconds) in [("90", 90.0), ("1.5", 1.5), ("90s", 90.0), ("5m", 300.0), ("2h", 7200.0), ("1e-3", 0.001)] {
            assert_eq!(parse_time(text), Ok(Duration::from_secs_f64(seconds)));
        }
        for text in ["", "0", "-1", "s", "1d", "inf", "nan", "1e300", "2000000h"] {
            assert!(parse_time(text).is_err(), "{text}");
        }
    }
}
