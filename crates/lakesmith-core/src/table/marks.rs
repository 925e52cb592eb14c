//! Rarely different facts of files, interned: tags and the clustering provider.

use std::collections::BTreeMap;

/// Tags and clustering provider of a file. Many files share one value.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct FileMarks {
    /// Tags as stored.
    pub tags: BTreeMap<String, Option<String>>,
    /// `clusteringProvider` of Delta's add action.
    pub clustering_provider: Option<String>,
}

impl FileMarks {
    /// A tag's value.
    pub fn tag(&self, key: &str) -> Option<&str> {
        self.tags.get(key).and_then(|v| v.as_deref())
    }
}
