//! Puts of a version by put-if-absent, until it is known who holds it.
//!
//! # Source
//! Delta PROTOCOL.md, "Delta Log Entries".

use std::time::Duration;

use bytes::Bytes;
use lakesmith_core::{Error, ErrorKind, Result};
use lakesmith_storage::store::PutOutcome;
use lakesmith_storage::{Location, Store};
use tokio::time::Instant;

use crate::commit::CommitContext;
use crate::log_files::LOG_FOLDER;
use crate::version_file::VersionFile;
use crate::winners::Winner;

/// The first wait after a lost race; it doubles up to the last.
const BACKOFF_FIRST: Duration = Duration::from_millis(20);
const BACKOFF_LAST: Duration = Duration::from_secs(5);
/// Times that an empty commit is looked at again, over a few seconds, before it is an error.
const EMPTY_READS_MAX: u32 = 8;
/// How long a stop request may go unnoticed.
const CANCEL_TICK: Duration = Duration::from_millis(100);
/// Failed puts of one version that is known to be free. The storage repeats a request by itself, so a put that still
/// fails while reads work will not get better: no permission, or a full disk.
const PUT_FAILURES_MAX: u32 = 5;

/// Who holds a version after a put.
pub(crate) enum Holder {
    Us,
    Another,
}

/// The puts of one commit, whichever version it ends as.
pub(crate) struct Puts<'a> {
    store: &'a Store,
    root: &'a Location,
    context: &'a CommitContext<'a>,
    transaction_id: &'a str,
    /// The version that is built on.
    base: Option<&'a VersionFile>,
    /// Versions that a put was sent for.
    pub(crate) tried: Vec<u64>,
    /// A version that a put was sent for and that is not known to hold another's commit.
    pub(crate) unresolved: Option<u64>,
    deadline: Instant,
}

impl<'a> Puts<'a> {
    pub(crate) fn new(
        store: &'a Store,
        root: &'a Location,
        context: &'a CommitContext<'a>,
        transaction_id: &'a str,
        base: Option<&'a VersionFile>,
    ) -> Self {
        let deadline = Instant::now() + Duration::from_millis(context.timeout_ms);
        Self { store, root, context, transaction_id, base, tried: Vec::new(), unresolved: None, deadline }
    }

    /// Puts a version until it is known who holds it. The same bytes each time: whichever copy lands is the commit.
    ///
    /// # Errors
    /// `Conflict` if the log no longer holds the version that is built on; those of the storage.
    pub(crate) async fn put(&mut self, version: u64, commit: &[u8]) -> Result<Holder> {
        let location = self.location(version);
        let bytes = Bytes::copy_from_slice(commit);
        let mut failures = 0;
        loop {
            self.context.cancel.check()?;
            if let Some(base) = self.base {
                self.patiently(async || base.check(self.store, self.root).await).await?;
            }
            if self.tried.last() != Some(&version) {
                self.tried.push(version);
            }
            self.unresolved = Some(version);
            let failure = match self.store.put_if_absent(&location, bytes.clone()).await {
                Ok(PutOutcome::Created) => return Ok(Holder::Us),
                Ok(PutOutcome::AlreadyExists) => None,
                Err(error) => Some(error),
            };
            // The storage repeats requests by itself, so "exists" may mean that our own first request landed.
            if let Some(held) = self.read(version).await? {
                if Winner::parse(&held, version, &location)?.is_ours(self.transaction_id) {
                    return Ok(Holder::Us);
                }
                self.unresolved = None;
                return Ok(Holder::Another);
            }
            failures += 1;
            let give_up = failures >= PUT_FAILURES_MAX;
            match failure {
                Some(error) if give_up || error.kind() != ErrorKind::Unavailable => return Err(error),
                None if give_up => return Err(contradiction(version).with("path", &location)),
                failure => self.wait(failures, || failure.unwrap_or_else(|| contradiction(version))).await?,
            }
        }
    }

    /// A commit's bytes; `None` if it does not exist. Retries while the storage does not answer, and while the commit is
    /// empty: a writer without atomic puts may be about to fill it.
    pub(crate) async fn read(&self, version: u64) -> Result<Option<Bytes>> {
        let location = self.location(version);
        let empty = || {
            Error::corrupt(
                "another writer's commit is empty, so what it did to the table is not known; nothing was committed; run \
                 again when it is filled, or restore it from a copy",
            )
            .with("path", &location)
            .with("version", version)
        };
        let mut empty_reads = 0;
        loop {
            match self.patiently(async || self.store.get(&location).await).await {
                Ok(bytes) if !bytes.trim_ascii().is_empty() => return Ok(Some(bytes)),
                Ok(_) if empty_reads >= EMPTY_READS_MAX => return Err(empty()),
                Ok(_) => {
                    empty_reads += 1;
                    self.wait(empty_reads, empty).await?;
                }
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(error.with("version", version)),
            }
        }
    }

    /// The newest version that others are known to hold, if it is `from` or a later one.
    pub(crate) async fn newest(&self, from: u64) -> Result<Option<u64>> {
        let log = self.root.join(LOG_FOLDER);
        let after = commit_name(from - 1);
        let listed = self.patiently(async || self.store.list_from(&log, &after).await).await?;
        let known = if self.tried.last() == Some(&from) { Some(from) } else { None };
        let versions = listed.iter().filter_map(|info| version_of(info.location.file_name()));
        Ok(versions.chain(known).filter(|v| *v >= from).max())
    }

    /// The commit of a version that others hold.
    pub(crate) async fn winner(&self, version: u64) -> Result<Winner> {
        let Some(bytes) = self.read(version).await? else {
            return Err(Error::new(
                ErrorKind::Conflict,
                "the log no longer holds every commit since the table was loaded, so conflicts can't be ruled out; \
                 run again",
            )
            .with("version", version));
        };
        Winner::parse(&bytes, version, &self.location(version))
    }

    pub(crate) async fn patiently<T>(&self, request: impl AsyncFn() -> Result<T>) -> Result<T> {
        let mut failures = 0;
        loop {
            match request().await {
                Err(error) if error.kind() == ErrorKind::Unavailable => {
                    failures += 1;
                    self.wait(failures, || error).await?;
                }
                other => return other,
            }
        }
    }

    /// Waits before the next try; `timed_out` is the error once the time for retries is over.
    pub(crate) async fn wait(&self, tries: u32, timed_out: impl FnOnce() -> Error) -> Result<()> {
        let exponential = BACKOFF_FIRST.saturating_mul(1 << tries.min(12).saturating_sub(1)).min(BACKOFF_LAST);
        // Writers that lost the same race must not meet again: between half and all of the wait.
        let jitter = self.context.world.new_uuid().as_bytes()[15];
        let mut left = exponential.mul_f64(0.5 + f64::from(jitter) / 512.0);
        if Instant::now() + left >= self.deadline {
            return Err(timed_out());
        }
        while !left.is_zero() {
            self.context.cancel.check()?;
            let tick = left.min(CANCEL_TICK);
            tokio::time::sleep(tick).await;
            left -= tick;
        }
        self.context.cancel.check()
    }

    pub(crate) fn location(&self, version: u64) -> Location {
        self.root.join(&format!("{LOG_FOLDER}/{}", commit_name(version)))
    }
}

fn contradiction(version: u64) -> Error {
    Error::unavailable("the storage says that a commit exists, but does not return it").with("version", version)
}

pub(crate) fn commit_name(version: u64) -> String {
    format!("{version:020}.json")
}

/// The version that a file of the log stands for: a commit, or a checkpoint, which proves that the version exists.
fn version_of(name: &str) -> Option<u64> {
    let (digits, rest) = name.split_at_checked(20)?;
    let counts = rest == ".json" || rest.starts_with(".checkpoint.");
    (counts && digits.bytes().all(|b| b.is_ascii_digit())).then(|| digits.parse().ok()).flatten()
}
