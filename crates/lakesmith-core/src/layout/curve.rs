//! Space-filling curves: one number for the ranks of several keys, so that near numbers have near ranks.
//!
//! Coordinates are below `1 << bits`; `bits` times the number of keys must not exceed 63, see [`bits_per_key`].
//!
//! # Source
//! Hilbert: J. K. Lawder, "Calculation of Mappings Between One and n-dimensional Values Using the Hilbert
//! Space-filling Curve", with the closed form of C. Hamilton, "Compact Hilbert Indices". The curve is the one that
//! Delta Spark's `HilbertLongIndex` walks.

/// Keys at most whose bits find room in a number; any further ones are left out of it.
const MAX_KEYS: usize = 63;

/// Bits of each coordinate, for this many keys: as many as fit, 12 at most, 1 at least.
pub fn bits_per_key(keys: usize) -> u32 {
    let keys = u32::try_from(keys).unwrap_or(u32::MAX).max(1);
    (63 / keys).clamp(1, 12)
}

/// The place of a point on the Z-order curve: the coordinates' bits take turns from the most significant one down, those
/// of the first key first.
pub fn zorder(point: &[u32], bits: u32) -> u64 {
    (0..bits).rev().fold(0, |place, bit| place << dimensions(point) | corner(point, bit))
}

/// The place of a point on Hilbert's curve; points whose places differ by one differ by one in one coordinate.
pub fn hilbert(point: &[u32], bits: u32) -> u64 {
    let n = dimensions(point);
    let mut place = 0;
    // How the cell at hand is turned: where the curve enters it, and how far the axes are shifted.
    let (mut entry, mut shift) = (0, 0);
    for bit in (0..bits).rev() {
        let cell = inverse_gray(rotate_left(corner(point, bit) ^ entry, shift, n));
        place = place << n | cell;
        entry ^= rotate_right(cell_entry(cell), shift, n);
        shift = (shift + n - 1 - cell_axis(cell, n)) % n.max(1);
    }
    place
}

fn dimensions(point: &[u32]) -> u32 {
    point.len().min(MAX_KEYS) as u32
}

/// One bit of every coordinate, that of the first key most significant.
fn corner(point: &[u32], bit: u32) -> u64 {
    point.iter().take(MAX_KEYS).fold(0, |corner, coordinate| corner << 1 | u64::from(coordinate >> bit & 1))
}

fn gray(number: u64) -> u64 {
    number ^ number >> 1
}

fn inverse_gray(code: u64) -> u64 {
    [1, 2, 4, 8, 16, 32].iter().fold(code, |number, step| number ^ number >> step)
}

/// The corner of the cell of that number at which the curve enters it.
fn cell_entry(cell: u64) -> u64 {
    if cell == 0 { 0 } else { gray((cell - 1) & !1) }
}

/// The axis, as the number of its bit, along which the curve crosses the cell.
fn cell_axis(cell: u64, n: u32) -> u32 {
    match cell {
        0 => 0,
        odd if odd & 1 == 1 => odd.trailing_ones() % n,
        even => (even - 1).trailing_ones() % n,
    }
}

fn rotate_left(value: u64, by: u32, n: u32) -> u64 {
    (value << by | value >> (n - by)) & ((1 << n) - 1)
}

fn rotate_right(value: u64, by: u32, n: u32) -> u64 {
    (value >> by | value << (n - by)) & ((1 << n) - 1)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn points(keys: usize, bits: u32) -> Vec<Vec<u32>> {
        (0..1u64 << (keys as u32 * bits))
            .map(|number| (0..keys as u32).map(|k| (number >> (k * bits)) as u32 & ((1 << bits) - 1)).collect())
            .collect()
    }

    const SMALL: [(usize, u32); 11] =
        [(1, 5), (2, 1), (2, 2), (2, 5), (3, 1), (3, 3), (4, 2), (4, 3), (5, 2), (6, 2), (9, 1)];

    #[test]
    fn both_curves_pass_every_point_once() {
        for (keys, bits) in SMALL {
            for curve in [zorder, hilbert] {
                let mut places: Vec<u64> = points(keys, bits).iter().map(|p| curve(p, bits)).collect();
                places.sort_unstable();
                assert!(places.iter().enumerate().all(|(i, place)| i as u64 == *place), "{keys} keys of {bits} bits");
            }
        }
    }

    #[test]
    fn neighbours_on_hilberts_curve_differ_by_one_in_one_coordinate() {
        for (keys, bits) in SMALL {
            let by_place: BTreeMap<u64, Vec<u32>> =
                points(keys, bits).into_iter().map(|p| (hilbert(&p, bits), p)).collect();
            for (a, b) in by_place.values().zip(by_place.values().skip(1)) {
                let apart: u32 = a.iter().zip(b).map(|(a, b)| a.abs_diff(*b)).sum();
                assert_eq!(apart, 1, "{a:?} and {b:?}");
            }
        }
    }

    #[test]
    fn bits_of_z_order_take_turns_and_the_first_key_leads() {
        assert_eq!(zorder(&[0b11, 0b00], 2), 0b1010);
        assert_eq!(zorder(&[0b00, 0b11], 2), 0b0101);
        assert_eq!(zorder(&[0b10, 0b01, 0b11], 2), 0b101_011);
    }

    #[test]
    fn one_key_is_its_own_curve_and_bits_fit_however_many_keys_there_are() {
        assert_eq!([zorder(&[2741], 12), hilbert(&[2741], 12)], [2741; 2]);
        assert_eq!([1, 2, 5, 6, 9, 31, 32, 63, 64, 500].map(bits_per_key), [12, 12, 12, 10, 7, 2, 1, 1, 1, 1]);
        let many = [1u32; 70];
        assert_eq!(zorder(&many, bits_per_key(many.len())), u64::MAX >> 1);
        assert!(hilbert(&many, bits_per_key(many.len())) <= u64::MAX >> 1);
    }

    /// Entry and exit of every cell by the reflection that defines them.
    fn reflected_cells(n: u32) -> Vec<u64> {
        if n == 1 {
            return vec![0, 1, 0, 1];
        }
        let mask = 1 << (n - 1);
        let mut half = reflected_cells(n - 1);
        let last = half.len() - 1;
        half[last] = half[last - 1] + mask;
        half.iter().copied().chain(half.iter().rev().map(|corner| corner ^ mask)).collect()
    }

    #[test]
    fn cells_are_entered_and_left_as_the_reflection_says() {
        for n in 1..=9 {
            for (cell, corners) in reflected_cells(n).chunks(2).enumerate() {
                let cell = cell as u64;
                assert_eq!([cell_entry(cell), cell_entry(cell) ^ 1 << cell_axis(cell, n)], corners, "{n}: {cell}");
            }
        }
    }

    proptest! {
        #[test]
        fn places_leave_no_bit_unused_at_full_width(keys in 1usize..10, seed in any::<u64>()) {
            let bits = bits_per_key(keys);
            let point: Vec<u32> = (0..keys as u32)
                .map(|k| (seed.rotate_left(k * 7).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u32 & ((1 << bits) - 1))
                .collect();
            for curve in [zorder, hilbert] {
                let place = curve(&point, bits);
                prop_assert!(place < 1 << (bits * keys as u32));
                // The leading group of bits is that of the coordinates' leading bits.
                let halved: Vec<u32> = point.iter().map(|c| c >> 1).collect();
                prop_assert_eq!(curve(&halved, bits - 1), place >> keys);
            }
        }
    }
}
