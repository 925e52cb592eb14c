//! Planners: pure, synchronous, deterministic.
