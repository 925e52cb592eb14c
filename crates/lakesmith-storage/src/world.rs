//! Clock and identifiers, injected so that tests can fix them.

use std::sync::atomic::{AtomicU64, Ordering};

/// The clock and the source of identifiers of a session.
pub trait World: Send + Sync + std::fmt::Debug {
    /// Milliseconds since the epoch.
    fn now_ms(&self) -> i64;
    /// A new unique identifier.
    fn new_uuid(&self) -> uuid::Uuid;
}

/// The system's clock and random identifiers.
#[derive(Debug, Default, Clone, Copy)]
pub struct SystemWorld;

impl World for SystemWorld {
    fn now_ms(&self) -> i64 {
        jiff::Timestamp::now().as_millisecond()
    }

    fn new_uuid(&self) -> uuid::Uuid {
        uuid::Uuid::new_v4()
    }
}

/// A clock that advances one millisecond a look and identifiers that count: for tests that compare outputs.
#[derive(Debug)]
pub struct FixedWorld {
    now_ms: AtomicU64,
    next_id: AtomicU64,
}

impl FixedWorld {
    /// Starts at `now_ms`.
    pub fn new(now_ms: u64) -> Self {
        Self { now_ms: AtomicU64::new(now_ms), next_id: AtomicU64::new(1) }
    }
}

impl World for FixedWorld {
    fn now_ms(&self) -> i64 {
        self.now_ms.fetch_add(1, Ordering::Relaxed) as i64
    }

    fn new_uuid(&self) -> uuid::Uuid {
        uuid::Uuid::from_u128(u128::from(self.next_id.fetch_add(1, Ordering::Relaxed)))
    }
}
