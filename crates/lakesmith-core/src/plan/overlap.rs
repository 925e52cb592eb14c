//! Which files to rewrite together so that fewer of them overlap, within a budget of bytes.
//!
//! Files are boxes over the keys. Their mass, the share of the table's rows that lies in them, is counted on points that
//! stand for the rows; the sum of all masses is the number of files to open for a random row. Rewriting files that cover the
//! same rows replaces their masses by one. Sets are worth `reduction³ / bytes`: the power makes runs wait until several of
//! like size have come together, as the tiers of a log-structured merge tree do, and each region of keys for itself, so that a
//! day's work stays constant however large the table is.

/// A file as a box.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Extent {
    /// Smallest and largest value of each key, as finite numbers in the values' order.
    pub span: Vec<(f64, f64)>,
    pub bytes: u64,
    pub rows: u64,
    /// Number of the run that laid it out; `None` if none did. Overlap within one run is the curve's own.
    pub run: Option<u32>,
}

/// Files to rewrite together.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Set {
    /// Places among the boxes, ascending.
    pub members: Vec<usize>,
    pub bytes: u64,
    /// Share of the table's rows that lies in any of them.
    pub mass: f64,
}

const POINTS: usize = 1024;
const WORDS: usize = POINTS / 64;
const SEEDS: usize = 32;

type Cover = [u64; WORDS];

/// Disjoint sets whose bytes sum up to at most `budget`, the best first.
pub(super) fn choose(boxes: &[Extent], budget: u64) -> Vec<Set> {
    let field = Field::new(boxes);
    let mut free: Vec<bool> = boxes.iter().map(|b| b.rows > 0).collect();
    let (mut left, mut chosen) = (budget, Vec::new());
    loop {
        let mut found: Vec<(f64, Set)> =
            field.seeds(&free).into_iter().filter_map(|point| field.best_at(point, &free, left)).collect();
        // Equal scores fall back on the members, so that the choice depends on the files alone.
        found.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.members.cmp(&b.1.members)));
        let before = chosen.len();
        for (_, set) in found {
            if set.bytes <= left && set.members.iter().all(|i| free[*i]) {
                left -= set.bytes;
                set.members.iter().for_each(|i| free[*i] = false);
                chosen.push(set);
            }
        }
        if chosen.len() == before {
            return chosen;
        }
    }
}

/// The boxes over their points.
struct Field<'a> {
    boxes: &'a [Extent],
    covers: Vec<Cover>,
    /// Share of the rows in each box.
    mass: Vec<f64>,
    /// Bytes for each unit of mass: what a rewrite costs where it takes the box along.
    density: Vec<f64>,
    /// The boxes, those of the least density first.
    by_density: Vec<usize>,
    /// Overlap of a run with itself: none on a line, some on a curve.
    floor: f64,
}

impl<'a> Field<'a> {
    fn new(boxes: &'a [Extent]) -> Self {
        let points = points(boxes);
        let total: u64 = boxes.iter().map(|b| b.rows).sum();
        let covers: Vec<Cover> = boxes.iter().map(|b| cover(b, &points)).collect();
        let mass: Vec<f64> = covers
            .iter()
            .zip(boxes)
            // A box between the points has its own rows at least.
            .map(|(cover, b)| share(cover).max(b.rows as f64 / total.max(1) as f64))
            .collect();
        let density: Vec<f64> =
            boxes.iter().zip(&mass).map(|(b, mass)| b.bytes as f64 / mass.max(f64::MIN_POSITIVE)).collect();
        let mut by_density: Vec<usize> = (0..boxes.len()).collect();
        by_density.sort_by(|a, b| density[*a].total_cmp(&density[*b]).then(a.cmp(b)));
        let keys = boxes.first().map_or(1, |b| b.span.len());
        Self { boxes, covers, mass, density, by_density, floor: if keys == 1 { 1.0 } else { 1.2 } }
    }

    /// Points to look at, the deepest first among neighbours.
    fn seeds(&self, free: &[bool]) -> Vec<usize> {
        let mut depth = [0u32; POINTS];
        for (cover, _) in self.covers.iter().zip(free).filter(|(_, free)| **free) {
            (0..POINTS).filter(|p| has(cover, *p)).for_each(|p| depth[p] += 1);
        }
        let mut deepest: Vec<usize> = (0..POINTS).filter(|p| depth[*p] > 1).collect();
        deepest.sort_by_key(|p| (std::cmp::Reverse(depth[*p]), *p));
        let step = deepest.len().div_ceil(SEEDS).max(1);
        deepest.into_iter().step_by(step).collect()
    }

    /// The best set around a point.
    fn best_at(&self, point: usize, free: &[bool], left: u64) -> Option<(f64, Set)> {
        let at: Vec<usize> =
            self.by_density.iter().copied().filter(|i| free[*i] && has(&self.covers[*i], point)).collect();
        let mut is_core = vec![false; self.boxes.len()];
        let mut best: Option<(f64, Set)> = None;
        let mut core = Growing::default();
        for (taken, i) in at.iter().enumerate() {
            if core.bytes + self.boxes[*i].bytes > left {
                break;
            }
            core.take(self, *i);
            is_core[*i] = true;
            // Files of like cost belong together: looking at each prefix alone would only repeat the closure.
            let next_is_alike = at.get(taken + 1).is_some_and(|next| {
                core.bytes + self.boxes[*next].bytes <= left && self.density[*next] <= 1.05 * self.density[*i]
            });
            if taken == 0 || next_is_alike {
                continue;
            }
            let mut set = core.clone();
            self.close(&mut set, 1.2 * self.density[*i], |i| free[i] && !is_core[i], left);
            if let Some(score) = self.score(&set)
                && best.as_ref().is_none_or(|(found, _)| score > *found)
            {
                best = Some((score, set.finish()));
            }
        }
        best
    }

    /// Takes along what lies mostly within the set and costs no more than what is in it.
    fn close(&self, set: &mut Growing, density: f64, is_open: impl Fn(usize) -> bool, left: u64) {
        let core = set.cover;
        let is_inside = |i: usize| {
            let shared = core.iter().zip(&self.covers[i]).map(|(a, b)| (a & b).count_ones()).sum::<u32>();
            f64::from(shared) / POINTS as f64 >= 0.5 * self.mass[i]
        };
        for i in self.by_density.iter().copied().take_while(|i| self.density[*i] <= density) {
            if set.bytes + self.boxes[i].bytes <= left && is_open(i) && is_inside(i) {
                set.take(self, i);
            }
        }
    }

    fn score(&self, set: &Growing) -> Option<f64> {
        let mut runs = set.members.iter().map(|i| self.boxes[*i].run);
        let first = runs.next()?;
        if first.is_some() && runs.all(|run| run == first) {
            return None;
        }
        let union = share(&set.cover).max(set.largest);
        let reduction = set.mass / union - self.floor;
        // Less than one file fewer is not worth a rewrite: neighbours in time share their edges for ever.
        (reduction >= 1.0).then(|| reduction.powi(3) * union / set.bytes.max(1) as f64)
    }
}

/// A set while it grows.
#[derive(Clone)]
struct Growing {
    members: Vec<usize>,
    bytes: u64,
    cover: Cover,
    mass: f64,
    largest: f64,
}

impl Default for Growing {
    fn default() -> Self {
        Self { members: Vec::new(), bytes: 0, cover: [0; WORDS], mass: 0.0, largest: 0.0 }
    }
}

impl Growing {
    fn take(&mut self, field: &Field<'_>, i: usize) {
        self.members.push(i);
        self.bytes += field.boxes[i].bytes;
        self.cover.iter_mut().zip(&field.covers[i]).for_each(|(all, one)| *all |= one);
        self.mass += field.mass[i];
        self.largest = self.largest.max(field.mass[i]);
    }

    fn finish(mut self) -> Set {
        self.members.sort_unstable();
        Set { members: self.members, bytes: self.bytes, mass: share(&self.cover).max(self.largest) }
    }
}

fn share(cover: &Cover) -> f64 {
    f64::from(cover.iter().map(|word| word.count_ones()).sum::<u32>()) / POINTS as f64
}

fn has(cover: &Cover, point: usize) -> bool {
    cover[point / 64] >> (point % 64) & 1 == 1
}

fn cover(b: &Extent, points: &[Vec<f64>]) -> Cover {
    let mut cover = [0; WORDS];
    for (p, point) in points.iter().enumerate() {
        if b.span.iter().zip(point).all(|((first, last), at)| first <= at && at <= last) {
            cover[p / 64] |= 1 << (p % 64);
        }
    }
    cover
}

/// Points that stand for equally many rows each: every box has its share of them, spread evenly over it.
fn points(boxes: &[Extent]) -> Vec<Vec<f64>> {
    let total: u128 = boxes.iter().map(|b| u128::from(b.rows)).sum();
    let (mut points, mut rows) = (Vec::with_capacity(POINTS), 0u128);
    for b in boxes {
        rows += u128::from(b.rows);
        while points.len() < POINTS && (2 * points.len() as u128 + 1) * total < 2 * POINTS as u128 * rows {
            let number = points.len() as u64 + 1;
            let at = |(key, (first, last)): (usize, &(f64, f64))| {
                (first + fraction(number, key) * (last - first)).min(*last)
            };
            points.push(b.span.iter().enumerate().map(at).collect());
        }
    }
    points
}

/// A number from 0 to 1; those of consecutive `number`s are spread evenly, also over several keys at once.
fn fraction(number: u64, key: usize) -> f64 {
    // Fractions of powers of the generalized golden ratio, in 64 bits (M. Roberts' R sequence for two keys).
    const STEPS: [u64; 4] =
        [0xc13f_a9a9_02a6_328f, 0x91e1_0da5_c79e_7b1d, 0x9e37_79b9_7f4a_7c15, 0xd1b5_4a32_d192_ed03];
    let step = STEPS[key % STEPS.len()].rotate_left((key / STEPS.len()) as u32 * 2) | 1;
    number.wrapping_mul(step) as f64 / 2f64.powi(64)
}
