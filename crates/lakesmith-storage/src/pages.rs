//! One level of a folder, page by page: a wide one is never held whole.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::BoxStream;
use object_store::list::{PaginatedListOptions, PaginatedListResult, PaginatedListStore};
use object_store::path::{DELIMITER, Path};
use object_store::{Error, ListResult, Result};

use crate::metered::Counters;
use crate::resume::Breaks;

/// Asks a storage for single pages.
#[derive(Clone)]
pub(crate) struct Pages {
    inner: Arc<dyn PaginatedListStore>,
    patience: Duration,
}

impl fmt::Debug for Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pages").field("patience", &self.patience).finish_non_exhaustive()
    }
}

impl Pages {
    /// A page whose answer breaks off is asked for again unless that already took `patience`.
    pub(crate) fn new(inner: Arc<dyn PaginatedListStore>, patience: Duration) -> Self {
        Self { inner, patience }
    }

    /// The direct children of a folder; each page is counted.
    pub(crate) fn level(self, folder: &Path, counters: Arc<Counters>) -> BoxStream<'static, Result<ListResult>> {
        let prefix = (!folder.as_ref().is_empty()).then(|| format!("{folder}{DELIMITER}"));
        let start = Level { pages: self, counters, prefix, token: None };
        futures::stream::try_unfold(Some(start), |level| async move {
            let Some(mut level) = level else { return Ok(None) };
            let page = level.page().await?;
            let more = page.page_token.is_some();
            level.token = page.page_token;
            Ok(Some((page.result, more.then_some(level))))
        })
        .boxed()
    }
}

struct Level {
    pages: Pages,
    counters: Arc<Counters>,
    prefix: Option<String>,
    /// Where the next page begins.
    token: Option<String>,
}

impl Level {
    async fn page(&self) -> Result<PaginatedListResult> {
        self.counters.count_list();
        let options = || PaginatedListOptions {
            delimiter: Some(DELIMITER.into()),
            page_token: self.token.clone(),
            ..PaginatedListOptions::default()
        };
        let mut breaks = Breaks::new(self.pages.patience);
        loop {
            match self.pages.inner.list_paginated(self.prefix.as_deref(), options()).await {
                Err(error) if breaks.go_on(&error).await => {}
                Ok(page) if page.page_token.is_some() && page.page_token == self.token => {
                    let source = "the listing does not go on: a page names itself as the next one".into();
                    return Err(Error::Generic { store: "listing", source });
                }
                result => return result,
            }
        }
    }
}
