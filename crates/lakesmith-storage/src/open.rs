//! From a location and settings to an object store.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use lakesmith_core::{Error, Result};
use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey, S3ConditionalPut};
use object_store::azure::{AzureConfigKey, MicrosoftAzure, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorage, GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::list::PaginatedListStore;
use object_store::memory::InMemory;
use object_store::signer::Signer;
use object_store::{ObjectStore, RetryConfig};

use crate::encoding::redact;
use crate::failure::credentials_missing;
use crate::location::{Location, Scheme};
use crate::pages::Pages;
use crate::resume::Resuming;

/// How to reach a storage.
///
/// Settings are named as the environment names them, in any case (`aws_access_key_id`, `AZURE_STORAGE_ACCOUNT_KEY`,
/// `allow_http`), or as Hadoop does (`fs.s3a.access.key`, with or without `spark.hadoop.`). A later setting wins.
#[derive(Clone)]
pub struct StoreOptions {
    settings: BTreeMap<String, String>,
    /// Times that a failed request is sent again.
    pub retries_max: usize,
    /// The longest time over which one request is sent again.
    pub retry_timeout: Duration,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self { settings: BTreeMap::new(), retries_max: 10, retry_timeout: Duration::from_secs(180) }
    }
}

impl std::fmt::Debug for StoreOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The values can be secrets.
        f.debug_struct("StoreOptions").field("settings", &self.settings.keys()).finish_non_exhaustive()
    }
}

impl StoreOptions {
    /// The settings of the environment: `AWS_*`, `AZURE_*`, `GOOGLE_*`.
    pub fn from_env() -> Self {
        let mut options = Self::default();
        for (key, value) in std::env::vars_os() {
            if let (Some(key), Some(value)) = (key.to_str(), value.to_str())
                && ["AWS_", "AZURE_", "GOOGLE_"].iter().any(|prefix| key.starts_with(prefix))
                && !value.is_empty()
            {
                options = options.with(key, value);
            }
        }
        options
    }

    /// Adds or replaces a setting.
    #[must_use]
    pub fn with(mut self, key: &str, value: &str) -> Self {
        let key = key.to_ascii_lowercase();
        match hadoop_setting(key.strip_prefix("spark.hadoop.").unwrap_or(&key), value) {
            Some((key, value)) => self.settings.insert(key, value),
            None => self.settings.insert(key, value.to_owned()),
        };
        self
    }

    /// True when the name is one that this type understands as a storage setting.
    pub fn understands(key: &str) -> bool {
        let key = key.to_ascii_lowercase();
        hadoop_setting(key.strip_prefix("spark.hadoop.").unwrap_or(&key), "").is_some()
            || AmazonS3ConfigKey::from_str(&key).is_ok()
            || AzureConfigKey::from_str(&key).is_ok()
            || GoogleConfigKey::from_str(&key).is_ok()
    }

    fn retry(&self) -> RetryConfig {
        RetryConfig { max_retries: self.retries_max, retry_timeout: self.retry_timeout, ..RetryConfig::default() }
    }

    fn parsed<K: FromStr>(&self) -> impl Iterator<Item = (K, &str)> {
        self.settings.iter().filter_map(|(key, value)| Some((key.parse().ok()?, value.as_str())))
    }

    fn endpoint_is_plain(&self, keys: &[&str]) -> bool {
        keys.iter().any(|key| self.settings.get(*key).is_some_and(|url| url.starts_with("http://")))
    }
}

/// Hadoop's name for a setting, in ours.
fn hadoop_setting(key: &str, value: &str) -> Option<(String, String)> {
    let ours = match key {
        "fs.s3a.access.key" => "aws_access_key_id",
        "fs.s3a.secret.key" => "aws_secret_access_key",
        "fs.s3a.session.token" => "aws_session_token",
        "fs.s3a.endpoint.region" => "aws_region",
        "fs.s3a.path.style.access" => {
            let virtual_hosted = !value.eq_ignore_ascii_case("true");
            return Some(("aws_virtual_hosted_style_request".to_owned(), virtual_hosted.to_string()));
        }
        "fs.s3a.endpoint" => {
            let url = if value.contains("://") { value.to_owned() } else { format!("https://{value}") };
            return Some(("aws_endpoint_url".to_owned(), url));
        }
        _ if key.starts_with("fs.azure.account.key.") => "azure_storage_account_key",
        _ => return None,
    };
    Some((ours.to_owned(), value.to_owned()))
}

/// In-process stores by name, so that two sessions of a process see the same `memory://name`.
static MEMORY: LazyLock<Mutex<BTreeMap<String, Arc<InMemory>>>> = LazyLock::new(Mutex::default);

/// An object store, what lists it page by page where it can, and what signs requests to it where it deletes in bulk only.
pub(crate) struct Opened {
    pub(crate) store: Arc<dyn ObjectStore>,
    pub(crate) pages: Option<Pages>,
    pub(crate) signer: Option<Arc<dyn Signer>>,
}

pub(crate) fn open(root: &Location, options: &StoreOptions) -> Result<Opened> {
    let plain = |store| Opened { store, pages: None, signer: None };
    Ok(match root.kind() {
        Scheme::File => plain(Arc::new(crate::local::LocalStore)),
        Scheme::Memory => {
            let mut stores = MEMORY.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            plain(Arc::clone(stores.entry(root.authority().to_owned()).or_default()) as Arc<dyn ObjectStore>)
        }
        Scheme::S3 => {
            let store = s3(root, options)?;
            Opened { signer: Some(Arc::clone(&store) as Arc<dyn Signer>), ..remote(store, options) }
        }
        Scheme::Gcs => remote(gcs(root, options)?, options),
        Scheme::Abfss | Scheme::Azure => remote(azure(root, options)?, options),
    })
}

fn remote<T: ObjectStore + PaginatedListStore>(store: Arc<T>, options: &StoreOptions) -> Opened {
    let patience = options.retry_timeout;
    let pages = Pages::new(Arc::clone(&store) as Arc<dyn PaginatedListStore>, patience);
    Opened { store: Arc::new(Resuming::new(store, patience)), pages: Some(pages), signer: None }
}

fn s3(root: &Location, options: &StoreOptions) -> Result<Arc<AmazonS3>> {
    let mut builder = AmazonS3Builder::new().with_retry(options.retry());
    if options.endpoint_is_plain(&[
        "aws_endpoint_url",
        "aws_endpoint",
        "aws_endpoint_url_s3",
        "endpoint",
        "endpoint_url",
    ]) {
        builder = builder.with_allow_http(true);
    }
    for (key, value) in options.parsed::<AmazonS3ConfigKey>() {
        builder = builder.with_config(key, value);
    }
    let store = builder
        .with_bucket_name(root.authority())
        // The commit needs put-if-absent to be decided by the store itself.
        .with_conditional_put(S3ConditionalPut::ETagMatch)
        .build()
        .map_err(|e| setting_error(e, root))?;
    Ok(Arc::new(store))
}

fn gcs(root: &Location, options: &StoreOptions) -> Result<Arc<GoogleCloudStorage>> {
    let mut builder = GoogleCloudStorageBuilder::new().with_retry(options.retry());
    for (key, value) in options.parsed::<GoogleConfigKey>() {
        builder = builder.with_config(key, value);
    }
    Ok(Arc::new(builder.with_bucket_name(root.authority()).build().map_err(|e| setting_error(e, root))?))
}

fn azure(root: &Location, options: &StoreOptions) -> Result<Arc<MicrosoftAzure>> {
    let mut builder = MicrosoftAzureBuilder::new().with_retry(options.retry());
    if options.endpoint_is_plain(&["azure_storage_endpoint", "azure_endpoint"]) {
        builder = builder.with_allow_http(true);
    }
    for (key, value) in options.parsed::<AzureConfigKey>() {
        builder = builder.with_config(key, value);
    }
    builder = match root.authority().split_once('@') {
        Some((container, host)) => {
            builder.with_container_name(container).with_account(host.split('.').next().unwrap_or(host))
        }
        None => builder.with_container_name(root.authority()),
    };
    Ok(Arc::new(builder.build().map_err(|e| setting_error(e, root))?))
}

fn setting_error(source: object_store::Error, root: &Location) -> Error {
    let text = source.to_string();
    let message = credentials_missing(&text, root)
        .unwrap_or_else(|| "the storage settings are incomplete or contradict each other".to_owned());
    Error::usage(message).with("location", root).caused_by(redact(&text))
}
