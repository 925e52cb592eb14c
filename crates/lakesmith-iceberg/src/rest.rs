//! A REST catalog, asked for what readers need: namespaces, tables, and where the metadata of a table lies.
//!
//! # Source
//! Iceberg "REST Catalog Open API" (`open-api/rest-catalog-open-api.yaml`).

use std::collections::BTreeMap;
use std::time::Duration;

use lakesmith_core::{Error, Result};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::{Client, Method, StatusCode};
use serde_json::Value;
use tokio::sync::OnceCell;

/// Levels of a namespace are joined by this in paths.
const LEVEL_SEPARATOR: char = '\u{1f}';
/// What a part of a path keeps as it is.
const KEPT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
const TIMEOUT: Duration = Duration::from_secs(60);
/// Pages of one listing: a server that never ends would be asked forever.
const PAGES_MAX: usize = 10_000;
/// A request that the server is too busy for is sent again so often.
const TRIES: u32 = 4;

/// Properties of a catalog as users set them.
#[derive(Clone, Default)]
pub struct RestOptions {
    /// The server's address.
    pub uri: String,
    /// The warehouse that is asked for, if any.
    pub warehouse: Option<String>,
    /// The catalog's properties by name: `token`, `credential`, `scope`, `oauth2-server-uri`, `prefix`, `header.*`.
    pub properties: BTreeMap<String, String>,
}

impl std::fmt::Debug for RestOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The values can be secrets.
        f.debug_struct("RestOptions").field("uri", &self.uri).field("properties", &self.properties.keys()).finish()
    }
}

/// A table as the catalog knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestTable {
    /// Its newest metadata file.
    pub metadata_location: String,
    /// Its folder.
    pub location: Option<String>,
    /// Properties of the table's storage, credentials among them.
    pub config: BTreeMap<String, String>,
}

/// A connection to a REST catalog.
#[derive(Debug)]
pub struct RestCatalog {
    options: RestOptions,
    client: Client,
    /// What the server says of itself, and the token for it.
    session: OnceCell<Session>,
}

#[derive(Debug)]
struct Session {
    properties: BTreeMap<String, String>,
    token: Option<String>,
}

impl RestCatalog {
    /// Nothing is asked yet.
    ///
    /// # Errors
    /// Unavailable if no connections can be made at all.
    pub fn new(options: RestOptions) -> Result<Self> {
        let client = Client::builder().timeout(TIMEOUT).build();
        let client = client.map_err(|e| Error::unavailable("cannot make connections to a catalog").caused_by(e))?;
        Ok(Self { options, client, session: OnceCell::new() })
    }

    /// Names of the namespaces below `parent`, levels joined by dots.
    ///
    /// # Errors
    /// Unavailable, Usage if the server refuses what it is told.
    pub async fn namespaces(&self, parent: Option<&str>) -> Result<Vec<String>> {
        let parent = parent.map(|name| format!("parent={}", encoded(&levels(name)))).unwrap_or_default();
        let pages = self.pages("namespaces", &parent, "namespaces").await?;
        Ok(pages.iter().filter_map(joined).collect())
    }

    /// True if there is this namespace.
    ///
    /// # Errors
    /// As [`RestCatalog::namespaces`].
    pub async fn has_namespace(&self, name: &str) -> Result<bool> {
        let path = format!("namespaces/{}", encoded(&levels(name)));
        Ok(self.get(&path, "").await?.is_some())
    }

    /// Names of the tables of a namespace; none if there is no such namespace.
    ///
    /// # Errors
    /// As [`RestCatalog::namespaces`].
    pub async fn tables(&self, namespace: &str) -> Result<Vec<String>> {
        let path = format!("namespaces/{}/tables", encoded(&levels(namespace)));
        let pages = self.pages(&path, "", "identifiers").await?;
        Ok(pages.iter().filter_map(|table| table.get("name")?.as_str().map(str::to_owned)).collect())
    }

    /// A table; `None` if there is none of this name.
    ///
    /// # Errors
    /// As [`RestCatalog::namespaces`]; Unsupported for a table that no metadata file describes.
    pub async fn table(&self, namespace: &str, name: &str) -> Result<Option<RestTable>> {
        let path = format!("namespaces/{}/tables/{}", encoded(&levels(namespace)), encoded(name));
        let Some(answer) = self.get(&path, "snapshots=all").await? else { return Ok(None) };
        let metadata_location = answer.get("metadata-location").and_then(Value::as_str).ok_or_else(|| {
            Error::unsupported("the catalog names no metadata file of the table: it is staged and not there yet")
                .with("table", format!("{namespace}.{name}"))
        })?;
        let mut config = texts(answer.get("config"));
        // The credentials of the longest prefix are the most particular ones.
        let credentials = answer.get("storage-credentials").and_then(Value::as_array).into_iter().flatten();
        let fitting = credentials
            .filter_map(|c| Some((c.get("prefix")?.as_str()?, c.get("config"))))
            .filter(|(prefix, _)| metadata_location.starts_with(prefix))
            .max_by_key(|(prefix, _)| prefix.len());
        if let Some((_, credentials)) = fitting {
            config.extend(texts(credentials));
        }
        let location = answer.get("metadata").and_then(|m| m.get("location")).and_then(Value::as_str);
        Ok(Some(RestTable {
            metadata_location: metadata_location.to_owned(),
            location: location.map(str::to_owned),
            config,
        }))
    }

    async fn session(&self) -> Result<&Session> {
        self.session
            .get_or_try_init(|| async {
                let mut properties = self.options.properties.clone();
                let token = self.token(&properties).await?;
                let query = match &self.options.warehouse {
                    Some(warehouse) => format!("warehouse={}", encoded(warehouse)),
                    None => String::new(),
                };
                let answer = self.send(token.as_deref(), &properties, "config", &query).await?;
                let answer = answer.ok_or_else(|| {
                    Error::usage("the server is no REST catalog: it has no v1/config; check the catalog's uri")
                        .with("uri", self.address(""))
                })?;
                let mut all = texts(answer.get("defaults"));
                all.append(&mut properties);
                all.extend(texts(answer.get("overrides")));
                Ok(Session { properties: all, token })
            })
            .await
    }

    /// The token that the user has, or the one that the server gives for the user's credential.
    async fn token(&self, properties: &BTreeMap<String, String>) -> Result<Option<String>> {
        if properties.get("rest.sigv4-enabled").is_some_and(|v| v.eq_ignore_ascii_case("true"))
            || properties.get("rest.auth.type").is_some_and(|v| v.eq_ignore_ascii_case("sigv4"))
        {
            return Err(Error::unsupported("signing requests to a catalog by SigV4 is not supported in this version")
                .with("uri", self.address("")));
        }
        if let Some(token) = properties.get("token") {
            return Ok(Some(token.clone()));
        }
        let Some(credential) = properties.get("credential") else { return Ok(None) };
        let mut form = vec![("grant_type", "client_credentials")];
        match credential.split_once(':') {
            Some((id, secret)) => form.extend([("client_id", id), ("client_secret", secret)]),
            None => form.push(("client_secret", credential)),
        }
        form.push(("scope", properties.get("scope").map_or("catalog", String::as_str)));
        let body = form.iter().map(|(key, value)| format!("{key}={}", encoded(value))).collect::<Vec<_>>().join("&");
        let server = properties.get("oauth2-server-uri").cloned();
        let server = server.unwrap_or_else(|| self.address("oauth/tokens"));
        let request = self
            .client
            .request(Method::POST, &server)
            .header("content-type", "application/x-www-form-urlencoded")
            .body(body);
        let response = request.send().await.map_err(|e| unreachable_server(&server, e))?;
        let status = response.status();
        let text = response.text().await.map_err(|e| unreachable_server(&server, e))?;
        let answer: Value = serde_json::from_str(&text).unwrap_or(Value::Null);
        match answer.get("access_token").and_then(Value::as_str) {
            Some(token) if status.is_success() => Ok(Some(token.to_owned())),
            _ => {
                let said = ["error_description", "error"].iter().find_map(|key| answer.get(key)?.as_str());
                Err(Error::usage(format!(
                    "the server gives no token for the catalog's credential ({status}{}); check `credential` and `scope`",
                    said.map(|said| format!(": {said}")).unwrap_or_default()
                ))
                .with("uri", server))
            }
        }
    }

    /// The members `key` of all pages of a listing.
    async fn pages(&self, path: &str, query: &str, key: &str) -> Result<Vec<Value>> {
        let (mut found, mut page) = (Vec::new(), String::new());
        for _ in 0..PAGES_MAX {
            let joined: Vec<&str> = [query, page.as_str()].into_iter().filter(|part| !part.is_empty()).collect();
            let Some(mut answer) = self.get(path, &joined.join("&")).await? else { return Ok(Vec::new()) };
            match answer.get_mut(key).map(Value::take) {
                Some(Value::Array(members)) => found.extend(members),
                _ => return Err(self.odd(path, &format!("its answer has no {key}"))),
            }
            match answer.get("next-page-token").and_then(Value::as_str).filter(|token| !token.is_empty()) {
                Some(token) => page = format!("pageToken={}", encoded(token)),
                None => return Ok(found),
            }
        }
        Err(self.odd(path, "its list does not end"))
    }

    async fn get(&self, path: &str, query: &str) -> Result<Option<Value>> {
        let session = self.session().await?;
        let prefix = session.properties.get("prefix").map(|prefix| format!("{}/", prefix.trim_matches('/')));
        let path = format!("{}{path}", prefix.unwrap_or_default());
        self.send(session.token.as_deref(), &session.properties, &path, query).await
    }

    /// The answer to a request; `None` if what it asks for is not there.
    async fn send(
        &self,
        token: Option<&str>,
        properties: &BTreeMap<String, String>,
        path: &str,
        query: &str,
    ) -> Result<Option<Value>> {
        let address = self.address(path);
        let url = if query.is_empty() { address.clone() } else { format!("{address}?{query}") };
        let mut tries = 0;
        loop {
            tries += 1;
            let mut request = self.client.request(Method::GET, &url).header("accept", "application/json");
            request = request.header("x-iceberg-access-delegation", "vended-credentials");
            for (key, value) in properties {
                if let Some(name) = key.strip_prefix("header.") {
                    request = request.header(name, value);
                }
            }
            if let Some(token) = token {
                request = request.header("authorization", format!("Bearer {token}"));
            }
            let sent = match request.send().await {
                Ok(response) => {
                    let status = response.status();
                    response.text().await.map(|text| (status, text))
                }
                Err(error) => Err(error),
            };
            let may_pass = |status: StatusCode| status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS;
            let busy = match &sent {
                Ok((status, _)) => may_pass(*status),
                Err(error) => error.is_connect() || error.is_timeout(),
            };
            if busy && tries < TRIES {
                tokio::time::sleep(Duration::from_millis(100 << tries)).await;
                continue;
            }
            let (status, text) = sent.map_err(|e| unreachable_server(&address, e))?;
            if status == StatusCode::NOT_FOUND {
                return Ok(None);
            }
            if status.is_success() {
                let parsed = serde_json::from_str(&text);
                return parsed.map(Some).map_err(|e| self.odd(path, "its answer is no JSON").caused_by(e));
            }
            return Err(refused(&address, status, &text));
        }
    }

    fn odd(&self, path: &str, what: &str) -> Error {
        Error::unavailable(format!("the catalog's server answers oddly: {what}")).with("uri", self.address(path))
    }

    fn address(&self, path: &str) -> String {
        format!("{}/v1/{path}", self.options.uri.trim_end_matches('/'))
    }
}

fn unreachable_server(address: &str, error: reqwest::Error) -> Error {
    // The address in the cause could hold secrets.
    let error = error.without_url();
    let mut causes = vec![error.to_string()];
    let mut next = std::error::Error::source(&error);
    while let Some(cause) = next {
        causes.push(cause.to_string());
        next = cause.source();
    }
    Error::unavailable(format!("the catalog's server does not answer: {}", causes.join(": "))).with("uri", address)
}

/// What a refusal says, with the server's own words.
fn refused(address: &str, status: StatusCode, text: &str) -> Error {
    let answer: Value = serde_json::from_str(text).unwrap_or(Value::Null);
    let said = answer.get("error").and_then(|e| e.get("message")).and_then(Value::as_str);
    let said = said.map(|said| format!(": {said}")).unwrap_or_default();
    let error = match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Error::usage(format!(
            "the catalog's server refuses access ({status}{said}); set the catalog's `token`, or its `credential` and `scope`"
        )),
        status if status.is_server_error() => {
            Error::unavailable(format!("the catalog's server fails ({status}{said}); run again"))
        }
        _ => Error::usage(format!("the catalog's server refuses the request ({status}{said})")),
    };
    error.with("uri", address)
}

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, KEPT).to_string()
}

fn levels(name: &str) -> String {
    name.split('.').collect::<Vec<_>>().join(&LEVEL_SEPARATOR.to_string())
}

fn joined(levels: &Value) -> Option<String> {
    let levels: Option<Vec<&str>> = levels.as_array()?.iter().map(Value::as_str).collect();
    levels.map(|levels| levels.join("."))
}

fn texts(object: Option<&Value>) -> BTreeMap<String, String> {
    let pairs = object.and_then(Value::as_object).into_iter().flatten();
    pairs.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

#[cfg(test)]
#[path = "rest_tests.rs"]
mod tests;
