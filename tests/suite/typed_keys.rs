//! Keys of Rust types: any alignment, any size.
//!
//! Keeps this promise of `src/docs/interoperation.md`:
//!
//! - Columns become vectors field by field; columns that do not fit are refused.
//!
//! Keeps these promises of `README.md`:
//!
//! - Keys have any number of bytes. Zero bytes fill their last word, and no call shows these.
//! - Keys of a type are equal if their bytes are, whatever their alignment.

use crate::common::tests;
use crate::common::vectors::mix;
use bytemuck::{Pod, Zeroable};
use std::collections::{HashMap, HashSet};
use std::fmt::Debug;
use std::hash::Hash;
use warpset::{BucketTable, Columns, Device, Error, Indexed, IndexedTable, Outcome, Reference, Request, Root, Table, TypedTable};

tests![
    keys_of_any_number_of_bytes,
    keys_of_nine_bytes_in_every_call,
    columns_are_vectors,
    keys_aligned_to_1_byte,
    keys_aligned_to_2_bytes,
    keys_aligned_to_4_bytes,
    keys_aligned_to_8_bytes,
    keys_aligned_to_16_bytes,
    keys_at_any_address,
    floats_are_equal_when_their_bits_are,
    typed_and_untyped_see_the_same_words,
];

/// Makes all calls of a typed table, with keys made from numbers; distinct numbers must make distinct keys.
fn check<K: Pod + Eq + Hash + Debug>(device: &Device, key: impl Fn(u64) -> K) {
    let keys: Vec<K> = (0..200).map(key).collect();
    let (stored, absent) = keys.split_at(150);
    let table = TypedTable::<K>::new(device, 400).unwrap();
    assert_eq!(TypedTable::<K>::WIDTH, size_of::<K>().div_ceil(4));
    assert_eq!(table.width(), TypedTable::<K>::WIDTH);
    let twice = [stored, &stored[50..]].concat();
    let request = Request::new().outcomes(true).references(true).new_references(true);
    let batch = table.find_or_put_many_with(&twice, request).unwrap();
    assert_eq!((batch.tally.new, batch.tally.seen), (150, 100));
    let fresh: HashSet<K> = batch.positions(Outcome::New).map(|at| twice[at]).collect();
    let expected: HashSet<K> = stored.iter().copied().collect();
    assert_eq!(fresh, expected);
    let places: Vec<_> = batch.references.iter().map(|place| place.expect("it fits")).collect();
    assert_eq!(table.get_many(&places).unwrap(), twice);
    assert_eq!(table.locate_many(stored).unwrap(), batch.references[..150]);
    assert!(table.locate_many(absent).unwrap().iter().all(Option::is_none));
    let contained = table.contains_many(&keys).unwrap();
    assert!(contained.iter().enumerate().all(|(at, contained)| *contained == (at < 150)));
    let rows: Vec<(_, K)> = table.iter().collect::<Result<_, _>>().unwrap();
    assert_eq!((rows.len(), rows.iter().map(|row| row.1).collect::<HashSet<K>>()), (150, expected));
    assert!(rows.iter().all(|(reference, key)| table.get_many(&[*reference]).unwrap() == [*key]));
}

fn bytes<const N: usize>(number: u64) -> [u8; N] {
    std::array::from_fn(|at| (mix(number) >> (at % 4 * 8)) as u8 ^ at as u8 ^ if at == 0 { number as u8 } else { 0 })
}

fn keys_of_any_number_of_bytes(device: &Device) {
    check(device, |number| number as u8);
    check(device, |number| number as u16);
    check(device, |number| [number as u16, 7, !number as u16]);
    check(device, bytes::<3>);
    check(device, bytes::<5>);
    check(device, bytes::<9>);
    check(device, bytes::<31>);
    check(device, bytes::<63>);
    check(device, bytes::<255>);
    check(device, bytes::<1021>);
    assert!(matches!(TypedTable::<[u8; 1025]>::new(device, 10), Err(Error::OutOfRange { given: 257, .. })));
}

/// Rows and values of keys that are padded, single keys, and what stays of them.
fn keys_of_nine_bytes_in_every_call(device: &Device) {
    type Name = [u8; 9];
    let names: Vec<Name> = (0..300).map(bytes::<9>).collect();
    let table = TypedTable::<Name, Indexed>::builder().capacity(1000).build(device).unwrap();
    let mut counts = table.values(0u32).unwrap();
    counts.add_many(&[&names[..], &names[..100]].concat(), &[1]).unwrap().complete(&table).unwrap();
    let rows: HashMap<Name, u32> = table.rows().unwrap().iter().copied().zip(counts.view().unwrap().iter().copied()).collect();
    assert_eq!(rows, names.iter().enumerate().map(|(at, name)| (*name, if at < 100 { 2 } else { 1 })).collect());
    assert_eq!((table.insert(&names[0]), table.contains(&[7; 9])), (Ok(Outcome::Seen), Ok(false)));
    let place = table.locate(&names[7]).unwrap().unwrap();
    assert_eq!(table.get(place), Ok(names[7]));
    assert_eq!(table.retain(|name| *name != names[7]), Ok(1));
    let mut saved = Vec::new();
    table.save(&mut saved).unwrap();
    let loaded = TypedTable::<Name, Indexed>::load(device, &saved[..]).unwrap();
    assert_eq!((loaded.contains(&names[7]), loaded.contains(&names[8])), (Ok(false), Ok(true)));
    // A word of its last byte, and zeros: as a table of words sees it.
    let words = IndexedTable::load(device, &saved[..]).unwrap();
    assert!(words.width() == 3 && words.rows().unwrap().chunks(3).all(|words| words[2] < 256));
    let factors = TypedTable::<Name, Indexed>::builder().factorize_many(device, &names[..50]).unwrap();
    assert_eq!(factors.distinct, names[..50]);
    // Seven bytes are a key of 56 bits.
    let keys: Vec<[u8; 7]> = (0..300).map(bytes::<7>).collect();
    let roots = Table::<[u8; 7], Root>::builder().key_bits(56).capacity(1 << 12).build(device).unwrap();
    roots.extend(&keys).unwrap();
    assert_eq!((roots.contains_many(&keys).unwrap(), roots.len()), (vec![true; 300], Ok(300)));
}

/// More rows than a thread takes at a time.
fn columns_are_vectors(device: &Device) {
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Pod, Zeroable)]
    #[repr(C, packed)]
    struct Row {
        number: u64,
        flag: u8,
        name: [u8; 9],
        part: u16,
    }
    let rows: Vec<Row> =
        (0..10_000u64).map(|number| Row { number, flag: number as u8, name: bytes::<9>(number), part: !number as u16 }).collect();
    let numbers: Vec<u64> = rows.iter().map(|row| row.number).collect();
    let flags: Vec<u8> = rows.iter().map(|row| row.flag).collect();
    let names: Vec<[u8; 9]> = rows.iter().map(|row| row.name).collect();
    let parts: Vec<u16> = rows.iter().map(|row| row.part).collect();
    let columns = Columns::new().column(&numbers).column(&flags).column(&names).column(&parts);
    let table = TypedTable::<Row>::new(device, 20_000).unwrap();
    let found = table.from_columns(&columns).unwrap();
    assert!(found == rows);
    table.find_or_put_many(&found).unwrap().complete(&table).unwrap();
    assert_eq!(table.contains_many(&rows).unwrap(), vec![true; rows.len()]);
    let words = BucketTable::new(device, 5, 10).unwrap();
    assert!(
        words.from_columns(&columns).unwrap()
            == bytemuck::cast_slice::<Row, u8>(&rows).chunks(4).map(bytemuck::pod_read_unaligned).collect::<Vec<u32>>()
    );
    let wrong = |what, given, needed| Error::LengthMismatch { what, given, needed };
    assert_eq!(
        words.from_columns(&columns.clone().column(&parts)).unwrap_err(),
        wrong("bytes of the fields of one vector", 22, 20)
    );
    assert_eq!(
        words.from_columns(&Columns::new().column(&numbers)).unwrap_err(),
        wrong("bytes of the fields of one vector", 8, 20)
    );
    let short = Columns::new().column(&numbers).column(&flags[1..]).column(&names).column(&parts);
    assert_eq!(table.from_columns(&short).unwrap_err(), wrong("fields of a column", 9999, 10_000));
    // 18 bytes take five words. Zeros fill the last one.
    let five = words.from_columns(&Columns::new().column(&numbers[7..8]).column(&names[7..8]).column(&flags[7..8])).unwrap();
    assert_eq!((five.len(), five[4] >> 16), (5, 0));
}

fn keys_aligned_to_1_byte(device: &Device) {
    check(device, |number| [number as u8, 0, 255, number as u8]);
    check(device, bytes::<12>);
    check(device, bytes::<64>);
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Pod, Zeroable)]
#[repr(C)]
struct Halves {
    one: u16,
    bytes: [u8; 4],
    other: u16,
}

fn keys_aligned_to_2_bytes(device: &Device) {
    check(device, |number| [number as u16, !number as u16]);
    check(device, |number| [7u16, 7, 7, 7, 7, number as u16]);
    check(device, |number| Halves { one: 1, bytes: bytes::<4>(0), other: number as u16 });
    check(device, |number| [number as u16; 32]);
}

fn keys_aligned_to_4_bytes(device: &Device) {
    check(device, |number| number as u32);
    check(device, |number| -(number as i32));
    check(device, |number| [number as u32; 9]);
    check(device, |number| [[0u32, number as u32], [u32::MAX, 0]]);
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Pod, Zeroable)]
#[repr(C)]
struct Mixed {
    wide: u64,
    narrow: u32,
    halves: [u16; 2],
}

fn keys_aligned_to_8_bytes(device: &Device) {
    check(device, |number| number << 32);
    check(device, |number| [u64::MAX, number]);
    check(device, |number| Mixed { wide: 0, narrow: 1, halves: [2, number as u16] });
    check(device, |number| [number; 8]);
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Pod, Zeroable)]
#[repr(C, align(16))]
struct Aligned {
    words: [u32; 8],
}

fn keys_aligned_to_16_bytes(device: &Device) {
    check(device, |number| u128::from(number) << 96);
    check(device, |number| [0u128, u128::from(number), 0, u128::MAX]);
    check(device, |number| Aligned { words: [number as u32; 8] });
}

/// Keys of bytes may start at any address, keys of half-words at any even address.
fn keys_at_any_address(device: &Device) {
    let bytes: Vec<u8> = (0..8 * 101).map(|at| mix(at) as u8).collect();
    for offset in 0..8 {
        let keys: &[[u8; 8]] = bytemuck::cast_slice(&bytes[offset..offset + 800]);
        let table = TypedTable::<[u8; 8]>::new(device, 200).unwrap();
        assert_eq!(table.find_or_put_many(keys).unwrap().tally.new, 100, "offset {offset}");
        assert!(table.contains_many(keys).unwrap().iter().all(|contained| *contained), "offset {offset}");
        let found: HashSet<[u8; 8]> = table.iter().map(|row| row.unwrap().1).collect();
        assert_eq!(found, keys.iter().copied().collect(), "offset {offset}");
    }
}

/// Keys are compared by bits, unlike `==`, under which a NaN is equal to nothing, and zero equals minus zero.
fn floats_are_equal_when_their_bits_are(device: &Device) {
    let table = TypedTable::<f32>::new(device, 10).unwrap();
    let batch = table.find_or_put_many(&[f32::NAN, f32::NAN, 0.0, -0.0, 0.0]).unwrap();
    assert_eq!((batch.tally.new, batch.tally.seen), (3, 2));
    assert_eq!(table.contains_many(&[f32::NAN, -0.0, -f32::NAN]).unwrap(), [true, true, false]);
}

fn typed_and_untyped_see_the_same_words(device: &Device) {
    let table = TypedTable::<Mixed>::builder().capacity(10).seed(1).build(device).unwrap();
    let key = Mixed { wide: 0x1111_2222_3333_4444, narrow: 5, halves: [6, 7] };
    let _ = table.find_or_put_many(&[key]).unwrap();
    let words: &[u32] = bytemuck::cast_slice(std::slice::from_ref(&key));
    // Equal seeds give equal slots.
    let untyped = BucketTable::builder(words.len()).capacity(10).seed(1).build(device).unwrap();
    assert_eq!(untyped.find_or_put_many(words).unwrap().tally.new, 1);
    let place = |references: Vec<Option<Reference>>| references[0].unwrap().slot();
    assert_eq!(place(untyped.locate_many(words).unwrap()), place(table.locate_many(&[key]).unwrap()));
    assert_eq!(table.iter().map(|row| row.unwrap().1).collect::<Vec<_>>(), [key]);
}
