//! Which of many objects exist, and how large they are: one listing where that is cheaper than asking for each.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};

use futures::{StreamExt as _, TryStreamExt as _};
use lakesmith_core::{ErrorKind, Result};

use crate::control::Cancel;
use crate::location::Location;
use crate::store::Store;

/// Objects that are asked for one by one rather than by a listing.
const ASKED_MAX: usize = 1_000;
/// Requests at once.
const REQUESTS: usize = 32;
const LISTINGS: usize = 8;

/// What is known of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// It exists and has so many bytes.
    Found(u64),
    /// It does not exist.
    Missing,
    /// It lies on another storage, which was not asked.
    Elsewhere,
}

/// Looks for `count` objects; `locate` says where each of them is. Memory is 32 bytes an object.
///
/// A listing that leaves something out costs a request, never a wrong answer: what it does not show is asked for by name.
///
/// # Errors
/// Those of `locate`, `Cancelled`, and `Unavailable` from the storage.
pub async fn presence(
    store: &Store,
    root: &Location,
    count: usize,
    locate: &(dyn Fn(usize) -> Result<Location> + Sync),
    cancel: &Cancel,
) -> Result<Vec<Presence>> {
    let mut found = vec![Presence::Missing; count];
    let mut wanted: Vec<(u64, usize)> = Vec::with_capacity(count);
    for (index, slot) in found.iter_mut().enumerate() {
        let location = locate(index)?;
        if store.holds(&location) {
            wanted.push((hash(&location), index));
        } else {
            *slot = Presence::Elsewhere;
        }
    }
    wanted.sort_unstable();
    if wanted.len() > ASKED_MAX {
        let mut listing = store.list_parallel(root, LISTINGS);
        while let Some(info) = listing.try_next().await? {
            cancel.check()?;
            let key = hash(&info.location);
            let from = wanted.partition_point(|(hash, _)| *hash < key);
            for (_, index) in wanted[from..].iter().take_while(|(hash, _)| *hash == key) {
                if locate(*index)? == info.location {
                    found[*index] = Presence::Found(info.size);
                }
            }
        }
    }
    let unseen: Vec<usize> =
        wanted.iter().map(|(_, index)| *index).filter(|index| found[*index] == Presence::Missing).collect();
    let mut asked = futures::stream::iter(unseen)
        .map(|index| async move {
            cancel.check()?;
            match store.head(&locate(index)?).await {
                Ok(info) => Ok((index, Presence::Found(info.size))),
                Err(error) if error.kind() == ErrorKind::NotFound => Ok((index, Presence::Missing)),
                Err(error) => Err(error),
            }
        })
        .buffer_unordered(REQUESTS);
    while let Some((index, presence)) = asked.try_next().await? {
        found[index] = presence;
    }
    drop(asked);
    Ok(found)
}

fn hash(location: &Location) -> u64 {
    let mut hasher = DefaultHasher::new();
    location.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;
    use object_store::memory::InMemory;

    use super::*;

    #[tokio::test]
    async fn few_are_asked_for_and_many_are_listed() {
        let root = Location::parse("memory://presence/t").unwrap();
        for count in [10, ASKED_MAX + 500] {
            let store = Store::from_object_store(Arc::new(InMemory::new()), &root);
            for i in (0..count).filter(|i| i % 3 != 0) {
                let bytes = Bytes::from(vec![0; i % 7]);
                store.put(&root.join(&format!("p={}/f{i}", i % 5)), bytes).await.unwrap();
            }
            let before = store.requests().total();
            let elsewhere = Location::parse("memory://other/x").unwrap();
            let locate =
                |i: usize| Ok(if i == count { elsewhere.clone() } else { root.join(&format!("p={}/f{i}", i % 5)) });
            let found = presence(&store, &root, count + 1, &locate, &Cancel::default()).await.unwrap();
            for (i, presence) in found.iter().enumerate() {
                let expected = match i {
                    i if i == count => Presence::Elsewhere,
                    i if i % 3 == 0 => Presence::Missing,
                    i => Presence::Found((i % 7) as u64),
                };
                assert_eq!(*presence, expected, "{i} of {count}");
            }
            let requests = store.requests().total() - before;
            assert!(requests <= count as u64, "{requests} requests for {count}");
        }
    }
}
