//! Two committers over every interleaving of their requests.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use futures::StreamExt as _;
use futures::stream::BoxStream;
use lakesmith_delta::{CommitResult, DeltaTable};
use lakesmith_storage::{Cancel, FixedWorld, Store};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMultipartOptions,
    PutOptions, PutPayload, PutResult, Result,
};
use tokio::sync::Notify;

use crate::commit_bench::{Bench, commit, edit};

/// Requests of the two that are put in order; later ones come as they like.
const SCHEDULED: u32 = 13;

/// Whose request comes next.
#[derive(Debug, Default)]
struct Turns {
    order: Mutex<VecDeque<usize>>,
    done: Mutex<[bool; 2]>,
    changed: Notify,
}

impl Turns {
    async fn take(&self, who: usize) {
        loop {
            let changed = self.changed.notified();
            {
                let mut order = self.order.lock().unwrap();
                let done = self.done.lock().unwrap();
                while order.front().is_some_and(|next| done[*next]) {
                    order.pop_front();
                }
                match order.front() {
                    Some(next) if *next != who => {}
                    _ => {
                        order.pop_front();
                        drop(done);
                        self.changed.notify_waiters();
                        return;
                    }
                }
            }
            changed.await;
        }
    }

    fn finish(&self, who: usize) {
        self.done.lock().unwrap()[who] = true;
        self.changed.notify_waiters();
    }
}

/// A store that waits for its turn before every request.
#[derive(Debug)]
struct TurnStore {
    inner: Arc<dyn ObjectStore>,
    turns: Arc<Turns>,
    who: usize,
}

impl fmt::Display for TurnStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TurnStore({})", self.inner)
    }
}

impl TurnStore {
    fn listed(&self, listing: BoxStream<'static, Result<ObjectMeta>>) -> BoxStream<'static, Result<ObjectMeta>> {
        let (turns, who) = (Arc::clone(&self.turns), self.who);
        futures::stream::once(async move { turns.take(who).await })
            .flat_map(move |()| futures::stream::empty())
            .chain(listing)
            .boxed()
    }
}

#[async_trait]
impl ObjectStore for TurnStore {
    async fn put_opts(&self, at: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        self.turns.take(self.who).await;
        self.inner.put_opts(at, payload, options).await
    }

    async fn put_multipart_opts(&self, at: &Path, options: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(at, options).await
    }

    async fn get_opts(&self, at: &Path, options: GetOptions) -> Result<GetResult> {
        self.turns.take(self.who).await;
        self.inner.get_opts(at, options).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.listed(self.inner.list(prefix))
    }

    fn list_with_offset(&self, prefix: Option<&Path>, offset: &Path) -> BoxStream<'static, Result<ObjectMeta>> {
        // The inner store lists when it is asked, so it must not be asked before its turn.
        let (inner, turns, who) = (Arc::clone(&self.inner), Arc::clone(&self.turns), self.who);
        let (prefix, offset) = (prefix.cloned(), offset.clone());
        futures::stream::once(async move {
            turns.take(who).await;
            inner.list_with_offset(prefix.as_ref(), &offset)
        })
        .flatten()
        .boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

async fn race(bench: &Bench, base: &DeltaTable, order: VecDeque<usize>) -> [CommitResult; 2] {
    let turns = Arc::new(Turns { order: Mutex::new(order), ..Turns::default() });
    let store = |who| {
        let gated = TurnStore { inner: Arc::clone(&bench.objects), turns: Arc::clone(&turns), who };
        Store::from_object_store(Arc::new(gated), &bench.root)
    };
    let edits = [
        edit(base, &[(&["a", "b"], "x1"), (&["c", "d"], "x2")]),
        edit(base, &[(&["d", "c"], "y1"), (&["e", "f"], "y2")]),
    ];
    let (worlds, cancel) = ([FixedWorld::new(1), FixedWorld::new(1 << 40)], Cancel::default());
    worlds[1].skip_ids();
    let one = |who: usize| {
        let (store, turns, edit, world, cancel) = (store(who), &turns, &edits[who], &worlds[who], &cancel);
        async move {
            let result = commit(&store, &bench.root, base, edit, None, world, cancel).await;
            turns.finish(who);
            result
        }
    };
    let (first, second) = tokio::join!(one(0), one(1));
    [first, second]
}

/// Identifiers of a second world that never meet those of the first.
trait SkipIds {
    fn skip_ids(&self);
}

impl SkipIds for FixedWorld {
    fn skip_ids(&self) {
        for _ in 0..1000 {
            let _ = lakesmith_storage::World::new_uuid(self);
        }
    }
}

/// Groups dropped, and versions that were put in vain.
async fn race_in_order(base: &DeltaTable, objects: InMemory, bits: u32) -> (usize, usize) {
    let order: VecDeque<usize> = (0..SCHEDULED).map(|i| (bits >> i & 1) as usize).collect();
    let bench = Bench::over(objects);
    let (mut versions, mut dropped, mut lost) = (Vec::new(), 0, 0);
    for result in race(&bench, base, order.clone()).await {
        let CommitResult::Committed(committed) = result else { panic!("{order:?}: {result:?}") };
        versions.push(committed.version);
        dropped += committed.groups_dropped.len();
        // A put that may have named a dropped group is known to have failed for good.
        assert!(committed.versions_lost.iter().all(|version| *version == 1 && committed.version == 2), "{order:?}");
        lost += committed.versions_lost.len();
    }
    versions.sort_unstable();
    assert_eq!(versions, [1, 2], "{order:?}");
    let paths = bench.paths().await;
    let expected: [&[&str]; 2] = [&["x1", "x2", "y2"], &["x1", "y1", "y2"]];
    assert!(expected.iter().any(|e| paths == *e), "{order:?}: {paths:?}");
    (dropped, lost)
}

#[tokio::test(flavor = "multi_thread")]
async fn two_rewriters_keep_every_row_in_every_interleaving() {
    let objects = InMemory::new();
    let base = Bench::plain_over(objects.clone()).await.load().await;
    let races = (0..1u32 << SCHEDULED).map(|bits| race_in_order(&base, objects.fork(), bits));
    let ends: Vec<(usize, usize)> = futures::stream::iter(races).buffer_unordered(256).collect().await;
    assert_eq!(ends.len(), 1 << SCHEDULED);
    assert!(ends.iter().all(|(dropped, _)| *dropped == 1), "one of the two loses the shared group each time");
    assert!(ends.iter().any(|(_, lost)| *lost == 1) && ends.iter().any(|(_, lost)| *lost == 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_winner_that_is_still_empty_is_waited_for_and_never_taken_for_nothing() {
    let bench = Bench::plain().await;
    let base = bench.load().await;
    bench.store.put(&bench.commit_location(1), bytes::Bytes::new()).await.unwrap();
    let (store, location) = (bench.store.clone(), bench.commit_location(1));
    let filling = tokio::spawn(async move {
        tokio::time::sleep(std::time::Duration::from_millis(150)).await;
        store.put(&location, bytes::Bytes::from(crate::commit_bench::remove("a").to_string())).await.unwrap();
    });
    let committed = bench.committed(&base, &edit(&base, &[(&["a", "b"], "x"), (&["c", "d"], "y")])).await;
    filling.await.unwrap();
    assert_eq!((committed.version, committed.groups_dropped), (2, vec![0]));

    let bench = Bench::plain().await;
    let base = bench.load().await;
    bench.store.put(&bench.commit_location(1), bytes::Bytes::new()).await.unwrap();
    let CommitResult::Failed { error, tried_versions, .. } =
        bench.commit(&base, &edit(&base, &[(&["a", "b"], "x")])).await
    else {
        panic!()
    };
    assert_eq!((error.kind(), error.context_value("version")), (lakesmith_core::ErrorKind::Corrupt, Some("1")));
    assert!(tried_versions.is_empty() && bench.actions(2).await.is_none());
    let loaded = bench.load().await;
    assert_eq!(lakesmith_delta::check_writable(&loaded).unwrap_err().kind(), lakesmith_core::ErrorKind::Corrupt);
}
