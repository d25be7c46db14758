//! Numbers as they are written on command lines.

/// A number, written 1_000, 1k, 1.5M, 2G or 2^20.
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

/// A whole number.
pub fn parse_count(text: &str) -> Result<u64, String> {
    let number = parse_number(text)?;
    let is_exact = number.fract() == 0.0 && number <= (1u64 << 53) as f64;
    if is_exact { Ok(number as u64) } else { Err("it is not a whole number of at most 2^53".into()) }
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
}
