//! Random changes of texts and of numbers in binary files.

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, RngExt};

/// Numbers at limits of integer types and of other ranges.
const NUMBERS: [&str; 22] = [
    "0",
    "-1",
    "1",
    "2",
    "3",
    "255",
    "256",
    "32767",
    "65535",
    "65536",
    "2147483647",
    "2147483648",
    "-2147483649",
    "4294967295",
    "4294967296",
    "3000000000",
    "4611686018427387904",
    "9223372036854775807",
    "18446744073709551615",
    "18446744073709551616",
    "1e308",
    "99999999999999999999999999",
];

/// Words, numbers, spaces and single other characters of a text.
fn tokens(text: &[u8]) -> Vec<&[u8]> {
    let class = |byte: u8| match byte {
        b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'_' | 0x80.. => 1,
        b' ' | b'\t' => 2,
        _ => 0,
    };
    text.chunk_by(|&one, &other| class(one) == class(other) && class(one) != 0).collect()
}

/// A text with one to four changes: of numbers, words, lines and bytes.
pub fn text(text: &[u8], random: &mut StdRng) -> Vec<u8> {
    (0..[1, 1, 1, 2, 4][random.random_range(0..5)]).fold(text.to_vec(), |text, _| match random.random_range(0..12) {
        0..=6 => change_token(&text, random),
        7..=9 => change_lines(&text, random),
        _ => change_bytes(text, random),
    })
}

fn change_token(text: &[u8], random: &mut StdRng) -> Vec<u8> {
    let mut tokens: Vec<Vec<u8>> = tokens(text).into_iter().map(<[u8]>::to_vec).collect();
    if tokens.is_empty() {
        return text.to_vec();
    }
    let mut place = || random.random_range(0..tokens.len());
    let (at, other) = (place(), place());
    let number = tokens.iter().enumerate().filter(|(_, token)| token[0].is_ascii_digit()).map(|(at, _)| at).collect::<Vec<_>>();
    match random.random_range(0..8) {
        0..=2 => {
            if let Some(&at) = number.choose(random) {
                tokens[at] = match random.random() {
                    true => random.random_range(0..10).to_string().into_bytes(),
                    false => NUMBERS.choose(random).expect("numbers").as_bytes().to_vec(),
                };
            }
        }
        3 => tokens.swap(at, other),
        4 => tokens[at] = tokens[other].clone(),
        5 => drop(tokens.remove(at)),
        6 => tokens.insert(at, tokens[other].clone()),
        // Nesting deeper than a parser's stack.
        _ => tokens[at] = tokens[at].repeat([2, 100, 20_000][random.random_range(0..3)]),
    }
    tokens.concat()
}

fn change_lines(text: &[u8], random: &mut StdRng) -> Vec<u8> {
    let mut lines: Vec<&[u8]> = text.split_inclusive(|&byte| byte == b'\n').collect();
    if lines.is_empty() {
        return Vec::new();
    }
    let mut place = || random.random_range(0..lines.len());
    let (at, other) = (place(), place());
    match random.random_range(0..4) {
        0 => lines.swap(at, other),
        1 => drop(lines.remove(at)),
        2 => lines.insert(at, lines[other]),
        _ => lines.truncate(at),
    }
    lines.concat()
}

fn change_bytes(mut text: Vec<u8>, random: &mut StdRng) -> Vec<u8> {
    if text.is_empty() {
        return text;
    }
    let at = random.random_range(0..text.len());
    match random.random_range(0..3) {
        0 => text[at] = random.random(),
        1 => text.insert(at, *b"\0\n\"'\\()[]{};,:!?<>=*/#\xff".choose(random).expect("bytes")),
        _ => text.truncate(at),
    }
    text
}

/// Changes some numbers of 4 or 8 bytes, and now and then the length.
pub fn numbers(bytes: &mut Vec<u8>, random: &mut StdRng) {
    for _ in 0..random.random_range(1..=3) {
        let size = if random.random() { 4 } else { 8 };
        if bytes.len() < size {
            return;
        }
        let at = random.random_range(0..bytes.len() / size) * size;
        let mut number = [0; 8];
        number[..size].copy_from_slice(&bytes[at..at + size]);
        let old = u64::from_le_bytes(number);
        let new = match random.random_range(0..6) {
            0 => u64::from(random.random_range(0u8..4)),
            1 => u64::MAX - u64::from(random.random_range(0u8..3)),
            2 => 1 << random.random_range(0..64),
            3 => old ^ 1 << random.random_range(0..8 * size),
            4 => old.wrapping_add(random.random_range(1..4)),
            _ => random.next_u64(),
        };
        bytes[at..at + size].copy_from_slice(&new.to_le_bytes()[..size]);
    }
    if random.random_range(0..10) == 0 {
        bytes.truncate(random.random_range(0..=bytes.len()));
    }
}
