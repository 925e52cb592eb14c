//! The run-length and bit-packing hybrid that holds levels and dictionary ids.
//!
//! # Source
//! Parquet Encodings.md, "Run Length Encoding / Bit-Packing Hybrid".

use super::header::{get_varint, put_varint};

/// Values of a bit-packed group.
const GROUP: usize = 8;

/// A level or an id.
pub(super) trait Small: Copy + PartialEq + Into<u32> {
    /// From as many bits as the width allows.
    fn from_bits(bits: u32) -> Self;
}

impl Small for u8 {
    fn from_bits(bits: u32) -> Self {
        bits as u8
    }
}

impl Small for u32 {
    fn from_bits(bits: u32) -> Self {
        bits
    }
}

/// Bits that hold every number up to `max`.
pub(super) fn width_of(max: u32) -> u8 {
    (u32::BITS - max.leading_zeros()) as u8
}

/// Decodes exactly `count` values of `width` bits; `None` if the bytes don't hold them.
pub(super) fn decode<T: Small>(mut bytes: &[u8], width: u8, count: usize, out: &mut Vec<T>) -> Option<()> {
    if width > 32 {
        return None;
    }
    let end = out.len().checked_add(count)?;
    let value_bytes = usize::from(width).div_ceil(8);
    while out.len() < end {
        let (head, length) = get_varint(bytes)?;
        bytes = bytes.get(length..)?;
        let left = end - out.len();
        if head & 1 == 0 {
            let mut value = [0; 4];
            value[..value_bytes].copy_from_slice(bytes.get(..value_bytes)?);
            bytes = &bytes[value_bytes..];
            let value = u32::from_le_bytes(value);
            if width < 32 && value >> width != 0 {
                return None;
            }
            let run = usize::try_from(head >> 1).ok()?.min(left);
            if run == 0 {
                return None;
            }
            out.resize(out.len() + run, T::from_bits(value));
        } else {
            let groups = usize::try_from(head >> 1).ok()?;
            let packed = bytes.get(..groups.checked_mul(usize::from(width))?)?;
            bytes = &bytes[packed.len()..];
            let run = groups.checked_mul(GROUP)?.min(left);
            if run == 0 {
                return None;
            }
            unpack(packed, width, run, out);
        }
    }
    Some(())
}

fn unpack<T: Small>(packed: &[u8], width: u8, count: usize, out: &mut Vec<T>) {
    let mask = if width == 32 { u32::MAX } else { (1 << width) - 1 };
    let width = usize::from(width);
    let word_at = |byte: usize| -> u64 {
        let mut word = [0; 8];
        let there = &packed[byte.min(packed.len())..(byte + 8).min(packed.len())];
        word[..there.len()].copy_from_slice(there);
        u64::from_le_bytes(word)
    };
    out.reserve(count);
    // A whole word can be read in front of every value up to here.
    let fast = (packed.len().saturating_sub(8) * 8).checked_div(width).unwrap_or(0).min(count);
    out.extend((0..fast).map(|i| {
        let bit = i * width;
        let word: [u8; 8] = packed[bit / 8..bit / 8 + 8].try_into().unwrap_or_default();
        T::from_bits((u64::from_le_bytes(word) >> (bit % 8)) as u32 & mask)
    }));
    out.extend((fast..count).map(|i| {
        let bit = i * width;
        T::from_bits((word_at(bit / 8) >> (bit % 8)) as u32 & mask)
    }));
}

/// Encodes values of `width` bits: long runs as runs, the rest packed.
pub(super) fn encode<T: Small>(values: &[T], width: u8, out: &mut Vec<u8>) {
    let (mut packed_from, mut i) = (0, 0);
    while i < values.len() {
        let first = values[i];
        let run = values[i..].iter().take_while(|v| **v == first).count();
        if run >= GROUP {
            pack(&values[packed_from..i], width, out);
            put_varint((run as u64) << 1, out);
            let value: u32 = first.into();
            out.extend_from_slice(&value.to_le_bytes()[..usize::from(width).div_ceil(8)]);
            i += run;
            packed_from = i;
        } else {
            i = (i + GROUP).min(values.len());
        }
    }
    pack(&values[packed_from..], width, out);
}

fn pack<T: Small>(values: &[T], width: u8, out: &mut Vec<u8>) {
    if values.is_empty() {
        return;
    }
    let groups = values.len().div_ceil(GROUP);
    put_varint((groups as u64) << 1 | 1, out);
    let end = out.len() + groups * usize::from(width);
    let (mut word, mut bits) = (0u64, 0u32);
    for value in values {
        let value: u32 = (*value).into();
        word |= u64::from(value) << bits;
        bits += u32::from(width);
        if bits >= 32 {
            out.extend_from_slice(&(word as u32).to_le_bytes());
            word >>= 32;
            bits -= 32;
        }
    }
    out.extend_from_slice(&word.to_le_bytes());
    out.resize(end, 0);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn values_come_back(
            width in 1u8..=32,
            runs in prop::collection::vec((any::<u32>(), 1usize..40), 0..40),
            packed in prop::collection::vec(any::<u32>(), 0..100),
        ) {
            let mask = if width == 32 { u32::MAX } else { (1 << width) - 1 };
            let mut values: Vec<u32> = runs.iter().flat_map(|(v, n)| vec![v & mask; *n]).collect();
            values.extend(packed.iter().map(|v| v & mask));
            let mut bytes = Vec::new();
            encode(&values, width, &mut bytes);
            let mut back: Vec<u32> = Vec::new();
            prop_assert_eq!(decode(&bytes, width, values.len(), &mut back), Some(()));
            prop_assert_eq!(&back, &values);
            if !values.is_empty() {
                prop_assert_eq!(decode::<u32>(&bytes, width, values.len() + 8, &mut Vec::new()), None);
                prop_assert_eq!(decode::<u32>(&bytes[..bytes.len() - 1], width, values.len(), &mut Vec::new()), None);
            }
        }
    }

    #[test]
    fn hostile_runs_end() {
        assert_eq!(decode::<u8>(&[0, 0, 0, 0], 1, 5, &mut Vec::new()), None);
        assert_eq!(decode::<u8>(&[1], 1, 5, &mut Vec::new()), None);
        assert_eq!(decode::<u8>(&[2, 7], 1, 1, &mut Vec::new()), None);
        assert_eq!(decode::<u8>(&[0xff; 12], 1, 1, &mut Vec::new()), None);
        let mut zeros = Vec::new();
        assert_eq!(decode::<u32>(&[200, 1], 0, 100, &mut zeros), Some(()));
        assert_eq!(zeros, [0; 100]);
    }
}
