//! Value of the option `--simulate`.

use warpset_support::numbers::parse_positive;

/// Steps of a walk, unless the option gives another number.
const DEPTH: u64 = 10_000;

/// Value of the option: WALKS or WALKS,DEPTH.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Requested {
    pub walks: u64,
    pub depth: u64,
}

pub fn parse(text: &str) -> Result<Requested, String> {
    let (walks, depth) = text.split_once(',').map_or((text, None), |(walks, depth)| (walks, Some(depth)));
    Ok(Requested { walks: parse_positive(walks)?, depth: depth.map_or(Ok(DEPTH), parse_positive)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn walks_may_have_a_depth() {
        assert_eq!(parse("1k"), Ok(Requested { walks: 1000, depth: DEPTH }));
        assert_eq!(parse("2^20,50"), Ok(Requested { walks: 1 << 20, depth: 50 }));
        for text in ["", "0", "5,0", "5,", ",5", "1,2,3", "many"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
