//! What every storage must do for tables to be safe on it. Run against a new kind of storage before it is trusted.

use bytes::Bytes;
use futures::future::join_all;
use futures::{StreamExt as _, TryStreamExt as _};
use lakesmith_core::{Error, ErrorKind, Result};

use crate::location::Location;
use crate::store::{PutOutcome, Store};
use crate::sweep::{SweepPlan, sweep};

/// Names that a table's files and partition folders can have.
pub const SPECIAL_NAMES: [&str; 12] = [
    "with space",
    "percent%20literal",
    "percent%",
    "s=a%2Fb",
    "hash#1",
    "hash#x",
    "plus+amp&quote'",
    "grüße 😀",
    "tilde~(paren)",
    "question?",
    "k=v;x,y@z!$",
    "back`tick|pipe}",
];

/// Writers that race for one name.
const RACERS: usize = 16;
/// Objects of a wide folder.
const FLAT: usize = 1_100;
const PUTS_AT_ONCE: usize = 16;

/// Runs the whole suite below `root`, which should be empty, and removes what it wrote.
///
/// # Errors
/// `Internal`, naming the first rule that the storage breaks.
pub async fn conformance(store: &Store, root: &Location) -> Result<()> {
    reading_and_writing(store, &root.join("rw")).await?;
    racing(store, &root.join("race")).await?;
    special_names(store, &root.join("names")).await?;
    listing(store, &root.join("list")).await?;
    uploading(store, &root.join("upload")).await?;
    deleting(store, root).await
}

fn rule(holds: bool, rule: &str) -> Result<()> {
    if holds { Ok(()) } else { Err(Error::internal(format!("the storage breaks a rule: {rule}"))) }
}

fn is_missing<T>(result: Result<T>) -> bool {
    result.is_err_and(|e| e.kind() == ErrorKind::NotFound && e.context_value("path").is_some())
}

async fn reading_and_writing(store: &Store, at: &Location) -> Result<()> {
    let file = at.join("a/b.bin");
    rule(is_missing(store.get(&file).await), "reading a missing object is NotFound")?;
    rule(is_missing(store.head(&file).await), "looking up a missing object is NotFound")?;
    rule(!store.exists(&file).await?, "a missing object does not exist")?;
    store.put(&file, Bytes::from_static(b"0123456789")).await?;
    rule(store.get(&file).await? == "0123456789", "what was put is read")?;
    rule(store.get_range(&file, 2..5).await? == "234", "a range holds its bytes")?;
    rule(store.get_range(&file, 3..3).await?.is_empty(), "an empty range is empty")?;
    rule(store.get_ranges(&file, &[7..10, 0..1]).await? == ["789", "0"], "ranges come in the order asked for")?;
    let short = store.get_range(&file, 8..12).await;
    rule(short.is_err_and(|e| e.kind() == ErrorKind::Corrupt), "a range beyond the end is an error")?;
    let info = store.head(&file).await?;
    rule(info.size == 10 && info.location == file && info.modified_ms > 0, "the look-up gives size and time")?;
    store.put(&file, Bytes::from_static(b"new")).await?;
    rule(store.get(&file).await? == "new", "a put replaces")?;
    store.put(&file, Bytes::new()).await?;
    rule(store.get(&file).await?.is_empty(), "an object can be empty")
}

async fn racing(store: &Store, at: &Location) -> Result<()> {
    for round in 0..4 {
        let file = at.join(&format!("_delta_log/{round:020}.json"));
        let bodies: Vec<String> = (0..RACERS).map(|i| format!("writer {i} {}", "x".repeat(i * 500))).collect();
        let race = bodies.iter().map(|body| store.put_if_absent(&file, Bytes::from(body.clone())));
        let outcomes: Vec<PutOutcome> = join_all(race).await.into_iter().collect::<Result<_>>()?;
        let winners: Vec<usize> = (0..RACERS).filter(|i| outcomes[*i] == PutOutcome::Created).collect();
        rule(winners.len() == 1, "a race for one name has one winner")?;
        rule(store.get(&file).await? == bodies[winners[0]], "the winner's bytes are there, whole")?;
    }
    Ok(())
}

async fn special_names(store: &Store, at: &Location) -> Result<()> {
    for name in SPECIAL_NAMES {
        let file = at.join(&format!("{name}/{name}"));
        store.put(&file, Bytes::from_static(name.as_bytes())).await?;
        rule(store.get(&file).await? == name, &format!("an object named {name:?} can be read"))?;
        let again = store.put_if_absent(&file, Bytes::new()).await?;
        rule(again == PutOutcome::AlreadyExists, &format!("an object named {name:?} exists"))?;
        let listed = store.list(&at.join(name)).await?;
        let found = listed.len() == 1 && listed[0].location == file && listed[0].size == name.len() as u64;
        rule(found, &format!("an object named {name:?} is listed under its name"))?;
    }
    rule(store.list(at).await?.len() == SPECIAL_NAMES.len(), "every name is listed")
}

async fn listing(store: &Store, at: &Location) -> Result<()> {
    rule(store.list(&at.join("nothing")).await?.is_empty(), "a missing folder is empty")?;
    let mut expected = Vec::new();
    for name in ["a/1", "a/2", "ab/1", "b/c/d/1", "b/c/d/2", "z"] {
        expected.push(at.join(name));
        store.put(&at.join(name), Bytes::from_static(b"x")).await?;
    }
    let listed: Vec<Location> = store.list(at).await?.into_iter().map(|info| info.location).collect();
    rule(listed == expected, "a listing holds every object below the folder")?;
    rule(store.list(&at.join("a")).await?.len() == 2, "a listing does not hold a neighbour with the same beginning")?;
    for requests in [1, 2, 64] {
        let mut found: Vec<Location> =
            store.list_parallel(at, requests).map_ok(|info| info.location).try_collect().await?;
        found.sort();
        rule(found == expected, "a parallel listing holds every object once")?;
    }
    pages(store, &at.join("flat")).await?;
    let log = at.join("log");
    for name in ["00.json", "01.json", "02.json", "_sidecars/x", "_last_checkpoint"] {
        store.put(&log.join(name), Bytes::from_static(b"{}")).await?;
    }
    let after = store.list_from(&log, "00.json").await?;
    let names: Vec<&str> = after.iter().map(|info| info.location.file_name()).collect();
    rule(names == ["01.json", "02.json", "_last_checkpoint"], "a listing from a name holds the later direct children")?;
    rule(store.list_from(&log, "").await?.len() == 4, "a listing from nothing holds all direct children")
}

/// A folder of more objects than one page of a listing holds, with other folders among them.
async fn pages(store: &Store, at: &Location) -> Result<()> {
    let names = (0..FLAT).map(|i| if i % 250 == 0 { format!("part-{i:05}/x") } else { format!("part-{i:05}") });
    let mut expected: Vec<Location> = names.map(|name| at.join(&name)).collect();
    let puts = expected.iter().map(|file| store.put(file, Bytes::from_static(b"x")));
    futures::stream::iter(puts).buffer_unordered(PUTS_AT_ONCE).try_collect::<()>().await?;
    let mut found: Vec<Location> = store.list_parallel(at, 8).map_ok(|info| info.location).try_collect().await?;
    found.sort();
    expected.sort();
    rule(found == expected, "a parallel listing of many pages holds every object once")
}

async fn uploading(store: &Store, at: &Location) -> Result<()> {
    let piece = Bytes::from((0..=250_u8).cycle().take(3 << 20).collect::<Vec<u8>>());
    for pieces in [0_usize, 1, 7] {
        let file = at.join(&format!("{pieces} pieces"));
        let mut upload = store.upload(&file).await?;
        for _ in 0..pieces {
            upload.write(piece.clone()).await?;
        }
        rule(!store.exists(&file).await?, "an unfinished upload is not visible")?;
        upload.finish().await?;
        let read = store.get(&file).await?;
        let whole = read.len() == pieces * piece.len() && read.chunks(piece.len()).all(|chunk| chunk == piece);
        rule(whole, "an upload holds its pieces in order")?;
    }
    let file = at.join("aborted");
    let mut upload = store.upload(&file).await?;
    for _ in 0..4 {
        upload.write(piece.clone()).await?;
    }
    upload.abort().await?;
    rule(!store.exists(&file).await?, "an aborted upload leaves no object")?;
    rule(store.list(at).await?.len() == 3, "an aborted upload leaves nothing to list")
}

/// Deletes everything that the suite wrote.
async fn deleting(store: &Store, root: &Location) -> Result<()> {
    let missing = root.join("never was there");
    let all: Vec<Location> = store.list(root).await?.into_iter().map(|info| info.location).collect();
    let (logs, data): (Vec<_>, Vec<_>) = all.into_iter().partition(|l| l.key().contains("_delta_log"));
    let mut asked = data.clone();
    asked.push(missing);
    let report = sweep(store, SweepPlan::abandoned(asked.clone())?).await?;
    let failed = report.failed.first().map(|(object, why)| format!(", but of {object}: {why}")).unwrap_or_default();
    rule(report.failed.is_empty(), &format!("objects can be deleted, missing ones too{failed}"))?;
    rule(report.deleted.len() == asked.len(), "each deletion is reported")?;
    let left: Vec<Location> = store.list(root).await?.into_iter().map(|info| info.location).collect();
    rule(left == logs, "deleted objects are gone, and no others")?;
    for log in logs {
        let path = store.path(&log)?;
        object_store::ObjectStoreExt::delete(&*store.object_store(), &path)
            .await
            .map_err(|e| crate::failure::storage_error(e, "delete", &log))?;
    }
    rule(store.list(root).await?.is_empty(), "nothing is left")
}
