use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use lakesmith_core::ErrorKind;
use object_store::client::{HttpError, HttpErrorKind};
use object_store::list::{PaginatedListOptions, PaginatedListResult, PaginatedListStore};
use object_store::memory::InMemory;
use object_store::{ListResult, ObjectStore};
use proptest::prelude::*;

use super::*;
use crate::metered::Counters;
use crate::pages::Pages;

/// How a storage answers a request for a page.
#[derive(Clone, Copy, PartialEq)]
enum Answers {
    Well,
    /// A page that ends inside a folder names the folder again on the next one.
    FoldersTwice,
    /// Every other answer breaks off.
    BreaksOff,
    /// The next page is this one.
    NamesItself,
}

struct Paged {
    inner: Arc<InMemory>,
    entries: usize,
    answers: Answers,
    asked: AtomicUsize,
}

#[async_trait::async_trait]
impl PaginatedListStore for Paged {
    async fn list_paginated(
        &self,
        prefix: Option<&str>,
        options: PaginatedListOptions,
    ) -> object_store::Result<PaginatedListResult> {
        let asked = self.asked.fetch_add(1, Ordering::Relaxed);
        assert_eq!(options.delimiter.as_deref(), Some("/"));
        if self.answers == Answers::BreaksOff && asked.is_multiple_of(2) {
            let source = HttpError::new(HttpErrorKind::Decode, std::io::Error::other("connection reset"));
            return Err(object_store::Error::Generic { store: "test", source: Box::new(source) });
        }
        let folder = prefix.map(|prefix| Path::parse(prefix.strip_suffix('/').unwrap()).unwrap());
        let whole = self.inner.list_with_delimiter(folder.as_ref()).await?;
        let folders = whole.common_prefixes.into_iter().map(|path| (path, None));
        let all: BTreeMap<Path, _> =
            folders.chain(whole.objects.into_iter().map(|meta| (meta.location.clone(), Some(meta)))).collect();
        let from: usize = options.page_token.as_deref().map_or(0, |token| token.parse().unwrap());
        let mut result = ListResult { common_prefixes: Vec::new(), objects: Vec::new() };
        let end = from + self.entries;
        let first = if self.answers == Answers::FoldersTwice { from.saturating_sub(1) } else { from };
        for (index, (path, meta)) in all.iter().enumerate().take(end).skip(first) {
            match meta {
                Some(meta) if index >= from => result.objects.push(meta.clone()),
                Some(_) => {}
                None => result.common_prefixes.push(path.clone()),
            }
        }
        let next = if self.answers == Answers::NamesItself { from + usize::from(from == 0) } else { end };
        Ok(PaginatedListResult { result, page_token: (end < all.len()).then(|| next.to_string()) })
    }
}

async fn paged(names: &[String], entries: usize, answers: Answers) -> (Store, Arc<Paged>) {
    let inner = Arc::new(InMemory::new());
    let root = Location::parse("memory://paged/t").unwrap();
    let store = Store::from_object_store(Arc::clone(&inner) as Arc<dyn ObjectStore>, &root);
    for name in names {
        store.put(&root.join(name), Bytes::from_static(b"x")).await.unwrap();
    }
    let pages = Arc::new(Paged { inner, entries, answers, asked: AtomicUsize::new(0) });
    (store.with_pages(Arc::clone(&pages) as Arc<dyn PaginatedListStore>), pages)
}

fn flat(count: usize) -> Vec<String> {
    (0..count).map(|i| format!("part-{i:05}.parquet")).collect()
}

/// A folder's or a file's name, one of which is closed.
fn tree() -> impl Strategy<Value = Vec<String>> {
    let folder = prop::sample::select(vec!["a", "a b", "k=1", "k=1%2F", "_shut", "z"]);
    let path = (prop::collection::vec(folder, 0..5), 0..40_u8);
    let path = path.prop_map(|(folders, file)| [folders, vec![]].concat().join("/") + &format!("/f{file}"));
    prop::collection::btree_set(path, 0..60)
        .prop_map(|paths| paths.into_iter().map(|path| path.trim_start_matches('/').to_owned()).collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn every_object_is_listed_once_or_lies_in_a_closed_folder(
        names in tree(),
        entries in 1..7_usize,
        requests_max in 1..20_usize,
        twice in any::<bool>(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let answers = if twice { Answers::FoldersTwice } else { Answers::Well };
        let listed = runtime.block_on(async {
            let (store, _) = paged(&names, entries, answers).await;
            let root = store.root().clone();
            let all: Vec<ObjectInfo> = store.list_parallel(&root, requests_max).try_collect().await.unwrap();
            let parts = store.list_parts(&root, requests_max, |name| name != "_shut");
            let parts: Vec<Part> = parts.try_collect().await.unwrap();
            let name = |info: &ObjectInfo| info.location.relative_to(&root).unwrap().to_owned();
            let closed = parts.iter().flat_map(|part| &part.closed).map(|path| store.root().with_key(path.as_ref()));
            let closed: Vec<String> = closed.map(|l| l.relative_to(&root).unwrap().to_owned()).collect();
            let open: Vec<String> = parts.iter().flat_map(|part| &part.objects).map(name).collect();
            (all.iter().map(name).collect::<Vec<_>>(), open, closed)
        });
        let (mut all, mut open, closed) = listed;
        all.sort();
        let mut names = names;
        names.sort();
        prop_assert_eq!(&all, &names);
        prop_assert!(closed.iter().all(|folder| folder.ends_with("_shut")));
        let behind = |name: &String| closed.iter().any(|folder| name.starts_with(&format!("{folder}/")));
        names.retain(|name| !behind(name));
        open.sort();
        prop_assert_eq!(open, names);
    }
}

#[tokio::test]
async fn pages_of_a_flat_folder_are_handed_on_one_by_one_and_counted() {
    let (store, pages) = paged(&flat(25), 10, Answers::Well).await;
    let mut parts = store.list_parts(store.root(), 16, |_| true);
    for page in 1..=3_usize {
        let part = parts.try_next().await.unwrap().unwrap();
        assert_eq!(part.objects.len(), if page < 3 { 10 } else { 5 });
        assert_eq!((pages.asked.load(Ordering::Relaxed), store.requests().list), (page, page as u64));
    }
    assert!(parts.try_next().await.unwrap().is_none());
    assert_eq!(store.requests().list, 3);
}

#[tokio::test]
async fn a_page_whose_answer_broke_off_is_asked_for_again() {
    let (store, pages) = paged(&flat(25), 10, Answers::BreaksOff).await;
    let folder = store.path(store.root()).unwrap();
    for (patience, listed) in [(Duration::from_secs(60), Some(25)), (Duration::ZERO, None)] {
        let asking = Pages::new(Arc::clone(&pages) as Arc<dyn PaginatedListStore>, patience);
        let level: Result<Vec<ListResult>, _> =
            asking.level(&folder, Arc::new(Counters::default())).try_collect().await;
        assert_eq!(level.ok().map(|level| level.iter().map(|page| page.objects.len()).sum()), listed);
    }
    let error = store.list_parallel(store.root(), 16).try_collect::<Vec<_>>().await.unwrap_err();
    assert_eq!((error.kind(), error.context_value("path")), (ErrorKind::Unavailable, Some("memory://paged/t")));
}

#[tokio::test]
async fn a_listing_that_does_not_go_on_is_an_error() {
    let (store, pages) = paged(&flat(25), 10, Answers::NamesItself).await;
    let error = store.list_parallel(store.root(), 16).try_collect::<Vec<_>>().await.unwrap_err();
    assert!(error.to_string().contains("does not go on"), "{error}");
    assert_eq!(pages.asked.load(Ordering::Relaxed), 2);
}
