//! Deleting one object by a request of its own, for storages that speak S3 but know no bulk deletion.
//!
//! The S3 client deletes in bulk only, also a single object. A signed URL is a request that any such storage understands.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::Method;
use object_store::client::{
    ClientOptions, HttpClient, HttpConnector as _, HttpRequest, HttpRequestBody, ReqwestConnector,
};
use object_store::path::Path;
use object_store::signer::Signer;
use object_store::{Error, Result};

const VALID_FOR: Duration = Duration::from_secs(900);
const TRIES_MAX: u32 = 4;
const BACKOFF_FIRST: Duration = Duration::from_millis(200);

/// Sends signed deletions.
#[derive(Debug)]
pub(crate) struct SingleDelete {
    signer: Arc<dyn Signer>,
    client: HttpClient,
    bulk_refused: AtomicBool,
}

impl SingleDelete {
    /// # Errors
    /// When the system offers no HTTP client.
    pub(crate) fn new(signer: Arc<dyn Signer>) -> Result<Self> {
        let client = ReqwestConnector::default().connect(&ClientOptions::new().with_allow_http(true))?;
        Ok(Self { signer, client, bulk_refused: AtomicBool::new(false) })
    }

    /// True once the storage took single deletions where it had refused the same in bulk.
    pub(crate) fn bulk_is_refused(&self) -> bool {
        self.bulk_refused.load(Ordering::Relaxed)
    }

    pub(crate) fn note_refusal(&self) {
        self.bulk_refused.store(true, Ordering::Relaxed);
    }

    /// Deletes an object; one that does not exist is deleted already.
    ///
    /// # Errors
    /// What the storage answers, without the signature.
    pub(crate) async fn delete(&self, path: &Path) -> Result<()> {
        let url = self.signer.signed_url(Method::DELETE, path, VALID_FOR).await?;
        let uri: http::Uri =
            url.as_str().parse().map_err(|e| failed(path, format!("the request has no valid URL: {e}")))?;
        let mut wait = BACKOFF_FIRST;
        for attempt in 1.. {
            let mut request = HttpRequest::new(HttpRequestBody::empty());
            *request.method_mut() = Method::DELETE;
            *request.uri_mut() = uri.clone();
            let answer = match self.client.execute(request).await {
                Ok(response) if response.status().is_success() || response.status() == http::StatusCode::NOT_FOUND => {
                    return Ok(());
                }
                Ok(response) if response.status().is_server_error() || response.status().as_u16() == 429 => {
                    format!("the storage answered {}", response.status())
                }
                Ok(response) => return Err(failed(path, format!("the storage answered {}", response.status()))),
                Err(error) => format!("the request failed: {}", crate::encoding::redact(&error.to_string())),
            };
            if attempt == TRIES_MAX {
                return Err(failed(path, answer));
            }
            tokio::time::sleep(wait).await;
            wait *= 2;
        }
        Err(failed(path, "no request was sent".to_owned()))
    }
}

fn failed(path: &Path, answer: String) -> Error {
    Error::Generic { store: "S3", source: format!("{path} was not deleted: {answer}").into() }
}
