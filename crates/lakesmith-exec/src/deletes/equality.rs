//! Equality deletes: files that delete the rows which have the same values as one of theirs.
//!
//! The keys of all delete files over the same columns are in one set, so that a row is looked up once however many there
//! are. Keys that are too many for the memory are not kept: for each data file they are read again, part by part.
//!
//! # Source
//! Iceberg spec, "Equality Delete Files".

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use arrow::row::Rows;
use lakesmith_core::table::{DeleteFile, DeletionVector, Field, ReadSpec};
use lakesmith_core::{Error, ErrorKind, Result};

use super::budget::Budget;
use super::key_columns::{Holder, KeyColumns, KeyPlan};
use super::key_set::{KeySet, hash};
use super::reads::{Reads, unreadable};
use crate::file_read::OpenFile;

/// Parts of the keys at most.
const PARTS_MAX: u32 = 1 << 20;

/// An equality delete file and the columns that it compares.
pub(super) type Comparing<'a> = (&'a DeleteFile, &'a [Field]);

/// The equality delete files of a scan.
#[derive(Default)]
pub(super) struct EqualityFiles {
    groups: Mutex<Vec<Arc<Group>>>,
    /// Parts are read for one data file at a time.
    turn: Mutex<()>,
}

/// Delete files over the same columns.
struct Group {
    columns: KeyColumns,
    held: RwLock<Held>,
    /// Held while files are read into the set.
    loading: Mutex<()>,
    /// Parts that large files were read in last.
    parts: AtomicU32,
}

#[derive(Default)]
struct Held {
    keys: KeySet,
    /// Numbers of the files by path, and what became of each.
    numbers: HashMap<String, u32>,
    states: Vec<State>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Unread,
    Held,
    TooLarge,
}

/// Keys that the rows of a data file are looked up in.
struct Ask<'a> {
    group: &'a Group,
    plan: KeyPlan,
    keys: Asked,
}

enum Asked {
    /// Those in the group's set that belong to these files.
    Held(Vec<bool>),
    /// A part of the keys: its number, and of how many.
    Part(KeySet, u32, u32),
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn part_of(hash: u64, parts: u32) -> u32 {
    // The low bits place keys in a set.
    (hash >> 32) as u32 % parts
}

impl EqualityFiles {
    /// Positions of a data file's rows that the files delete.
    ///
    /// # Errors
    /// NotFound, Corrupt and Unsupported name the file; Limit if the keys do not fit into the memory in any way.
    pub(super) fn mark(
        &self,
        files: &[Comparing<'_>],
        data: &OpenFile,
        read: &ReadSpec,
        reads: &Reads,
        budget: &Budget,
        into: &mut DeletionVector,
    ) -> Result<()> {
        let mut asks = Vec::new();
        let mut large = Vec::new();
        let grouped = self.grouped(files)?;
        for (group, files) in &grouped {
            let plan = group.columns.plan(data, Holder::Data(read))?;
            let (held, too_large) = group.load(files, reads, budget)?;
            if held.contains(&true) {
                asks.push(Ask { group, plan: plan.clone(), keys: Asked::Held(held) });
            }
            if !too_large.is_empty() {
                large.push((group, plan, too_large));
            }
        }
        scan(reads, data, &asks, into)?;
        for (group, plan, files) in large {
            let _turn = lock(&self.turn);
            group.mark_by_parts(&files, &plan, data, reads, budget, into)?;
        }
        Ok(())
    }

    /// The files by their columns.
    fn grouped<'a>(&self, files: &[Comparing<'a>]) -> Result<Vec<(Arc<Group>, Vec<&'a DeleteFile>)>> {
        let mut groups = lock(&self.groups);
        let mut grouped: Vec<(Arc<Group>, Vec<&'a DeleteFile>)> = Vec::new();
        for (file, fields) in files {
            if let Some((_, files)) = grouped.iter_mut().find(|(group, _)| group.columns.are(fields)) {
                files.push(file);
                continue;
            }
            let group = match groups.iter().find(|group| group.columns.are(fields)) {
                Some(group) => Arc::clone(group),
                None => {
                    let columns = KeyColumns::new(fields).map_err(|e| unreadable(e, file))?;
                    let group = Arc::new(Group {
                        columns,
                        held: RwLock::default(),
                        loading: Mutex::default(),
                        parts: AtomicU32::new(1),
                    });
                    groups.push(Arc::clone(&group));
                    group
                }
            };
            grouped.push((group, vec![file]));
        }
        Ok(grouped)
    }
}

impl Group {
    /// Reads what was not read yet. Which files of the set are asked for, and which are not in it for being too large.
    fn load<'a>(
        &self,
        files: &[&'a DeleteFile],
        reads: &Reads,
        budget: &Budget,
    ) -> Result<(Vec<bool>, Vec<&'a DeleteFile>)> {
        let _loading = lock(&self.loading);
        let mut unread = Vec::new();
        let mut numbers = Vec::with_capacity(files.len());
        let mut held = self.held.write().unwrap_or_else(PoisonError::into_inner);
        for file in files {
            let number = match held.numbers.get(&file.path) {
                Some(number) => *number,
                None => {
                    let number = held.states.len() as u32;
                    held.numbers.insert(file.path.clone(), number);
                    held.states.push(State::Unread);
                    number
                }
            };
            numbers.push(number);
            if held.states[number as usize] == State::Unread {
                unread.push(*file);
            }
        }
        drop(held);
        let mut opened = reads.open_all(&unread);
        while let Some((file, open)) = opened.next()? {
            self.load_file(file, &open, reads, budget)?;
        }
        let held = self.held.read().unwrap_or_else(PoisonError::into_inner);
        let mut asked = vec![false; held.states.len()];
        let mut too_large = Vec::new();
        for (file, number) in files.iter().zip(numbers) {
            match held.states[number as usize] {
                State::Held => asked[number as usize] = true,
                State::Unread | State::TooLarge => too_large.push(*file),
            }
        }
        Ok((asked, too_large))
    }

    fn load_file(&self, file: &DeleteFile, open: &OpenFile, reads: &Reads, budget: &Budget) -> Result<()> {
        let held = self.held.read().unwrap_or_else(PoisonError::into_inner);
        let Some(number) = held.numbers.get(&file.path).copied() else { return Ok(()) };
        if held.states[number as usize] != State::Unread {
            return Ok(());
        }
        let length = held.keys.len();
        drop(held);
        let all = self.each_keys(file, open, reads, &mut |keys| {
            let mut held = self.held.write().unwrap_or_else(PoisonError::into_inner);
            let had = held.keys.allocated();
            let room = had + budget.room();
            let fit = keys.iter().all(|key| held.keys.insert(key.data(), hash(key.data()), Some(number), room));
            budget.change(had, held.keys.allocated());
            Ok(fit)
        });
        let mut held = self.held.write().unwrap_or_else(PoisonError::into_inner);
        if matches!(all, Ok(true)) {
            held.states[number as usize] = State::Held;
            return Ok(());
        }
        let had = held.keys.allocated();
        held.keys.forget(number, length);
        budget.change(had, held.keys.allocated());
        all?;
        tracing::debug!(path = %file.path, "the keys of a delete file are read part by part");
        held.states[number as usize] = State::TooLarge;
        Ok(())
    }

    /// Hands out the keys of a delete file, batch by batch, until `each` says no. True if it never did.
    fn each_keys(
        &self,
        file: &DeleteFile,
        open: &OpenFile,
        reads: &Reads,
        each: &mut dyn FnMut(&Rows) -> Result<bool>,
    ) -> Result<bool> {
        let named = |error| unreadable(error, file);
        let plan = self.columns.plan(open, Holder::Deletes).map_err(named)?;
        let roots = sorted(plan.roots());
        if roots.is_empty() {
            // Columns without a type hold nothing but NULL.
            return if open.footer.rows() == 0 { Ok(true) } else { each(&self.columns.constant_key(&plan)?) };
        }
        reads.each_batch(open, &roots, Some(file), &mut |_, batch, roots| {
            each(&self.columns.keys(&plan, batch, roots).map_err(named)?)
        })
    }

    /// As [`scan`], for keys that do not fit into the memory all at once.
    fn mark_by_parts(
        &self,
        files: &[&DeleteFile],
        plan: &KeyPlan,
        data: &OpenFile,
        reads: &Reads,
        budget: &Budget,
        into: &mut DeletionVector,
    ) -> Result<()> {
        let rows: u64 = files.iter().map(|file| file.rows).sum();
        let parts = self.parts.load(Ordering::Relaxed);
        let mut left: Vec<(u32, u32)> = (0..parts).map(|part| (part, parts)).collect();
        while let Some((part, parts)) = left.pop() {
            let mut keys = KeySet::default();
            if !self.read_part(files, part, parts, reads, budget.room_for_a_while(), &mut keys)? {
                let expected = rows / u64::from(parts) / (keys.len() as u64).max(1) + 1;
                let more = expected.clamp(2, 256).next_power_of_two() as u32;
                let finer = parts.saturating_mul(more);
                if finer > PARTS_MAX {
                    return Err(Error::new(
                        ErrorKind::Limit,
                        "the values of a delete file do not fit into the memory; give the run more of it",
                    )
                    .with("path", files.first().map_or("", |file| &file.path)));
                }
                self.parts.fetch_max(finer, Ordering::Relaxed);
                left.extend((0..more).map(|i| (part + i * parts, finer)));
                continue;
            }
            if keys.len() == 0 {
                continue;
            }
            let bytes = keys.allocated();
            budget.change(0, bytes);
            let ask = Ask { group: self, plan: plan.clone(), keys: Asked::Part(keys, part, parts) };
            let scanned = scan(reads, data, &[ask], into);
            budget.change(bytes, 0);
            scanned?;
        }
        Ok(())
    }

    /// Reads one part of the keys; false if it takes more than `room` bytes.
    fn read_part(
        &self,
        files: &[&DeleteFile],
        part: u32,
        parts: u32,
        reads: &Reads,
        room: usize,
        into: &mut KeySet,
    ) -> Result<bool> {
        let mut opened = reads.open_all(files);
        while let Some((file, open)) = opened.next()? {
            let all = self.each_keys(file, &open, reads, &mut |keys| {
                Ok(keys.iter().all(|key| {
                    let hash = hash(key.data());
                    part_of(hash, parts) != part || into.insert(key.data(), hash, None, room)
                }))
            })?;
            if !all {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl Ask<'_> {
    /// Calls `found` with those of the rows whose keys are asked for.
    fn look_up(&self, keys: &Rows, found: &mut dyn FnMut(u64)) {
        match &self.keys {
            Asked::Held(files) => {
                let held = self.group.held.read().unwrap_or_else(PoisonError::into_inner);
                let is_in = |key: &[u8]| held.keys.is_owned(key, hash(key), files);
                (0..).zip(keys.iter()).filter(|(_, key)| is_in(key.data())).for_each(|(row, _)| found(row));
            }
            Asked::Part(set, part, parts) => {
                let is_in = |key: &[u8]| {
                    let hash = hash(key);
                    part_of(hash, *parts) == *part && set.contains(key, hash)
                };
                (0..).zip(keys.iter()).filter(|(_, key)| is_in(key.data())).for_each(|(row, _)| found(row));
            }
        }
    }
}

/// Reads the columns of a data file that are compared, once, and marks the rows whose keys are asked for.
fn scan(reads: &Reads, data: &OpenFile, asks: &[Ask<'_>], into: &mut DeletionVector) -> Result<()> {
    let rows = data.footer.rows();
    let (constant, read): (Vec<&Ask<'_>>, Vec<&Ask<'_>>) =
        asks.iter().partition(|ask| ask.plan.roots().next().is_none());
    for ask in constant {
        let mut all = false;
        ask.look_up(&ask.group.columns.constant_key(&ask.plan)?, &mut |_| all = true);
        if all {
            into.extend(0..rows);
            return Ok(());
        }
    }
    if read.is_empty() {
        return Ok(());
    }
    let roots = sorted(read.iter().flat_map(|ask| ask.plan.roots()));
    let mut found = Vec::new();
    reads.each_batch(data, &roots, None, &mut |position, batch, roots| {
        for ask in &read {
            let keys = ask.group.columns.keys(&ask.plan, batch, roots)?;
            ask.look_up(&keys, &mut |row| found.push(position + row));
        }
        into.extend(found.drain(..));
        Ok(true)
    })?;
    Ok(())
}

fn sorted(roots: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut roots: Vec<usize> = roots.collect();
    roots.sort_unstable();
    roots.dedup();
    roots
}
